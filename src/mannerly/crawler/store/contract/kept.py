"""The promises about answers that are kept in segments, and about extracted items."""

from __future__ import annotations

from mannerly.crawler.control import RetryUrls
from mannerly.crawler.model import ArchivePlace, PageItems
from mannerly.crawler.store.base import Batch

from .values import Opening, candidate, counts, enter, page

_MISSING = RetryUrls(failed=False, given_up=False, missing=True)


class KeptContract(Opening):
    """Places, lengths of segments and items are committed with their pages."""

    def test_a_page_is_found_with_the_place_of_its_answer(self, location: str) -> None:
        """Pages whose answer was not kept have none."""
        store = self.store(location)
        kept, other = enter(store, candidate("/kept"), candidate("/other"))
        place = ArchivePlace("shard-0-1.warc.gz", 300, 40)
        store.commit(
            Batch(
                pages=[(kept, page(kept)), (other, page(other))],
                kept={kept.seq: place},
                segments={place.segment: 340},
            )
        )

        found = [(record.url, at) for _, record, at in store.kept_pages()]

        assert found == [(kept.url, place), (other.url, None)]
        assert store.segments() == {place.segment: 340}

    def test_a_page_is_found_by_its_url_with_its_seq(self, location: str) -> None:
        """So what it carries is found, too. A URL that is queued or unknown has no record."""
        store = self.store(location)
        one, two, queued = enter(store, candidate("/1"), candidate("/2"), candidate("/3"))
        place = ArchivePlace("shard-0-1.warc.gz", 300, 40)
        store.commit(
            Batch(
                pages=[(two, page(two)), (one, page(one))],  # not in the order of arrival
                kept={two.seq: place},
                segments={place.segment: 340},
            )
        )

        found = [store.kept_page(each.url) for each in (one, two)]

        assert [each and (each[0], each[1].url, each[2]) for each in found] == [
            (one.seq, one.url, None),
            (two.seq, two.url, place),
        ]
        assert store.kept_page(queued.url) is None
        assert store.kept_page("https://a.example/unknown") is None

    def test_a_segment_has_the_length_that_was_committed_last(self, location: str) -> None:
        """Also by a batch with nothing else in it; segments come in the order they began."""
        store = self.store(location)
        store.commit(Batch(segments={"b.warc.gz": 10}))
        store.commit(Batch(segments={"a.warc.gz": 20, "b.warc.gz": 15}))

        assert list(store.segments().items()) == [("b.warc.gz", 15), ("a.warc.gz", 20)]

    def test_items_are_kept_with_the_url_of_their_page(self, location: str) -> None:
        """Any number of them, or the reason why there are none."""
        store = self.store(location)
        some, failed = enter(store, candidate("/some"), candidate("/failed"))
        two = PageItems([b'{"a":1}', b'{"a":"\\u00e4"}'])
        none = PageItems([], "ValueError: no price")
        store.commit(
            Batch(
                pages=[(some, page(some)), (failed, page(failed))],
                items={some.seq: two, failed.seq: none},
            )
        )

        found = list(store.items())
        assert [each[1:] for each in found] == [(some.url, two), (failed.url, none)]
        assert list(store.items(after=found[0][0])) == found[1:]

    def test_a_page_that_is_kept_again_has_its_latest_answer(self, location: str) -> None:
        """The same batch may also be offered twice."""
        store = self.store(location)
        (entry,) = enter(store, candidate())
        batch = Batch(
            pages=[(entry, page(entry))],
            kept={entry.seq: ArchivePlace("a.warc.gz", 0, 9)},
            segments={"a.warc.gz": 9},
        )
        store.commit(batch)
        store.commit(batch)
        batch.kept[entry.seq] = ArchivePlace("a.warc.gz", 9, 5)
        batch.segments["a.warc.gz"] = 14
        store.commit(batch)

        assert [at for _, _, at in store.kept_pages()] == [ArchivePlace("a.warc.gz", 9, 5)]
        assert store.segments() == {"a.warc.gz": 14}

    def test_a_page_whose_answer_is_missing_is_brought_back(self, location: str) -> None:
        """It is queued and keeps its record, until the next answer replaces that in its place."""
        store = self.store(location)
        kept, lost, failed = enter(store, candidate("/1"), candidate("/2"), candidate("/3"))
        place = ArchivePlace("a.warc.gz", 0, 9)
        records = [page(kept), page(lost), page(failed, status=None, error="timeout")]
        store.commit(
            Batch(
                pages=list(zip((kept, lost, failed), records, strict=True)),
                kept={kept.seq: place},
                segments={place.segment: 9},
            )
        )
        store.commit(Batch(retries=[_MISSING, _MISSING]))

        back = [entry for _ in range(4) for entry in store.bring_back(1).new]

        assert back == [lost]
        assert [record.url for _, record in store.pages()] == [kept.url, lost.url, failed.url]
        assert store.counts() == counts(queued=1, fetched=2, failed=1, rechecks=1, hosts=1)
        found = [store.earlier(each.seq) for each in (kept, lost)]
        assert [each and each.is_kept for each in found] == [True, False]
        again = place._replace(offset=9)
        store.commit(
            Batch(pages=[(lost, page(lost))], kept={lost.seq: again}, segments={place.segment: 18})
        )
        assert [at for _, _, at in store.kept_pages()] == [place, again, None]
        assert store.counts() == counts(fetched=2, failed=1, hosts=1)

    def test_missing_answers_of_one_host_can_be_brought_back(self, location: str) -> None:
        """Those of other hosts stay as they are."""
        store = self.store(location)
        entries = enter(store, candidate("/1"), candidate("/1", "b.example"))
        store.commit(Batch(pages=[(each, page(each)) for each in entries]))
        order = RetryUrls(failed=False, given_up=False, missing=True, host="b.example")
        store.commit(Batch(retries=[order]))

        back = [entry.host for _ in range(3) for entry in store.bring_back(10).new]

        assert back == ["b.example"]
