"""Which URLs have failed is said once in Python and once in SQL, and both agree."""

from __future__ import annotations

import apsw
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mannerly.crawler.kinds import Kind
from mannerly.crawler.model import Entry, is_failed
from mannerly.crawler.store.contract.values import page
from mannerly.crawler.store.sqlite.schema import FAILED, MAY_HAVE_FAILED

ERRORS = [None, "timeout", "crashes_parser", "parse_failed", "links_capped", "robots"]


@given(
    status=st.none() | st.integers(100, 999),
    error=st.sampled_from(ERRORS),
    parent=st.sampled_from([None, "https://a.example/"]),
    kind=st.sampled_from(Kind),
)
@example(status=404, error=None, parent=None, kind=Kind.PAGE)
@example(status=200, error="crashes_parser", parent=None, kind=Kind.PAGE)
def test_the_condition_of_the_file_is_that_of_the_model(
    status: int | None, error: str | None, parent: str | None, kind: Kind
) -> None:
    """For every record; and what has failed is in the index."""
    entry = Entry(1, "https://a.example/1", "a.example", 0, 0, parent, 0, kind)
    record = page(entry, status=status, error=error)
    connection = apsw.Connection(":memory:")
    query = f"SELECT {FAILED}, {MAY_HAVE_FAILED} FROM (SELECT ? status, ? error, ? parent, ? kind)"

    ((has_failed, is_indexed),) = connection.execute(
        query, (status, error, parent, kind)
    ).fetchall()

    assert has_failed == is_failed(record, kind)
    assert is_indexed >= has_failed


@pytest.mark.parametrize("status", [200, 204, 301, 304, 400, 404, 410, 451])
def test_a_page_that_is_not_there_has_not_failed(status: int) -> None:
    """Unless it is a seed, its answer is a result: asking again would bring the same."""
    entry = Entry(1, "https://a.example/1", "a.example", 1, 0, "https://a.example/", 0)

    assert not is_failed(page(entry, status=status))
