"""The promises about links between shards, one a test."""

from __future__ import annotations

from mannerly.crawler.store.base import Batch, Committed

from .values import START, Opening, candidate, counts, page

_MANY = 500


class LinkContract(Opening):
    """Links that one shard finds and another owns."""

    def test_a_link_travels_to_its_shard(self, location: str) -> None:
        """It arrives once, as an entry like any other."""
        sender, owner = self.stores(location, 2)
        link = candidate("/x", host="b.example", depth=3, hops=1)
        sender.commit(Batch(outgoing=[(1, link), (1, link)]))

        sender.pass_links(10)
        before = owner.queued("b.example", after=START, limit=9)
        (entry,) = owner.pass_links(10).new

        assert before == []
        assert entry[1:] == (*link[:7], 0)
        assert sender.counts() == counts()
        assert owner.counts() == counts(queued=1, hosts=1)
        assert owner.queued("b.example", after=START, limit=9) == [entry]
        assert [store.pass_links(10) for store in (sender, owner)] == [Committed([], 0)] * 2

    def test_what_others_queue_is_not_read_before_its_owner_was_told(self, location: str) -> None:
        """Else it would be there twice: among the URLs that were read, and among the new ones."""
        sender, owner = self.stores(location, 2)
        paths = [f"/{n}" for n in range(5)]
        own = owner.commit(Batch(found=[candidate(path) for path in paths[:2]])).new
        sender.commit(Batch(outgoing=[(1, candidate(path)) for path in paths]))
        sender.pass_links(10)
        own += owner.commit(Batch(found=[candidate("/5")])).new
        before = owner.queued("a.example", after=START, limit=9)

        some = owner.pass_links(1).new
        between = owner.queued("a.example", after=START, limit=9)
        rest = owner.pass_links(10).new

        assert before == own
        assert sorted(between) == sorted(set(own + some + rest) & set(between))
        assert sorted(entry.url for entry in own + some + rest) == sorted(
            candidate(path).url for path in [*paths, "/5"]
        )
        after = owner.queued("a.example", after=START, limit=9)
        assert sorted(after) == sorted(own + some + rest)

    def test_a_link_that_is_sent_again_changes_nothing(self, location: str) -> None:
        """Its owner knows it, whatever has become of it since."""
        sender, owner = self.stores(location, 2)
        link = candidate(host="b.example")
        for _ in range(2):
            sender.commit(Batch(outgoing=[(1, link)]))
            sender.pass_links(10)
            for entry in owner.pass_links(10).new:
                owner.commit(Batch(pages=[(entry, page(entry))]))

        assert owner.counts() == counts(fetched=1, hosts=1)

    def test_many_links_arrive_in_their_order(self, location: str) -> None:
        """However many they are, and with some for a third shard in between."""
        sender, owner, other = self.stores(location, 3, frontier_limit=9999)
        links = [candidate(f"/{n}", host="b.example") for n in range(2 * _MANY + 1)]
        elsewhere = [candidate(f"/{n}", host="c.example") for n in range(len(links))]
        both = zip(links, elsewhere, strict=True)
        sender.commit(Batch(outgoing=[pair for a, b in both for pair in ((1, a), (2, b))]))

        sender.pass_links(10)
        received = [owner.pass_links(_MANY).new, owner.pass_links(_MANY + 1).new]

        assert [entry.url for part in received for entry in part] == [link.url for link in links]
        assert [entry.url for entry in other.pass_links(9999).new] == [
            link.url for link in elsewhere
        ]
        assert sender.counts() == counts()

    def test_links_from_two_shards_arrive_once(self, location: str) -> None:
        """A link that several shards found is queued once; a limited batch is taken at a time."""
        one, two, owner = self.stores(location, 3)
        links = [candidate(f"/{n}", host="c.example") for n in range(3)]
        one.commit(Batch(outgoing=[(2, link) for link in links]))
        two.commit(Batch(outgoing=[(2, link) for link in links[1:]]))
        for sender in (one, two):
            sender.pass_links(10)

        received = [len(owner.pass_links(2).new) for _ in range(3)]

        assert sum(received) == 3
        assert owner.counts() == counts(queued=3, hosts=1)

    def test_arriving_links_respect_the_limit(self, location: str) -> None:
        """Links from elsewhere wait like the shard's own."""
        sender, owner = self.stores(location, 2, frontier_limit=1)
        links = [candidate(f"/{n}", host="b.example") for n in range(2)]
        sender.commit(Batch(outgoing=[(1, link) for link in links]))
        sender.pass_links(10)

        committed = owner.pass_links(10)

        assert len(committed.new) == 1
        assert owner.counts() == counts(queued=2, waiting=1, hosts=1)

    def test_a_link_cannot_go_to_oneself_or_nowhere(self, location: str) -> None:
        """A wrong address is refused and nothing of its batch is applied."""
        import pytest

        store, _ = self.stores(location, 2)
        for shard in (0, 2, -1):
            batch = Batch(found=[candidate()], outgoing=[(shard, candidate("/x"))], applied=1)

            with pytest.raises(ValueError, match="cannot send"):
                store.commit(batch)

            assert store.counts() == counts()
            assert store.counts().applied == 0
