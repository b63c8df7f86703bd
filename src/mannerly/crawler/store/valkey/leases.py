"""The claims of one process on shards of a crawl, and its place among the members: `Fleet`.

A claim is a token in the shard's state, with a stamp of its owner's clock (`ages`): its last
*beat*. `renew` gives all claims of this process a new one in one exchange. An owner is sure of a
shard until MARGIN_S before its lease could end, counted from before the exchange was begun
(`sure_until`). A lease is over for another process when that one has counted LEASE_S since the
beat.

Every shard has a *clock*, in milliseconds, on which the waits of its hosts are kept. It advances by
what its owners counted on their monotonic clocks, and by what the next owner knows to have passed
since the last beat of the one before. So it may lose time, and then a wait takes longer. It gains
none.

A lease that has ended and that no other member has claimed is still its owner's: its token is
there, so there was no other owner. It may be renewed; after a restart of the server not before one
lease has passed, because the server may have forgotten the other owner. That lease is counted from
the moment at which this process first saw the new run of the server.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING
from uuid import uuid4

from mannerly.crawler.store.base import StoreError, StoreInUse
from mannerly.crawler.store.fleet import SHARED, CrawlGone, FleetFigures, StoreAway, Unclaimed
from mannerly.crawler.store.fleet_times import LEASE_S, MARGIN_S
from mannerly.crawler.store.records.writer import RecordWriter

from .claims import Claims
from .health import require_keeping
from .home import Home
from .notes import FileNote, ServerNote
from .page_limit import take_pages
from .shard import ValkeyShard
from .together import Together
from .writes import Writes

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from mannerly.crawler.store.base import (
        Batch,
        Committed,
        Heartbeat,
        ShardOptions,
        ShardStore,
    )
    from mannerly.database.client import Call, Command, Payload
    from mannerly.politeness.model import Instant

    from .crawl import ValkeyCrawl


_PROLONGED = 1  # an answer to a renewal; 0: another owner, 2: ours, but the lease stays ended


class NoRecords(StoreError):  # noqa: N818 - a state of the command
    """No directory with records was given."""

    exit_code = 2


class ValkeyFleet:
    """The members of a crawl and its shards, for one process."""

    lease_s = LEASE_S
    rhythm = SHARED

    def __init__(self, crawl: ValkeyCrawl) -> None:
        self.member = ""
        self.withheld_until: Instant | None = None
        self.takeovers = 0  # shards that were claimed here after their owner was lost
        self.refused = 0  # writes that came too late
        self._writes_before = 0  # of shards that were released since
        self.claimed: dict[int, ValkeyShard] = {}
        self._crawl = crawl
        self._questions: list[Command] = [  # about the owners of shards
            ("HMGET", crawl.keys.shard(shard), "id", "token", "beat", "run", "hold")
            for shard in range(crawl.manifest.shards)
        ]
        self._claims = Claims(crawl)
        self._home: Home | None = None
        self._busy = 0  # a shard that did not rest when the end was last looked for

    @property
    def ttl_ms(self) -> int:
        """Return how long a lease holds, as scripts take it."""
        return int(self.lease_s * 1000)

    # ------------------------------------------------------------------ members

    def join(self, home: Path, segments: Path | None = None) -> str:
        """Work on the crawl with `home` as the data directory of this run; return its name."""
        crawl = self._crawl
        if self._home is None:
            require_keeping(crawl.server)
            self._home = Home(home, crawl.manifest.id, crawl.location)
            self.member = self._home.member
            crawl.keep_in(segments or home)
            crawl.keeps_urls = segments is None
        return self.member

    def leave(self) -> None:
        """Let another process have the data directory."""
        home, self._home = self._home, None
        if home is not None:
            home.close()

    def heard(self, within_s: float) -> list[Heartbeat]:
        """Return the heartbeats that were renewed lately, by what this process can know."""
        return self._crawl.heartbeats.heard(within_s)

    def unclaimed(self, among: Sequence[int] | None = None) -> Unclaimed:
        """Return the shards that have no owner now, of all shards or among these."""
        crawl = self._crawl
        shards = range(crawl.manifest.shards) if among is None else among
        if not shards:
            return Unclaimed([], [], [])
        whole, *rows = crawl.server.ask_all(
            [("HMGET", crawl.keys.meta, "id"), *(self._questions[shard] for shard in shards)]
        )
        known_id, now = crawl.manifest.id.encode(), crawl.mono()
        if whole[0] != known_id or any(row[0] != known_id for row in rows):
            raise crawl.gone()
        found, claims = Unclaimed([], [], []), self._claims
        for shard, (_, token, beat, run, hold) in zip(shards, rows, strict=True):
            claims.learn(shard, token, beat, run, now)
            if token and not claims.over(shard, self.lease_s, now):
                continue
            if hold == b"1" and not claims.runs.is_settled(run.decode(), self.lease_s, now):
                found.withheld.append(shard)
            else:
                (found.lapsed if token else found.released).append(shard)
        return found

    def renew(self, heartbeat: Heartbeat, *, now: Instant) -> list[int]:
        """Prolong the claims of this process, send its heartbeat; return the shards it has lost."""
        crawl = self._crawl
        payloads: list[Call] = [crawl.heartbeat_call(heartbeat.id, heartbeat)]
        shards = [shard for shard in self.claimed.values() if not shard.is_lost]
        runs = self._claims.runs.settled(self.lease_s, now)
        for shard in shards:
            payload: Payload = {
                "id": crawl.manifest.id,
                "token": shard.token,
                **shard.clock.mark(now),
                "is_over": now >= shard.sure_until + MARGIN_S,
                "runs": runs,
                "n": shard.answered_writes,
            }
            payloads.append(("renew", [crawl.keys.shard(shard.number)], payload))
        asked_at = crawl.wall()
        withheld: list[Instant] = []
        shown, *answers = crawl.server.calls(payloads)
        lost = [number for number, shard in self.claimed.items() if shard.is_lost]
        for shard, answer in zip(shards, answers, strict=True):
            if isinstance(answer, Exception):
                raise answer
            is_ours, server_ms, reminders, run, clock_ms = answer
            self._claims.runs.saw(shard.number, run.decode(), crawl.mono())
            if is_ours:
                if is_ours == _PROLONGED:
                    shard.clock.set(clock_ms, now)
                    shard.sure_until = now + self.lease_s - MARGIN_S
                else:
                    withheld.append(self._claims.runs.settled_at(run.decode(), self.lease_s))
                crawl.server.saw(server_ms, asked_at)
                shard.heard.seen(reminders)
            else:
                shard.lose()
                lost.append(shard.number)
        if isinstance(shown, CrawlGone | StoreAway):
            raise shown
        self.withheld_until = min(withheld, default=None)
        crawl.reminders.poll()
        for number in lost:  # not before: after an error the next renewal has to return them
            self.claimed[number].close()
        return lost

    # ------------------------------------------------------------------ several shards at once

    def commit(
        self,
        batches: Sequence[tuple[ShardStore, Batch]],
        meanwhile: Callable[[], None] | None = None,
    ) -> list[Committed | StoreError]:
        """Commit batches of several shards of this process, in one exchange."""
        with self._crawl.server.working(meanwhile):
            return self._together([store for store, _ in batches]).commit(
                [batch for _, batch in batches]
            )

    def pass_links(
        self,
        stores: Sequence[ShardStore],
        limit: int,
        meanwhile: Callable[[], None] | None = None,
    ) -> list[Committed | StoreError]:
        """Take over what others have queued in several shards of this process."""
        with self._crawl.server.working(meanwhile):
            return self._together(stores).pass_links(limit)

    def _together(self, stores: Sequence[ShardStore]) -> Together:
        shards = [store for store in stores if isinstance(store, ValkeyShard)]
        assert len(shards) == len(stores), "shards of this store"
        return Together(self._crawl.server, self._crawl.keys, shards)

    def figures(self) -> FleetFigures:
        """Return what this process knows of the store, for metrics. Asks the server once."""
        server = self._crawl.server
        memory = server.information("memory")
        return FleetFigures(
            leases=len(self.claimed),
            takeovers=self.takeovers,
            commits=sum(shard.written[0] for shard in self.claimed.values()) + self._writes_before,
            refused=self.refused,
            waited_s=server.busy_s,
            memory_bytes=sum(int(each.get("used_memory", 0)) for each in memory),
            memory_limit_bytes=sum(int(each.get("maxmemory", 0)) for each in memory),
        )

    # ------------------------------------------------------------------ shards

    def claim(self, number: int, options: ShardOptions) -> ValkeyShard:
        """Become the owner of a shard, until its store is closed."""
        crawl = self._crawl
        folder = crawl.segment_folder
        if folder is None:
            raise StoreError(f"{crawl.location}: join the crawl with a data directory first")
        token = uuid4().hex
        note = (
            ServerNote(crawl, number, token)
            if self._home is None
            else FileNote(self._home.path, number)
        )
        key = crawl.keys.shard(number)
        try:
            won, left = self._claims.win(
                number, token, member=self.member, parsing=note.seq, lease_s=self.lease_s
            )
        except StoreInUse:
            note.close()
            raise
        self.takeovers += won.is_takeover
        stem = f"{self.member or 'shard'}-{number}-{won.number}"
        server, keys = crawl.server, crawl.keys
        shard = ValkeyShard(
            number,
            crawl.manifest.shards,
            options.frontier_limit,
            server=server,
            keys=keys,
            clocks=crawl.clocks,
            folders=crawl.folders,
            writes=Writes(server, key, crawl.manifest.id, token),
            ages=crawl.ages,
            records=RecordWriter(folder, stem, won.number, durable=options.durable),
            note=note,
            keeps_urls=crawl.keeps_urls,
            reminders=crawl.reminders,
            on_links=self._have_links,
            on_close=self._released,
        )
        shard.clock.set(won.clock_ms, won.began)
        shard.sure_until = won.began + self.lease_s - MARGIN_S
        shard.segment_stem = stem
        self.claimed[number] = shard
        shard.arrived.last_known = won.last_known
        try:
            shard.load(left)
        except StoreError:
            shard.close()  # else it would be renewed, and no member would work on it
            raise
        return shard

    def _have_links(self, shards: Sequence[int]) -> None:
        """Note that a commit of this process has added links to some shards."""
        for number in shards:
            if number in self.claimed:
                self.claimed[number].arrived.ask_soon()

    def _released(self, shard: ValkeyShard) -> None:
        """Let go of a shard, so that the next owner need not wait."""
        writes, refused = shard.written
        self._writes_before += writes
        self.refused += refused
        if self.claimed.get(shard.number) is shard:
            del self.claimed[shard.number]
        if not shard.is_lost:
            shard.release()
            return
        with suppress(StoreAway, CrawlGone):  # else at the next renewal
            self._crawl.reminders.tell(shard.number)

    def rest(self, shards: Sequence[int]) -> set[int]:
        """Note that there is nothing to do in shards of this process; return where that holds."""
        last = self._crawl.last_order()
        known = [self.claimed[shard] for shard in shards if shard in self.claimed]
        idle = [store for store in known if store.counts().applied >= last]
        return self._together(idle).rest(last)

    def finished(self) -> bool:
        """Return whether every shard rests: the crawl is finished."""
        crawl = self._crawl
        last = crawl.last_order()
        payload: Payload = {
            "id": crawl.manifest.id,
            "shards": crawl.manifest.shards,
            "first": self._busy,
            "seen": len(crawl.orders()),
            "last": last,
        }
        busy: int = crawl.server.call("finished", [crawl.keys.meta, crawl.keys.orders], payload)
        self._busy = max(0, busy)
        return busy < 0

    # ------------------------------------------------------------------ --max-urls

    def take_pages(self, wanted: int) -> int:
        """Return how many of `wanted` pages may be started: less if `--max-urls` is near."""
        return take_pages(self._crawl, wanted)

    def return_pages(self, pages: int) -> None:
        """Give back pages that were taken and not started."""
        if pages > 0:
            take_pages(self._crawl, -pages)

    # ------------------------------------------------------------------ records that are lost

    def recall(self, host: str | None) -> int:
        """Leave URLs whose record cannot be found from here to the owners of their shards."""
        crawl = self._crawl
        if not crawl.folders:
            raise NoRecords(
                "it is not known which records are left: give the data directory of every worker "
                "that is left (--data-dir), or an empty one if all are lost"
            )
        pages = 0
        for number in range(crawl.manifest.shards):
            with crawl.read(number) as reader:
                pages += reader.lost_records.recall(crawl.manifest.id, host)
            self._refund(number)
        return pages

    def _refund(self, shard: int) -> None:
        """Give back the pages that were ever left to a shard, unless that was done."""
        crawl = self._crawl
        recalled = crawl.server.ask("HGET", crawl.keys.shard(shard), "recalled")
        if recalled:
            payload: Payload = {
                "id": crawl.manifest.id,
                "shard": shard,
                "recalled": int(recalled),
            }
            crawl.server.call("refund", [crawl.keys.meta], payload)
