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

The letters of all shards of a process are posted in one exchange (`post`), with one call for each
shard that they go to.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from .packing import pack_candidates

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from mannerly.crawler.model import Candidate
    from mannerly.politeness.model import Instant

    from .client import Call, Command, Payload, ValkeyServer
    from .keys import CrawlKeys
    from .mailbox import Mailbox

MARK = 200_000  # unread links
PAUSE_S = 1.0  # without letters for a shard above the mark
LOOK_S = 10.0
_PIECE = 200  # letters that are read at once
_SENDERS = 1000  # of the letters of one call


class Letter(NamedTuple):
    """Some links for one shard."""

    number: int
    links: int
    packed: str


class _Way:
    """The letters to one shard."""

    __slots__ = ("handed", "last", "not_before", "passed", "posted", "saved", "waiting")

    def __init__(self, last: int = 0, posted: int = 0, passed: int = 0) -> None:
        self.last, self.posted, self.passed = last, posted, passed
        self.saved = (posted, passed)  # what the server has
        self.handed = 0  # links that were posted since that was saved
        self.waiting: list[Letter] = []  # not posted
        self.not_before: Instant = 0.0

    @property
    def has_news(self) -> bool:
        """Return whether there is something to save; letters may have been posted a second time."""
        return self.handed > 0 or self.saved != (self.posted, self.passed)


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
        self.shard = shard
        self.server = server
        self.keys = keys
        self.crawl = crawl
        self.handed = 0  # links that were handed over since that was last saved
        self._mono = mono
        self._ways: dict[int, _Way] = {}
        # A crawl may have hundreds of ways, most of which have nothing to do.
        self._waiting: set[int] = set()  # with letters that are not posted
        self._under_way: set[int] = set()  # with letters that are not read
        self._news: set[int] = set()  # with something to save
        self._run = server.run
        self._look_at: Instant = 0.0

    def load(self, cursors: dict[int, dict[str, int]]) -> None:
        """Begin a claim with what the last owner left, and ask how far that has come."""
        for shard, known in cursors.items():
            way = _Way(known.get("last", 0), known.get("posted", 0), known.get("passed", 0))
            self._ways[shard] = way
            self._under_way.add(shard)  # until it was asked for
        self.look()

    @property
    def is_empty(self) -> bool:
        """Return whether every letter was read."""
        return not self._under_way

    @property
    def has_news(self) -> bool:
        """Return whether there is something to save."""
        return bool(self._news)

    def write(self, by_shard: Mapping[int, list[Candidate]]) -> list[int | str]:
        """Make letters; return what a commit has to write: shard, number, links, packed links."""
        written: list[int | str] = []
        for shard, links in by_shard.items():
            way = self._ways.setdefault(shard, _Way())
            way.last += 1
            letter = Letter(way.last, len(links), pack_candidates(links))
            way.waiting.append(letter)
            self._waiting.add(shard)
            self._under_way.add(shard)
            written += [shard, *letter]
        return written

    def news(self) -> tuple[Payload, Callable[[], None]]:
        """Return what is to be saved, and a function to call when it was."""
        handed: list[int] = []
        passed: list[int] = []
        saved: list[tuple[int, tuple[int, int], int]] = []
        for shard in sorted(self._news):
            way = self._ways[shard]
            if way.handed or way.posted != way.saved[0]:
                handed += [shard, way.posted, way.handed]
            if way.passed != way.saved[1]:
                passed += [shard, way.saved[1], way.passed]
            saved.append((shard, (way.posted, way.passed), way.handed))

        def note() -> None:
            for shard, at, links in saved:
                way = self._ways[shard]
                way.saved = at
                way.handed -= links
                self.handed -= links
                _keep(self._news, shard, is_in=way.has_news)

        return {"handed": handed, "passed": passed}, note

    def look(self) -> None:
        """Ask how far the letters have come that were not read yet."""
        look([self])

    @property
    def wants_to_look(self) -> bool:
        """Return whether it is time to ask that."""
        return self._run != self.server.run or (self._mono() >= self._look_at and not self.is_empty)

    def questions(self) -> list[tuple[int, Command]]:
        """Return what to ask the inboxes of the shards that have not read all letters."""
        name = str(self.shard)
        return [
            (
                shard,
                ("HMGET", self.keys.of_shard(shard, "ic"), f"{name}:posted", f"{name}:read"),
            )
            for shard in sorted(self._under_way)
        ]

    def looked(self) -> None:
        """Note that all of them were asked."""
        self._run = self.server.run
        self._look_at = self._mono() + LOOK_S

    def came_to(self, shard: int, posted: int, read: int) -> None:
        """Learn how far the inbox of a shard has come, and fetch the letters that it lacks."""
        way = self._ways[shard]
        way.passed = max(way.passed, read)
        way.posted = min(way.posted, posted)  # less: the server has forgotten some
        if posted > way.last and not way.waiting:
            # Letters of an owner whose last commits the server has forgotten: their numbers are
            # taken, or the next letters would count as arrived.
            way.last = posted
        first = way.waiting[0].number if way.waiting else way.last + 1
        if way.posted < min(posted, first - 1):  # an earlier owner died before it noted that
            there = self._fetch(shard, way.posted + 1, min(posted + 1, first))
            self._handed_over(way, sum(letter.links for letter in there))
        if posted + 1 < first:
            way.waiting[:0] = self._fetch(shard, posted + 1, first)
        self.posted(shard, posted, read)

    def ready(self) -> list[tuple[int, list[Letter]]]:
        """Return the letters that can be posted, by shard."""
        now = self._mono()
        ways = [(shard, self._ways[shard]) for shard in sorted(self._waiting)]
        return [(shard, way.waiting) for shard, way in ways if way.not_before <= now]

    def posted(self, shard: int, posted: int, read: int) -> int:
        """Note the cursors of an inbox; return how many links arrived there that had not."""
        way = self._ways[shard]
        arrived = 0
        while arrived < len(way.waiting) and way.waiting[arrived].number <= posted:
            arrived += 1
        count = sum(letter.links for letter in way.waiting[:arrived])
        del way.waiting[:arrived]
        self._handed_over(way, count)
        way.posted = max(way.posted, posted)
        way.passed = max(way.passed, read)
        _keep(self._waiting, shard, is_in=bool(way.waiting))
        _keep(self._under_way, shard, is_in=way.passed < way.last)
        _keep(self._news, shard, is_in=way.has_news)
        return count

    def hold_back(self, shard: int) -> None:
        """Post nothing to a shard for a while: it has not read what it got."""
        self._ways[shard].not_before = self._mono() + PAUSE_S

    def _handed_over(self, way: _Way, links: int) -> None:
        way.handed += links
        self.handed += links

    def _fetch(self, shard: int, first: int, end: int) -> list[Letter]:
        """Read letters of our own outbox."""
        key = self.keys.of_shard(self.shard, "o")
        letters = []
        for start in range(first, end, _PIECE):
            numbers = range(start, min(end, start + _PIECE))
            values = self.server.ask("HMGET", key, *(f"{shard}:{number}" for number in numbers))
            for number, value in zip(numbers, values, strict=True):
                if value is not None:
                    links, _, packed = value.partition(b" ")
                    letters.append(Letter(number, int(links), packed.decode()))
        return letters


