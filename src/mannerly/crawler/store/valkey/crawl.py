"""A crawl in a server: `CrawlStore`, at `redis://HOST:PORT/DB#NAME`.

It is created in two steps: its manifest, which decides who of two creators wins, and the states of
its shards. A crawl whose creator died in between is completed by the process that opens it.

Any number of runs may work on it as a fleet (`fleet.join`). A run that does not join but holds the
crawl is alone, as on a disk.
"""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Self
from uuid import uuid4

import msgspec

from mannerly.crawler.control import decode as decode_control
from mannerly.crawler.control import encode as encode_control
from mannerly.crawler.control import is_for_shards
from mannerly.crawler.store.base import (
    Heartbeat,
    Manifest,
    StoreError,
    StoreInUse,
    StoreMissing,
)
from mannerly.crawler.store.fleet import CrawlGone, StoreAway
from mannerly.crawler.store.fleet_times import CLOCKS_S
from mannerly.database.address import parse
from mannerly.database.ages import boot_id
from mannerly.database.client import ScriptRefused

from .client import ValkeyServer
from .health import require_keeping
from .heartbeats import Heartbeats
from .host_codec import Clocks
from .keys import CRAWLS, CrawlKeys
from .leases import ValkeyFleet
from .manifest import pack_manifest, unpack_manifest
from .packing import Poisoned
from .reader import ValkeyReader
from .reminders import Reminders

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from mannerly.crawler.control import Control
    from mannerly.crawler.model import Candidate
    from mannerly.crawler.store.base import ShardOptions
    from mannerly.database.client import Call, Payload

    from .shard import ValkeyShard

_CLOCKS_MS = int(CLOCKS_S * 1000)


