"""Judge a page of a site: broken, redirected, indexable, and in which directory.

Every table of the report and every rule of --fail-on asks here, so that "broken" is one thing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mannerly.crawler.inspection.reasons import error_words, skip_words
from mannerly.crawler.web.charset import HTML_TYPES, media_type

if TYPE_CHECKING:
    from mannerly.crawler.model import PageRecord, Skipped

TOO_MANY = 429  # says nothing about the page
# Statuses of other sites that say nothing about the page: we are asked to log in, or not welcome.
UNWELCOME = frozenset({401, 403, 407, 429, 451, 503, 999})
# Errors on our side: nothing was sent, so nothing is known.
OURS = frozenset(
    {"blocked_address", "blocked_port", "no_descriptors", "no_memory", "no_room", "held", "trust"}
    | {"ca_file", "proxy", "proxy_name"}
)
_SHORT = {
    "name_not_resolved": "host not found",
    "dns": "host not found",
    "timeout": "timed out",
    "first_byte_timeout": "timed out",
    "body_timeout": "timed out",
    "connect_timeout": "timed out",
    "robots_timeout": "timed out",
    "connection_refused": "connection refused",
    "robots_unreachable": "no answer",
    "redirect_loop": "redirect loop",
    "too_many_redirects": "too many redirects",
    "bad_redirect": "invalid redirect",
}


def is_broken(page: PageRecord, *, is_foreign: bool = False) -> bool:
    """Return whether a link to this page is broken.

    Of a page of another site some statuses say only that we are not welcome.
    """
    if page.status is None:
        return page.error not in OURS
    if page.status >= 400:
        return page.status != TOO_MANY and not (is_foreign and page.status in UNWELCOME)
    return page.error in ("bad_redirect", "too_many_redirects")


def is_unchecked(page: PageRecord, *, is_foreign: bool = False) -> bool:
    """Return whether nothing can be said about a page, although it was asked for."""
    if page.status is None:
        return page.error in OURS
    return page.status == TOO_MANY or (is_foreign and page.status in UNWELCOME)


def answer(page: PageRecord) -> str:
    """Return the answer in a word or two: `404`, `host not found`."""
    if page.status is not None and not (300 <= page.status < 400 and page.error):
        return str(page.status)
    error = page.error or "unknown"
    return _SHORT.get(error) or error_words(error).partition(":")[0].partition(" (")[0]


def given_up_answer(skipped: Skipped) -> str:
    """Return why a URL was given up, in a word or two."""
    code, _, detail = skipped.reason.partition(": ")
    cause = detail or code
    return _SHORT.get(cause) or skip_words(cause).partition(":")[0].partition(" (")[0]


def is_lost(skipped: Skipped) -> bool:
    """Return whether a URL was given up because its host did not answer.

    A host that answers and refuses us, or asks for a long wait, says nothing about the page.
    """
    code, _, detail = skipped.reason.partition(": ")
    return code == "robots_unreachable" or error_words(detail) != detail


def is_html(page: PageRecord) -> bool:
    """Return whether it was served as HTML."""
    return media_type(page.content_type) in HTML_TYPES


def is_ok(page: PageRecord) -> bool:
    """Return whether it was answered with 2xx."""
    return page.status is not None and 200 <= page.status < 300


def why_not_indexed(page: PageRecord) -> str | None:
    """Return why a search engine would not list a page; None if it may."""
    status = page.status
    if status is None or status >= 500:
        return "failed"
    if status >= 400:
        return "missing"
    if status >= 300:
        return "redirected"
    if page.noindex:
        return "noindex"
    if page.canonical not in (None, page.url):
        return "canonical elsewhere"
    return None


def status_class(page: PageRecord) -> int:
    """Return 2, 3, 4 or 5; a page without an answer counts as failed."""
    status = page.status
    if status is None or status >= 500:
        return 5
    return max(2, status // 100)
