"""The promises about a second crawl: rounds, records that stay, elements, and sitemaps."""

from __future__ import annotations

from mannerly.crawler.control import Recrawl, RetryUrls
from mannerly.crawler.kinds import Kind
from mannerly.crawler.model import Entry, ListedPage, PageRecord
from mannerly.crawler.store.base import Batch
from mannerly.crawler.store.lastmod import MIN_CASES, is_audited

from .values import OPTIONS, Opening, candidate, counts, enter, page


class RecrawlContract(Opening):
    """URLs of one shard that are asked for again, and what is kept with their records."""

    def test_elements_come_with_their_pages(self, location: str) -> None:
        """Of each commit, small or large, in the order of records; other pages have none."""
        store = self.store(location)
        entries = enter(store, *(candidate(f"/{n}") for n in range(200)))
        for each in entries[:3]:
            store.commit(Batch(pages=[(each, page(each))], elements={each.seq: b"%d" % each.seq}))
        store.commit(
            Batch(
                pages=[(each, page(each)) for each in entries[3:]],
                elements={each.seq: b"%d" % each.seq for each in entries[3:-1]},
            )
        )

        read = [(record.url, kept) for record, kept in store.elements()]

        expected = [(each.url, b"%d" % each.seq) for each in entries[:-1]]
        assert read == [*expected, (entries[-1].url, None)]
        assert store.elements_of(entries[1].url) == b"%d" % entries[1].seq
        assert store.elements_of("https://a.example/unknown") is None

    def test_a_page_that_a_sitemap_lists_says_so(self, location: str) -> None:
        """It makes no difference whether the sitemap came before the page or after it."""
        store = self.store(location)
        first, second, third = enter(store, candidate("/1"), candidate("/2"), candidate("/3"))
        store.commit(
            Batch(listed=[ListedPage(first.url, "2026-01-01"), ListedPage(second.url, None)])
        )
        store.commit(Batch(pages=[(each, page(each)) for each in (first, second, third)]))
        store.commit(Batch(listed=[ListedPage(third.url, "2026-01-03")]))

        read = [(record.in_sitemap, record.lastmod) for _, record in store.pages()]

        assert read == [(True, "2026-01-01"), (True, None), (True, "2026-01-03")]

    def _crawled(self, location: str, pages: int = 3) -> list[Entry]:
        """Make a shard with a list and some pages that have elements."""
        self.shard = self.store(location)
        listed = candidate("/list")._replace(kind=Kind.SITEMAP)
        entries = enter(self.shard, listed, *(candidate(f"/{n}") for n in range(pages)))
        self.shard.commit(
            Batch(
                pages=[(each, page(each)._replace(change="new")) for each in entries],
                elements={each.seq: each.url.encode() for each in entries[1:]},
            )
        )
        return entries

    def _bring_back(self) -> list[Entry]:
        return [entry for _ in range(4) for entry in self.shard.bring_back(100).new]

    def test_a_recrawl_brings_lists_back_and_then_pages(self, location: str) -> None:
        """Lists are read before a page is asked for; the records stay meanwhile."""
        listed, *pages = self._crawled(location)
        self.shard.commit(Batch(retries=[Recrawl(1)]))

        first = self._bring_back()
        then = self.shard.counts()
        self.shard.commit(Batch(pages=[(listed, page(listed))]))
        second = self._bring_back()

        assert first == [listed]
        assert then == counts(queued=1, fetched=3, lists=1, hosts=1, retries=1, rechecks=1, round=1)
        assert second == pages
        assert self.shard.counts() == counts(
            queued=3, fetched=3, lists=1, hosts=1, rechecks=3, round=1
        )
        assert [record.url for _, record in self.shard.pages()] == [each.url for each in pages]
        assert {record.change for _, record in self.shard.pages()} == {None}

    def _again(self, listed: Entry) -> None:
        """Begin a recrawl, and come to its pages."""
        self.shard.commit(Batch(retries=[Recrawl(self.shard.counts().round + 1)]))
        self._bring_back()
        self.shard.commit(Batch(pages=[(listed, page(listed))]))
        self._bring_back()

    def test_an_answer_replaces_the_record_in_its_place(self, location: str) -> None:
        """With its elements, unless they are kept; positions stay, so that no reader misses one."""
        listed, one, two, three = self._crawled(location)
        places = [position for position, _ in self.shard.pages()]
        self._again(listed)
        reading = self.shard.pages()
        next(reading)

        self.shard.commit(
            Batch(
                pages=[
                    (one, page(one)._replace(change="same")),
                    (two, page(two)._replace(change="changed", digest="11")),
                    (three, page(three, status=404)._replace(change="removed")),
                ],
                unchanged={one.seq},
                elements={two.seq: b"new"},
            )
        )

        assert len([*reading]) == 2
        records = {record.url: (record.change, kept) for record, kept in self.shard.elements()}
        assert records == {
            one.url: ("same", one.url.encode()),
            two.url: ("changed", b"new"),
            three.url: ("removed", None),
        }
        assert [position for position, _ in self.shard.pages()] == places
        assert self.shard.counts() == counts(fetched=3, lists=1, hosts=1, round=1)

    def test_a_url_that_is_dropped_keeps_its_record(self, location: str) -> None:
        """It has the reason as its error, and is neither skipped nor given up."""
        listed, one, two, three = self._crawled(location)
        self._again(listed)

        self.shard.commit(Batch(dropped=[(one, "excluded"), (two, "host_retired: x")]))
        self.shard.commit(Batch(retries=[RetryUrls()]))
        self._bring_back()

        errors = {record.url: record.error for _, record in self.shard.pages()}
        assert errors == {one.url: "excluded", two.url: "host_retired: x", three.url: None}
        assert self.shard.counts() == counts(
            queued=1, fetched=3, lists=1, hosts=1, rechecks=1, round=1
        )

    def test_a_recrawl_outlives_its_owner(self, location: str) -> None:
        """The next owner goes on with it, and has the records of what is queued."""
        _, *pages = self._crawled(location)
        self.shard.commit(Batch(retries=[Recrawl(1)]))
        self.shard.bring_back(1)
        self._opened.close()

        self.shard = self.open(location).claim(0, OPTIONS)
        (listed,) = self.shard.queued("a.example", after=(-1, -1), limit=9)
        earlier = self.shard.earlier(listed.seq)
        self._bring_back()
        self.shard.commit(Batch(pages=[(listed, page(listed))], retries=[Recrawl(1)]))
        self._bring_back()

        assert earlier is not None
        assert isinstance(earlier.record, PageRecord)
        assert self.shard.counts() == counts(
            queued=len(pages), fetched=3, lists=1, hosts=1, rechecks=len(pages), round=1
        )

    def test_the_lastmods_of_two_rounds_can_be_compared(self, location: str) -> None:
        """Only of a page that both rounds list, each time with a lastmod."""
        listed, one, two, three = self._crawled(location)
        said = [ListedPage(one.url, "1"), ListedPage(two.url, "1"), ListedPage(three.url, None)]
        self.shard.commit(Batch(listed=said))
        before = self.shard.earlier(one.seq)
        self.shard.commit(Batch(retries=[Recrawl(1)]))
        now = [ListedPage(one.url, "2"), ListedPage(three.url, "2")]
        self.shard.commit(Batch(listed=now))

        found = [self.shard.earlier(each.seq) for each in (one, two, three, listed)]

        assert before is not None
        assert before.lastmods is None
        assert [each and each.lastmods for each in found] == [("1", "2"), None, None, None]

    def test_a_sitemap_that_was_right_spares_requests(self, location: str) -> None:
        """Pages with the same lastmod are unchanged, but for those that are audited."""
        listed, *pages = self._crawled(location, 100)
        said = [ListedPage(each.url, "2026-01-01") for each in pages]
        self.shard.commit(Batch(listed=said, lastmods={"a.example": (MIN_CASES, 0)}))
        self.shard.commit(Batch(retries=[Recrawl(1)]))
        self._bring_back()
        now = [ListedPage(said[0].url, "2026-02-02"), *said[1:-1]]
        self.shard.commit(Batch(pages=[(listed, page(listed))], listed=now))

        asked = {entry.url for entry in self._bring_back()}

        unsure = {pages[0].url, pages[-1].url}  # one has another lastmod, one is listed no more
        assert asked == {each.url for each in pages if is_audited(each.url, 1)} | unsure
        same = [record for _, record in self.shard.pages() if record.url not in asked]
        assert {record.change for record in same} == {"same"}
        assert {record.previous_status for record in same} == {200}

    def test_a_sitemap_that_lied_spares_none(self, location: str) -> None:
        """Below 95 % every page is asked for."""
        listed, *pages = self._crawled(location, 50)
        said = [ListedPage(each.url, "2026-01-01") for each in pages]
        self.shard.commit(Batch(listed=said, lastmods={"a.example": (90, 10)}))
        self.shard.commit(Batch(retries=[Recrawl(1)]))
        self._bring_back()
        self.shard.commit(Batch(pages=[(listed, page(listed))], listed=said))

        assert self._bring_back() == pages

    def test_skipped_urls_are_brought_back_by_their_reason(self, location: str) -> None:
        """Those with the reason, whatever detail follows it; the others stay skipped."""
        store = self.store(location)
        entries = enter(store, *(candidate(f"/{n}", hops=n) for n in range(3)))
        reasons = ["robots", "max_per_host", "robots: a detail"]
        store.commit(Batch(dropped=list(zip(entries, reasons, strict=True))))

        order = RetryUrls(failed=False, given_up=False, skipped="robots")
        store.commit(Batch(retries=[order]))
        back = [entry for _ in range(3) for entry in store.bring_back(1).new]

        assert back == [entries[0], entries[2]]
        assert [each.reason for each in store.skipped()] == ["max_per_host"]
        assert store.counts() == counts(
            queued=2, skipped=1, hosts=1, retries=store.counts().retries
        )
