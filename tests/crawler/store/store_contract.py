"""What every store promises, one claim a test. An implementation subclasses `StoreContract`.

The subclass says how to open the stores of a crawl; everything else goes through the contract, so
that a store that passes here can be swapped in without the engine noticing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import pytest

from mannerly.crawler.model import (
    Candidate,
    Entry,
    HostRecord,
    Kind,
    PageRecord,
    RobotsRecord,
    Skipped,
)
from mannerly.crawler.store.base import Batch, Committed, Counts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from mannerly.crawler.store.base import ShardStore

START = (-1, -1)
MANY = 500


class OpenStores(Protocol):
    def __call__(self, shards: int = 1, *, frontier_limit: int = 1000) -> Sequence[ShardStore]: ...


def candidate(
    path: str = "/", host: str = "a.example", *, priority: int = 1, depth: int = 1, hops: int = 0
) -> Candidate:
    return Candidate(f"https://{host}{path}", host, depth, priority, f"https://{host}/", hops)


def offer(candidates: Iterable[Candidate]) -> Batch:
    """A batch that only offers URLs."""
    return Batch(found=list(candidates))


def page(entry: Entry, *, status: int | None = 200, error: str | None = None) -> PageRecord:
    return PageRecord(
        url=entry.url,
        status=status,
        depth=entry.depth,
        parent=entry.parent,
        title="Ein schöner Titel – \U0001f600",
        content_type="text/html",
        bytes=1234,
        latency_ms=12.5,
        fetched_at=1_800_000_000.25,
        attempts=entry.attempts + 1,
        links=7,
        canonical=None,
        redirect_to=None,
        error=error,
        host=entry.host,
        digest="00ff",
        cache_status="HIT",
        age=3,
    )


def counts(**changed: int) -> Counts:
    zero = dict.fromkeys(Counts.__slots__, 0)
    return Counts(**(zero | changed))


class StoreContract:
    """Subclass it, and define a fixture `open_stores`."""

    @pytest.fixture
    def open_stores(self) -> OpenStores:
        raise NotImplementedError

    @pytest.fixture
    def store(self, open_stores: OpenStores) -> ShardStore:
        return open_stores()[0]

    @pytest.fixture
    def enter(self, store: ShardStore) -> Callable[..., list[Entry]]:
        return lambda *candidates: store.commit(offer(candidates)).new

    def test_a_new_url_becomes_an_entry_with_everything_known_about_it(self, store):
        """An offered URL is queued with its depth, priority, parent and hops, untried."""
        (entry,) = store.commit(offer([candidate("/x", priority=4, depth=2, hops=1)])).new

        expected = (
            entry.seq,
            "https://a.example/x",
            "a.example",
            2,
            4,
            "https://a.example/",
            1,
            Kind.PAGE,
            0,
        )
        assert entry == expected
        assert store.queued("a.example", after=START, limit=9) == [entry]
        assert store.counts() == counts(queued=1, hosts=1)

    def test_an_empty_batch_changes_nothing(self, store):
        """Committing nothing is allowed and leaves nothing behind."""
        assert store.commit(Batch()) == Committed([], 0)
        assert store.counts() == counts()

    def test_a_seed_has_no_parent(self, store, enter):
        """A missing parent stays missing."""
        (entry,) = enter(candidate()._replace(parent=None))

        assert store.queued("a.example", after=START, limit=1)[0].parent is None
        assert entry.parent is None

    def test_a_known_url_changes_nothing(self, store, enter):
        """The earlier arrival keeps its depth and priority, in one batch and in the next."""
        (first,) = enter(candidate(depth=1), candidate(depth=5, priority=0))

        again = store.commit(offer([candidate(depth=0, priority=0)]))

        assert again == Committed([], 0)
        assert store.queued("a.example", after=START, limit=9) == [first]

    def test_a_window_is_read_in_order_and_takes_nothing_away(self, store, enter):
        """Smaller priorities go first, then earlier arrivals; a cursor goes on where it stopped."""
        late, soon, early = enter(
            candidate("/late", priority=2),
            candidate("/soon", priority=1),
            candidate("/early", priority=0),
        )

        first = store.queued("a.example", after=START, limit=2)
        rest = store.queued("a.example", after=(soon.priority, soon.seq), limit=9)

        assert first == [early, soon]
        assert rest == [late]
        assert store.queued("a.example", after=START, limit=2) == first

    def test_windows_belong_to_one_host(self, store, enter):
        """A host's window has only its own URLs, and an unknown host's is empty."""
        a, b = enter(candidate(host="a.example"), candidate(host="b.example"))

        assert store.queued("a.example", after=START, limit=9) == [a]
        assert store.queued("b.example", after=START, limit=9) == [b]
        assert store.queued("c.example", after=START, limit=9) == []

    def test_queued_hosts_are_those_with_something_to_fetch(self, store, enter):
        """Each host is listed with its number of URLs, and disappears with the last of them."""
        one, *_ = enter(candidate(host="b.example"), candidate("/1"), candidate("/2"))

        store.commit(Batch(pages=[(one, page(one))]))

        assert dict(store.queued_hosts()) == {"a.example": 2}

    def test_a_fetched_page_leaves_the_queue_with_its_record(self, store, enter):
        """The record comes back field for field, and the URL is fetched and no longer queued."""
        (entry,) = enter(candidate())
        record = page(entry)

        store.commit(Batch(pages=[(entry, record)]))

        assert store.counts() == counts(fetched=1, hosts=1)
        assert store.queued("a.example", after=START, limit=9) == []
        assert [found for _, found in store.pages()] == [record]
        assert store.find(entry.url) == record

    def test_a_page_is_recorded_once(self, store, enter):
        """A late or repeated record neither adds a row nor replaces the first one."""
        (entry,) = enter(candidate())
        first = page(entry)
        store.commit(Batch(pages=[(entry, first), (entry, page(entry, status=500))]))

        store.commit(Batch(pages=[(entry, page(entry, status=404))], dropped=[(entry, "late")]))

        assert [record for _, record in store.pages()] == [first]
        assert store.counts() == counts(fetched=1, hosts=1)

    def test_a_failed_page_is_counted_as_fetched_and_failed(self, store, enter):
        """An error instead of a status is told apart in the totals."""
        ok, bad = enter(candidate("/ok"), candidate("/bad"))

        store.commit(Batch(pages=[(ok, page(ok)), (bad, page(bad, status=None, error="timeout"))]))

        assert store.counts() == counts(fetched=2, failed=1, hosts=1)

    def test_pages_come_in_the_order_of_their_commits(self, store, enter):
        """Positions grow, and reading goes on after the last one seen."""
        one, two, three = enter(candidate("/1"), candidate("/2"), candidate("/3"))
        store.commit(Batch(pages=[(three, page(three))]))
        store.commit(Batch(pages=[(one, page(one)), (two, page(two))]))

        everything = list(store.pages())
        rest = list(store.pages(after=everything[0][0]))

        assert [record.url for _, record in everything] == [three.url, one.url, two.url]
        assert rest == everything[1:]
        assert [position for position, _ in everything] == sorted({p for p, _ in everything})

    def test_pages_can_be_committed_while_they_are_read(self, store, enter):
        """A reader of pages sees each once, and does not hold up the writer."""
        one, two = enter(candidate("/1"), candidate("/2"))
        store.commit(Batch(pages=[(one, page(one))]))
        reading = store.pages()
        first = next(reading)

        store.commit(Batch(pages=[(two, page(two))]))

        assert [record.url for _, record in [first, *reading]] == [one.url, two.url]

    def test_what_a_batch_found_and_fetched_is_applied_together(self, store, enter):
        """The page leaves, its links arrive, and a link to itself is known."""
        (entry,) = enter(candidate())

        committed = store.commit(
            Batch(pages=[(entry, page(entry))], found=[candidate(), candidate("/next")])
        )

        assert [new.url for new in committed.new] == ["https://a.example/next"]
        assert store.counts() == counts(queued=1, fetched=1, hosts=1)

    def test_a_dropped_entry_leaves_the_queue_with_a_reason(self, store, enter):
        """What was queued and turned out forbidden is skipped from then on."""
        (entry,) = enter(candidate())

        store.commit(Batch(dropped=[(entry, "robots")]))

        assert store.find(entry.url) == Skipped(entry.url, "robots", 1, entry.parent)
        assert store.queued("a.example", after=START, limit=9) == []
        assert store.counts() == counts(skipped=1, hosts=1)

    def test_a_skipped_url_keeps_its_first_reason_and_is_never_queued_again(self, store, enter):
        """Dropping it once more, recording it late or offering it again changes nothing."""
        (entry,) = enter(candidate(depth=2))
        store.commit(Batch(dropped=[(entry, "robots"), (entry, "again")]))
        store.commit(Batch(dropped=[(entry, "later")], pages=[(entry, page(entry))]))

        offered = store.commit(offer([candidate()]))

        assert offered == Committed([], 0)
        assert list(store.skipped()) == [Skipped(entry.url, "robots", 2, entry.parent)]
        assert store.counts() == counts(skipped=1, hosts=1)

    def test_known_covers_every_set(self, open_stores):
        """Queued, waiting, fetched and skipped URLs are known; other shards' are theirs to know."""
        store, _ = open_stores(2, frontier_limit=3)
        paths = ("/done", "/queued", "/skipped")
        done, queued, skipped = store.commit(offer(candidate(path) for path in paths)).new
        waiting, outgoing = candidate("/waiting"), candidate(host="b.example")
        store.commit(Batch(found=[waiting], outgoing=[(1, outgoing)]))
        store.commit(Batch(pages=[(done, page(done))], dropped=[(skipped, "robots")]))
        everything = {done.url, queued.url, waiting.url, skipped.url}

        assert sorted(store.urls()) == sorted(everything)
        assert store.find("https://a.example/new") is None
        assert store.find(outgoing.url) is None
        assert store.counts() == counts(
            queued=2, waiting=1, fetched=1, skipped=1, outgoing=1, hosts=1
        )

    def test_beyond_the_limit_urls_wait_in_the_order_of_arrival(self, open_stores):
        """Nothing is lost to the limit, nobody overtakes, and the room is never overfilled."""
        (store,) = open_stores(frontier_limit=2)
        first = store.commit(offer(candidate(f"/{n}") for n in range(4)))
        head = first.new[0]
        store.commit(Batch(pages=[(head, page(head))], found=[candidate("/4", priority=0)]))

        nothing = store.admit_waiting(0)
        admitted = store.admit_waiting(9)

        assert (len(first.new), first.waiting) == (2, 2)
        assert nothing == []
        assert [entry.url for entry in admitted] == ["https://a.example/2"]
        assert store.counts() == counts(queued=4, waiting=2, fetched=1, hosts=1)
        assert store.queued("a.example", after=START, limit=9) == [first.new[1], *admitted]

    def test_waiting_urls_are_in_no_window(self, open_stores):
        """A host with nothing but waiting URLs is not listed, and yet its URLs are found."""
        (store,) = open_stores(frontier_limit=1)
        store.commit(offer([candidate(), candidate(host="b.example")]))

        found = store.find("https://b.example/")

        assert dict(store.queued_hosts()) == {"a.example": 1}
        assert isinstance(found, Entry)
        assert found.host == "b.example"

    def test_a_link_travels_to_its_shard(self, open_stores):
        """It waits in the outbox, is handed over, and arrives once, as an entry like any other."""
        sender, owner = open_stores(2)
        link = candidate("/x", host="b.example", depth=3, hops=1)
        sender.commit(Batch(outgoing=[(1, link), (1, link)]))
        in_outbox = sender.counts()

        handed_over = sender.deliver()
        (entry,) = owner.receive(10).new

        assert in_outbox == counts(outgoing=2)
        assert handed_over == 2
        assert entry[1:] == (*link, 0)
        assert sender.counts() == counts()
        assert owner.queued("b.example", after=START, limit=9) == [entry]
        assert (sender.deliver(), owner.receive(10)) == (0, Committed([], 0))

    def test_a_link_that_is_sent_again_changes_nothing(self, open_stores):
        """Its owner knows it, whatever has become of it since."""
        sender, owner = open_stores(2)
        link = candidate(host="b.example")
        for _ in range(2):
            sender.commit(Batch(outgoing=[(1, link)]))
            sender.deliver()
            for entry in owner.receive(10).new:
                owner.commit(Batch(pages=[(entry, page(entry))]))

        assert owner.counts() == counts(fetched=1, hosts=1)

    def test_many_links_arrive_in_their_order(self, open_stores):
        """More than a letter holds, and some of them for a third shard in between."""
        sender, owner, other = open_stores(3, frontier_limit=9999)
        links = [candidate(f"/{n}", host="b.example") for n in range(2 * MANY + 1)]
        elsewhere = [candidate(f"/{n}", host="c.example") for n in range(len(links))]
        both = zip(links, elsewhere, strict=True)
        sender.commit(Batch(outgoing=[pair for a, b in both for pair in ((1, a), (2, b))]))

        handed_over = sender.deliver()
        received = [owner.receive(MANY).new, owner.receive(MANY + 1).new]

        assert handed_over == 2 * len(links)
        assert [entry.url for part in received for entry in part] == [link.url for link in links]
        assert [entry.url for entry in other.receive(9999).new] == [link.url for link in elsewhere]
        assert sender.counts() == counts()

    def test_links_from_two_shards_arrive_once(self, open_stores):
        """What several shards found is deduplicated on arrival, a limited batch at a time."""
        one, two, owner = open_stores(3)
        links = [candidate(f"/{n}", host="c.example") for n in range(3)]
        one.commit(Batch(outgoing=[(2, link) for link in links]))
        two.commit(Batch(outgoing=[(2, link) for link in links[1:]]))
        handed_over = one.deliver() + two.deliver()

        received = [len(owner.receive(2).new) for _ in range(3)]

        assert handed_over == 5
        assert sum(received) == 3
        assert owner.counts() == counts(queued=3, hosts=1)

    def test_arriving_links_respect_the_limit(self, open_stores):
        """Links from elsewhere wait like the shard's own."""
        sender, owner = open_stores(2, frontier_limit=1)
        links = [candidate(f"/{n}", host="b.example") for n in range(2)]
        sender.commit(Batch(outgoing=[(1, link) for link in links]))
        sender.deliver()

        committed = owner.receive(10)

        assert (len(committed.new), committed.waiting) == (1, 1)

    @pytest.mark.parametrize("shard", [0, 2, -1])
    def test_a_link_cannot_go_to_oneself_or_nowhere(self, open_stores, shard):
        """A wrong address is refused and nothing of its batch is applied."""
        store, _ = open_stores(2)

        with pytest.raises(ValueError, match="cannot send"):
            store.commit(Batch(found=[candidate()], outgoing=[(shard, candidate("/x"))]))

        assert store.counts() == counts()

    def test_a_host_is_remembered_with_everything_learned(self, store, enter):
        """Fractions of seconds, flags and a missing reason come back as they were."""
        enter(candidate())
        unlearned = store.host("a.example")
        record = HostRecord(
            host="a.example",
            adaptive_delay_s=0.125,
            adaptive_delay_floor_s=0.0625,
            crawl_delay_s=1.5,
            allowance=3.25,
            block_s=60.5,
            concurrency=4,
            is_proven=True,
            blocked_until=1_800_000_060.5,
            next_at=1_800_000_000.25,
            updated_at=1_800_000_000.0,
            fetched=10,
            refused=2,
            failed=1,
            retired=None,
        )
        retired = HostRecord(host="b.example", retired="breaker")

        store.commit(Batch(hosts=[record, retired]))

        assert unlearned == HostRecord(host="a.example")
        assert store.host("a.example") == record
        assert list(store.hosts()) == [record, retired]
        assert store.host("c.example") is None
        assert store.counts() == counts(queued=1, hosts=2)
        assert dict(store.queued_hosts()) == {"a.example": 1}

    def test_robots_are_kept_replaced_and_forgotten(self, store):
        """A robots.txt is kept byte for byte, with the difference between empty and none."""
        record = RobotsRecord(
            origin="https://a.example",
            status=200,
            body=b"User-agent: *\n\xff\x00",
            fetched_at=1.5,
            expires_at=2.5,
        )
        failing = RobotsRecord(
            origin="https://b.example",
            status=None,
            body=None,
            fetched_at=1.0,
            expires_at=2.0,
            failing_since=0.5,
        )
        empty = record._replace(body=b"")
        store.commit(Batch(robots={each.origin: each for each in (empty, failing)}))
        before = store.robots("https://a.example")
        store.commit(Batch(robots={record.origin: record}))
        kept = store.robots("https://a.example"), store.robots("https://b.example")

        store.forget_robots("https://a.example")
        store.forget_robots("https://c.example")

        assert before == empty
        assert kept == (record, failing)
        assert store.robots("https://a.example") is None

    def test_urls_differ_by_every_character(self, store, enter):
        """Case, trailing slashes and escapes are the caller's business: text is compared as is."""
        paths = ["/a", "/A", "/a/", "/%61", "/a?b", "/ä", "/\U0001f600"]

        entries = enter(*(candidate(path) for path in paths))

        assert len(entries) == len(paths)
        assert sorted(store.urls()) == sorted(entry.url for entry in entries)

    def test_closing_twice_is_harmless(self, store):
        """A shutdown that runs twice does not fail."""
        store.close()
        store.close()
