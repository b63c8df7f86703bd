"""The promises about requests that carry something: identity, labels, what is sent once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mannerly.crawler.control import Recrawl, RetryUrls
from mannerly.crawler.kinds import Kind
from mannerly.crawler.payload import payload
from mannerly.crawler.store.base import Batch

from .values import OPTIONS, START, Opening, candidate, counts, enter, page

if TYPE_CHECKING:
    from mannerly.crawler.model import Candidate

_SECRETS = (("password", "env:PASSWORD"),)


def request(path: str = "/", host: str = "a.example", **parts: Any) -> Candidate:
    """Return a candidate that carries this."""
    carried = payload(**parts)
    assert carried is not None, "a plain request is a candidate without a payload"
    return candidate(path, host)._replace(kind=carried.kind, payload=carried)


def labelled(path: str = "/", host: str = "a.example", label: str = "product") -> Candidate:
    """Return a candidate with a label."""
    return request(path, host, label=label, data={"price": "4.50"})


class PayloadContract(Opening):
    """Requests with a payload, beside links without one."""

    def test_a_payload_stays_with_its_entry(self, location: str) -> None:
        """While it is queued, when it has a record, and for the next owner; links have none."""
        crawl = self.create(location)
        store = crawl.claim(0, OPTIONS)
        form = request(
            method="POST",
            headers={"X-Way": "ä"},
            form={"user": "ü"},
            secrets=_SECRETS,
            label="in",
            data=[{"n": 1.5}, None, "\0"],
            session="a",
        )
        put = request("/put", method="PUT", body=bytes(range(256)) * 16, is_idempotent=True)

        entries = enter(store, form, put, candidate("/link"))
        then = [store.payload(entry.seq) for entry in entries]
        store.commit(Batch(pages=[(entries[0], page(entries[0]))]))
        store.close()
        store = crawl.claim(0, OPTIONS)

        assert [entry.kind for entry in entries] == [Kind.SUBMISSION, Kind.REQUEST, Kind.PAGE]
        assert then == [form.payload, put.payload, None]
        assert [store.payload(entry.seq) for entry in entries] == then
        assert store.queued("a.example", after=START, limit=9) == entries[1:]
        assert store.has_payloads

    def test_a_store_of_links_has_no_payloads(self, location: str) -> None:
        """So it is not asked for them."""
        store = self.store(location)

        (entry,) = enter(store, candidate())

        assert not store.has_payloads
        assert store.payload(entry.seq) is None
        assert store.labelled([entry.url]) == set()

    def test_a_request_is_known_by_url_method_and_body(self, location: str) -> None:
        """Another one with the same comes too late and is counted, in one batch and later."""
        store = self.store(location)
        posts = [request(method="POST", body=body) for body in (b"1", b"2", b"1")]
        others = [request(method="PUT", body=b"1"), request(method="HEAD"), candidate()]

        first = store.commit(Batch(found=[*posts, *others]))
        again = store.commit(Batch(found=[*others, *posts]))

        assert len(first.new) == 5
        assert first.repeated == 1
        assert again.new == []
        assert again.repeated == 5
        assert list(store.urls()) == [candidate().url]

    def test_a_request_that_is_asked_again_is_another_one(self, location: str) -> None:
        """Once for each mark, whether it has a label or not."""
        store = self.store(location)

        committed = store.commit(
            Batch(
                found=[
                    candidate(),
                    request(again="1"),
                    request(again="1"),
                    request(again="2", label="x"),
                ]
            )
        )

        assert len(committed.new) == 3
        assert committed.repeated == 1
        assert store.labelled([candidate().url]) == set()

    def test_a_label_makes_a_known_url_new_once(self, location: str) -> None:
        """A URL that was fetched, and one that is queued; of two labels the first counts."""
        store = self.store(location)
        fetched, queued = enter(store, candidate("/fetched"), candidate("/queued"))
        store.commit(Batch(pages=[(fetched, page(fetched))]))

        first = store.commit(Batch(found=[labelled("/fetched"), labelled("/queued")]))
        second = store.commit(Batch(found=[labelled("/fetched", label="b"), candidate("/queued")]))

        assert [entry.url for entry in first.new] == [fetched.url, queued.url]
        assert first.repeated == 0
        assert second.new == []
        assert second.repeated == 1
        assert store.labelled([fetched.url, queued.url]) == {fetched.url, queued.url}
        assert [store.payload(entry.seq) for entry in first.new] == [labelled().payload] * 2

    def test_a_link_to_a_url_with_a_label_is_known(self, location: str) -> None:
        """In the same batch, whatever the order, and later."""
        store = self.store(location)

        first = store.commit(Batch(found=[candidate("/a"), labelled("/a"), candidate("/b")]))
        later = store.commit(Batch(found=[candidate("/a")]))

        assert [(entry.url, entry.kind) for entry in first.new] == [
            (candidate("/a").url, Kind.REQUEST),
            (candidate("/b").url, Kind.PAGE),
        ]
        assert later.new == []
        assert store.counts() == counts(queued=2, hosts=1)

    def test_labels_are_known_to_the_next_owner(self, location: str) -> None:
        """A reader knows them, too."""
        crawl = self.create(location)
        store = crawl.claim(0, OPTIONS)
        enter(store, *(candidate(f"/{n}") for n in range(20)))
        enter(store, *(labelled(f"/{n}") for n in range(0, 20, 2)))
        store.close()

        store = crawl.claim(0, OPTIONS)
        urls = [candidate(f"/{n}").url for n in range(20)]
        with crawl.read(0) as reader:
            beside = reader.labelled(urls)

        assert store.labelled(urls) == beside == set(urls[::2])
        assert enter(store, *(labelled(f"/{n}") for n in range(0, 20, 2))) == []
        assert len(enter(store, *(labelled(f"/{n}") for n in range(20)))) == 10

    def test_a_request_travels_to_its_shard(self, location: str) -> None:
        """With all that it carries; what came too late is counted once, by one of the two."""
        sender, owner = self.stores(location, 2)
        link = candidate("/x", host="b.example")
        owner.commit(Batch(found=[link]))
        asked = [labelled("/x", "b.example"), labelled("/x", "b.example", "other")]

        sent = sender.commit(Batch(outgoing=[(1, each) for each in asked]))
        passed = sender.pass_links(10)
        received = owner.pass_links(10)

        (entry,) = received.new
        assert entry.url == link.url
        assert owner.payload(entry.seq) == asked[0].payload
        assert sent.repeated + passed.repeated + received.repeated == 1
        assert owner.labelled([link.url]) == {link.url}
        assert owner.has_payloads

    def test_what_failed_comes_back_with_its_payload(self, location: str) -> None:
        """Failed, given up or skipped: the entry keeps its number, and so what it carries."""
        store = self.store(location)
        made = [labelled("/failed"), labelled("/given-up"), labelled("/skipped")]
        failed, given_up, skipped = enter(store, *made)
        store.commit(
            Batch(
                pages=[(failed, page(failed, status=None, error="timeout"))],
                dropped=[(given_up, "host_retired: slow"), (skipped, "unanswered: reset")],
                retries=[RetryUrls(skipped="unanswered")],
            )
        )

        back = [entry for _ in range(4) for entry in store.bring_back(10).new]

        assert sorted(back) == [failed, given_up, skipped]
        assert {store.payload(entry.seq) for entry in back} == {made[0].payload}

    def test_a_recrawl_repeats_what_may_be_repeated(self, location: str) -> None:
        """A GET with a label comes back with it; what is sent once keeps its record."""
        store = self.store(location)
        entries = enter(
            store, labelled("/a"), request("/b", method="POST", body=b"1"), candidate("/c")
        )
        store.commit(Batch(pages=[(entry, page(entry)) for entry in entries]))
        store.commit(Batch(retries=[Recrawl(1)]))

        back = [entry for _ in range(4) for entry in store.bring_back(10).new]

        assert [entry.seq for entry in back] == [entries[0].seq, entries[2].seq]
        assert store.payload(entries[0].seq) == labelled().payload
        assert len(list(store.pages())) == 3

    def test_what_waits_for_room_keeps_its_payload(self, location: str) -> None:
        """It is let in as the request that it was."""
        (store,) = self.stores(location, frontier_limit=1)
        committed = store.commit(Batch(found=[labelled("/a"), labelled("/b")]))
        (first,) = committed.new
        store.commit(Batch(pages=[(first, page(first))]))

        (entry,) = store.admit_waiting(5)

        assert committed.waiting == 1
        assert entry.kind is Kind.REQUEST
        assert store.payload(entry.seq) == labelled().payload

    def test_a_request_that_was_sent_is_unanswered_for_the_next_owner(self, location: str) -> None:
        """Unless it was refused, or has a record or a reason."""
        crawl = self.create(location)
        store = crawl.claim(0, OPTIONS)
        found = [request(method="POST", body=b"%d" % n) for n in range(5)]
        sent, refused, recorded, dropped, _ = entries = enter(store, *found)
        for entry in entries[:4]:
            store.note_sent(entry.seq)
        store.note_sent(refused.seq, is_refused=True)
        store.commit(
            Batch(pages=[(recorded, page(recorded))], dropped=[(dropped, "unanswered: timeout")])
        )
        here = set(store.unanswered)
        store.close()

        after = crawl.claim(0, OPTIONS)
        then = set(after.unanswered)
        after.commit(
            Batch(dropped=[(sent, "unanswered")], retries=[RetryUrls(skipped="unanswered")])
        )
        left = set(after.unanswered)
        back = [entry for _ in range(4) for entry in after.bring_back(10).new]
        after.close()

        assert here == set()
        assert then == {sent.seq}
        assert left == set()
        assert sorted(entry.seq for entry in back) == [sent.seq, dropped.seq]
        assert set(crawl.claim(0, OPTIONS).unanswered) == set()

    def test_cookies_of_sessions_are_kept_by_name(self, location: str) -> None:
        """The latest of each name, until it is forgotten; also for the next owner of the shard."""
        crawl = self.create(location)
        store = crawl.claim(0, OPTIONS)
        store.commit(Batch(sessions={"a": "[1]", "b b": '["ä"]', "c": "[]"}))
        store.commit(Batch(sessions={"a": "[2]", "c": "", "never kept": ""}))
        store.commit(Batch(found=[candidate()]))
        here = store.sessions()
        store.close()

        then = crawl.claim(0, OPTIONS).sessions()

        assert here == then == {"a": "[2]", "b b": '["ä"]'}
