"""The record of an answer has what the page says about itself, and how long it took."""

from __future__ import annotations

import pytest

from mannerly.crawler.model import Entry, Fetched, Request
from mannerly.crawler.page.harvest import harvest
from mannerly.crawler.page.links import HrefMemory, LinkRules
from mannerly.crawler.settings import CrawlSettings
from mannerly.crawler.web.recent import Recent
from mannerly.crawler.web.urls import UrlRules

URL = "https://a.example/"
LINK = b'<a href="/x">x</a>'
META = b'<meta name="robots" content="noindex">'


def record_of(body: bytes, **headers: str):
    rules = LinkRules(CrawlSettings().scope_of([URL]), "mannerly", 5, UrlRules(), HrefMemory())
    sent = {"content-type": "text/html"} | {
        name.replace("_", "-"): value for name, value in headers.items()
    }
    answer = Fetched(Request(URL, "a.example", 5.0), 200, sent, body, 0.25, 14.5)
    return harvest(Entry(1, URL, "a.example", 0, 0, None, 0), answer, rules, Recent(), 0.0).record


@pytest.mark.parametrize("body", [META, META + LINK])
def test_a_meta_element_marks_the_record(body: bytes) -> None:
    """With links and without."""
    assert record_of(body).noindex


def test_a_header_marks_the_record() -> None:
    """X-Robots-Tag says the same for answers that are no HTML."""
    assert record_of(LINK, x_robots_tag="noindex").noindex
    assert not record_of(LINK, x_robots_tag="otherbot: noindex").noindex


def test_both_times_are_kept() -> None:
    """To the first byte, and to the last one."""
    record = record_of(LINK)

    assert (record.latency_ms, record.total_ms) == (250.0, 14_500.0)
