"""The promises of a crawl that several runs share, one a test (`store.fleet`)."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, NamedTuple

from mannerly.crawler.control import AddSeeds, Pause, SetOption
from mannerly.crawler.model import HostRecord
from mannerly.crawler.store import create_crawl, exists, wipe
from mannerly.crawler.store.base import Batch, Heartbeat, StoreError, StoreInUse
from mannerly.crawler.store.fleet import CrawlGone, LeaseLost

from .values import OPTIONS, START, Opening, candidate, counts, enter, new_manifest, page

if TYPE_CHECKING:
    from pathlib import Path

    from mannerly.crawler.model import Entry
    from mannerly.crawler.store.base import Committed, CrawlStore, ShardStore
    from mannerly.crawler.store.fleet import Fleet


class Joined(NamedTuple):
    """A run that has joined the crawl."""

    crawl: CrawlStore
    fleet: Fleet

    def renew(self) -> list[int]:
        """Give a sign of life; return the shards that were lost."""
        heartbeat = Heartbeat(self.fleet.member, "machine", 4711, [], 0, time.time())
        return self.fleet.renew(heartbeat, now=time.monotonic())

    def rests(self, shard: int) -> bool:
        """Note that there is nothing to do in a shard; return whether that holds."""
        return shard in self.fleet.rest([shard])


def _done(result: Committed | StoreError) -> Committed:
    assert not isinstance(result, StoreError), result
    return result


class FleetContract(Opening):
    """Members, leases, fencing, rest and pages. Subclass it with `StoreContract`."""

    def let_leases_end(self) -> None:
        """Wait until leases that are not renewed have ended, by the clock of the store."""
        raise NotImplementedError

    def member(self, location: str, home: Path) -> Joined:
        """Join a crawl that was created before."""
        crawl = self.open(location)
        assert crawl.fleet is not None, "the crawl can be shared"
        crawl.fleet.join(home)
        return Joined(crawl, crawl.fleet)

    def members(self, location: str, tmp_path: Path, *, shards: int = 2) -> tuple[Joined, Joined]:
        """Create a crawl that two members have joined."""
        create_crawl(location, new_manifest(shards)).close()
        return self.member(location, tmp_path / "one"), self.member(location, tmp_path / "two")

    def test_a_member_keeps_its_name(self, location: str, tmp_path: Path) -> None:
        """A run that is started again in the same directory is the same member."""
        one, two = self.members(location, tmp_path)
        name = one.fleet.member
        one.crawl.close()

        again = self.member(location, tmp_path / "one")

        assert again.fleet.member == name != ""
        assert two.fleet.member not in ("", name)

    def test_a_directory_has_one_process(self, location: str, tmp_path: Path) -> None:
        """A second one is refused."""
        import pytest

        self.members(location, tmp_path)

        with pytest.raises(StoreInUse):
            self.member(location, tmp_path / "one")

    def test_a_directory_of_a_crawl_that_is_gone_is_refused(
        self, location: str, tmp_path: Path
    ) -> None:
        """Another crawl under the same name is not its crawl."""
        import pytest

        for each in self.members(location, tmp_path):
            each.crawl.close()
        wipe(location)
        create_crawl(location, new_manifest()).close()

        with pytest.raises(CrawlGone):
            self.member(location, tmp_path / "one")

    def test_shards_are_claimed_and_released_one_by_one(
        self, location: str, tmp_path: Path
    ) -> None:
        """Another member is refused, and let in after the release."""
        import pytest

        one, two = self.members(location, tmp_path)
        before = one.fleet.unclaimed().released
        store = one.crawl.claim(0, OPTIONS)
        with pytest.raises(StoreInUse):
            two.crawl.claim(0, OPTIONS)
        meanwhile = two.fleet.unclaimed().released
        store.close()

        two.crawl.claim(0, OPTIONS)

        assert (before, meanwhile, one.fleet.unclaimed()) == ([0, 1], [1], ([1], [], []))
        among = [one.fleet.unclaimed(shards).released for shards in ([0], [1], [])]
        assert among == [[], [1], []]

    def test_the_next_owner_finds_everything(self, location: str, tmp_path: Path) -> None:
        """Queue, totals and hosts; numbers go on."""
        one, two = self.members(location, tmp_path)
        store = one.crawl.claim(0, OPTIONS)
        done, queued = enter(store, candidate("/done"), candidate("/queued"))
        store.commit(Batch(pages=[(done, page(done))], hosts=[HostRecord("a.example", fetched=1)]))
        store.close()

        store = two.crawl.claim(0, OPTIONS)
        (new,) = enter(store, candidate("/done"), candidate("/new"))

        assert store.queued("a.example", after=START, limit=9) == [queued, new]
        assert store.host("a.example") == HostRecord("a.example", fetched=1)
        assert store.counts() == counts(queued=2, fetched=1, hosts=1)

    def test_a_lease_that_is_renewed_stays(self, location: str, tmp_path: Path) -> None:
        """Its owner is sure of it for some time to come, and others are refused."""
        import pytest

        one, two = self.members(location, tmp_path)
        store = one.crawl.claim(0, OPTIONS)
        first = store.sure_until

        lost = one.renew()

        assert lost == []
        assert store.sure_until > first
        with pytest.raises(StoreInUse):
            two.crawl.claim(0, OPTIONS)

    def test_a_lease_that_has_ended_is_taken_over(self, location: str, tmp_path: Path) -> None:
        """The old owner's next batch is refused whole, and it learns of its loss."""
        import pytest

        one, two = self.members(location, tmp_path)
        stale = one.crawl.claim(0, OPTIONS)
        (entry,) = enter(stale, candidate())
        self.let_leases_end()

        unclaimed = two.fleet.unclaimed()
        store = two.crawl.claim(0, OPTIONS)
        with pytest.raises(LeaseLost):
            stale.commit(Batch(pages=[(entry, page(entry))], found=[candidate("/new")]))
        lost = one.renew()

        assert unclaimed == ([1], [0], [])
        assert store.counts() == counts(queued=1, hosts=1)
        assert store.queued("a.example", after=START, limit=9) == [entry]
        assert lost == [0]

    def test_an_ended_lease_without_a_new_owner_can_be_renewed(
        self, location: str, tmp_path: Path
    ) -> None:
        """The server was away for a while, and its members come back."""
        one, _ = self.members(location, tmp_path)
        store = one.crawl.claim(0, OPTIONS)
        self.let_leases_end()

        lost = one.renew()

        assert lost == []
        assert enter(store, candidate())

    def test_batches_of_several_shards_are_committed_at_once(
        self, location: str, tmp_path: Path
    ) -> None:
        """Each is answered for itself."""
        one, _ = self.members(location, tmp_path)
        first, second = (one.crawl.claim(number, OPTIONS) for number in (0, 1))

        done = one.fleet.commit(
            [(first, Batch(found=[candidate("/x"), candidate("/y")])), (second, Batch())]
        )

        new = [[entry.url for entry in _done(each).new] for each in done]
        assert new == [[candidate("/x").url, candidate("/y").url], []]
        assert (first.counts().queued, second.counts().queued) == (2, 0)

    def test_a_lost_shard_is_not_in_the_way_of_others(self, location: str, tmp_path: Path) -> None:
        """Its batch is refused whole, theirs are applied."""
        one, two = self.members(location, tmp_path)
        stale, sound = (one.crawl.claim(number, OPTIONS) for number in (0, 1))
        self.let_leases_end()
        taken = two.crawl.claim(0, OPTIONS)
        one.renew()
        found = Batch(found=[candidate()])

        lost, done = one.fleet.commit([(stale, found), (sound, Batch(found=[candidate()]))])

        assert isinstance(lost, LeaseLost)
        assert len(_done(done).new) == 1
        assert (taken.counts().queued, sound.counts().queued) == (0, 1)

    def test_links_of_several_shards_are_passed_on_at_once(
        self, location: str, tmp_path: Path
    ) -> None:
        """They arrive in the same call or the next one, once."""
        one, _ = self.members(location, tmp_path)
        stores = [one.crawl.claim(number, OPTIONS) for number in (0, 1)]
        stores[0].commit(Batch(outgoing=[(1, candidate("/there")), (1, candidate("/too"))]))
        stores[1].commit(Batch(outgoing=[(0, candidate("/back"))]))

        passed = [one.fleet.pass_links(stores, 100) for _ in range(3)]

        new = [
            sorted(entry.url for each in results for entry in _done(each).new)
            for results in zip(*passed, strict=True)
        ]
        assert new == [
            [candidate("/back").url],
            sorted([candidate("/there").url, candidate("/too").url]),
        ]
        assert [store.counts().outgoing for store in stores] == [0, 0]

    def test_a_released_shard_is_not_written_to(self, location: str, tmp_path: Path) -> None:
        """Closing is final, also while the lease would still hold."""
        import pytest

        one, _ = self.members(location, tmp_path)
        store = one.crawl.claim(0, OPTIONS)
        store.close()

        with pytest.raises(LeaseLost):
            enter(store, candidate())

    def test_heartbeats_of_all_members_are_shown(self, location: str, tmp_path: Path) -> None:
        """Until they are not heard of any more."""
        one, two = self.members(location, tmp_path)
        for each in (one, two):
            each.renew()
        shown = {heartbeat.id for heartbeat in two.crawl.workers()}
        heard, heard_now = (
            {heartbeat.id for heartbeat in two.fleet.heard(60.0)},
            two.fleet.heard(-1.0),
        )

        self.let_leases_end()
        two.renew()

        assert (heard, heard_now) == (shown, [])
        assert shown == {one.fleet.member, two.fleet.member}
        assert [heartbeat.id for heartbeat in two.crawl.workers()] == [two.fleet.member]

    def test_a_crawl_is_finished_when_all_shards_rest(self, location: str, tmp_path: Path) -> None:
        """With several owners, and also after the shards were released."""
        one, two = self.members(location, tmp_path)
        stores = [one.crawl.claim(0, OPTIONS), two.crawl.claim(1, OPTIONS)]
        (entry,) = enter(stores[0], candidate())
        too_early = one.rests(0), one.fleet.finished()
        stores[0].commit(Batch(pages=[(entry, page(entry))]))
        half = one.rests(0), one.fleet.finished()

        both = two.rests(1), two.fleet.finished()
        for store in stores:
            store.close()

        assert (too_early, half, both) == ((False, False), (True, False), (True, True))
        assert one.fleet.finished()

    def test_a_link_keeps_its_shard_from_rest(self, location: str, tmp_path: Path) -> None:
        """From the commit of the page that it was found on, until it was fetched."""
        one, two = self.members(location, tmp_path)
        sender, owner = one.crawl.claim(0, OPTIONS), two.crawl.claim(1, OPTIONS)
        (entry,) = enter(sender, candidate())
        rested = two.rests(1)
        sender.commit(
            Batch(pages=[(entry, page(entry))], outgoing=[(1, candidate(host="b.example"))])
        )
        sender.pass_links(10)
        under_way = two.rests(1), one.fleet.finished()

        (received,) = self._received(owner)
        read = one.rests(0), two.rests(1), one.fleet.finished()
        owner.commit(Batch(pages=[(received, page(received))]))
        done = two.rests(1), one.fleet.finished()

        assert rested
        assert under_way == (False, False)
        assert read == (True, False, False)
        assert done == (True, True)

    def _received(self, owner: ShardStore) -> list[Entry]:
        """Ask until something has come: a store need not look all the time."""
        for _ in range(100):
            if new := owner.pass_links(10).new:
                return new
            time.sleep(0.01)
        return []

    def test_an_order_ends_the_rest(self, location: str, tmp_path: Path) -> None:
        """Until every shard has acted on it; one for the runtime alone does not."""
        one, _ = self.members(location, tmp_path, shards=1)
        store = one.crawl.claim(0, OPTIONS)
        one.rests(0)
        one.crawl.order(Pause())
        before = one.fleet.finished()

        number = one.crawl.order(AddSeeds(("https://a.example/",)))
        meanwhile = one.fleet.finished(), one.rests(0), one.fleet.finished()
        store.commit(Batch(applied=number))
        after = one.rests(0), one.fleet.finished()

        assert (before, meanwhile, after) == (True, (False, False, False), (True, True))

    def test_pages_are_granted_once(self, location: str, tmp_path: Path) -> None:
        """Together all members get no more than the limit, less what they give back."""
        one, two = self.members(location, tmp_path)
        without_limit = one.fleet.take_pages(10)
        one.crawl.order(SetOption("max_urls", 100))

        granted = [one.fleet.take_pages(60), two.fleet.take_pages(60), two.fleet.take_pages(1)]
        one.fleet.return_pages(5)

        assert without_limit == 10
        assert granted == [60, 30, 0]
        assert two.fleet.take_pages(9) == 5

    def test_a_crawl_that_was_wiped_is_gone_for_its_members(
        self, location: str, tmp_path: Path
    ) -> None:
        """Nothing of it is made again, and no member takes it for finished."""
        import pytest

        one, two = self.members(location, tmp_path)
        store = one.crawl.claim(0, OPTIONS)
        enter(store, candidate())
        self.lose_everything(location)

        with pytest.raises(CrawlGone):
            enter(store, candidate("/new"))
        with pytest.raises(CrawlGone):
            two.crawl.claim(1, OPTIONS)
        for each in (two.fleet.unclaimed, two.fleet.finished, two.renew):
            with pytest.raises(CrawlGone):
                each()
        assert not exists(location)

    def lose_everything(self, location: str) -> None:
        """Have the store lose its data."""
        raise NotImplementedError
