"""The promises about links between shards, one a test."""

from __future__ import annotations

from mannerly.crawler.store.base import Batch, Committed

from .opening import Opening
from .values import START, candidate, counts, page

_MANY = 500


class LinkContract(Opening):
    """Links that one shard finds and another owns."""

    def test_a_link_travels_to_its_shard(self, location: str) -> None:
        """It waits in the outbox, is handed over, and arrives once, as an entry like any other."""
        sender, owner = self.stores(location, 2)
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

    def test_a_link_that_is_sent_again_changes_nothing(self, location: str) -> None:
        """Its owner knows it, whatever has become of it since."""
        sender, owner = self.stores(location, 2)
        link = candidate(host="b.example")
        for _ in range(2):
            sender.commit(Batch(outgoing=[(1, link)]))
            sender.deliver()
            for entry in owner.receive(10).new:
                owner.commit(Batch(pages=[(entry, page(entry))]))

        assert owner.counts() == counts(fetched=1, hosts=1)

    def test_many_links_arrive_in_their_order(self, location: str) -> None:
        """However many they are, and with some for a third shard in between."""
        sender, owner, other = self.stores(location, 3, frontier_limit=9999)
        links = [candidate(f"/{n}", host="b.example") for n in range(2 * _MANY + 1)]
        elsewhere = [candidate(f"/{n}", host="c.example") for n in range(len(links))]
        both = zip(links, elsewhere, strict=True)
        sender.commit(Batch(outgoing=[pair for a, b in both for pair in ((1, a), (2, b))]))

        handed_over = sender.deliver()
        received = [owner.receive(_MANY).new, owner.receive(_MANY + 1).new]

        assert handed_over == 2 * len(links)
        assert [entry.url for part in received for entry in part] == [link.url for link in links]
        assert [entry.url for entry in other.receive(9999).new] == [link.url for link in elsewhere]
        assert sender.counts() == counts()

    def test_links_from_two_shards_arrive_once(self, location: str) -> None:
        """A link that several shards found is queued once; a limited batch is taken at a time."""
        one, two, owner = self.stores(location, 3)
        links = [candidate(f"/{n}", host="c.example") for n in range(3)]
        one.commit(Batch(outgoing=[(2, link) for link in links]))
        two.commit(Batch(outgoing=[(2, link) for link in links[1:]]))
        handed_over = one.deliver() + two.deliver()

        received = [len(owner.receive(2).new) for _ in range(3)]

        assert handed_over == 5
        assert sum(received) == 3
        assert owner.counts() == counts(queued=3, hosts=1)

    def test_arriving_links_respect_the_limit(self, location: str) -> None:
        """Links from elsewhere wait like the shard's own."""
        sender, owner = self.stores(location, 2, frontier_limit=1)
        links = [candidate(f"/{n}", host="b.example") for n in range(2)]
        sender.commit(Batch(outgoing=[(1, link) for link in links]))
        sender.deliver()

        committed = owner.receive(10)

        assert (len(committed.new), committed.waiting) == (1, 1)

    def test_a_link_cannot_go_to_oneself_or_nowhere(self, location: str) -> None:
        """A wrong address is refused and nothing of its batch is applied."""
        import pytest

        store, _ = self.stores(location, 2)
        for shard in (0, 2, -1):
            batch = Batch(found=[candidate()], outgoing=[(shard, candidate("/x"))], applied=1)

            with pytest.raises(ValueError, match="cannot send"):
                store.commit(batch)

            assert store.counts() == counts()
            assert store.applied() == 0
