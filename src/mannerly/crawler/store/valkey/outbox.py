"""The letters of one shard to other shards, from the commit that writes them until they are read.

Letters to a shard are numbered. One goes three steps:

    last      committed to the outbox, together with the pages that brought its links
    posted    copied to the inbox of its shard, by `post.lua`
    passed    read there, in the write that queued its links: it leaves the outbox

Nothing but `passed` makes a letter leave, so a server that lost its last second loses no link: the
inbox takes letters without a gap only, and its answer says from which number on they are wanted.
After a restart of the server all cursors are asked for again, and again every LOOK_S while letters
are under way.

A shard with more than MARK unread links gets no more for a while: they stay with the sender.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from .packing import pack_candidates

if TYPE_CHECKING:
    from collections.abc import Callable

    from mannerly.crawler.model import Candidate
    from mannerly.politeness.model import Instant

    from .client import Payload, ValkeyServer
    from .keys import CrawlKeys

MARK = 200_000  # unread links
PAUSE_S = 1.0  # without letters for a shard above the mark
LOOK_S = 10.0
_PIECE = 200  # letters that are read at once


class Letter(NamedTuple):
    """Some links for one shard."""

    number: int
    links: int
    packed: str


class _Way:
    """The letters to one shard."""

    def __init__(self, last: int = 0, posted: int = 0, passed: int = 0) -> None:
        self.last, self.posted, self.passed = last, posted, passed
        self.saved_posted, self.saved_passed = posted, passed  # what the server has
        self.handed = 0  # links that were posted since that was saved
        self.links: dict[int, int] = {}  # of letters that were posted and not passed
        self.waiting: list[Letter] = []  # not posted
        self.not_before: Instant = 0.0


class Outbox:
    """The letters of one shard."""

    def __init__(
        self,
        shard: int,
        server: ValkeyServer,
        keys: CrawlKeys,
        crawl: str,
        mono: Callable[[], float],
    ) -> None:
        self._shard = shard
        self._server = server
        self._keys = keys
        self._crawl = crawl
        self._mono = mono
        self._ways: dict[int, _Way] = {}
        # Asked for at every tick, while most ways are idle: kept instead of searched for.
        self.handed = 0  # links that were handed over since that was last saved
        self._ready: dict[int, _Way] = {}  # ways with letters that wait
        self._run = server.run
        self._look_at: Instant = 0.0

    def load(self, cursors: dict[int, dict[str, int]]) -> None:
        """Begin a claim: what the last owner left is looked for."""
        for shard, known in cursors.items():
            way = _Way(known.get("last", 0), known.get("posted", 0), known.get("passed", 0))
            self._ways[shard] = way
        self.look()

    @property
    def is_empty(self) -> bool:
        """Return whether every letter was read."""
        return all(way.passed >= way.last for way in self._ways.values())

    @property
    def has_news(self) -> bool:
        """Return whether there is something to save."""
        return any(
            way.posted != way.saved_posted or way.passed != way.saved_passed
            for way in self._ways.values()
        )

    def write(self, by_shard: dict[int, list[Candidate]]) -> list[int | str]:
        """Make letters; return what a commit has to write: shard, number, links, packed links."""
        written: list[int | str] = []
        for shard, links in by_shard.items():
            way = self._ways.setdefault(shard, _Way())
            way.last += 1
            letter = Letter(way.last, len(links), pack_candidates(links))
            way.waiting.append(letter)
            self._ready[shard] = way
            written += [shard, *letter]
        return written

    def news(self) -> tuple[Payload, Callable[[], None]]:
        """Return what is to be saved, and a function to call when it was."""
        handed: list[int] = []
        passed: list[int] = []
        saved: list[tuple[_Way, int, int, int]] = []
        for shard, way in self._ways.items():
            if way.posted != way.saved_posted:
                handed += [shard, way.posted, way.handed]
            if way.passed != way.saved_passed:
                passed += [shard, way.saved_passed, way.passed]
            saved.append((way, way.posted, way.passed, way.handed))

        def note() -> None:
            for way, posted, read, links in saved:
                way.saved_posted, way.saved_passed = posted, read
                way.handed -= links
                self.handed -= links

        return {"handed": handed, "passed": passed}, note

    def look(self) -> None:
        """Ask how far the letters have come that were not read yet."""
        if under_way := {shard for shard, way in self._ways.items() if way.passed < way.last}:
            self._look(under_way)

    def post(self) -> tuple[int, set[int]]:
        """Post all letters, which are committed; return how many links that were, and where to."""
        now = self._mono()
        if self._run != self._server.run or (now >= self._look_at and not self.is_empty):
            self.look()
        ready = [(shard, way) for shard, way in self._ready.items() if way.not_before <= now]
        if not ready:
            return 0, set()
        calls = []
        for shard, way in ready:
            flat: list[int | str] = []
            for letter in way.waiting:
                flat += letter
            payload: Payload = {"id": self._crawl, "sender": self._shard, "letters": flat}
            calls.append(("post", [self._keys.shard(shard)], payload))
        count = 0
        for (shard, way), answer in zip(ready, self._server.calls(calls), strict=True):
            if isinstance(answer, Exception):
                raise answer
            posted, read, unread = answer
            count += self._posted(shard, way, posted, read)
            if unread > MARK:
                way.not_before = now + PAUSE_S
            if way.waiting:
                self._look({shard})
        return count, {shard for shard, _ in ready}

    def _posted(self, shard: int, way: _Way, posted: int, read: int) -> int:
        """Note the cursors of an inbox; return how many links arrived there that had not."""
        count = 0
        while way.waiting and way.waiting[0].number <= posted:
            letter = way.waiting.pop(0)
            count += letter.links
        way.handed += count
        self.handed += count
        if not way.waiting:
            self._ready.pop(shard, None)
        way.posted = max(way.posted, posted)
        way.passed = max(way.passed, read)
        return count

    def _look(self, shards: set[int]) -> None:
        """Ask inboxes how far they have come, and fetch the letters that they lack."""
        self._run = self._server.run
        self._look_at = self._mono() + LOOK_S
        asked = sorted(shards)
        name = str(self._shard)
        answers = self._server.ask_all(
            [
                ("HMGET", self._keys.of_shard(shard, "ic"), f"{name}:posted", f"{name}:read")
                for shard in asked
            ]
        )
        for shard, (posted, read) in zip(asked, answers, strict=True):
            way = self._ways[shard]
            there, passed = int(posted or 0), int(read or 0)
            way.passed = max(way.passed, passed)
            if there < way.posted:  # the server has forgotten some: they count as not handed over
                way.posted = there
            first = way.waiting[0].number if way.waiting else way.last + 1
            if way.posted < min(there, first - 1):  # an earlier owner died before it noted that
                posted = self._fetch(shard, way.posted + 1, min(there + 1, first))
                links = sum(letter.links for letter in posted)
                way.handed += links
                self.handed += links
            if there + 1 < first:
                way.waiting[:0] = self._fetch(shard, there + 1, first)
            if way.waiting:
                self._ready[shard] = way
            self._posted(shard, way, there, passed)

    def _fetch(self, shard: int, first: int, end: int) -> list[Letter]:
        """Read letters of our own outbox."""
        key = self._keys.of_shard(self._shard, "o")
        letters = []
        for start in range(first, end, _PIECE):
            numbers = range(start, min(end, start + _PIECE))
            values = self._server.ask("HMGET", key, *(f"{shard}:{number}" for number in numbers))
            for number, value in zip(numbers, values, strict=True):
                if value is not None:
                    links, _, packed = value.partition(b" ")
                    letters.append(Letter(number, int(links), packed.decode()))
        return letters
