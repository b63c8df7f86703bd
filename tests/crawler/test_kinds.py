"""The table of request kinds: it is complete, and the only place that tells kinds apart."""

from __future__ import annotations

import re
from pathlib import Path

import mannerly.crawler
from mannerly.crawler.kinds import KINDS, Form, Kind, Limit, numbers

# `each.kind == …`, `each.kind in …`, `kind == Kind.PAGE`
_COMPARED = re.compile(r"\.kind (?:==|!=|is|in|not in) |[!=]= Kind\.")
_WORDS = re.compile(r'"""(?:.|\n)*?"""|#.*')


def test_every_kind_has_the_row_of_its_number() -> None:
    assert [row.kind for row in KINDS] == list(Kind)
    assert [int(kind) for kind in Kind] == list(range(len(KINDS)))


def test_each_row_has_one_form() -> None:
    for row in KINDS:
        flags = (
            row.is_page,
            row.is_listing,
            row.is_check,
            row.is_requisite,
            row.form is Form.RULES,
        )
        assert sum(flags) == 1
    assert numbers(Form.LISTING) == (Kind.SITEMAP, Kind.CT, Kind.COMMONCRAWL)
    assert numbers(Form.CHECK) == (Kind.CHECK, Kind.CHECK_GET)


def test_only_pages_count_for_the_limit_of_pages() -> None:
    assert all((row.limit is Limit.PAGES) == row.is_page for row in KINDS)


def test_a_kind_that_is_asked_again_as_another_one_was_queued_as_itself() -> None:
    for row in KINDS:
        assert KINDS[row.first].first == row.first
        if row.after_refusal is not None:
            again = KINDS[row.after_refusal]
            assert (again.form, again.first, again.after_refusal) == (row.form, row.kind, None)
            assert row.is_head
            assert not again.is_head


def test_no_other_module_compares_kinds() -> None:
    """A new kind is a row, a reader and what queues it: no other module has a test for it."""
    folder = Path(mannerly.crawler.__file__).parent
    found = []
    for path in sorted(folder.rglob("*.py")):
        text = _WORDS.sub("", path.read_text())
        if path.name == "kinds.py" or "crawler.kinds import" not in text:
            continue
        if path.parent.name == "contract":  # tests of stores, which make entries of every kind
            continue
        found += [
            f"{path.relative_to(folder)}: {line.strip()}"
            for line in text.splitlines()
            if _COMPARED.search(line)
        ]
    assert found == []