class ValkeyCrawl:
    """`CrawlStore` in a Redis or Valkey server."""

    def __init__(self, server: ValkeyServer, manifest: Manifest) -> None:
        self.server = server
        self.location = server.address.location
        self.manifest = manifest
        self.keys = CrawlKeys(server.address.name)
        self.mono, self.wall = server.mono, server.wall
        self.segment_folder: Path | None = None
        self.folders: list[Path] = []
        self.keeps_urls = True  # of pages that were fetched; False: records are on shared storage
        self.reminders = Reminders(server, self.keys, manifest.id)
        self.ages = server.ages
        self.heartbeats = Heartbeats(server, self.keys, manifest.id)
        self.fleet = ValkeyFleet(self)
        self._boot = boot_id()
        self._holder = ""  # our token, if this run holds the crawl alone
        self._heartbeats: set[str] = set()
        self._orders: list[tuple[int, Control]] = []

    # ------------------------------------------------------------------ creating and opening

    @classmethod
    def create(cls, location: str, manifest: Manifest, server: ValkeyServer | None = None) -> Self:
        """Create a crawl under a name that is not in use."""
        server = server or ValkeyServer(parse(location))
        keys = CrawlKeys(server.address.name)
        payload: Payload = {
            "id": manifest.id,
            "manifest": pack_manifest(manifest),
        }
        try:
            require_keeping(server)
            server.call("create", keys.of_crawl, payload)
        except ScriptRefused as error:
            server.close()
            if error.word != "EXISTS":
                raise
            raise StoreError(
                f"{location} holds a crawl already: resume it, or start over with --fresh"
            ) from None
        server.change("SADD", CRAWLS, server.address.name)
        crawl = cls(server, manifest)
        crawl.complete()
        return crawl

    @classmethod
    def open(cls, location: str, server: ValkeyServer | None = None) -> Self:
        """Open a crawl that was created earlier.

        Raises:
            StoreMissing: there is none.
            StoreAway: the server cannot be reached.
            StoreError: it is of another version, or damaged.
        """
        server = server or ValkeyServer(parse(location))
        keys = CrawlKeys(server.address.name)
        data, is_ready = server.ask_all([("GET", keys.manifest), ("HGET", keys.meta, "ready")])
        if data is None:
            server.close()
            raise StoreMissing(f"there is no crawl in {location}")
        crawl = cls(server, unpack_manifest(data, keys.manifest))
        if not is_ready:
            crawl.complete()
        return crawl

    @classmethod
    def exists(cls, location: str) -> bool:
        """Return whether there is a crawl under this name."""
        server = ValkeyServer(parse(location))
        try:
            return bool(server.ask("EXISTS", CrawlKeys(server.address.name).manifest))
        finally:
            server.close()

    @classmethod
    def wipe(cls, location: str) -> None:
        """Remove a crawl; nothing happens if there is none."""
        try:
            crawl = cls.open(location)
        except StoreMissing:
            return
        try:
            if crawl.is_running():
                raise StoreInUse(f"{location} is in use: stop it first")
            keys, server = crawl.keys, crawl.server
            server.change("SREM", CRAWLS, server.address.name)
            server.change("DEL", *keys.of_crawl)
            crawl.wipe_shards(range(crawl.manifest.shards))
        finally:
            crawl.close()

    @classmethod
    def examine(cls, location: str) -> list[str]:
        """Return what is wrong with a crawl's state, one sentence each; nothing if it is sound."""
        crawl = cls.open(location)
        try:
            wrong = []
            for shard in range(crawl.manifest.shards):
                try:
                    with crawl.read(shard) as reader:
                        for _ in reader.hosts():
                            pass
                        for _ in reader.unfinished():
                            pass
                        wrong += [f"shard {shard}: {each}" for each in reader.take_mended()]
                except Poisoned as error:
                    wrong.append(f"shard {shard}: {error}")
            return wrong
        finally:
            crawl.close()

    repair = examine

    def __repr__(self) -> str:
        return f"<ValkeyCrawl {self.location} of {self.manifest.shards} shards>"

    def complete(self) -> None:
        """Make the states of all shards, as far as they are missing."""
        shards = range(self.manifest.shards)
        payload: Payload = {"id": self.manifest.id}
        for _ in range(2):
            calls = [("init", [self.keys.shard(shard)], payload) for shard in shards]
            answers = self.server.calls(calls)
            for answer in answers:
                if isinstance(answer, StoreError):
                    raise answer
            left = [shard for shard, answer in zip(shards, answers, strict=True) if not answer]
            if not left:
                break
            self.wipe_shards(left)  # of an earlier crawl, whose wipe was cut short
        self.server.change("HSET", self.keys.meta, "ready", 1)

    def wipe_shards(self, shards: Sequence[int]) -> None:
        """Remove everything that is kept of shards."""
        for answer in self.server.calls(
            [("wipe", [self.keys.shard(shard)], {}) for shard in shards]
        ):
            if isinstance(answer, StoreError):
                raise answer

    # ------------------------------------------------------------------ runs

    def keep_in(self, folder: Path) -> None:
        """Write records to a folder, and read them there, too."""
        self.segment_folder = folder
        self.read_from([folder])

    def read_from(self, folders: Sequence[Path]) -> None:
        """Look for records in these folders, too: the data directories of members."""
        self.folders += [folder for folder in folders if folder not in self.folders]

    @property
    def answer_folders(self) -> Sequence[Path]:
        """Return where kept answers are looked for: in the directories that were given."""
        return self.folders

    def hold(self) -> None:
        """Become the one run of this crawl, until `close`; nothing to do for a member."""
        if self.fleet.member:
            return
        token = self._holder or uuid4().hex
        is_free = not self._holder and any(
            heartbeat.id not in self._heartbeats for heartbeat in self.workers()
        )
        if is_free or not self._hold(token, self.fleet.ttl_ms):
            raise StoreInUse(f"{self.location} is in use by another run")
        self._holder = token

    def _hold(self, token: str, ttl_ms: int) -> bool:
        most_ms = self.fleet.ttl_ms + _CLOCKS_MS
        payload: Payload = {"id": self.manifest.id, "token": token, "ttl": ttl_ms, "most": most_ms}
        return bool(self.server.call("hold", [self.keys.meta, self.keys.heartbeats], payload))

    def claim(self, shard: int, options: ShardOptions) -> ValkeyShard:
        """Become the owner of a shard, until its store is closed."""
        return self.fleet.claim(shard, options)

    def renew(self, heartbeat: Heartbeat) -> None:
        """Give a sign of life, and show what this worker does. Claims are kept by it."""
        if self._holder:
            self._hold(self._holder, self.fleet.ttl_ms)
        self.fleet.renew(heartbeat, now=self.mono())

    def heartbeat_call(self, worker: str, heartbeat: Heartbeat | None) -> Call:
        """Return the call that shows a heartbeat, or takes it away."""
        if heartbeat is not None:
            self._heartbeats.add(worker)
        return self.heartbeats.call(worker, heartbeat)

    def retire(self, worker: str) -> None:
        """Take a worker's heartbeat away: it has ended."""
        self._heartbeats.discard(worker)
        self.server.call(*self.heartbeat_call(worker, None))

    def workers(self) -> list[Heartbeat]:
        """Return the heartbeats that were renewed within the time of a lease."""
        return self.heartbeats.alive(self.fleet.lease_s)

    def is_running(self) -> bool:
        """Return whether a process works on this crawl."""
        until = self.server.ask("HGET", self.keys.meta, "holds_until")
        if until is not None and int(until) > self.server.time_ms(self.keys.meta):
            return True
        return self._has_owners() or bool(self.workers())

    def _has_owners(self) -> bool:
        """Return whether a shard seems to have an owner, by the server's clock: for readers."""
        keys = [self.keys.shard(shard) for shard in range(self.manifest.shards)]
        now_ms, rows = self.server.call_and_ask(
            ("time", [self.keys.meta], {}), [("HMGET", key, "token", "beat_at") for key in keys]
        )
        return any(
            token and -_CLOCKS_MS < now_ms - int(beat_ms) < self.fleet.ttl_ms
            for token, beat_ms in rows
        )

    def last_activity(self) -> float:
        """Return the wall time of the last commit, or of the crawl's beginning."""
        keys = [self.keys.shard(shard) for shard in range(self.manifest.shards)]
        times = self.server.ask_all([("HGET", key, "at") for key in keys])
        last_ms = max([int(each) for each in times if each is not None], default=0)
        return last_ms / 1000.0 - self.server.ahead_s if last_ms else self.manifest.created_at

    # ------------------------------------------------------------------ reading

    def read(self, shard: int) -> ValkeyReader:
        """Open a reader beside the shard's owner."""
        clocks = partial(self.clocks, partial(self._clock_ahead_s, shard))
        return ValkeyReader(self.server, self.keys.of_shard(shard, ""), clocks, self.folders)

    def clocks(self, clock_ahead_s: Callable[[], float]) -> Clocks:
        """Return the clocks of this machine, of the server and of a shard."""
        clock_s = clock_ahead_s()
        return Clocks(self._boot, self.mono(), self.wall(), self.server.ahead_s, clock_s)

    def _clock_ahead_s(self, shard: int) -> float:
        """Return how far a shard's clock is ahead of ours, as a reader can know it.

        It was kept at the last beat. The time since then is read from the server's clock.
        """
        key = self.keys.shard(shard)
        now_ms, ((clock_ms, beat_ms),) = self.server.call_and_ask(
            ("time", [key], {}), [("HMGET", key, "clock", "beat_at")]
        )
        since_ms = max(0, now_ms - int(beat_ms or now_ms))
        return float((int(clock_ms or 0) + since_ms) / 1000.0 - self.mono())

    def unread(self, shard: int) -> int:  # noqa: ARG002
        """Return 0: a commit puts links into their shards."""
        return 0

    def unread_links(self, shard: int) -> Iterator[Candidate]:  # noqa: ARG002
        """Yield nothing."""
        return iter(())

    # ------------------------------------------------------------------ notes and orders

    def acknowledge(self, shard: int, seq: int) -> None:
        """Note, without a commit, that the program is done with a page."""
        self.note(shard, "done", seq, "")

    def note(self, shard: int, what: str, seq: int, token: str) -> None:
        """Keep a note about a page, without a commit."""
        payload: Payload = {"id": self.manifest.id, "what": what, "seq": seq, "token": token}
        self.server.call("note", [self.keys.shard(shard)], payload)

    def order(self, control: Control) -> int:
        """Append a control record, durably; return its number."""
        payload: Payload = {"id": self.manifest.id, "order": encode_control(control).decode()}
        number: int = self.server.call("order", [self.keys.meta, self.keys.orders], payload)
        return number

    def orders(self, *, after: int = 0) -> list[tuple[int, Control]]:
        """Return the control records with larger numbers, in order."""
        values = self.server.ask("LRANGE", self.keys.orders, len(self._orders), -1)
        for value in values:
            try:
                control = decode_control(value)
            except msgspec.MsgspecError as error:
                raise Poisoned(f"an order in {self.keys.orders} is damaged ({error})") from None
            self._orders.append((len(self._orders) + 1, control))
        return self._orders[after:]

    def last_order(self) -> int:
        """Return the number of the last control record that shards act on; 0 if there is none."""
        known = self.orders()
        return next((number for number, order in reversed(known) if is_for_shards(order)), 0)

    def gone(self) -> CrawlGone:
        """Return the error that says that the crawl is not in the store any more."""
        return CrawlGone(
            f"the crawl {self.server.address.name} is not in {self.server.address.server} any "
            "more: it was wiped, or the server lost its data"
        )

    def close(self) -> None:
        """Release everything; closing twice is harmless."""
        for shard in list(self.fleet.claimed.values()):
            shard.close()
        with suppress(StoreAway, CrawlGone):
            for worker in sorted(self._heartbeats):
                self.retire(worker)
            if self._holder:
                self._hold(self._holder, 0)
        self._holder = ""
        self.fleet.leave()
        self.server.close()
