"""How often the owner of a shard asks the server: each exchange is a round trip."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from tests.crawler.store.valkey_server import new_location

from mannerly.crawler.model import RobotsRecord
from mannerly.crawler.store.base import Batch, ShardOptions
from mannerly.crawler.store.contract import candidate, enter, new_manifest, page
from mannerly.crawler.store.fleet import StoreAway
from mannerly.crawler.store.valkey.client import ValkeyServer
from mannerly.crawler.store.valkey.crawl import ValkeyCrawl
from mannerly.database.address import parse

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from mannerly.database.client import Call

SHARDS = 8
OPTIONS = ShardOptions(1000)


class _CountingServer(ValkeyServer):
    exchanges = 0

    def _exchange(self, commands: Iterable[Any], options: Any = None) -> list[Any]:
        self.exchanges += 1
        return super()._exchange(commands, options)


@pytest.fixture
def server() -> _CountingServer:
    return _CountingServer(parse(new_location()))


@pytest.fixture
def crawl(server: _CountingServer, tmp_path: Path) -> Iterator[ValkeyCrawl]:
    crawl = ValkeyCrawl.create(server.address.location, new_manifest(SHARDS), server)
    crawl.keep_in(tmp_path)
    yield crawl
    crawl.close()


def test_a_first_contact_needs_one_exchange(crawl: ValkeyCrawl, server: _CountingServer) -> None:
    """The host's record comes with the robots.txt of its origins; what is new is read again."""
    store = crawl.claim(0, OPTIONS)
    before = server.exchanges

    found: list[object] = [store.host("a.example"), store.robots("https://a.example")]
    found += [store.robots("http://a.example"), store.robots("https://a.example")]
    exchanges = server.exchanges - before
    record = RobotsRecord("https://a.example", 200, b"", 0.0, 9e9)
    store.commit(Batch(robots={"https://a.example": record}))

    assert (found, exchanges) == ([None] * 4, 1)
    assert store.robots("https://a.example") is not None


def test_commits_of_many_shards_are_one_exchange(
    crawl: ValkeyCrawl, server: _CountingServer
) -> None:
    stores = [crawl.claim(number, OPTIONS) for number in range(SHARDS)]
    enter(stores[0], candidate())  # the script is in the server from now on
    before = server.exchanges

    done = crawl.fleet.commit([(store, Batch(found=[candidate("/x")])) for store in stores])

    assert [len(each.new) for each in done] == [1] * SHARDS  # type: ignore[union-attr]
    assert server.exchanges - before == 1


def test_a_claim_is_one_exchange(crawl: ValkeyCrawl, server: _CountingServer) -> None:
    """What the last owner has left comes with it."""
    enter(crawl.claim(0, OPTIONS), candidate())
    crawl.close()
    other = ValkeyCrawl.open(server.address.location, server)
    other.keep_in(crawl.folders[0])
    before = server.exchanges

    store = other.claim(0, OPTIONS)

    assert server.exchanges - before == 1
    assert store.counts().queued == 1


def test_links_are_asked_for_in_one_exchange_and_taken_in_another(
    crawl: ValkeyCrawl, server: _CountingServer
) -> None:
    """A second round asks, because some of these shards have not heard of the store for a while."""
    stores = [crawl.claim(number, OPTIONS) for number in range(SHARDS)]
    links = [(to, candidate(f"/{to}", host=f"h{to}.example")) for to in range(1, SHARDS)]
    for _ in range(2):  # the scripts are in the server from the second time on
        crawl.fleet.commit([(stores[0], Batch(outgoing=links))])
        before = server.exchanges
        done = crawl.fleet.pass_links(stores, 100)
        exchanges = server.exchanges - before
        links = [(to, each._replace(url=each.url + "/2")) for to, each in links]

    assert [len(each.new) for each in done] == [0] + [1] * (SHARDS - 1)  # type: ignore[union-attr]
    assert exchanges == 2


def test_members_and_free_shards_are_one_exchange_each(
    crawl: ValkeyCrawl, server: _CountingServer
) -> None:
    """Where no shard is in doubt, none is asked for."""
    crawl.workers()  # the script is in the server from now on
    before = server.exchanges

    members, free, doubtful = crawl.workers(), crawl.fleet.unclaimed(), crawl.fleet.unclaimed([])

    assert (members, free, doubtful) == ([], (list(range(SHARDS)), [], []), ([], [], []))
    assert server.exchanges - before == 2


def test_scripts_that_a_server_lacks_are_loaded_between_calls_and_questions(
    crawl: ValkeyCrawl, server: _CountingServer
) -> None:
    key = crawl.keys.shard(0)
    server.ask("SCRIPT", "FLUSH")

    (now_ms,), (known,) = server.calls_and_ask([("time", [key], {})], [("HGET", key, "id")])

    assert now_ms > 0
    assert known == crawl.manifest.id.encode()


