"""The promises about failed and given-up URLs, and about bringing them back."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from mannerly.crawler.control import RetryUrls
from mannerly.crawler.kinds import Kind
from mannerly.crawler.model import ArchivePlace, Entry, HostRecord, Skipped
from mannerly.crawler.store.base import Batch

from .values import OPTIONS, Opening, candidate, counts, enter, page

if TYPE_CHECKING:
    from mannerly.crawler.store.base import ShardStore


class RetryContract(Opening):
    """Failed and given-up URLs of one shard, and the way back into the queue."""

    def test_a_given_up_url_is_told_apart_from_skipped_ones(self, location: str) -> None:
        """By its reason, whatever detail follows that; its host is listed with it."""
        store = self.store(location)
        entries = enter(store, *(candidate(f"/{n}") for n in range(3)))
        reasons = ["host_retired: 20 failures in a row", "robots_unreachable", "robots"]

        store.commit(Batch(dropped=list(zip(entries, reasons, strict=True))))

        assert [each.reason for each in store.given_up()] == reasons[:2]
        assert [each.reason for each in store.skipped()] == reasons[2:]
        assert dict(store.given_up_hosts()) == {"a.example": 2}
        assert store.find(entries[0].url) == Skipped(
            entries[0].url, reasons[0], 1, entries[0].parent
        )
        assert store.counts() == counts(given_up=2, skipped=1, hosts=1)

    def test_a_host_that_was_given_up_is_listed_without_urls(self, location: str) -> None:
        """Its record is enough."""
        store = self.store(location)
        store.commit(Batch(hosts=[HostRecord("a.example"), HostRecord("b.example", retired="x")]))

        assert dict(store.given_up_hosts()) == {"b.example": 0}

    def _ended(self, location: str) -> tuple[ShardStore, list[Entry]]:
        """Return a store with a page, two failed pages, a failed list and two given-up URLs."""
        store = self.store(location)
        listed = candidate("/list", priority=0)._replace(kind=Kind.SITEMAP, depth=0, hops=2)
        entries = enter(
            store,
            *(candidate("/ok"), candidate("/bad", depth=3, hops=1), candidate(host="b.example")),
            *(listed, candidate("/lost", priority=7, hops=2), candidate("/lost", "b.example")),
        )
        ok, *failed, lost, also_lost = entries
        store.commit(
            Batch(
                pages=[
                    (ok, page(ok)),
                    *((each, page(each, status=None, error="timeout")) for each in failed),
                ],
                dropped=[(lost, "host_retired: x"), (also_lost, "robots_unreachable")],
            )
        )
        return store, entries

    def test_what_ended_in_a_refusal_an_error_or_unread_has_failed(self, location: str) -> None:
        """Its record stays, and it is brought back with those that got no answer."""
        store = self.store(location)
        ends: list[tuple[int | None, str | None]] = [
            *((None, "timeout"), (500, None), (503, None), (599, None), (999, None)),
            *((401, None), (403, None), (407, None), (408, None), (425, None), (429, None)),
            *((200, "crashes_parser"), (200, "parse_failed")),
            *((200, None), (200, "links_capped"), (304, None), (301, "redirect_loop")),
            *((400, None), (404, None), (410, None), (451, None)),
        ]
        entries = enter(store, *(candidate(f"/{at}") for at in range(len(ends))))
        records = [
            page(entry, status=status, error=error)
            for entry, (status, error) in zip(entries, ends, strict=True)
        ]
        store.commit(Batch(pages=list(zip(entries, records, strict=True))))
        kept = [record for _, record in store.pages()]
        counted = store.counts()
        store.commit(Batch(retries=[RetryUrls(given_up=False)]))

        back = [entry for _ in range(3) for entry in store.bring_back(10).new]

        assert kept == records
        assert counted == counts(fetched=8, failed=13, hosts=1)
        assert back == entries[:13]
        assert store.counts() == counts(queued=13, fetched=8, hosts=1)

    def test_a_seed_that_gave_no_page_has_failed(self, location: str) -> None:
        """Another page that is not there has not: a link that leads nowhere is a result."""
        store = self.store(location)
        seed = candidate("/seed", depth=0)._replace(parent=None)
        listed = candidate("/list")._replace(kind=Kind.SITEMAP, parent=None)
        entries = enter(store, seed, candidate("/page"), listed)
        store.commit(Batch(pages=[(entry, page(entry, status=404)) for entry in entries]))
        counted = store.counts()
        store.commit(Batch(retries=[RetryUrls()]))

        back = [entry for _ in range(3) for entry in store.bring_back(10).new]

        assert counted == counts(fetched=1, failed=1, lists=1, hosts=1)
        assert [entry.url for entry in back] == [seed.url]

    def test_only_seeds_can_be_brought_back(self, location: str) -> None:
        """Those that failed, were given up or skipped; what pages have led to stays."""
        store = self.store(location)
        entries = enter(
            store,
            *(candidate(f"/{n}")._replace(parent=None) for n in range(3)),
            *(candidate(f"/{n}") for n in range(3, 6)),
        )
        for failed, given_up, skipped in (entries[:3], entries[3:]):
            store.commit(
                Batch(
                    pages=[(failed, page(failed, status=503))],
                    dropped=[(given_up, "host_retired"), (skipped, "robots")],
                )
            )
        store.commit(Batch(retries=[RetryUrls(skipped="robots", seeds=True)]))

        back = [entry for _ in range(4) for entry in store.bring_back(10).new]

        assert sorted(back) == entries[:3]
        assert store.counts() == counts(queued=3, failed=1, given_up=1, skipped=1, hosts=1)

    def test_the_kept_answer_of_a_failed_url_goes_with_its_record(self, location: str) -> None:
        """Its next record may have none."""
        store = self.store(location)
        (entry,) = enter(store, candidate("/1"))
        place = ArchivePlace("a.warc.gz", 0, 9)
        store.commit(
            Batch(
                pages=[(entry, page(entry, status=503))],
                kept={entry.seq: place},
                segments={place.segment: 9},
            )
        )
        before = [place for _, _, place in store.kept_pages()]
        store.commit(Batch(retries=[RetryUrls()]))
        for _ in range(3):
            store.bring_back(10)
        store.commit(Batch(pages=[(entry, page(entry))]))

        assert before == [place]
        assert [place for _, _, place in store.kept_pages()] == [None]

    def test_failed_and_given_up_urls_are_brought_back(self, location: str) -> None:
        """They are queued as they were, with their numbers; the order is done afterwards."""
        store, (ok, *others) = self._ended(location)
        store.commit(Batch(retries=[RetryUrls()]))
        ordered = store.counts().retries

        back = [store.bring_back(10) for _ in range(3)]

        assert ordered == 1
        assert sorted(entry for each in back for entry in each.new) == sorted(others)
        failed = Counter[str]()
        for each in back:
            failed.update(each.hosts)
        assert failed == {"a.example": 1, "b.example": 1}
        assert store.counts() == counts(queued=5, fetched=1, hosts=2)
        assert [record.url for _, record in store.pages()] == [ok.url]
        assert list(store.given_up()) == []
        assert isinstance(store.find(others[0].url), Entry)
        assert dict(store.queued_hosts()) == {"a.example": 3, "b.example": 2}

    def test_one_host_and_one_kind_can_be_brought_back(self, location: str) -> None:
        """The others stay as they are."""
        store, (_, bad, _, listed, lost, _) = self._ended(location)
        store.commit(Batch(retries=[RetryUrls(given_up=False, host="a.example")]))
        failed = [entry for _ in range(3) for entry in store.bring_back(10).new]
        store.commit(Batch(retries=[RetryUrls(failed=False, host="a.example")]))
        given_up = [entry for _ in range(3) for entry in store.bring_back(10).new]

        assert failed == [bad, listed]
        assert given_up == [lost]
        assert store.counts() == counts(queued=3, fetched=1, failed=1, given_up=1, hosts=2)

    def test_urls_come_back_in_slices_and_once(self, location: str) -> None:
        """A URL that fails again meanwhile is not brought back a second time by the same order."""
        store, (_, *others) = self._ended(location)
        store.commit(Batch(retries=[RetryUrls()]))
        back: list[Entry] = []
        for _ in range(20):
            part = store.bring_back(1).new
            back += part
            store.commit(
                Batch(pages=[(each, page(each, status=None, error="dns")) for each in part])
            )

        assert sorted(back) == sorted(others)
        assert store.counts() == counts(fetched=1, failed=4, lists=1, hosts=2)

    def test_a_url_that_came_back_has_one_record(self, location: str) -> None:
        """Positions are not used again: a reader that was begun before meets no URL twice."""
        store, (_, bad, other, listed, *_) = self._ended(location)
        reading = store.pages()
        read = [next(reading)[1].url, next(reading)[1].url]
        store.commit(Batch(retries=[RetryUrls(given_up=False)]))
        store.bring_back(10)
        store.commit(Batch(pages=[(each, page(each)) for each in (listed, other, bad)]))

        read += [record.url for _, record in reading]

        assert len(read) == len(set(read))
        assert sorted(record.url for _, record in store.pages()).count(bad.url) == 1
        assert store.counts() == counts(fetched=3, lists=1, given_up=2, hosts=2)

    def test_what_comes_back_waits_where_there_is_no_room(self, location: str) -> None:
        """The limit of the queue holds."""
        (store,) = self.stores(location, frontier_limit=2)
        new = enter(store, candidate("/1"), candidate("/2"))
        store.commit(Batch(dropped=[(each, "host_retired") for each in new]))
        store.commit(Batch(found=[candidate("/3")], retries=[RetryUrls(failed=False)]))

        back = store.bring_back(10)

        assert (len(back.new), back.waiting) == (1, 1)
        assert store.counts() == counts(queued=3, waiting=1, hosts=1)

    def test_an_order_to_bring_back_outlives_its_owner(self, location: str) -> None:
        """The next owner goes on with it."""
        store, _ = self._ended(location)
        store.commit(Batch(retries=[RetryUrls()]))
        store.bring_back(1)
        self._opened.close()

        store = self.open(location).claim(0, OPTIONS)
        back = [entry for _ in range(3) for entry in store.bring_back(10).new]

        assert len(back) == 4
        assert store.counts() == counts(queued=5, fetched=1, hosts=2)
