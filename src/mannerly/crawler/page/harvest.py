"""An answer becomes a record and candidates: the links of its page that are canonical and in scope.

    page        parse (html) ─► resolve hrefs (links) ─► scope ─► candidates
    redirect    its target is the only candidate (redirects)
    sitemap, public index   the URLs that they list (listings)
    check       its record, and the target of a redirect as the next check (checks)
    requisite   its record, and what it needs in turn (requisites)

The functions take an answer and return what follows from it. One effect reaches further: the scope
may grow when a seed has moved (`LinkRules`). This module knows no clock, no queue, no store and no
socket.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from mannerly.crawler.kinds import KINDS, Form
from mannerly.crawler.model import CRASHED, NO_MEMORY, UNPARSED, Candidate
from mannerly.crawler.web.priority import priority
from mannerly.crawler.web.urls import UrlRefusal, host_key_of

from .checks import harvest_check
from .html import is_html
from .links import REDIRECTS, harvest_redirect, resolve_links
from .listings import Listing, harvest_list, harvest_moved_sitemap
from .long_work import list_work, page_work
from .metadata import header_element
from .parsed import HELPER_DIED, LACKED_MEMORY, ParsedPage, ParseFailed
from .record import Harvest, page_record, text_digest
from .requisites import harvest_requisite
from .shells import SHELL_LINKS, is_unrendered_shell

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mannerly.crawler.model import Entry, Fetched
    from mannerly.crawler.web.recent import Recent

    from .links import LinkRules

_NOT_READ = {HELPER_DIED: CRASHED, LACKED_MEMORY: NO_MEMORY}
_READERS = {Form.CHECK: harvest_check, Form.REQUISITE: harvest_requisite}
_REFUSED = {refusal: refusal.value for refusal in UrlRefusal}


def harvest(
    entry: Entry,
    answer: Fetched,
    rules: LinkRules,
    recent: Recent,
    wall: float,
    work: object = None,
) -> Harvest:
    """Read the answer to a request that was finished at `wall`.

    `work` is the result of its `long_work`, if it had one; `recent` are the URLs passed on lately.
    """
    if isinstance(work, ParseFailed) and work in _NOT_READ:
        return unreadable(entry, answer, wall, error=_NOT_READ[work])
    row, status = KINDS[entry.kind], answer.status
    is_page = row.is_page
    if not is_page and (read := _READERS.get(row.form)) is not None:
        return read(entry, answer, rules, wall)
    has_left = answer.rendering is not None and answer.rendering.left_for is not None
    if has_left or (status in REDIRECTS and row.redirects):
        follow = harvest_redirect if is_page else harvest_moved_sitemap
        return follow(entry, answer, rules, wall)
    if status is None or not 200 <= status < 300:
        return Harvest(page_record(entry, answer, wall), [], {})
    if isinstance(work, ParseFailed):
        return unreadable(entry, answer, wall)
    if not is_page:
        listing = work if isinstance(work, Listing) else list_work(entry, answer, rules, wall)()
        return harvest_list(entry, answer, wall, listing)
    page = work if isinstance(work, ParsedPage) else page_work(entry, answer, rules)()
    if isinstance(page, ParseFailed):
        return unreadable(entry, answer, wall)
    if not (page.links or page.canonical):
        digest = _text_digest(answer, rules)
        record = page_record(entry, answer, wall, page=page, digest_of_text=digest)
        is_shell = is_unrendered_shell(page, answer)
        return Harvest(record, [], {}, elements=_kept(page, answer), is_shell=is_shell)
    links = resolve_links(page, rules.urls, rules.hrefs, recent)
    passed_over = {_REFUSED[refusal]: count for refusal, count in links.refused.items()}
    urls, unfollowed = links.urls, links.nofollow_urls
    if page.nofollow:
        urls, unfollowed = [], [*urls, *unfollowed]
    found = found_links(entry, urls, rules, passed_over) if rules.follows else []
    rules.hrefs.passed_on(links, (candidate.url for candidate in found))
    if unfollowed:
        passed_over["nofollow"] = len(unfollowed)
    record = page_record(
        entry,
        answer,
        wall,
        page=page,
        canonical_url=links.canonical,
        links=len(page.links) - sum(links.refused.values()),
        error="links_capped" if page.links_capped else None,
        digest_of_text=_text_digest(answer, rules),
    )
    is_shell = len(page.links) <= SHELL_LINKS and is_unrendered_shell(page, answer)
    return Harvest(record, found, passed_over, elements=_kept(page, answer), is_shell=is_shell)


def _kept(page: ParsedPage, answer: Fetched) -> bytes | None:
    """Return the elements of a page, if they are kept, with the headers that belong to them."""
    return None if page.elements is None else page.elements + header_element(answer.headers)


def _text_digest(answer: Fetched, rules: LinkRules) -> str | None:
    """Return the digest of a page's visible text, if it is wanted."""
    wanted, headers = rules.text_digest, answer.headers
    if wanted == "auto":  # of a file the server tells when it was modified
        modified = headers.get("last-modified")
        wanted = "none" if modified and modified != headers.get("date") else "all"
    if wanted == "none" or not is_html(headers.get("content-type"), answer.body):
        return None
    return text_digest(answer.body)


def unreadable(entry: Entry, answer: Fetched, wall: float, *, error: str = UNPARSED) -> Harvest:
    """Return the record of a page that could not be parsed: it is kept, and the crawl goes on."""
    return Harvest(page_record(entry, answer, wall, error=error), [], {})


def found_links(
    entry: Entry, urls: Sequence[str], rules: LinkRules, passed_over: dict[str, int]
) -> list[Candidate]:
    """Return the links of a page that are in scope; count the others in `passed_over`."""
    if not urls:
        return []
    depth = entry.depth + 1
    inside, outside = rules.scope.sort(urls, depth, page_url=entry.url)
    if outside:
        passed_over |= Counter(reason.value for _, reason in outside)
    origin = entry.url[: entry.url.index("/", 8) + 1]
    usual, of_home_page = priority(depth), priority(depth, is_home_page=True)
    found = []
    for url in inside:
        host = entry.host if url.startswith(origin) else host_key_of(url)
        rank = of_home_page if url.find("/", 8) == len(url) - 1 else usual
        found.append(Candidate(url, host, depth, rank, entry.url))
    return found