def test_all_is_sent_before_the_time_of_an_answer_is_used(
    crawl: ValkeyCrawl, server: _CountingServer
) -> None:
    """The server commits while this process does something else."""
    stores = [crawl.claim(number, OPTIONS) for number in range(SHARDS)]
    enter(stores[0], candidate())  # the script is in the server from now on
    other = ValkeyServer(server.address)
    key = crawl.keys.shard(SHARDS - 1)
    seen: list[bytes | None] = []

    def look() -> None:
        for _ in range(100_000):
            if (queued := other.ask("HGET", key, "queued")) == b"1":
                seen.append(queued)
                return

    done = crawl.fleet.commit([(store, Batch(found=[candidate("/x")])) for store in stores], look)
    other.close()

    assert seen == [b"1"]
    assert [len(each.new) for each in done] == [1] * SHARDS  # type: ignore[union-attr]


def test_a_commit_tells_what_others_have_queued(
    crawl: ValkeyCrawl, server: _CountingServer
) -> None:
    """So nothing is asked."""
    owner, sender = (crawl.claim(number, OPTIONS) for number in range(2))
    sender.commit(Batch(outgoing=[(0, candidate("/theirs"))]))
    enter(owner, candidate("/own"))
    before = server.exchanges

    taken = owner.pass_links(10)

    assert server.exchanges == before
    assert [entry.url for entry in taken.new] == [candidate("/theirs").url]


def test_a_call_whose_making_needs_an_exchange_gets_its_own_answer(
    crawl: ValkeyCrawl, server: _CountingServer
) -> None:
    """Calls are made while those before them are on their way, on the same connection."""
    key = crawl.keys.shard(0)
    met: list[object] = []

    def calls() -> Iterator[Call]:
        for number in range(3):
            yield "time", [key], {"number": number, "filler": "x" * 20_000 * number}
            met.append(server.ask("HGET", key, "id"))

    answers = server.calls(calls())

    assert met == [crawl.manifest.id.encode()] * 3
    assert all(isinstance(answer, int) for answer in answers)
    assert server.ask("HGET", key, "id") == crawl.manifest.id.encode()


def test_urls_of_fetched_pages_are_packed_while_many_shards_commit(
    crawl: ValkeyCrawl, server: _CountingServer
) -> None:
    """A block of them is read in the middle of the exchange."""
    stores = [crawl.claim(number, OPTIONS) for number in range(SHARDS)]
    for part in range(4):
        names = [f"/{part}/{number}" for number in range(100)]
        found = [candidate(name) for name in names]
        new = crawl.fleet.commit([(store, Batch(found=list(found))) for store in stores])
        batches = [Batch(pages=[(entry, page(entry)) for entry in each.new]) for each in new]  # type: ignore[union-attr]
        for store in stores[::2]:
            store._fetched._known = None  # type: ignore[union-attr]  # as after an answer that was lost
        done = crawl.fleet.commit(list(zip(stores, batches, strict=True)))
        assert not any(isinstance(each, Exception) for each in done)

    assert [store.counts().fetched for store in stores] == [400] * SHARDS
    assert [server.ask("LLEN", crawl.keys.of_shard(number, "u")) for number in range(SHARDS)] == [
        1
    ] * SHARDS


def test_calls_whose_answers_were_lost_meanwhile_fail(
    crawl: ValkeyCrawl, server: _CountingServer
) -> None:
    """The maker of the next one may go on without its exchange; the answers are not mixed up."""
    key = crawl.keys.shard(0)

    def calls() -> Iterator[Call]:
        yield "time", [key], {"filler": "x" * 20_000}  # on its way
        server._link._sock.close()
        with pytest.raises(StoreAway):
            server.ask("HGET", key, "id")
        yield "time", [key], {}

    with pytest.raises(StoreAway):
        server.calls(calls())

    assert server.ask("HGET", key, "id") == crawl.manifest.id.encode()


def test_a_script_and_questions_are_one_exchange(
    crawl: ValkeyCrawl, server: _CountingServer
) -> None:
    """Whether the server knows the script or not."""
    key = crawl.keys.shard(0)
    questions = [("HGET", key, "id"), ("HLEN", key)]
    server.ask("SCRIPT", "FLUSH")

    first = server.call_and_ask(("time", [key], {}), questions)
    before = server.exchanges
    second = server.call_and_ask(("time", [key], {}), questions)

    assert server.exchanges - before == 1
    assert first[0] <= second[0]
    assert first[1][0] == second[1][0] == crawl.manifest.id.encode()
