"""The promises of one shard's store, one a test."""

from __future__ import annotations

from mannerly.crawler.kinds import Kind
from mannerly.crawler.model import Entry, HostRecord, RobotsRecord, Skipped
from mannerly.crawler.store.base import Batch, Committed

from .values import OPTIONS, START, Opening, candidate, counts, enter, offer, page


class ShardContract(Opening):
    """Queue, pages, skipped URLs, hosts and robots.txt of one shard."""

    def test_a_new_url_becomes_an_entry_with_everything_known_about_it(self, location: str) -> None:
        """An offered URL is queued with its depth, priority, parent and hops, untried."""
        store = self.store(location)
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

    def test_an_empty_batch_changes_nothing(self, location: str) -> None:
        """Committing nothing is allowed and leaves nothing behind."""
        store = self.store(location)
        assert store.commit(Batch()) == Committed([], 0)
        assert store.counts() == counts()

    def test_a_seed_has_no_parent(self, location: str) -> None:
        """A missing parent stays missing."""
        store = self.store(location)
        (entry,) = enter(store, candidate()._replace(parent=None))

        assert store.queued("a.example", after=START, limit=1)[0].parent is None
        assert entry.parent is None

    def test_a_known_url_changes_nothing(self, location: str) -> None:
        """The earlier arrival keeps its depth and priority, in one batch and in the next."""
        store = self.store(location)
        (first,) = enter(store, candidate(depth=1), candidate(depth=5, priority=0))

        again = store.commit(offer([candidate(depth=0, priority=0)]))

        assert again == Committed([], 0)
        assert store.queued("a.example", after=START, limit=9) == [first]

    def test_a_window_is_read_in_order_and_takes_nothing_away(self, location: str) -> None:
        """Smaller priorities go first, then earlier arrivals; a cursor goes on where it stopped."""
        store = self.store(location)
        late, soon, early = enter(
            store,
            candidate("/late", priority=2),
            candidate("/soon", priority=1),
            candidate("/early", priority=0),
        )

        first = store.queued("a.example", after=START, limit=2)
        rest = store.queued("a.example", after=(soon.priority, soon.seq), limit=9)

        assert first == [early, soon]
        assert rest == [late]
        assert store.queued("a.example", after=START, limit=2) == first

    def test_windows_belong_to_one_host(self, location: str) -> None:
        """A host's window has only its own URLs, and an unknown host's is empty."""
        store = self.store(location)
        a, b = enter(store, candidate(host="a.example"), candidate(host="b.example"))

        assert store.queued("a.example", after=START, limit=9) == [a]
        assert store.queued("b.example", after=START, limit=9) == [b]
        assert store.queued("c.example", after=START, limit=9) == []

    def test_queued_hosts_are_those_with_something_to_fetch(self, location: str) -> None:
        """Each host is listed with its number of URLs, and disappears with the last of them."""
        store = self.store(location)
        one, *_ = enter(store, candidate(host="b.example"), candidate("/1"), candidate("/2"))

        store.commit(Batch(pages=[(one, page(one))]))

        assert dict(store.queued_hosts()) == {"a.example": 2}

    def test_a_fetched_page_leaves_the_queue_with_its_record(self, location: str) -> None:
        """The record comes back field for field, and the URL is fetched and no longer queued."""
        store = self.store(location)
        (entry,) = enter(store, candidate())
        record = page(entry)

        store.commit(Batch(pages=[(entry, record)]))

        assert store.counts() == counts(fetched=1, hosts=1)
        assert store.queued("a.example", after=START, limit=9) == []
        assert [found for _, found in store.pages()] == [record]
        assert store.find(entry.url) == record

    def test_a_page_is_recorded_once(self, location: str) -> None:
        """A late or repeated record neither adds a row nor replaces the first one."""
        store = self.store(location)
        (entry,) = enter(store, candidate())
        first = page(entry)
        store.commit(Batch(pages=[(entry, first), (entry, page(entry, status=500))]))

        store.commit(Batch(pages=[(entry, page(entry, status=404))], dropped=[(entry, "late")]))

        assert [record for _, record in store.pages()] == [first]
        assert store.counts() == counts(fetched=1, hosts=1)

    def test_a_failed_page_is_counted_as_failed_only(self, location: str) -> None:
        """It has a record, with an error instead of a status, and is not fetched."""
        store = self.store(location)
        ok, bad = enter(store, candidate("/ok"), candidate("/bad"))

        store.commit(Batch(pages=[(ok, page(ok)), (bad, page(bad, status=None, error="timeout"))]))

        assert store.counts() == counts(fetched=1, failed=1, hosts=1)

    def test_pages_come_in_the_order_of_their_commits(self, location: str) -> None:
        """Positions grow, and reading goes on after the last one seen."""
        store = self.store(location)
        one, two, three = enter(store, candidate("/1"), candidate("/2"), candidate("/3"))
        store.commit(Batch(pages=[(three, page(three))]))
        store.commit(Batch(pages=[(one, page(one)), (two, page(two))]))

        everything = list(store.pages())
        rest = list(store.pages(after=everything[0][0]))

        assert [record.url for _, record in everything] == [three.url, one.url, two.url]
        assert rest == everything[1:]
        assert [position for position, _ in everything] == sorted({p for p, _ in everything})

    def test_pages_can_be_committed_while_they_are_read(self, location: str) -> None:
        """A reader sees those that were there at the beginning, and the others when it goes on."""
        store = self.store(location)
        one, two, three = enter(store, *(candidate(f"/{n}") for n in range(3)))
        store.commit(Batch(pages=[(one, page(one)), (two, page(two))]))
        reading = store.pages()
        first = next(reading)

        store.commit(Batch(pages=[(three, page(three))]))
        read = [first, *reading]
        rest = store.pages(after=read[-1][0])

        assert [record.url for _, record in read] == [one.url, two.url]
        assert [record.url for _, record in rest] == [three.url]

    def test_what_a_batch_found_and_fetched_is_applied_together(self, location: str) -> None:
        """The page leaves, its links arrive, and a link to itself is known."""
        store = self.store(location)
        (entry,) = enter(store, candidate())

        committed = store.commit(
            Batch(pages=[(entry, page(entry))], found=[candidate(), candidate("/next")])
        )

        assert [new.url for new in committed.new] == ["https://a.example/next"]
        assert store.counts() == counts(queued=1, fetched=1, hosts=1)

    def test_a_dropped_entry_leaves_the_queue_with_a_reason(self, location: str) -> None:
        """A queued URL that turns out to be forbidden is skipped from then on."""
        store = self.store(location)
        (entry,) = enter(store, candidate())

        store.commit(Batch(dropped=[(entry, "robots")]))

        assert store.find(entry.url) == Skipped(entry.url, "robots", 1, entry.parent)
        assert store.queued("a.example", after=START, limit=9) == []
        assert store.counts() == counts(skipped=1, hosts=1)

    def test_a_skipped_url_keeps_its_first_reason_and_is_never_queued_again(
        self, location: str
    ) -> None:
        """Dropping it once more, recording it late or offering it again changes nothing."""
        store = self.store(location)
        (entry,) = enter(store, candidate(depth=2))
        store.commit(Batch(dropped=[(entry, "robots"), (entry, "again")]))
        store.commit(Batch(dropped=[(entry, "later")], pages=[(entry, page(entry))]))

        offered = store.commit(offer([candidate()]))

        assert offered == Committed([], 0)
        assert list(store.skipped()) == [Skipped(entry.url, "robots", 2, entry.parent)]
        assert store.counts() == counts(skipped=1, hosts=1)

    def test_every_url_is_known_whatever_became_of_it(self, location: str) -> None:
        """Queued, waiting, fetched and skipped URLs are known; other shards know theirs."""
        store, other = self.stores(location, 2, frontier_limit=3)
        paths = ("/done", "/queued", "/skipped")
        done, queued, skipped = store.commit(offer(candidate(path) for path in paths)).new
        waiting, outgoing = candidate("/waiting"), candidate(host="b.example")
        store.commit(Batch(found=[waiting], outgoing=[(1, outgoing)]))
        store.commit(Batch(pages=[(done, page(done))], dropped=[(skipped, "robots")]))
        everything = {done.url, queued.url, waiting.url, skipped.url}

        assert sorted(store.urls()) == sorted(everything)
        assert store.find("https://a.example/new") is None
        assert store.find(outgoing.url) is None
        store.pass_links(10)
        other.pass_links(10)
        assert store.counts() == counts(queued=2, waiting=1, fetched=1, skipped=1, hosts=1)
        assert other.find(outgoing.url) is not None

    def test_pages_tell_where_they_redirected_to(self, location: str) -> None:
        """Those that were asked for, whether found long ago or lately; others have no answer."""
        crawl = self.create(location)
        store = crawl.claim(0, OPTIONS)
        for number in range(6):
            (entry,) = store.commit(offer([candidate(f"/{number}")])).new
            to = f"https://www.a.example/{number}" if number % 2 else None
            store.commit(Batch(pages=[(entry, page(entry)._replace(redirect_to=to))]))
        store.commit(offer([candidate("/queued")]))
        asked = [f"https://a.example/{name}" for name in (5, 4, 3, 1, "queued", "unknown")]
        expected = {asked[at]: f"https://www.a.example/{asked[at][-1]}" for at in (0, 2, 3)}

        found = store.redirects(asked)
        store.close()

        assert found == expected
        with crawl.read(0) as reader:
            assert reader.redirects(asked) == expected
            assert reader.redirects([]) == {}

    def test_beyond_the_limit_urls_wait_in_the_order_of_arrival(self, location: str) -> None:
        """Nothing is lost to the limit, none overtakes, and the queue is never overfilled."""
        (store,) = self.stores(location, frontier_limit=2)
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

    def test_waiting_urls_are_in_no_window(self, location: str) -> None:
        """A host with nothing but waiting URLs is not listed, and yet its URLs are found."""
        (store,) = self.stores(location, frontier_limit=1)
        store.commit(offer([candidate(), candidate(host="b.example")]))

        found = store.find("https://b.example/")

        assert dict(store.queued_hosts()) == {"a.example": 1}
        assert isinstance(found, Entry)
        assert found.host == "b.example"

    def test_a_host_is_remembered_with_everything_learned(self, location: str) -> None:
        """Fractions of seconds, flags and a missing reason come back as they were."""
        store = self.store(location)
        enter(store, candidate())
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

    def test_robots_are_kept_replaced_and_forgotten(self, location: str) -> None:
        """A robots.txt is kept byte for byte, with the difference between empty and none."""
        store = self.store(location)
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

        store.commit(Batch(robots={"https://a.example": None, "https://c.example": None}))

        assert before == empty
        assert kept == (record, failing)
        assert store.robots("https://a.example") is None
        assert store.robots("https://b.example") == failing

    def test_urls_differ_by_every_character(self, location: str) -> None:
        """Text is compared as it is: case, trailing slashes and escapes matter."""
        store = self.store(location)
        paths = ["/a", "/A", "/a/", "/%61", "/a?b", "/ä", "/\U0001f600"]

        entries = enter(store, *(candidate(path) for path in paths))

        assert len(entries) == len(paths)
        assert sorted(store.urls()) == sorted(entry.url for entry in entries)

    def test_closing_twice_is_harmless(self, location: str) -> None:
        """A shutdown that runs twice does not fail."""
        store = self.store(location)
        store.close()
        store.close()
