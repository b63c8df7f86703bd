"""Who owned each shard of a crawl and when, as the server saw it; takeovers after kills."""

from __future__ import annotations

import threading
import time
from collections import Counter, defaultdict
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple, Self

from mannerly.crawler.frontier.sharding import Sharding
from mannerly.crawler.store.valkey.home import read_member
from mannerly.crawler.store.valkey.keys import CrawlKeys

if TYPE_CHECKING:
    from tests.crawler.fleet.fleet_world import Fleet, Worker
    from tests.crawler.store.valkey_server import LocalServer

EVERY_S = 0.2


class Claim(NamedTuple):
    """A shard has this owner from an instant on (monotonic)."""

    t: float
    number: int
    member: str


class Kill(NamedTuple):
    """A worker was killed."""

    t: float
    member: str


class Silence(NamedTuple):
    """A host was not contacted for so long, and so many of its owners were killed meanwhile."""

    seconds: float
    host: str
    kills: int


class Owners:
    """Looks at the owners of all shards five times a second, while it is entered."""

    def __init__(self, server: LocalServer, fleet: Fleet, shards: int) -> None:
        self.claims: dict[int, list[Claim]] = {shard: [] for shard in range(shards)}
        self.kills: list[Kill] = []
        self.fetched: list[tuple[float, int]] = []  # pages that are committed, over time
        self._fleet, self._client = fleet, server.client()
        self._shards = shards
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._thread.join()
        self._client.close()

    def kill(self, worker: Worker) -> None:
        """Kill a worker, as a power cut would."""
        card = read_member(worker.home)
        worker.kill()
        self.kills.append(Kill(time.monotonic(), "" if card is None else card.member))

    def takeovers_s(self) -> list[float]:
        """Return, for every shard of a killed worker, how long it took until another had it."""
        took = []
        for kill in self.kills:
            for claims in self.claims.values():
                before = [claim for claim in claims if claim.t <= kill.t]
                after = [claim for claim in claims if claim.t > kill.t]
                if before and after and before[-1].member == kill.member:
                    took.append(after[0].t - kill.t)
        return took

    def silences(self) -> list[Silence]:
        """Return the longest silence of each host, with the kills of its owners in it."""
        sharding = Sharding(self._shards)
        hosts: dict[str, list[float]] = defaultdict(list)
        for each in self._fleet.log():
            hosts[each.host].append(each.t)
        found = []
        for host, instants in hosts.items():
            claims = self.claims[sharding.shard_of(host)]
            since, until = max(pairwise(instants), key=lambda pair: pair[1] - pair[0])
            kills = sum(
                since <= kill.t <= until and owner_at(claims, kill.t) == kill.member
                for kill in self.kills
            )
            found.append(Silence(until - since, host, kills))
        return sorted(found, reverse=True)

    def shares(self) -> Counter[str]:
        """Return how many shards each member has now."""
        return Counter(claims[-1].member for claims in self.claims.values() if claims)

    def oldest_uncommitted_s(self) -> float:
        """Return the age of the oldest page that was not committed, at its worst."""
        pages = [each for each in self._fleet.log() if each.path != "/robots.txt"]
        answered = sorted(each.answered_at for each in pages if each.answered_at is not None)
        return max(t - answered[done] for t, done in self.fetched if done < len(answered))

    def _look(self) -> None:
        keys = CrawlKeys(self._fleet.name)
        names = [keys.shard(shard) for shard in range(self._shards)]
        while not self._is_over.wait(EVERY_S):
            pipeline = self._client.pipeline(transaction=False)
            for name in names:
                pipeline.hmget(name, "claim", "member", "fetched")
            looked_at = time.monotonic()
            rows = pipeline.execute()
            self.fetched.append((looked_at, sum(int(fetched or 0) for _, _, fetched in rows)))
            for shard, (number, member, _) in enumerate(rows):
                known = self.claims[shard]
                # Between two owners a shard has none.
                if number and member and (not known or known[-1].number != int(number)):
                    known.append(Claim(time.monotonic(), int(number), member.decode()))


def owner_at(claims: list[Claim], t: float) -> str:
    """Return who owned a shard at an instant; "" if it had no owner."""
    return next((claim.member for claim in reversed(claims) if claim.t <= t), "")
