"""`host forget`, and `host resume` for a host that was given up: each acts once."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import pytest
from tests.crawler.control.troubles import RETRY_AFTER_S, SLOW_S

if TYPE_CHECKING:
    from concurrent.futures import Future

    from tests.crawler.control.troubles import Forgotten

pytestmark = pytest.mark.processes


@pytest.fixture
def story(troubles: Future[Forgotten]) -> Forgotten:
    return troubles.result()


def test_learned_pace_is_forgotten(story: Forgotten) -> None:
    """The record is empty, and the server sees the pace of an unknown host."""
    assert story.before.adaptive_delay_s == pytest.approx(SLOW_S)
    assert story.forgot.code == 0
    assert story.forgot.err.endswith("; its robots.txt will be fetched again\n")
    assert story.after.adaptive_delay_s < SLOW_S
    instants = [instant for instant, _ in story.busy.log[5 : story.seen]]
    gaps = [later - earlier for earlier, later in pairwise(instants)]
    assert min(gaps) < 0.8 < SLOW_S


def test_retry_after_outlives_what_was_learned(story: Forgotten) -> None:
    """The host asked for it: nothing is sent before, not even for robots.txt."""
    later = [instant for instant, _ in story.busy.log if instant > story.busy.refused_at]
    assert later[0] - story.busy.refused_at >= RETRY_AFTER_S


def test_robots_txt_is_read_again_once(story: Forgotten) -> None:
    """Before the next page; and the order does not act again in the next run."""
    _, again_at = (at for at, path in story.busy.log if path == "/robots.txt")
    assert not [path for at, path in story.busy.log if story.forgot_at < at < again_at]


def test_host_that_was_given_up_comes_back(story: Forgotten) -> None:
    """Its pages are fetched again, once it was resumed."""
    assert "failures in a row" in (story.given_up.retired or "")
    assert story.resume.code == 0
    assert story.revived.retired is None
    assert "/another" in story.broken.log


def test_host_that_is_given_up_again_stays_so(story: Forgotten) -> None:
    """An old `host resume` does not bring it back whenever the crawl is resumed."""
    assert "failures in a row" in (story.given_up_again.retired or "")
