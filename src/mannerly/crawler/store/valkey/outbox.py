"""The letters of one shard to other shards, from the commit that writes them until they are read.

The letters that one claim writes to a shard are a numbered stream (`letters`). A letter goes three
steps:

    last      committed to the outbox, together with the pages that brought its links
    posted    copied to the inbox of its shard, by `post.lua`
    passed    read there, in the write that queued its links: it leaves the outbox

Nothing but `passed` makes a letter leave, so a server that lost its last second loses no link: the
inbox takes letters without a gap only, and its answer says from which number on they are wanted.
After a restart of the server all cursors are asked for again, and again every LOOK_S while letters
are under way.

In a cluster the two shards may be on two servers, and that of the receiver may lose its last
second, or be replaced by a replica that lacks some, after the other one has dropped the letter. So
a letter counts as passed there when an answer that comes SETTLED_S after the first one still says
that it was read: by then it is on disk, and replicas have it.

The streams of earlier claims are posted by the present owner, too. When the last letter of one was
read, its cursor leaves the inbox, and then the stream leaves the outbox. So a shard has one stream
to each other shard, and a few more after it has changed hands. If its owner dies between the two,
letters are posted a second time, which brings nothing new.

A shard with more than MARK unread links gets no more for a while: they stay with the sender.

The letters of all shards of a process are posted in one exchange (`Posting`), with one call for
each shard that they go to.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from .letters import Letter, LetterStream, stream_of
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
SETTLED_S = 10.0  # a log is on disk within 2 s; a replica lacks 10 s at most (min-replicas-max-lag)
_PIECE = 200  # letters that are read at once
_STREAMS = 1000  # of the letters of one call


# Letters of one stream that can be posted, and the last one before them that has left the outbox.
_Part: TypeAlias = "tuple[Outbox, LetterStream, int, list[Letter]]"


class Way:
    """The letters of one stream: how far they have come, and those that are not posted."""

    __slots__ = (
        *("handed", "last", "not_before", "passed", "posted", "read", "read_at", "saved"),
        "waiting",
    )

    def __init__(self, last: int = 0, posted: int = 0, passed: int = 0) -> None:
        self.last, self.posted, self.passed = last, posted, passed
        self.saved = (posted, passed)  # what the server has
        self.handed = 0  # links that were posted since that was saved
        self.waiting: list[Letter] = []  # not posted
        self.not_before: Instant = 0.0
        self.read = passed  # in a cluster: up to here letters were read, at that instant or before
        self.read_at: Instant = 0.0

    def settle(self, read: int, now: Instant) -> None:
        """Learn that letters were read, in a cluster: they are passed when that is settled."""
        if read < self.read or self.read <= self.passed:  # the server has forgotten some, or: next
            self.read, self.read_at = read, now
        if self.read > self.passed and now - self.read_at >= SETTLED_S:
            self.passed = self.read

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
        claim: int,
        token: str,
        mono: Callable[[], float],
    ) -> None:
        self.shard = shard
        self._claim = claim
        self._token = token
        self.server = server
        self.keys = keys
        self.crawl = crawl
        self.handed = 0  # links that were handed over since that was last saved
        self._mono = mono
        self._ways: dict[LetterStream, Way] = {}
        # A crawl may have hundreds of streams, most of which have nothing to do.
        self._waiting: set[LetterStream] = set()  # with letters that are not posted
        self._under_way: set[LetterStream] = set()  # with letters that are not read
        self._news: set[LetterStream] = set()  # with something to save
        # Of earlier claims, read to the end: with a cursor in the inbox, and without.
        self._ended: set[LetterStream] = set()
        self._forgotten: dict[LetterStream, Way] = {}  # which is to be saved
        self._run = server.run
        self._look_at: Instant = 0.0

    @property
    def stamp(self) -> str:
        """Return the name of this claim in the names of its letters."""
        return self._stream(0).stamp

    def _stream(self, shard: int) -> LetterStream:
        return stream_of(shard, self._claim, self._token)

    def load(self, cursors: dict[LetterStream, dict[str, int]]) -> None:
        """Begin a claim with what earlier ones left, and ask how far that has come."""
        for stream, known in cursors.items():
            way = Way(known.get("last", 0), known.get("posted", 0), known.get("passed", 0))
            self._ways[stream] = way
            # Until it was asked for, it is under way.
            (self._ended if way.passed >= way.last else self._under_way).add(stream)
        self.look()

    @property
    def is_empty(self) -> bool:
        """Return whether every letter was read."""
        return not self._under_way

    @property
    def has_news(self) -> bool:
        """Return whether there is something to save."""
        return bool(self._news or self._forgotten)

    def write(self, by_shard: Mapping[int, list[Candidate]]) -> list[int | str]:
        """Make letters; return what a commit has to write: shard, number, links, packed links."""
        written: list[int | str] = []
        for shard, links in by_shard.items():
            stream = self._stream(shard)
            way = self._ways.setdefault(stream, Way())
            way.last += 1
            letter = Letter(way.last, len(links), pack_candidates(links))
            way.waiting.append(letter)
            self._waiting.add(stream)
            self._under_way.add(stream)
            written += [shard, *letter]
        return written

    def news(self) -> tuple[Payload, Callable[[], None]]:
        """Return what is to be saved, and a function to call when it was."""
        handed: list[int | str] = []
        passed: list[int | str] = []
        ended: list[int | str] = []
        saved: list[tuple[LetterStream, tuple[int, int], int]] = []
        for stream in sorted(self._news):
            way = self._ways[stream]
            if way.handed or way.posted != way.saved[0]:
                handed += [stream.name, way.posted, way.handed]
            if way.passed != way.saved[1]:
                passed += [stream.name, way.saved[1], way.passed]
            saved.append((stream, (way.posted, way.passed), way.handed))
        forgotten = sorted(self._forgotten)
        for stream in forgotten:
            way = self._forgotten[stream]
            ended += [stream.name, way.saved[1], way.last, way.handed]

        def note() -> None:
            for stream, at, links in saved:
                way = self._ways.get(stream) or self._forgotten[stream]
                way.saved = at
                way.passed = max(way.passed, at[1])
                way.handed -= links
                self.handed -= links
                _keep(self._news, stream, is_in=stream in self._ways and way.has_news)
            for stream in forgotten:
                self.handed -= self._forgotten.pop(stream).handed

        return {"handed": handed, "passed": passed, "ended": ended}, note

    def look(self) -> None:
        """Ask how far the letters have come that were not read yet."""
        look([self])

    @property
    def wants_to_look(self) -> bool:
        """Return whether it is time to ask that."""
        has_reason = bool(self._under_way or self._ended)
        return self._run != self.server.run or (has_reason and self._mono() >= self._look_at)

    def questions(self) -> list[tuple[LetterStream, Command]]:
        """Return what to ask the inboxes of the shards that have not read all letters."""
        return [(stream, ("HGET", *self._cursor(stream))) for stream in sorted(self._under_way)]

    def farewells(self) -> list[tuple[LetterStream, Command]]:
        """Return what removes the cursors of streams of earlier claims that were read."""
        return [(stream, ("HDEL", *self._cursor(stream))) for stream in sorted(self._ended)]

    def _cursor(self, stream: LetterStream) -> tuple[str, str]:
        """Return the key and the field of its cursor in the inbox."""
        return self.keys.of_shard(stream.shard, "ic"), stream.name_at_receiver(self.shard)

    def looked(self) -> None:
        """Note that all of them were asked."""
        self._run = self.server.run
        self._look_at = self._mono() + LOOK_S

    def forgot(self, stream: LetterStream) -> None:
        """Note that the cursor of a stream has left the inbox: the stream can leave, too."""
        self._ended.discard(stream)
        self._news.discard(stream)
        self._forgotten[stream] = self._ways.pop(stream)

    def came_to(self, stream: LetterStream, cursor: bytes | None) -> None:
        """Learn how far an inbox has come, and fetch the letters that it lacks."""
        way = self._ways[stream]
        have_left = way.saved[1]  # they were read, whatever the inbox has forgotten
        posted, read = (int(part) for part in (cursor or b"0 0").split())
        posted, read = max(posted, have_left), max(read, have_left)
        way.passed = min(way.passed, read)
        way.posted = min(way.posted, posted)  # less: the server has forgotten some
        first = way.waiting[0].number if way.waiting else way.last + 1
        if way.posted < min(posted, first - 1):  # an earlier owner died before it noted that
            there = self._fetch(stream, way.posted + 1, min(posted + 1, first))
            self._handed_over(way, sum(letter.links for letter in there))
        if posted + 1 < first:
            way.waiting[:0] = self._fetch(stream, posted + 1, first)
        self.posted(stream, posted, read)

    def ready(self) -> list[tuple[LetterStream, int, list[Letter]]]:
        """Return the letters that can be posted, and the last one that has left the outbox."""
        now = self._mono()
        ways = [(stream, self._ways[stream]) for stream in sorted(self._waiting)]
        return [
            (stream, way.saved[1], way.waiting) for stream, way in ways if way.not_before <= now
        ]

    def posted(self, stream: LetterStream, posted: int, read: int) -> int:
        """Note the cursor of an inbox; return how many links arrived there that had not."""
        way = self._ways[stream]
        arrived = 0
        while arrived < len(way.waiting) and way.waiting[arrived].number <= posted:
            arrived += 1
        count = sum(letter.links for letter in way.waiting[:arrived])
        del way.waiting[:arrived]
        self._handed_over(way, count)
        way.posted = max(way.posted, posted)
        if self.server.is_cluster:
            way.settle(read, self._mono())
        else:
            way.passed = max(way.passed, read)
        is_read = way.passed >= way.last
        _keep(self._waiting, stream, is_in=bool(way.waiting))
        _keep(self._under_way, stream, is_in=not is_read)
        _keep(self._news, stream, is_in=way.has_news)
        _keep(self._ended, stream, is_in=is_read and stream != self._stream(stream.shard))
        return count

    def hold_back(self, stream: LetterStream) -> None:
        """Post nothing to a shard for a while: it has not read what it got."""
        self._ways[stream].not_before = self._mono() + PAUSE_S

    def _handed_over(self, way: Way, links: int) -> None:
        way.handed += links
        self.handed += links

    def _fetch(self, stream: LetterStream, first: int, end: int) -> list[Letter]:
        """Read letters of our own outbox."""
        key = self.keys.of_shard(self.shard, "o")
        letters = []
        for start in range(first, end, _PIECE):
            numbers = range(start, min(end, start + _PIECE))
            values = self.server.ask(
                "HMGET", key, *(f"{stream.name}:{number}" for number in numbers)
            )
            for number, value in zip(numbers, values, strict=True):
                if value is not None:
                    links, _, packed = value.partition(b" ")
                    letters.append(Letter(number, int(links), packed.decode()))
        return letters


def look(outboxes: Sequence[Outbox]) -> None:
    """Ask how far the letters of some shards have come, in one exchange; end what was read."""
    asked = [(outbox, *question) for outbox in outboxes for question in outbox.questions()]
    answers = _exchange(asked)
    for (outbox, stream, _), cursor in zip(asked, answers, strict=True):
        outbox.came_to(stream, cursor)
    told = [(outbox, *farewell) for outbox in outboxes for farewell in outbox.farewells()]
    _exchange(told)
    for outbox, stream, _ in told:
        outbox.forgot(stream)
    for outbox in outboxes:
        outbox.looked()


def _exchange(asked: Sequence[tuple[Outbox, LetterStream, Command]]) -> list[bytes | None]:
    return asked[0][0].server.ask_all([command for _, _, command in asked]) if asked else []


class Posting:
    """The letters of some shards that can be posted; all of them are committed."""

    def __init__(self, outboxes: Sequence[Outbox], mail: Mailbox) -> None:
        look([outbox for outbox in outboxes if outbox.wants_to_look])
        self._mail = mail
        by_shard: dict[int, list[_Part]] = {}
        for outbox in outboxes:
            for stream, passed, letters in outbox.ready():
                by_shard.setdefault(stream.shard, []).append((outbox, stream, passed, letters))
        self.shards = by_shard.keys()  # that get letters
        self._pieces = [
            (shard, parts[start : start + _STREAMS])
            for shard, parts in by_shard.items()
            for start in range(0, len(parts), _STREAMS)
        ]

    def calls(self) -> list[Call]:
        """Return the calls that post them; their answers go to `answered`."""
        calls: list[Call] = []
        for shard, parts in self._pieces:
            first = parts[0][0]
            payload: Payload = {
                "id": first.crawl,
                "streams": [
                    stream.name_at_receiver(outbox.shard) for outbox, stream, _, _ in parts
                ],
                "passed": [passed for _, _, passed, _ in parts],
                "letters": [[each for one in letters for each in one] for *_, letters in parts],
            }
            calls.append(("post", [first.keys.shard(shard)], payload))
        return calls

    def answered(self, answers: Sequence[Any]) -> int:
        """Note which letters have arrived; return how many links that were."""
        count = 0
        behind: list[Outbox] = []  # with letters behind a gap
        for (shard, parts), answer in zip(self._pieces, answers, strict=True):
            if isinstance(answer, Exception):
                raise answer
            unread, *cursors = answer
            for at, (outbox, stream, _, letters) in enumerate(parts):
                count += outbox.posted(stream, *cursors[2 * at : 2 * at + 2])
                if unread > MARK:
                    outbox.hold_back(stream)
                if letters and outbox not in behind:
                    behind.append(outbox)
            self._mail.arrived(shard)
        look(behind)
        return count


def post(outbox: Outbox, mail: Mailbox) -> int:
    """Post the letters of one shard, which are committed; return how many links that were."""
    posting = Posting([outbox], mail)
    calls = posting.calls()
    return posting.answered(outbox.server.calls(calls)) if calls else 0


def _keep(streams: set[LetterStream], stream: LetterStream, *, is_in: bool) -> None:
    """Add a stream to a set, or remove it."""
    if is_in:
        streams.add(stream)
    else:
        streams.discard(stream)
