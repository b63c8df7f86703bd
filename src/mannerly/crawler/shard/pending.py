"""Everything that joins the next commit of a shard. No other module writes into a batch.

    page, list     `settle`, with what the plug-ins add to it (place 4)
    URLs           `queue`, for this shard or another; `drop`, with a reason
    robots.txt     `learn_robots`, `forget_robots`
    orders         `take_order`, `bring_back`
    answers        `count_answer`
    hosts          `complete`, with what the plug-ins have written

Others read `batch`: what waits for the commit is the latest that is known.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mannerly.crawler.model import TRAFFIC_S
from mannerly.crawler.store.base import Batch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from mannerly.crawler.control import Recrawl, RetryUrls
    from mannerly.crawler.model import (
        ArchivePlace,
        Candidate,
        Entry,
        HostRecord,
        PageItems,
        RawExchange,
        RobotsRecord,
    )
    from mannerly.crawler.page.record import Harvest

    from .plugin import Plugins


class Pending:
    """The batch of a shard. Each commit begins a new one, so it is kept here only.

    Attributes:
        is_urgent: it should not wait: a host asked for a pause that a crash now would forget, or
            the batch is large.
    """

    __slots__ = ("_plugins", "_shard", "_shard_of", "batch", "is_urgent")

    def __init__(self, shard: int, shard_of: Callable[[str], int], plugins: Plugins) -> None:
        self._shard = shard
        self._shard_of = shard_of
        self._plugins = plugins
        self.batch = Batch()
        self.is_urgent = False

    # ------------------------------------------------------------------ pages and lists

    def settle(self, entry: Entry, found: Harvest, exchange: RawExchange | None) -> None:
        """Add a page or a list that was read; `exchange` is its answer if that is kept."""
        batch = self.batch
        batch.pages.append((entry, found.record))
        if found.listed:
            batch.listed += found.listed
        for settle in self._plugins.settle:
            settle(entry, found, exchange, self)

    def keep_answer(self, entry: Entry, place: ArchivePlace) -> None:
        """Note where the answer of a page is kept."""
        self.batch.kept[entry.seq] = place

    def keep_items(self, entry: Entry, items: PageItems) -> None:
        """Add what a user's code has made of a page."""
        self.batch.items[entry.seq] = items

    def keep_elements(self, entry: Entry, elements: bytes) -> None:
        """Add the links of a page, packed."""
        self.batch.elements[entry.seq] = elements

    def keep_session(self, name: str, cookies: str) -> None:
        """Add the cookies of a session, packed; none: it is forgotten."""
        self.batch.sessions[name] = cookies

    def keep_earlier(self, entry: Entry) -> None:
        """Let a page that has not changed keep what its last record has."""
        self.batch.unchanged.add(entry.seq)

    def count_lastmod(self, host: str, *, is_right: bool) -> None:
        """Count whether a sitemap was right about a page."""
        lastmods = self.batch.lastmods
        right, wrong = lastmods.get(host, (0, 0))
        lastmods[host] = (right + is_right, wrong + (not is_right))

    # ------------------------------------------------------------------ URLs

    def queue(self, candidates: Iterable[Candidate]) -> None:
        """Queue URLs, each in the shard that owns its host."""
        shard_of, batch = self._shard_of, self.batch
        for candidate in candidates:
            owner = shard_of(candidate.host)
            if owner == self._shard:
                batch.found.append(candidate)
            else:
                batch.outgoing.append((owner, candidate))

    def drop(self, entries: Iterable[Entry], reason: str) -> None:
        """Have entries leave the queue without a record."""
        self.batch.dropped += [(entry, reason) for entry in entries]

    def bring_back(self, order: RetryUrls | Recrawl) -> None:
        """Have URLs queued again."""
        self.batch.retries.append(order)

    def hurry(self) -> None:
        """Have the batch committed soon."""
        self.is_urgent = True

    # ------------------------------------------------------------------ robots.txt, orders, answers

    def learn_robots(self, record: RobotsRecord) -> None:
        """Add what an answer to a request for robots.txt has shown."""
        self.batch.robots[record.origin] = record

    def forget_robots(self, origin: str) -> None:
        """Have the robots.txt of an origin fetched again."""
        self.batch.robots[origin] = None

    def take_order(self, number: int) -> None:
        """Note the last control record that was acted on."""
        self.batch.applied = number

    def count_answer(self, wall: float, *, is_refusal: bool) -> None:
        """Count an answer of the web in its interval."""
        traffic = self.batch.traffic.setdefault(int(wall) // TRAFFIC_S, [0, 0])
        traffic[0] += 1
        traffic[1] += is_refusal

    # ------------------------------------------------------------------ the commit

    def complete(self, hosts: list[HostRecord]) -> Batch:
        """Return the batch with the hosts that have changed and what plug-ins have written."""
        self.batch.hosts = hosts
        for flush in self._plugins.flush:
            flush(self)
        return self.batch

    def keep_segments(self, lengths: dict[str, int]) -> None:
        """Have the valid lengths of files committed, by their names."""
        self.batch.segments = lengths

    def committed(self) -> Batch:
        """Begin the next batch; return the one that is durable."""
        for note in self._plugins.committed:
            note()
        batch, self.batch = self.batch, Batch()
        self.is_urgent = False
        return batch
