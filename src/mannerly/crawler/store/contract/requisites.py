"""The promises about requisites: they are apart from pages, whatever their URL."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mannerly.crawler.control import Recrawl, RetryUrls
from mannerly.crawler.kinds import Form, Kind
from mannerly.crawler.model import ArchivePlace, Entry, PageRecord, Skipped
from mannerly.crawler.payload import REQUISITE
from mannerly.crawler.store.base import Batch

from .values import OPTIONS, START, Opening, candidate, counts, enter, page

if TYPE_CHECKING:
    from mannerly.crawler.model import Candidate

SEGMENT = "shard-0000-00001.warc.gz"


def requisite(path: str = "/", host: str = "a.example") -> Candidate:
    """Return what a page needs to be shown."""
    return candidate(path, host)._replace(kind=Kind.REQUISITE, payload=REQUISITE)


def known_as(path: str = "/") -> str:
    """Return the identity of a requisite."""
    return REQUISITE.identity(candidate(path).url)


class RequisiteContract(Opening):
    """Requisites of one shard, beside pages with the same URLs."""

    def test_a_requisite_and_a_page_of_one_url_are_two(self, location: str) -> None:
        """Neither takes the other one's place, whichever comes first; each is asked once."""
        store = self.store(location)

        first = enter(store, candidate("/a"), requisite("/b"))
        second = enter(store, requisite("/a"), candidate("/b"))
        again = store.commit(Batch(found=[requisite("/a"), requisite("/b"), candidate("/a")]))

        offered = (candidate("/a"), requisite("/b"), requisite("/a"), candidate("/b"))
        assert {(each.url, each.kind) for each in first + second} == {
            (each.url, each.kind) for each in offered
        }
        assert again.new == []
        assert again.repeated == 0, "many pages have a requisite in common"
        assert store.counts() == counts(queued=4, hosts=1)

    def test_requisites_have_records_and_counts_of_their_own(self, location: str) -> None:
        """One that failed counts, too."""
        store = self.store(location)
        entries = enter(store, candidate(), requisite("/style"), requisite("/gone"))
        statuses = {"/style": 200, "/gone": None, "/": 200}
        paths = {each: "/" + each.url.rpartition("/")[2] for each in entries}

        store.commit(
            Batch(pages=[(each, page(each, status=statuses[paths[each]])) for each in entries])
        )

        assert store.counts() == counts(fetched=1, requisites=2, hosts=1)
        assert [record.url for _, record in store.pages()] == [candidate().url]
        assert {(each.url, each.status) for each in store.requisites()} == {
            (candidate("/style").url, 200),
            (candidate("/gone").url, None),
        }

    def test_each_is_found_by_its_identity(self, location: str) -> None:
        """Queued, recorded, skipped and given up; a URL alone means the page."""
        store = self.store(location)
        paths = ("/queued", "/done", "/skipped", "/lost")
        enter(store, *(candidate(path) for path in paths))
        entries = enter(store, *(requisite(path) for path in paths))
        by_path = {"/" + each.url.rpartition("/")[2]: each for each in entries}
        done = by_path["/done"]

        store.commit(
            Batch(
                pages=[(done, page(done)._replace(title="style"))],
                dropped=[
                    (by_path["/skipped"], "robots_disallowed"),
                    (by_path["/lost"], "host_retired"),
                ],
            )
        )

        found = {path: store.find(known_as(path)) for path in paths}
        queued, record = found["/queued"], found["/done"]
        assert isinstance(queued, Entry)
        assert queued.kind is Kind.REQUISITE
        assert isinstance(record, PageRecord)
        assert record.title == "style"
        for path, reason in (("/skipped", "robots_disallowed"), ("/lost", "host_retired")):
            standing = found[path]
            assert isinstance(standing, Skipped)
            assert (standing.url, standing.reason) == (candidate(path).url, reason)
        for path in paths:
            standing = store.find(candidate(path).url)
            assert isinstance(standing, Entry)
            assert standing.kind is Kind.PAGE
        assert store.find(known_as("/unknown")) is None

    def test_its_kept_answer_is_found(self, location: str) -> None:
        """Apart from that of the page with its URL; of one without an answer there is none."""
        store = self.store(location)
        entries = enter(store, candidate("/a"), requisite("/a"), requisite("/b"))
        places = {each.seq: ArchivePlace(SEGMENT, at * 100, 90) for at, each in enumerate(entries)}
        kept = {each.seq: places[each.seq] for each in entries if each.url.endswith("/a")}

        store.commit(
            Batch(
                pages=[(each, page(each)) for each in entries],
                kept=kept,
                segments={SEGMENT: 300},
            )
        )

        of_page, of_requisite = (
            next(kept[each.seq] for each in entries if each.kind is kind and each.seq in kept)
            for kind in (Kind.PAGE, Kind.REQUISITE)
        )
        assert store.kept_at(candidate("/a").url) == of_page
        assert store.kept_at(known_as("/a")) == of_requisite
        assert store.kept_at(known_as("/b")) is None
        assert store.kept_at(known_as("/unknown")) is None

    def test_failed_and_given_up_requisites_come_back(self, location: str) -> None:
        """With the URLs of pages; their counts follow. So do skipped ones."""
        crawl = self.create(location)
        store = crawl.claim(0, OPTIONS)
        failed, lost, skipped = enter(
            store, requisite("/failed"), requisite("/lost"), requisite("/skipped")
        )
        store.commit(
            Batch(
                pages=[(failed, page(failed, status=503))],
                dropped=[(lost, "host_retired"), (skipped, "robots")],
            )
        )
        then = store.counts()

        store.commit(Batch(retries=[RetryUrls(skipped="robots")]))
        back = [entry for _ in range(3) for entry in store.bring_back(9).new]

        assert then == counts(requisites=1, given_up=1, skipped=1, hosts=1)
        assert {each.url for each in back} == {failed.url, lost.url, skipped.url}
        assert {each.kind for each in back} == {Kind.REQUISITE}
        assert store.counts() == counts(queued=3, hosts=1)
        assert [store.payload(each.seq) for each in back] == [REQUISITE] * 3
        store.close()
        store = crawl.claim(0, OPTIONS)
        assert {each.url for each in store.queued("a.example", after=START, limit=9)} == {
            failed.url,
            lost.url,
            skipped.url,
        }

    def test_a_recrawl_asks_for_requisites_with_the_pages(self, location: str) -> None:
        """Each keeps its record until the next answer replaces it, and counts once."""
        store = self.store(location)
        entries = enter(store, candidate("/page"), requisite("/style"))
        store.commit(Batch(pages=[(each, page(each)) for each in entries]))

        store.commit(Batch(retries=[Recrawl(1)]))
        back = [entry for _ in range(3) for entry in store.bring_back(9).new]
        then = store.counts()
        store.commit(Batch(pages=[(each, page(each)._replace(title="new")) for each in back]))

        assert {each.kind for each in back} == {Kind.PAGE, Kind.REQUISITE}
        assert (then.queued, then.rechecks, then.requisites) == (2, 2, 1)
        assert store.counts() == counts(fetched=1, requisites=1, hosts=1, round=1)
        assert [record.title for _, record, *_ in store.stored(Form.REQUISITE)] == ["new"]
