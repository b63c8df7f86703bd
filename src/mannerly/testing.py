"""Pages for unit tests of handlers and extract functions, without a network.

    from mannerly.testing import page

    def test_product():
        (item,) = product(page("<h1>Tea</h1>", url="https://shop.example/1", data={"price": 4}))
        assert item["name"] == "Tea"

A spider can be called with such a page, too: `shop(page(…, label="product"))` picks the handler.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from mannerly.crawler.model import Entry, Fetched, Request
from mannerly.crawler.page.html import parse_page
from mannerly.crawler.page.page import Page
from mannerly.crawler.page.parsed import ParsedPage
from mannerly.crawler.page.record import page_record
from mannerly.crawler.payload import payload
from mannerly.crawler.web.urls import canonical, host_key_of

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["page"]


def page(
    html: str | bytes = "",
    *,
    url: str = "https://example.com/",
    status: int | None = 200,
    error: str | None = None,
    headers: Mapping[str, str] | None = None,
    label: str = "",
    data: Any = None,
    session: str = "",
) -> Page:
    """Return a page as a crawl hands it to a handler.

    Args:
        html: the body; text is encoded as UTF-8.
        url: of the page, as a browser would have it.
        status: of the answer; None: there was none, and `error` says why.
        error: a reason code such as "timeout".
        headers: of the answer; by default it is HTML.
        label: of the request that led here.
        data: of that request.
        session: of that request.

    Raises:
        ValueError: the URL, the label or the data is none that a crawl could have.
    """
    asked = canonical(url)
    if asked is None:
        raise ValueError(f"not a URL that can be asked for: {url[:200]!r}")
    named = {name.lower(): value for name, value in (headers or {}).items()}
    named.setdefault("content-type", "text/html; charset=utf-8")
    body = html.encode() if isinstance(html, str) else html
    carried = payload(label=label, data=data, session=session)
    host = host_key_of(asked)
    entry = Entry(0, asked, host, 0, 0, None, 0)
    answer = Fetched(Request(asked, host, timeout_s=0.0), status, named, body)
    parsed = parse_page(body, named["content-type"], asked)
    record = page_record(
        entry,
        answer,
        time.time(),
        page=parsed if isinstance(parsed, ParsedPage) else None,
        error=error,
    )
    return Page(record, named, body, carried=carried)
