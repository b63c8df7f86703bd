"""The promises of a whole crawl's store, one a test."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from mannerly.crawler.control import AddSeeds, HostSet, Pause, SetOption, Unpause
from mannerly.crawler.store import create_crawl, exists, open_crawl, wipe
from mannerly.crawler.store.base import (
    Batch,
    Heartbeat,
    StoreError,
    StoreInUse,
    StoreMissing,
)

from .values import OPTIONS, START, Opening, candidate, counts, enter, new_manifest, page

if TYPE_CHECKING:
    from mannerly.crawler.control import Control


class CrawlContract(Opening):
    """Creating, opening and wiping; one run, one owner a shard; control records, heartbeats."""

    def test_a_created_crawl_is_found_with_its_manifest(self, location: str) -> None:
        """Everything that was fixed at creation comes back, under the same location."""
        manifest = new_manifest(2)
        before = exists(location)

        create_crawl(location, manifest).close()
        crawl = self.open(location)

        assert (before, exists(location)) == (False, True)
        assert crawl.manifest == manifest
        assert open_crawl(crawl.location).manifest == manifest

    def test_a_missing_crawl_is_told_apart(self, location: str) -> None:
        """Opening what is not there raises StoreMissing and creates nothing."""
        import pytest

        with pytest.raises(StoreMissing, match="no crawl"):
            open_crawl(location)

        assert not exists(location)

    def test_a_crawl_is_not_created_over_another(self, location: str) -> None:
        """The first one stays as it is."""
        import pytest

        first = self.create(location)

        with pytest.raises(StoreError, match="holds a crawl already"):
            create_crawl(location, new_manifest())

        assert self.open(location).manifest == first.manifest

    def test_a_wiped_crawl_is_gone(self, location: str) -> None:
        """Another one can be created in its place, empty; wiping nothing is harmless."""
        (store,) = self.stores(location)
        enter(store, candidate())
        self._opened.close()

        wipe(location)
        wipe(location)
        gone = not exists(location)

        assert gone
        assert self.store(location).counts() == counts()

    def test_a_crawl_in_use_is_not_wiped(self, location: str) -> None:
        """Neither while a run holds it, nor while one of its shards has an owner."""
        import pytest

        crawl = self.create(location)
        store = crawl.claim(0, OPTIONS)
        with pytest.raises(StoreInUse):
            wipe(location)
        store.close()
        crawl.hold()

        with pytest.raises(StoreInUse):
            wipe(location)

        assert exists(location)

    def test_a_crawl_is_held_by_one_run(self, location: str) -> None:
        """A second run is refused, and let in when the first one has closed."""
        import pytest

        first, second = self.create(location), self.open(location)
        first.hold()

        with pytest.raises(StoreInUse, match="in use"):
            second.hold()
        first.close()

        second.hold()

    def test_a_shard_has_one_owner(self, location: str) -> None:
        """A second owner is refused, and let in when the first one has closed its store."""
        import pytest

        crawl, other = self.create(location, shards=2), self.open(location)
        store = crawl.claim(0, OPTIONS)
        other.claim(1, OPTIONS)

        for claimant in (crawl, other):
            with pytest.raises(StoreInUse, match="in use"):
                claimant.claim(0, OPTIONS)
        store.close()

        assert other.claim(0, OPTIONS).counts() == counts()

    def test_closing_a_crawl_releases_its_shards(self, location: str) -> None:
        """Closing twice is harmless, and another process may go on."""
        crawl = self.create(location)
        crawl.hold()
        enter(crawl.claim(0, OPTIONS), candidate())
        crawl.close()
        crawl.close()

        other = self.open(location)
        other.hold()

        assert other.claim(0, OPTIONS).counts() == counts(queued=1, hosts=1)

    def test_everything_is_there_after_reopening(self, location: str) -> None:
        """A shard's next owner finds pages, queue and known URLs, and numbers go on."""
        store = self.store(location)
        done, queued = enter(store, candidate("/done"), candidate("/queued"))
        store.commit(Batch(pages=[(done, page(done))]))
        self._opened.close()

        store = self.open(location).claim(0, OPTIONS)
        (new,) = enter(store, candidate("/done"), candidate("/queued"), candidate("/new"))

        assert store.queued("a.example", after=START, limit=9) == [queued, new]
        assert [record for _, record in store.pages()] == [page(done)]
        assert new.seq > queued.seq

    def test_is_running_tells_whether_the_crawl_is_at_work(self, location: str) -> None:
        """From the moment it is held until it is closed, for every reader."""
        crawl, reader = self.create(location), self.open(location)
        before = reader.is_running()

        crawl.hold()
        meanwhile = reader.is_running()
        crawl.close()

        assert (before, meanwhile, reader.is_running()) == (False, True, False)

    def test_a_reader_beside_the_owner_sees_the_last_commit(self, location: str) -> None:
        """Everything can be asked beside the owner, and closing a reader leaves the owner alone."""
        crawl = self.create(location)
        store = crawl.claim(0, OPTIONS)
        with self.open(location).read(0) as reader:
            empty = reader.counts()
            done, queued, no = enter(store, candidate("/1"), candidate("/2"), candidate("/no"))
            store.commit(Batch(pages=[(done, page(done))], dropped=[(no, "robots")]))

            assert empty == counts()
            assert reader.counts() == store.counts()
            assert reader.queued("a.example", after=START, limit=9) == [queued]
            assert dict(reader.queued_hosts()) == {"a.example": 1}
            assert reader.find(done.url) == page(done)
            assert [record.url for _, record in reader.pages()] == [done.url]
            assert [skipped.url for skipped in reader.skipped()] == [no.url]
            assert sorted(reader.urls()) == sorted([done.url, queued.url, no.url])
            assert [record.host for record in reader.hosts()] == ["a.example"]

        assert enter(store, candidate("/3"))

    def test_last_activity_is_the_last_commit(self, location: str) -> None:
        """Wall time, within some seconds."""
        crawl = self.create(location)
        before = time.time()

        enter(crawl.claim(0, OPTIONS), candidate())

        assert before - 5 <= crawl.last_activity() <= time.time() + 5

    def test_links_between_two_shards_arrive_both_ways(self, location: str) -> None:
        """Until they have, they can be listed: a crawl with links under way is not finished."""
        crawl = self.create(location, shards=2)
        one, two = (crawl.claim(shard, OPTIONS) for shard in range(2))
        there, back = candidate(host="b.example"), candidate(host="a.example")
        one.commit(Batch(outgoing=[(1, there)]))
        two.commit(Batch(outgoing=[(0, back), (0, back)]))
        outgoing = [link for store in (one, two) for link in store.outgoing()]

        one.pass_links(0)
        two.pass_links(0)
        unread = [list(crawl.unread_links(shard)) for shard in range(2)]
        numbers = [crawl.unread(shard) for shard in range(2)]
        received = [store.pass_links(10).new for store in (one, two)]

        assert outgoing in ([], [there, back, back])
        assert unread in ([[], []], [[back, back], [there]])
        assert numbers == [len(links) for links in unread]
        assert [[entry.url for entry in new] for new in received] == [[back.url], [there.url]]
        assert [crawl.unread(shard) for shard in range(2)] == [0, 0]

    def test_control_records_are_read_in_order_by_all_readers(self, location: str) -> None:
        """Numbers grow; a reader goes on after the last one it has seen."""
        crawl, other = self.create(location), self.open(location)
        sent: list[Control] = [
            Pause(),
            SetOption("max_rate", None),
            AddSeeds(("https://a.example/é",)),
        ]
        nothing = other.orders()

        numbers = [crawl.order(sent[0]), other.order(sent[1]), crawl.order(sent[2])]

        assert nothing == []
        assert numbers == sorted(set(numbers))
        assert other.orders() == crawl.orders() == list(zip(numbers, sent, strict=True))
        assert other.orders(after=numbers[0]) == list(zip(numbers[1:], sent[1:], strict=True))
        assert other.orders(after=numbers[-1]) == []

    def test_control_records_outlive_their_sender(self, location: str) -> None:
        """They are there when the crawl is opened again, and new ones follow them."""
        crawl = self.create(location)
        first = crawl.order(HostSet("a.example", delay_s=2.5))
        crawl.close()

        crawl = self.open(location)
        second = crawl.order(Unpause())

        assert crawl.orders() == [(first, HostSet("a.example", delay_s=2.5)), (second, Unpause())]

    def test_a_control_record_is_applied_with_its_commit_and_once(self, location: str) -> None:
        """Each shard keeps how far it has come, across reopening, and never goes back."""
        store, other = self.stores(location, 2)
        before = store.counts().applied

        store.commit(Batch(found=[candidate()], applied=3))
        store.commit(Batch(applied=2))
        store.commit(Batch(found=[candidate("/next")]))
        applied = store.counts().applied, other.counts().applied
        self._opened.close()

        assert (before, applied) == (0, (3, 0))
        assert self.open(location).claim(0, OPTIONS).counts().applied == 3

    def test_worker_cards_are_shown_until_they_are_retired(self, location: str) -> None:
        """A renewed heartbeat replaces the last one of the same worker."""
        crawl, reader = self.create(location, shards=2), self.open(location)
        crawl.hold()
        now = time.time()
        first = Heartbeat("w1", "machine", 4711, [0], 0, now)
        second = Heartbeat("w2", "machine", 4712, [1], 7, now, waits_for="the disk is full")
        for heartbeat in (first, second, first._replace(fetched=12)):
            crawl.renew(heartbeat)
        shown = reader.workers()

        crawl.retire("w2")
        crawl.retire("w3")

        assert shown == [first._replace(fetched=12), second]
        assert reader.workers() == [first._replace(fetched=12)]

    def test_no_worker_outlives_the_run(self, location: str) -> None:
        """A run that ended without retiring its heartbeats leaves none that look alive."""
        crawl = self.create(location)
        crawl.hold()
        crawl.renew(Heartbeat("w1", "machine", 4711, [0], 0, time.time()))
        crawl.close()
        after = self.open(location).workers()

        crawl = self.open(location)
        crawl.hold()

        assert (after, crawl.workers()) == ([], [])

    def test_a_page_that_was_being_parsed_is_suspect(self, location: str) -> None:
        """Each owner that went away meanwhile counts, until the page is recorded or dropped."""
        crawl = self.create(location)
        store = crawl.claim(0, OPTIONS)
        fine, deadly, dropped = enter(store, *(candidate(f"/{n}") for n in range(3)))
        never = dict(store.suspects)
        counted = []
        for entry in (deadly, deadly, dropped):
            store.parsing(fine.seq)
            store.parsing(entry.seq)
            store.close()
            store = crawl.claim(0, OPTIONS)
            counted.append(dict(store.suspects))

        store.commit(Batch(pages=[(deadly, page(deadly))]))
        one_left = dict(store.suspects)
        store.commit(Batch(dropped=[(dropped, "crash")]))
        store.close()

        assert never == {}
        assert counted == [{deadly.seq: 1}, {deadly.seq: 2}, {deadly.seq: 2, dropped.seq: 1}]
        assert one_left == {dropped.seq: 1}
        assert dict(crawl.claim(0, OPTIONS).suspects) == {}

    def test_a_page_that_was_parsed_is_not_suspect(self, location: str) -> None:
        """Neither after `parsing(0)`, nor if it was committed before the owner went away."""
        crawl = self.create(location)
        store = crawl.claim(0, OPTIONS)
        parsed, committed = enter(store, candidate("/1"), candidate("/2"))
        store.parsing(parsed.seq)
        store.parsing(0)
        store.close()
        store = crawl.claim(0, OPTIONS)
        store.parsing(committed.seq)
        store.commit(Batch(pages=[(committed, page(committed))]))
        store.close()

        assert dict(crawl.claim(0, OPTIONS).suspects) == {}

    def test_an_acknowledged_page_is_known_until_it_is_committed(self, location: str) -> None:
        """The note needs no commit, outlives the run, and names the pages of its shard only."""
        crawl = self.create(location, shards=2)
        store = crawl.claim(0, OPTIONS)
        done, open_, committed = enter(store, *(candidate(f"/{n}") for n in range(3)))
        before = set(store.acknowledged)
        crawl.acknowledge(0, done.seq)
        crawl.acknowledge(0, committed.seq)
        store.commit(Batch(pages=[(committed, page(committed))]))
        crawl.close()

        again = self.open(location)
        again.hold()
        known, other = again.claim(0, OPTIONS).acknowledged, again.claim(1, OPTIONS).acknowledged

        assert before == set()
        assert set(known) == {done.seq}
        assert open_.seq not in known
        assert set(other) == set()
