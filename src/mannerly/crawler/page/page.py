"""A page as the library hands it to a program. Text and links are computed when they are read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from mannerly.crawler.web.choices import Content
from mannerly.crawler.web.urls import canonical

from .html import page_text, parse_page
from .links import resolve_links
from .parsed import ParsedPage

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from turbohtml import Document, Element

    from mannerly.crawler.model import PageRecord, Received
    from mannerly.crawler.payload import Payload

    from .form import PageForm
    from .request import PageRequest


class Page:
    """One fetched URL, with its content.

    A page that could not be fetched has a `status` of None and an `error`. Asking the crawl for the
    next page acknowledges this one; `done()` does so earlier.

    Attributes:
        record: the record as it is stored and exported.
        headers: the response's headers, names in lower case, without Set-Cookie.
        body: the response's body, decompressed, cut at `max_bytes`; of a page that was rendered
            the final DOM.
    """

    __slots__ = (
        *("_carried", "_done", "_items", "_links", "_received", "_tree"),
        *("body", "headers", "record"),
    )

    def __init__(
        self,
        record: PageRecord,
        headers: Mapping[str, str],
        body: bytes,
        done: Callable[[], None] | None = None,
        carried: Payload | None = None,
        items: Sequence[bytes] = (),
        received: Received | None = None,
    ) -> None:
        self.record = record
        self.headers = headers
        self.body = body
        self._done = done
        self._carried = carried
        self._items = items
        self._received = received
        self._links: list[str] | None = None
        self._tree: Document | None = None

    def __reduce__(self) -> tuple[type[Page], tuple[Any, ...]]:
        # So a page can be sent to a process pool. The copy cannot acknowledge it.
        given = (self.record, dict(self.headers), self.body, None, self._carried, self._items)
        return Page, (*given, self._received)

    def __repr__(self) -> str:
        return f"<Page {self.url} {self.status if self.status is not None else self.error}>"

    @property
    def url(self) -> str:
        """The URL that was fetched, in its canonical spelling."""
        return self.record.url

    @property
    def status(self) -> int | None:
        """The HTTP status; None if there was no answer."""
        return self.record.status

    @property
    def error(self) -> str | None:
        """A reason code such as "timeout" if something went wrong, else None."""
        return self.record.error

    @property
    def title(self) -> str | None:
        """The text of `<title>`, on one line."""
        return self.record.title

    @property
    def content_type(self) -> str | None:
        """The Content-Type header."""
        return self.record.content_type

    @property
    def depth(self) -> int:
        """The number of links from a seed to this page; 0 for a seed."""
        return self.record.depth

    @property
    def parent(self) -> str | None:
        """The URL of the page where this one was found first; None for a seed."""
        return self.record.parent

    @property
    def redirect_to(self) -> str | None:
        """The target of a redirect; that URL is a page of its own if it is in scope."""
        return self.record.redirect_to

    @property
    def label(self) -> str:
        """The label of the request that led here (`follow`); empty for a link."""
        return "" if self._carried is None else self._carried.label

    @property
    def data(self) -> Any:
        """The data of the request that led here, a copy each time; {} without."""
        return {} if self._carried is None else self._carried.data

    @property
    def session(self) -> str:
        """The name of the cookies that the page was asked for with; empty without."""
        return "" if self._carried is None else self._carried.session

    @property
    def items(self) -> list[dict[str, Any]]:
        """The items that the extract function or a handler has made of this page."""
        return [msgspec.json.decode(item) for item in self._items]

    def follow(self, link: str | Element, **parts: Any) -> PageRequest:
        """Return a request for a link of this page, to be yielded from an extract function.

        `link` is a URL, relative ones included, or an element with an `href` or a `src`. `parts`
        are the other arguments of `mannerly.Request`: method, headers, json, form, label, data …

        Raises:
            ValueError: it leads to no URL, or a part cannot be sent or stored.
        """
        from .request import PageRequest

        href: object = link
        if not isinstance(link, str):
            href = link.attrs.get("href") or link.attrs.get("src")
        url = canonical(href, self.base_url) if isinstance(href, str) else None
        if url is None:
            raise ValueError(f"{self.url} has a link that leads to no URL: {str(href)[:200]!r}")
        return PageRequest(url, **parts)

    def form(self, selector: str = "form") -> PageForm:
        """Return the first form that matches a CSS selector, to be sent with `submit`.

            yield page.form("#login").submit({"user": "me", "password": "env:SHOP_PASSWORD"})

        Raises:
            ValueError: there is no such form, or it leads to no URL; the message names the page.
        """
        from .form import PageForm

        return PageForm(self, selector)

    @property
    def base_url(self) -> str:
        """The URL that relative links of this page are relative to: its own, or its `<base>`."""
        if b"<base" not in self.body.lower():
            return self.url
        base = self.select_one("base[href]")
        return (base is not None and canonical(str(base.attrs["href"]), self.url)) or self.url

    @property
    def latency_s(self) -> float:
        """Seconds from the request to the first byte of the response."""
        return self.record.latency_ms / 1000.0

    @property
    def html(self) -> str:
        """The body as text, by the charset of the response; undecodable bytes are replaced.

        Of a page that was rendered it is the final DOM.
        """
        return page_text(self.body, self.content_type)

    @property
    def raw_html(self) -> str:
        """The answer of the server as text; the same as `html` unless the page was rendered.

        A kept page has its final DOM only, and returns that.
        """
        received = self._received
        return self.html if received is None else page_text(received.body, received.content_type)

    @property
    def tree(self) -> Document:
        """The page as a tree of turbohtml, made when it is first asked for."""
        if self._tree is None:
            from .tree import parse_text  # when it is first needed: see `scan`

            self._tree = parse_text(self.html)
        return self._tree

    def select(self, selector: str) -> list[Element]:
        """Return the elements that match a CSS selector, in the order of the page.

        Raises:
            ValueError: the selector is not valid CSS.
        """
        return self.tree.select(selector)

    def select_one(self, selector: str) -> Element | None:
        """Return the first element that matches a CSS selector; None if there is none."""
        return self.tree.select_one(selector)

    @property
    def text(self) -> str:
        """The main part of the page as plain text; empty if it has no text."""
        from .content import content_of  # when it is first needed: see `scan`

        return content_of(self.body, self.content_type, self.url, Content.TEXT) or ""

    @property
    def markdown(self) -> str:
        """The main part of the page as Markdown, with absolute links."""
        from .content import content_of

        return content_of(self.body, self.content_type, self.url, Content.MARKDOWN) or ""

    def json(self) -> Any:
        """Return the body as a value of JSON.

        Raises:
            ValueError: it is not JSON.
        """
        return msgspec.json.decode(self.body)

    @property
    def links(self) -> list[str]:
        """All URLs that the page links to, absolute, each once, whether in scope or not."""
        if self._links is None:
            parsed = parse_page(self.body, self.content_type, self.url)
            found = resolve_links(
                parsed if isinstance(parsed, ParsedPage) else ParsedPage(self.url)
            )
            self._links = [*found.urls, *found.nofollow_urls]
        return self._links

    def done(self) -> None:
        """Acknowledge this page: it is recorded, and will not be delivered again."""
        if self._done is not None:
            self._done()
