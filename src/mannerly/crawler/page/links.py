"""The links of pages: the rules of a crawl for them, hrefs as canonical URLs, and redirects.

The raw hrefs of a page become canonical URLs; hrefs that were passed on before are left out. The
links of a site repeat: its menu is on each of its pages. The URL of an href depends on little of
the page that it is on:

    http://…             on nothing
    /path                on the origin alone
    page.html, ../x      on the folder of the page
    ?query, #fragment    on the page itself

So an href whose URL was passed on is noted by the place (origin or folder) that decides it
(`HrefMemory`), and the next page that has it there needs one look-up instead of a parse. An href
that is spelled like a URL that was passed on lately needs no note. A link that is marked nofollow
is noted with its mark, if its URL was passed on because of another link. An href whose URL is not
followed (nofollow, out of scope) is noted with it: such links are counted on every page that has
them. Forgetting costs time only: a URL that is passed on twice is still one URL to the store.
Refused hrefs are counted by reason.

The resolution of hrefs knows no parser and no scope.

A redirect is a link that keeps its depth: every hop goes through the frontier like any URL.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from mannerly.crawler.kinds import Kind
from mannerly.crawler.model import Candidate
from mannerly.crawler.web.recent import Recent
from mannerly.crawler.web.seeds import has_moved
from mannerly.crawler.web.urls import (
    DEFAULT_RULES,
    LinkBase,
    UrlRefusal,
    UrlRules,
    canonical,
    host_key_of,
)

from .parsed import MARK
from .record import Harvest, page_record

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from mannerly.crawler.model import Entry, Fetched, PageRecord
    from mannerly.crawler.payload import Payload
    from mannerly.crawler.web.scope import Scope

    from .parsed import ParsedPage


# About 130 bytes an href: 20 MB when full. A site's menu and footer rarely pass some hundreds.
DEFAULT_HREFS = 150_000
DEFAULT_HREFS_PER_PLACE = 500

_EMPTY = 5  # a place takes as much memory as five hrefs, before it has any
_WITH_URL = 3  # an href with its URL takes as much memory as three without

_OF_FOLDER = frozenset("_.")  # what an href may begin with that depends on the folder

_NOTHING_MET = Recent()


class HrefPlace(NamedTuple):
    """The hrefs that are known at one place."""

    followed: set[str]  # their URLs were passed on; with their marks
    others: dict[str, str]  # those that were not passed on, with their URLs


class HrefPlaces(NamedTuple):
    """The hrefs known at a page's origin and in its folder: the places that decide their URLs."""

    origin: HrefPlace
    folder: HrefPlace

    def of(self, link: str) -> HrefPlace | None:
        """Return the place that surely decides the href of a link, unlike `http:?q` and ` ?q`."""
        first = link[:1]
        if first == MARK:
            first = link[1:2]
        if first == "/":
            return self.origin
        is_of_folder = (first.isalnum() or first in _OF_FOLDER) and ":" not in link
        return self.folder if is_of_folder else None


class PageLinks(NamedTuple):
    """The URLs on a page, without those that were passed on before."""

    urls: list[str]  # canonical, unique, in page order
    nofollow_urls: list[str]  # the same for rel=nofollow, without those that are in `urls`
    canonical: str | None
    refused: dict[UrlRefusal, int]
    spelled: dict[str, str]  # URL → href, as written on this page, of those in the two lists
    places: HrefPlaces


