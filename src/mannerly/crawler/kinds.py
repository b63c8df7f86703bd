"""The kinds of requests, one row each: the only place that says how they differ.

    kind          form      asked with   at most       limited by        a redirect   if refused
    -----------   -------   ----------   -----------   ---------------   ----------   -------------
    PAGE          page      GET          --max-bytes   --max-urls        is followed  tried again
    SITEMAP       listing   GET          60 MiB        --max-sitemaps    is followed  tried again
    CT            listing   GET          60 MiB                          ends it      tried again
    COMMONCRAWL   listing   GET          60 MiB                          ends it      tried again
    ROBOTS        rules     GET          600 KiB       robots_limit      is followed  see `robots`
    CHECK         check     HEAD         64 KiB                          is checked   once with GET
    CHECK_GET     check     GET          64 KiB                          is checked   that is it
    REQUEST       page      its payload  --max-bytes   --max-urls        is followed  tried again
    SUBMISSION    page      its payload  --max-bytes   --max-urls        is followed  see below
    REQUISITE     requisite its payload  --max-bytes                     is followed  tried again

The last three carry a payload (`payload`): a REQUEST may be repeated, a SUBMISSION is sent once. It
is asked again only if it was refused with 429, or 503 and Retry-After; no recrawl asks for it. That
of a REQUISITE makes it another request than the page with its URL (`page.requisites`). What a page
in a browser asks for is a REQUISITE, too; its POST is sent once (`shard.subrequests`).

All other modules look a property up (`KINDS[entry.kind].is_page`) and never compare kinds, so a new
kind is a member and a row here, a reader for its answer (`page`), and the code that queues it.

The row is looked up by number, because stores return plain numbers. It takes 40 ns.
"""

from __future__ import annotations

from enum import Enum, IntEnum
from typing import Literal, NamedTuple


class Kind(IntEnum):
    """The purpose of a request. The numbers are stored: never reuse one."""

    PAGE = 0
    SITEMAP = 1
    CT = 2  # certificate transparency: a list of hosts
    COMMONCRAWL = 3  # the Common Crawl index: a list of URLs
    ROBOTS = 4  # never stored
    CHECK = 5  # the target of a link: does it exist?
    CHECK_GET = 6  # the same with GET, after HEAD was refused
    REQUEST = 7  # a page that is asked for with a payload
    SUBMISSION = 8  # the same, with a method that is not repeated
    REQUISITE = 9  # what a page needs to be shown: a style, a script, an image


class Form(Enum):
    """The form of an answer: it decides how it is read (`page.harvest`) and counted."""

    PAGE = "page"  # exported, counted by --max-urls, compared in a recrawl; its links are followed
    LISTING = "listing"  # names URLs; counted as a list
    CHECK = "check"  # only its status counts; it is never parsed
    REQUISITE = "requisite"  # kept and counted apart from pages; no link in it is followed
    RULES = "rules"  # a robots.txt: it belongs to its host, and is never stored in the queue


class Limit(Enum):
    """The limit of the number of requests, beside the pace of their host."""

    NONE = "none"
    PAGES = "pages"  # --max-urls, --max-per-host
    SITEMAPS = "sitemaps"  # --max-sitemaps, of a host
    ROBOTS = "robots"  # that are under way at once


class RequestKind(NamedTuple):
    """The properties of one kind. `is_page` and the like say what its form is.

    Attributes:
        timeout: the setting that limits its time.
        max_bytes: of its answer; None: the setting `max_bytes`.
        redirects: whether the target of a redirect is asked for.
        depth: links between a seed and the pages that it leads to are counted from here.
        is_tried_again: whether an answer that refuses or fails is asked for again.
        after_refusal: the kind as which it is asked for again at once, if its method is refused.
        first: the kind as which it was queued.
        carries: whether its entry has a payload, which says how it is asked for.
        is_link: whether a request with a label for the same URL takes its place.
        is_sent_once: whether it is not repeated when it is not known what became of it.
    """

    kind: Kind
    form: Form
    is_page: bool
    is_listing: bool
    is_check: bool
    is_requisite: bool
    is_head: bool
    timeout: Literal["timeout_s", "robots_timeout_s"]
    max_bytes: int | None
    limit: Limit
    redirects: bool
    depth: int
    is_tried_again: bool
    after_refusal: Kind | None
    first: Kind
    carries: bool
    is_sent_once: bool
    is_link: bool


def _row(
    kind: Kind,
    form: Form,
    *,
    is_head: bool = False,
    timeout: Literal["timeout_s", "robots_timeout_s"] = "timeout_s",
    max_bytes: int | None = None,
    limit: Limit = Limit.NONE,
    redirects: bool = True,
    depth: int = 0,
    is_tried_again: bool = True,
    after_refusal: Kind | None = None,
    first: Kind | None = None,
    carries: bool = False,
    is_sent_once: bool = False,
) -> RequestKind:
    return RequestKind(
        kind,
        form,
        form is Form.PAGE,
        form is Form.LISTING,
        form is Form.CHECK,
        form is Form.REQUISITE,
        is_head,
        timeout,
        max_bytes,
        limit,
        redirects,
        depth,
        is_tried_again,
        after_refusal,
        kind if first is None else first,
        carries,
        is_sent_once,
        form is Form.PAGE and not carries,
    )


LIST_MAX_BYTES = 60 * 1024 * 1024
ROBOTS_MAX_BYTES = 600 * 1024  # more than the 500 KiB that are read
CHECK_MAX_BYTES = 64 * 1024  # of the answer to a GET: only its status counts

_ROWS = (
    _row(Kind.PAGE, Form.PAGE, limit=Limit.PAGES),
    _row(Kind.SITEMAP, Form.LISTING, max_bytes=LIST_MAX_BYTES, limit=Limit.SITEMAPS, depth=1),
    _row(Kind.CT, Form.LISTING, max_bytes=LIST_MAX_BYTES, redirects=False),
    _row(Kind.COMMONCRAWL, Form.LISTING, max_bytes=LIST_MAX_BYTES, redirects=False),
    _row(
        Kind.ROBOTS,
        Form.RULES,
        timeout="robots_timeout_s",
        max_bytes=ROBOTS_MAX_BYTES,
        limit=Limit.ROBOTS,
    ),
    _row(
        Kind.CHECK,
        Form.CHECK,
        is_head=True,
        max_bytes=CHECK_MAX_BYTES,
        is_tried_again=False,
        after_refusal=Kind.CHECK_GET,
    ),
    _row(
        Kind.CHECK_GET,
        Form.CHECK,
        max_bytes=CHECK_MAX_BYTES,
        is_tried_again=False,
        first=Kind.CHECK,
    ),
    _row(Kind.REQUEST, Form.PAGE, limit=Limit.PAGES, carries=True),
    _row(Kind.SUBMISSION, Form.PAGE, limit=Limit.PAGES, carries=True, is_sent_once=True),
    _row(Kind.REQUISITE, Form.REQUISITE, carries=True),
)
assert [row.kind for row in _ROWS] == list(Kind)

KINDS = tuple(_ROWS)
"""The rows, by the number of their kind."""


SENT_ONCE = tuple(int(row.kind) for row in KINDS if row.is_sent_once)
"""The numbers of the kinds that are not repeated."""


def numbers(form: Form) -> tuple[int, ...]:
    """Return the numbers of the kinds of a form, as they are stored."""
    return tuple(int(row.kind) for row in KINDS if row.form is form)
