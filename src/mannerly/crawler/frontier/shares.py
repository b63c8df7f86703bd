"""Share the requests to one host between the patterns of its URLs, so that no trap takes them all.

A calendar, session ids or sort orders make URLs without end, and breadth first they come before
most real pages. Nothing tells such a URL from a real one, but their patterns differ
(`web.patterns`). So the queue of a host that has many URLs is shared out by pattern (start-time
fair queuing: each URL gets its place when it is found):

    place(URL)           = max(the host's progress, the end of its pattern's line)
    its pattern's line  += lines of its folder / yield
    the host's progress  = the largest place of a page that was fetched

The place is stored as the URL's priority (`web.priority`). The first folders of a host take turns,
and within each of them its patterns, as long as they have URLs waiting; a pattern that has none
waiting is served at once when a URL of it is found. Within a pattern the order is that of
discovery, so a crawl is still breadth first, and a site of one pattern is crawled as it would be
without this. Nothing is dropped: what is last in line is fetched when nothing else is left.

**Yield** is the share of a pattern's pages that are new, 1 to 1/32. A page is a repetition if it is
an error, or if the host lately had one with the same title and number of links (without a title,
the same content; for a redirect, the same target). Links on a repetition have a line of their own
with a quarter of the share, so that the links of an error page which comes with status 200 do not
delay real pages of the same pattern. All queries of a path have one yield, because keys combine to
more patterns than can be judged one by one.

**Newcomers.** A pattern gets a line of its own when several of its URLs were met; until then it
shares one with all other new patterns, so that a trap which invents patterns has one line, too.

**Held back.** A URL whose pattern repeats itself, or makes its own URLs faster than they can be
fetched while others wait, is marked: its priority says so, in the store, too.

Everything here is bounded: hosts, patterns of a host, contents. Places are priorities, so the store
keeps them. After a restart each pattern begins a second line at the host's progress, beside the one
that is queued, and takes its turns with both until that is used up. Links from other shards keep
the priority that they came with.

This module knows no time, no store and no politeness.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from typing import TYPE_CHECKING

from mannerly.crawler.kinds import KINDS
from mannerly.crawler.model import Candidate
from mannerly.crawler.web.patterns import pattern_of
from mannerly.crawler.web.priority import place_of, placed
from mannerly.crawler.web.recent import Recent

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mannerly.crawler.model import Entry, PageRecord

MANY_URLS = 500  # of one host, queued or fetched: with fewer, breadth first does no harm
_HOSTS = 256  # that are shared out at once; about 100 KB each at most
_LINES = 64  # patterns of one host with a line of their own
_NEWCOMERS = 512  # patterns of one host that are counted until they get a line
_MET_OFTEN = 3
_CONTENTS = 512
_TITLE = 80  # characters of a title that are compared
_LEAST_YIELD = 1 / 32
_OF_REPETITIONS = 4.0  # how much slower links go that were found on a repetition
_MEMORY = 1 / 16  # the weight of one page in a pattern's yield
_LONG_LINE = 256.0
_OFTEN_NEW = 0.5
_ITS_OWN = 0.9  # the share of a pattern's URLs that its own pages have brought
_ERRORS = 400
_NEW = "…"  # the line of new patterns


class _Yield:
    """The share of new pages among those of some patterns."""

    __slots__ = ("new_share",)

    def __init__(self) -> None:
        self.new_share = 1.0

    def fetched(self, *, is_new: bool) -> None:
        self.new_share += _MEMORY * (is_new - self.new_share)


class _Line:
    """The waiting URLs of one pattern. Lines of one folder are in one list."""

    __slots__ = ("end", "end_of_repetitions", "folder", "found", "found_here", "yields")

    def __init__(self, folder: list[_Line], yields: _Yield) -> None:
        self.folder = folder
        self.yields = yields
        folder.append(self)
        self.end = self.end_of_repetitions = 0.0
        self.found = self.found_here = 0  # URLs, and how many of them its own pages have brought

    def join(self, progress: float, *, on_repetition: bool) -> float:
        """Return the place of one more URL."""
        step = len(self.folder) / max(self.yields.new_share, _LEAST_YIELD)
        if on_repetition:
            place = max(progress, self.end_of_repetitions)
            self.end_of_repetitions = place + step * _OF_REPETITIONS
        else:
            place = max(progress, self.end)
            self.end = place + step
        return place

    def is_endless(self) -> bool:
        """Return whether its own pages bring nearly all of its URLs, and there are many."""
        return self.found > _LONG_LINE and self.found_here > _ITS_OWN * self.found


class _HostShares:
    """The lines of one host."""

    __slots__ = ("_contents", "_folders", "_host", "_lines", "_newcomers", "_yields", "progress")

    def __init__(self, host: str) -> None:
        self._host = host
        self.progress = 0.0
        self._lines: dict[str, _Line] = {_NEW: _Line([], _Yield())}
        self._folders: dict[str, list[_Line]] = {}  # by the first folder of the pattern
        self._yields: dict[str, _Yield] = {}  # by path; queries of one path have one
        self._newcomers: Counter[str] = Counter()
        self._contents = Recent(_CONTENTS)

    def fetched(self, entry: Entry, record: PageRecord) -> tuple[str, bool]:
        """Learn from a page; return its pattern, and whether it is new."""
        self.progress = max(self.progress, place_of(entry.priority))
        pattern = pattern_of(entry.url)
        is_new = self._contents.add(_content(record))
        is_new = is_new and record.status is not None and record.status < _ERRORS
        if record.status is not None:
            (self._lines.get(pattern) or self._lines[_NEW]).yields.fetched(is_new=is_new)
        return pattern, is_new

    def place(
        self, url: str, found_on: str | None, held_back: Counter[str], *, on_repetition: bool
    ) -> int:
        """Return the priority of a URL; count its pattern in `held_back` if it is held back.

        `found_on` is the pattern of the page where it was found, if that is of this host.
        """
        pattern = pattern_of(url)
        line = self._lines.get(pattern) or self._newcomer(pattern)
        place = line.join(self.progress, on_repetition=on_repetition)
        line.found += 1
        if found_on == pattern:
            line.found_here += 1
        is_held_back = place - self.progress > _LONG_LINE and (
            line.yields.new_share < _OFTEN_NEW or (line.is_endless() and len(self._lines) > 2)
        )
        if is_held_back:
            held_back[self._host + pattern] += 1
        return placed(int(place), is_held_back=is_held_back)

    def _newcomer(self, pattern: str) -> _Line:
        newcomers = self._newcomers
        if len(newcomers) >= _NEWCOMERS:
            newcomers.clear()
        newcomers[pattern] += 1
        if newcomers[pattern] < _MET_OFTEN or len(self._lines) >= _LINES:
            return self._lines[_NEW]
        del newcomers[pattern]
        path, question, _ = pattern.partition("?")
        yields = self._yields.setdefault(path + question, _Yield())
        folder = self._folders.setdefault(path[: path.find("/", 1)], [])
        line = self._lines[pattern] = _Line(folder, yields)
        return line


class Shares:
    """The hosts of a shard that have many URLs."""

    def __init__(self) -> None:
        self._hosts: OrderedDict[str, _HostShares] = OrderedDict()

    def __contains__(self, host: str) -> bool:
        return host in self._hosts

    def place(
        self, entry: Entry, record: PageRecord, links: Iterable[Candidate]
    ) -> tuple[list[Candidate], Counter[str]]:
        """Return the links of a page with their places, and how many are held back.

        These are counted by host and pattern. The host of the page is one with many URLs.
        """
        own = self._shares_of(entry.host)
        pattern, is_new = own.fetched(entry, record)
        found: list[Candidate] = []
        held_back: Counter[str] = Counter()
        for link in links:
            url, host, depth, _, parent, hops, kind, _ = link
            is_own = host == entry.host
            shares = own if is_own else self._hosts.get(host)
            if shares is None or not KINDS[kind].is_link:
                found.append(link)
                continue
            found_on = pattern if is_own else None
            priority = shares.place(url, found_on, held_back, on_repetition=not is_new)
            found.append(Candidate(url, host, depth, priority, parent, hops, kind))
        return found, held_back

    def _shares_of(self, host: str) -> _HostShares:
        shares = self._hosts.get(host)
        if shares is None:
            shares = self._hosts[host] = _HostShares(host)
            if len(self._hosts) > _HOSTS:
                self._hosts.popitem(last=False)
        else:
            self._hosts.move_to_end(host)
        return shares


def _content(record: PageRecord) -> str:
    """Return what two pages with the same content have in common, as far as records tell."""
    if record.redirect_to is not None:
        return record.redirect_to
    if record.title:
        return f"{record.links} {record.title[:_TITLE]}"
    return record.digest or str(record.status)