class HrefMemory:
    """Hrefs and what became of their URLs, for the origins and folders used last.

    One memory serves one set of `UrlRules`. A place that is full is cleared: the next page brings
    the menu back, and most of the other hrefs were seen once only.
    """

    __slots__ = ("_hrefs", "_hrefs_per_place", "_places", "_room")

    def __init__(
        self, hrefs: int = DEFAULT_HREFS, hrefs_per_place: int = DEFAULT_HREFS_PER_PLACE
    ) -> None:
        self._hrefs = self._room = hrefs
        self._hrefs_per_place = hrefs_per_place
        # A plain dict finds its first key the slower the more were removed before it.
        self._places: OrderedDict[str, HrefPlace] = OrderedDict()

    def at(self, base: str) -> HrefPlaces:
        """Return the hrefs that are known for a page at `base`. Do not change them."""
        path = base.partition("?")[0]
        folder = self._at(path[: path.rfind("/") + 1])
        # Used last, so it is forgotten last. Without the slash it is never the name of a folder.
        return HrefPlaces(self._at(path[: path.find("/", 8)]), folder)

    def passed_on(self, links: PageLinks, urls: Iterable[str]) -> None:
        """Note the hrefs of a page, of whose URLs these were passed on. Call it page by page."""
        spelled = links.spelled
        if not spelled:
            return
        passed = [url for url in urls if url in spelled]
        self.note([spelled[url] for url in passed], links.places)
        if len(passed) < len(spelled):
            self._note_others(spelled, frozenset(passed), links.places)

    def _note_others(
        self, spelled: dict[str, str], passed: frozenset[str], places: HrefPlaces
    ) -> None:
        at_origin, in_folder = places.origin.others, places.folder.others
        for url, href in spelled.items():
            if href in at_origin or href in in_folder or url in passed:
                continue
            place = places.origin if "://" in href[:8] else places.of(href)
            if place is None:
                continue
            others = place.others
            if len(others) >= self._hrefs_per_place:
                self._room += _WITH_URL * len(others)
                others.clear()
            others[href] = url
            self._room -= _WITH_URL
        self._make_room()

    def clear(self) -> None:
        """Forget everything: what was noted of some page was not passed on after all."""
        self._places.clear()
        self._room = self._hrefs

    def note(self, links: Iterable[str], places: HrefPlaces) -> None:
        """Note links whose URLs were passed on, if other pages there mean the same URL by them."""
        place_of, most = places.of, self._hrefs_per_place
        for link in links:
            place = place_of(link)
            if place is None:
                continue
            followed = place.followed
            if len(followed) >= most:
                self._room += len(followed)
                followed.clear()
            followed.add(link)
            self._room -= 1
        if self._room < 0:
            self._make_room()

    def _at(self, name: str) -> HrefPlace:
        place = self._places.get(name)
        if place is None:
            place = self._places[name] = HrefPlace(set(), {})
            self._room -= _EMPTY  # otherwise any number of folders would cost nothing
            self._make_room()
        else:
            self._places.move_to_end(name)
        return place

    def _make_room(self) -> None:
        # The last two are in use: a page's folder and its origin.
        while self._room < 0 and len(self._places) > 2:
            followed, others = self._places.popitem(last=False)[1]
            self._room += _EMPTY + len(followed) + _WITH_URL * len(others)


def resolve_links(
    page: ParsedPage,
    rules: UrlRules = DEFAULT_RULES,
    memory: HrefMemory | None = None,
    met: Recent = _NOTHING_MET,
) -> PageLinks:
    """Resolve the links of one page. `met` are URLs passed on lately, by the same rules."""
    resolver = _Resolver(LinkBase(page.base, rules=rules), memory or HrefMemory(), met)
    urls, nofollow_urls = resolver.news(page.links)
    return PageLinks(
        urls,
        nofollow_urls,
        resolver.one(page.canonical),
        resolver.refused,
        resolver.spelled,
        resolver.places,
    )


class _Resolver:
    """Resolves the links of one page and counts those that are refused."""

    __slots__ = ("_bare", "_memory", "_met", "_resolve", "places", "refused", "spelled")

    def __init__(self, base: LinkBase, memory: HrefMemory, met: Recent) -> None:
        self._resolve = base.resolve
        self._bare = base.bare
        self._memory = memory
        self._met = met
        self.places = memory.at(base.text)
        self.refused: dict[UrlRefusal, int] = {}
        self.spelled: dict[str, str] = {}

    def news(self, links: Sequence[str]) -> tuple[list[str], list[str]]:
        """Return the URLs that were not passed on lately, in page order, and those of them that
        marked links lead to, and no others.
        """
        (origin, at_origin), (folder, in_folder) = self.places
        lately, resolve, bare = self._met, self._resolve, self._bare
        unknown = [link for link in links if link not in origin and link not in folder]
        fresh = lately.others(unknown)
        has_marks = MARK in "".join(fresh)  # few pages have some
        has_others = bool(at_origin or in_folder)
        followed: dict[str, str] = {}
        marked: dict[str, str] = {}
        known: dict[str, str | UrlRefusal] = {}  # what hrefs of this page mean
        respelled: list[str] = []  # links that have a known href in them
        for link in fresh:
            href = link
            urls_of_kind = followed
            if has_marks and link[:1] == MARK:
                href, urls_of_kind = link[1:], marked
            if "#" in href or "?" in href:
                href = bare(href)
            if href is not link and (href in origin or href in folder or href in lately):
                respelled.append(link)
                continue
            url = known.get(href)
            if url is None:
                if has_others:
                    url = at_origin.get(href) or in_folder.get(href)
                url = known[href] = url or resolve(href)
            if isinstance(url, str):
                urls_of_kind[url] = href
            else:
                self.refused[url] = self.refused.get(url, 0) + 1
        self.spelled = spelled = {**marked, **followed}
        urls = lately.others(followed)
        others = [url for url in lately.others(marked) if url not in followed] if marked else []
        if len(urls) + len(others) < len(spelled):
            met = spelled.keys() - {*urls, *others}
            respelled += [spelled.pop(url) for url in met]
        if respelled:
            self._memory.note(respelled, self.places)
        return urls, others

    def one(self, href: str | None) -> str | None:
        """Resolve the canonical URL. It is among the links too, so a refusal was counted there."""
        if href is None or href in self._met:
            return href
        found = self._resolve(href)
        return found if isinstance(found, str) else None


