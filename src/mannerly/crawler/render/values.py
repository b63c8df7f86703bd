"""The values that a crawl and its browsers exchange."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

TIMEOUT = "timeout"  # the time of the page was up before it came to rest
HUNG = "hung"  # it used the processor for too long
CRASHED = "crashed"  # the browser or its tab died, in every try
NO_SELECTOR = "wait_for"  # what was waited for did not come
OTHER_PROCESS = "other_process"  # it asked for a host that another process of the crawl has
RUN_ENDS = "run_ends"  # it asked after the run had to end
NO_BROWSER = "no_browser"  # none could be started
CUT = "too_large"  # its final DOM was cut


class RenderLimits(NamedTuple):
    """The limits of every page.

    Attributes:
        page_s: of the page's own time, which stands still while it waits for the crawl.
        wall_s: of real time in which it waits for nothing.
        max_bytes: of its final DOM.
        blocked: kinds of requests that are not made.
        posts_to: hosts to which a page may send a POST.
        keeps_session: hosts whose pages share cookies and storage.
        takes_picture: a screenshot is made of each page.
    """

    page_s: float = 30.0
    wall_s: float = 30.0
    max_bytes: int = 10 * 1024 * 1024
    blocked: frozenset[str] = frozenset({"image", "font", "media"})
    posts_to: frozenset[str] = frozenset()
    keeps_session: frozenset[str] = frozenset()
    takes_picture: bool = False


class RenderJob(NamedTuple):
    """A page to render: the answer of its server."""

    number: int
    url: str
    site: str  # pages of one site are shown in one context, one after the other
    host: str
    status: int
    headers: Mapping[str, str]
    body: bytes
    wait_for: str | None = None  # a CSS selector: the page is finished when it matches


class SubRequest(NamedTuple):
    """Something that a page asks for."""

    number: int
    job: int
    page: str  # its URL
    url: str  # without a fragment
    kind: str  # script, stylesheet, image, font, media, xhr, fetch, document …
    method: str
    headers: tuple[tuple[str, str], ...]
    body: bytes = b""


class SubAnswer(NamedTuple):
    """The answer to it; without a status `reason` says why there is none."""

    status: int | None
    headers: Mapping[str, str]
    body: bytes
    reason: str | None = None


class Rendered(NamedTuple):
    """The result of a page: without `html` the answer of the server is the page."""

    job: int
    html: bytes | None
    seconds: float  # of real time, without waiting for the crawl
    requests: tuple[str, ...] = ()  # URLs that it asked the crawl for
    refused: int = 0  # requests that were not made because they are no GET, or WebSockets
    error: str | None = None
    left_for: str | None = None  # a script went to this URL
    picture: bytes | None = None  # PNG