def look(outboxes: Sequence[Outbox]) -> None:
    """Ask how far the letters of some shards have come, in one exchange."""
    asked = [(outbox, *question) for outbox in outboxes for question in outbox.questions()]
    answers = outboxes[0].server.ask_all([command for _, _, command in asked]) if asked else []
    for (outbox, shard, _), (posted, read) in zip(asked, answers, strict=True):
        outbox.came_to(shard, int(posted or 0), int(read or 0))
    for outbox in outboxes:
        outbox.looked()


def post(outboxes: Sequence[Outbox], mail: Mailbox) -> int:
    """Post the letters of some shards, which are committed; return how many links that were."""
    look([outbox for outbox in outboxes if outbox.wants_to_look])
    by_shard: dict[int, list[tuple[Outbox, list[Letter]]]] = {}
    for outbox in outboxes:
        for shard, letters in outbox.ready():
            by_shard.setdefault(shard, []).append((outbox, letters))
    if not by_shard:
        return 0
    first = outboxes[0]
    pieces = [
        (shard, parts[start : start + _SENDERS])
        for shard, parts in by_shard.items()
        for start in range(0, len(parts), _SENDERS)
    ]
    calls: list[Call] = []
    for shard, parts in pieces:
        payload: Payload = {
            "id": first.crawl,
            "senders": [outbox.shard for outbox, _ in parts],
            "letters": [[each for one in letters for each in one] for _, letters in parts],
        }
        calls.append(("post", [first.keys.shard(shard)], payload))
    count = 0
    for (shard, parts), answer in zip(pieces, first.server.calls(calls), strict=True):
        if isinstance(answer, Exception):
            raise answer
        unread, *cursors = answer
        for at, (outbox, letters) in enumerate(parts):
            count += outbox.posted(shard, *cursors[2 * at : 2 * at + 2])
            if unread > MARK:
                outbox.hold_back(shard)
            if letters:  # behind a gap
                look([outbox])
        mail.arrived(shard)
    return count


def _keep(ways: set[int], shard: int, *, is_in: bool) -> None:
    """Add a shard to a set, or remove it."""
    if is_in:
        ways.add(shard)
    else:
        ways.discard(shard)