# ---------------------------------------------------------------------- the rules of a crawl


@dataclass(slots=True)
class LinkRules:
    """Scope, spelling and limits of links. The scope grows when a seed has moved.

    `moved` are the targets that the scope had to grow for, until other processes are told.
    """

    scope: Scope
    agent: str  # our name in robots directives that are addressed to one crawler
    max_redirects: int
    urls: UrlRules = DEFAULT_RULES
    hrefs: HrefMemory = field(default_factory=HrefMemory)
    moved: list[str] = field(default_factory=list)
    keeps_links: bool = False  # keep what readers of the links ask for
    keeps_anchors: bool = False  # and what links with a fragment can lead to
    follows: bool = True  # the links of pages
    text_digest: str = "none"  # pages whose text is digested: auto, all or none

    def has_seed_on(self, host: str) -> bool:
        """Return whether a seed is on this host, given as a host key."""
        return self.scope.has_seed_on(host)

    def widen(self, *urls: str) -> None:
        """Include further URLs in the scope: added seeds, or where a seed has moved to."""
        self.scope = self.scope.including(*urls)

    def seed_moved(self, target: str) -> None:
        """Include where a seed was redirected to."""
        before = self.scope
        self.widen(target)
        if self.scope is not before:
            self.moved.append(target)


# ---------------------------------------------------------------------- redirects


REDIRECTS = frozenset({301, 302, 303, 307, 308})


def redirect_target(entry: Entry, answer: Fetched, rules: LinkRules) -> str | None:
    """Return the canonical URL in the Location header; None if there is none."""
    location = answer.headers.get("location")
    return canonical(location, entry.url, rules.urls) if location else None


def dead_end(entry: Entry, target: str | None, rules: LinkRules) -> str | None:
    """Return the error of a redirect that cannot be followed; None if it can."""
    if target is None:
        return "bad_redirect"
    if entry.hops >= rules.max_redirects:
        return "too_many_redirects"
    return "redirect_loop" if target == entry.url else None


def harvest_redirect(entry: Entry, answer: Fetched, rules: LinkRules, wall: float) -> Harvest:
    """Return the record of a redirect, and its target as a candidate if it may be followed.

    A seed that redirects within its site widens the scope: it has moved.
    """
    target = redirect_target(entry, answer, rules)
    record = page_record(entry, answer, wall, redirect_to=target)
    error = dead_end(entry, target, rules)
    if target is None or error is not None:
        return Harvest(record._replace(error=error), [], {})
    if answer.request.payload is not None:
        return _redirected_request(entry, answer, target, answer.request.payload, record)
    if entry.depth == 0 and has_moved(entry.url, target):
        rules.seed_moved(target)
    reason = rules.scope.judge(target, entry.depth)
    if reason is not None:
        return Harvest(record, [], {reason.value: 1})
    hop = Candidate(
        target, host_key_of(target), entry.depth, entry.priority, entry.url, entry.hops + 1
    )
    return Harvest(record, [hop], {})


def _redirected_request(
    entry: Entry,
    answer: Fetched,
    target: str,
    payload: Payload,
    record: PageRecord,
) -> Harvest:
    """Follow the redirect of a request with a payload, out of scope, too."""
    is_same_origin = target.startswith(entry.url[: entry.url.index("/", 8) + 1])
    try:
        carried = payload.redirected(answer.status or 0, is_same_origin=is_same_origin)
    except ValueError:
        return Harvest(record._replace(error="secret_redirect"), [], {})
    kind = Kind.PAGE if carried is None else carried.kind
    host, hops = host_key_of(target), entry.hops + 1
    hop = Candidate(target, host, entry.depth, entry.priority, entry.url, hops, kind, carried)
    return Harvest(record, [], {}, requests=[hop])
