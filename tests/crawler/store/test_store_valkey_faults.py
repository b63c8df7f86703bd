"""Servers are killed, forget, are full, read-only, slow or wiped: nothing is lost or doubled."""

from __future__ import annotations

import threading
import time
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING

import pytest
from tests.crawler.store.store_crawl import PAGES, SHARDS, link, step
from tests.crawler.store.valkey_faults import FailingServer
from tests.crawler.store.valkey_server import LocalServer, new_location
from tests.harness.sites import free_port

from mannerly.crawler.control import RetryUrls
from mannerly.crawler.model import HostRecord, RobotsRecord
from mannerly.crawler.store.base import (
    Batch,
    Heartbeat,
    ShardOptions,
    StoreError,
    StoreFull,
    StoreInUse,
)
from mannerly.crawler.store.contract import START, candidate, enter, new_manifest, offer, page
from mannerly.crawler.store.fleet import CrawlGone, LeaseLost, StoreAway
from mannerly.crawler.store.fleet_times import LEASE_S
from mannerly.crawler.store.valkey import arrived
from mannerly.crawler.store.valkey.client import ValkeyServer
from mannerly.crawler.store.valkey.crawl import ValkeyCrawl
from mannerly.crawler.store.valkey.host_codec import packed_on_server, unpacked_on_server
from mannerly.crawler.store.valkey.leases import ValkeyFleet
from mannerly.crawler.store.valkey.packing import MAX_SEQ, Poisoned
from mannerly.database.address import parse
from mannerly.database.ages import SLACK, Ages, boot_id
from mannerly.database.ranges import out_of_range

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = pytest.mark.processes

OPTIONS = ShardOptions(1000)
AOF = ("--appendonly", "yes", "--appendfsync", "always", "--auto-aof-rewrite-percentage", "0")


@pytest.fixture(autouse=True)
def always_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have owners ask for links of others whenever they can, however slow this machine is."""
    monkeypatch.setattr(arrived, "POLL_S", 0.0)


@pytest.fixture
def opened():
    with ExitStack() as stack:
        yield stack


def create(stack: ExitStack, location: str, folder: Path, shards: int = 1) -> ValkeyCrawl:
    crawl = ValkeyCrawl.create(location, new_manifest(shards))
    stack.callback(crawl.close)
    crawl.keep_in(folder)
    return crawl


def reopen(stack: ExitStack, location: str, folder: Path) -> ValkeyCrawl:
    crawl = ValkeyCrawl.open(location)
    stack.callback(crawl.close)
    crawl.keep_in(folder)
    return crawl


def renew(crawl: ValkeyCrawl) -> list[int]:
    heartbeat = Heartbeat("w1", "machine", 4711, [0], 0, time.time())
    return crawl.fleet.renew(heartbeat, now=time.monotonic())


# ---------------------------------------------------------------------- lost answers


@pytest.mark.parametrize("place", range(0, 60, 1))
def test_a_crawl_is_complete_whichever_exchange_fails(
    place: int, opened: ExitStack, tmp_path: Path
) -> None:
    """Before or after the server has carried it out: each page is recorded once."""
    location = new_location()
    create(opened, location, tmp_path, SHARDS).close()
    server = FailingServer(parse(location))
    crawl = ValkeyCrawl(server, ValkeyCrawl.open(location).manifest)
    opened.callback(crawl.close)
    crawl.keep_in(tmp_path)
    stores = [crawl.claim(shard, ShardOptions(2)) for shard in range(SHARDS)]
    stores[0].commit(offer([link(0)]))
    server.arm(place)
    idle = 0
    while idle < 3:
        did = []
        for shard, store in enumerate(stores):
            try:
                did.append(step(store, shard))
            except StoreAway:
                did.append(True)
        idle = 0 if any(did) else idle + 1

    urls = [record.url for store in stores for _, record in store.pages()]
    assert sorted(urls) == sorted(link(number).url for number in range(PAGES))
    assert sum(store.counts().fetched for store in stores) == PAGES


@pytest.mark.parametrize("place", range(24))
def test_writes_of_several_shards_are_applied_once_whichever_exchange_fails(
    place: int, opened: ExitStack, tmp_path: Path
) -> None:
    """Offered again, every batch and every link is there once."""
    location = new_location()
    create(opened, location, tmp_path, SHARDS).close()
    server = FailingServer(parse(location))
    crawl = ValkeyCrawl(server, ValkeyCrawl.open(location).manifest)
    opened.callback(crawl.close)
    crawl.keep_in(tmp_path)
    stores = [crawl.claim(shard, OPTIONS) for shard in range(SHARDS)]
    new: list[list[str]] = [[] for _ in stores]
    server.arm(place)
    for number in range(4):
        batches = [
            Batch(
                found=[candidate(f"/own-{number}")],
                outgoing=[(1 - shard, candidate(f"/from-{shard}-{number}"))],
            )
            for shard in range(SHARDS)
        ]
        for call in (
            lambda made=batches: crawl.fleet.commit(list(zip(stores, made, strict=True))),
            lambda: crawl.fleet.pass_links(stores, 100),
        ):
            rounds = [call()]
            if any(isinstance(each, StoreAway) for each in rounds[0]):
                rounds.append(call())
            for results in rounds:
                for urls, result in zip(new, results, strict=True):
                    if not isinstance(result, StoreAway):
                        urls += [entry.url for entry in result.new]
            assert not any(isinstance(each, StoreAway) for each in rounds[-1])

    for store, urls, other in zip(stores, new, (1, 0), strict=True):
        wanted = [f"/own-{number}" for number in range(4)]
        wanted += [f"/from-{other}-{number}" for number in range(4)]
        assert sorted(urls) == sorted(candidate(path).url for path in wanted)
        assert store.counts().queued == 8


# ---------------------------------------------------------------------- restarts


def test_a_killed_server_goes_on_with_everything(opened: ExitStack, tmp_path: Path) -> None:
    """With its append-only file; owners stay owners, their windows stay true."""
    server = opened.enter_context(LocalServer(*AOF))
    crawl = create(opened, f"{server.url}#x", tmp_path)
    store = crawl.claim(0, OPTIONS)
    one, two = enter(store, candidate("/1"), candidate("/2"))
    server.kill()
    with pytest.raises(StoreAway):
        store.commit(Batch(pages=[(one, page(one))]))

    server.start()
    lost = renew(crawl)
    store.commit(Batch(pages=[(two, page(two))]))

    assert lost == []
    assert [record.url for _, record in store.pages()] == [one.url, two.url]
    assert store.counts().queued == 0


def test_no_lease_is_granted_for_one_lease_after_a_restart(
    opened: ExitStack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that was granted in the lost second may still be used; later claims do not wait."""
    monkeypatch.setattr(ValkeyFleet, "lease_s", 0.6)
    server = opened.enter_context(LocalServer(*AOF))
    crawl = create(opened, f"{server.url}#x", tmp_path, shards=2)
    at_once = crawl.claim(1, OPTIONS)
    at_once.close()
    server.kill()
    server.start()

    with pytest.raises(StoreInUse, match="restarted") as refused:
        crawl.claim(0, OPTIONS)
    assert 0.0 < refused.value.for_s <= 0.6
    assert crawl.fleet.unclaimed() == ([1], [], [0])  # shard 1 was not asked for yet
    time.sleep(0.7)
    crawl.claim(0, OPTIONS).close()
    crawl.claim(0, OPTIONS)


@pytest.mark.parametrize("shown_s", [-3600.0, -60.0, 60.0, 3600.0])
def test_a_lease_does_not_depend_on_the_clock_of_the_server(
    shown_s: float, opened: ExitStack, tmp_path: Path
) -> None:
    """By that clock it was renewed an hour ago, or in an hour: it ends when it does."""
    location, now = new_location(), [1000.0]
    owner = member(opened, location, tmp_path, now)
    owner.claim(0, OPTIONS)
    other = member(opened, location, tmp_path, now)
    other.fleet.unclaimed()
    shown_ms = int((time.time() + shown_s) * 1000)
    owner.server.change("HSET", owner.keys.shard(0), "beat_at", shown_ms)

    now[0] += LEASE_S - 0.1
    with pytest.raises(StoreInUse):
        other.claim(0, OPTIONS)
    before = other.fleet.unclaimed()
    now[0] += 0.2
    after = other.fleet.unclaimed()

    assert (before, after) == (([], [], []), ([], [0], []))
    assert other.claim(0, OPTIONS).number == 0


def test_a_beat_that_a_claimer_does_not_know_of_refuses_its_claim(
    opened: ExitStack, tmp_path: Path
) -> None:
    """The owner was stopped, and has renewed its lease since the claimer looked."""
    location, now = new_location(), [1000.0]
    owner = member(opened, location, tmp_path, now)
    owner.claim(0, OPTIONS)
    other = member(opened, location, tmp_path, now)
    other.fleet.unclaimed()
    now[0] += LEASE_S + 1.0
    lapsed = other.fleet.unclaimed()
    owner.fleet.renew(Heartbeat("w1", "machine", 1, [0], 0, 0.0), now=now[0])

    with pytest.raises(StoreInUse):
        other.claim(0, OPTIONS)

    assert lapsed == ([], [0], [])


def member(opened: ExitStack, location: str, folder: Path, now: list[float]) -> ValkeyCrawl:
    """Open a crawl, or create it, on a machine of its own whose monotonic clock is `now`."""
    machine = len(list(folder.glob("machine-*")))
    (folder / f"machine-{machine}").mkdir()
    server = ValkeyServer(
        parse(location), mono=lambda: now[0], ages=Ages(f"boot-{machine}", origin_s=500.0 * machine)
    )
    if machine:
        crawl = ValkeyCrawl.open(location, server)
    else:
        crawl = ValkeyCrawl.create(location, new_manifest(1), server)
    opened.callback(crawl.close)
    crawl.keep_in(folder)
    return crawl


def long_ago(crawl: ValkeyCrawl) -> str:
    """Return the stamp of a beat of this machine that was a minute ago."""
    return crawl.ages.stamp(time.monotonic() - 60.0)


def test_a_server_that_forgot_its_last_second_loses_no_url(
    opened: ExitStack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The owner notices, claims again and goes on; each page is recorded once."""
    monkeypatch.setattr(ValkeyFleet, "lease_s", 0.3)
    server = opened.enter_context(LocalServer(*AOF))
    location = f"{server.url}#x"
    crawl = create(opened, location, tmp_path / "logs", SHARDS)
    (tmp_path / "logs").mkdir()
    stores = [crawl.claim(shard, ShardOptions(2)) for shard in range(SHARDS)]
    stores[0].commit(offer([link(0)]))
    step(stores[0], 0)
    (log,) = (server.folder / "appendonlydir").glob("*.incr.aof")
    kept = log.stat().st_size
    for shard, store in enumerate(stores):
        step(store, shard)
    server.kill()
    with log.open("r+b") as file:
        file.truncate(kept)
    server.start()

    lost = 0
    idle, deadline = 0, time.monotonic() + 20
    while idle < 3 and time.monotonic() < deadline:
        did = []
        for shard, store in enumerate(stores):
            try:
                did.append(step(store, shard))
            except StoreAway:
                did.append(True)
            except LeaseLost:
                lost += 1
                did.append(True)
                store.close()
                while True:
                    try:
                        stores[shard] = crawl.claim(shard, ShardOptions(2))
                        break
                    except StoreInUse:
                        time.sleep(0.05)
        idle = 0 if any(did) else idle + 1

    urls = [record.url for store in stores for _, record in store.pages()]
    assert lost >= 1
    assert sorted(urls) == sorted(link(number).url for number in range(PAGES))
    assert sum(store.counts().fetched for store in stores) == PAGES


def test_an_owner_learns_from_a_renewal_that_the_server_has_forgotten_its_writes(
    opened: ExitStack, tmp_path: Path
) -> None:
    """Before it fetches what could not be committed; a write without an answer is none of them."""
    crawl = create(opened, new_location(), tmp_path, 2)
    true, wrong = (crawl.claim(shard, OPTIONS) for shard in range(2))
    enter(true, candidate("/1"))
    enter(wrong, candidate("/1"))
    crawl.server.change("HINCRBY", crawl.keys.shard(1), "batch", -1)

    lost = renew(crawl)

    assert lost == [1]
    assert wrong.is_lost
    assert not true.is_lost


@pytest.mark.parametrize("place", range(6))
def test_a_shard_that_is_lost_is_told_whichever_exchange_of_a_renewal_fails(
    place: int, opened: ExitStack, tmp_path: Path
) -> None:
    """Else its member would take it for its own for ever, and the crawl would not end."""
    location = new_location()
    create(opened, location, tmp_path).close()
    server = FailingServer(parse(location))
    crawl = ValkeyCrawl(server, ValkeyCrawl.open(location).manifest)
    opened.callback(crawl.close)
    crawl.keep_in(tmp_path)
    store = crawl.claim(0, OPTIONS)
    store.commit(Batch(hosts=[HostRecord("a.example", next_at=time.time() + 60)]))
    crawl.server.change("HSET", crawl.keys.shard(0), "token", "of another")
    crawl.server.change("DEL", crawl.keys.of_shard(0, "h"))
    server.run = "another"  # so that waits are told again
    server.arm(place)

    with pytest.raises(StoreAway):
        renew(crawl)
    lost = renew(crawl)

    assert lost == [0]


def test_a_lease_that_has_ended_is_not_prolonged_right_after_a_restart(
    opened: ExitStack, tmp_path: Path
) -> None:
    """The server may have forgotten another owner, which still sends; the shard is not lost."""
    now = [1000.0]
    crawl = member(opened, new_location(), tmp_path, now)
    store = crawl.claim(0, OPTIONS)
    heartbeat = Heartbeat("w1", "machine", 1, [0], 0, 0.0)
    was_sure_until = store.sure_until
    now[0] += 2 * LEASE_S
    crawl.server.change("HSET", crawl.keys.shard(0), "run", "before")

    lost_at_once, withheld_until = (
        crawl.fleet.renew(heartbeat, now=now[0]),
        crawl.fleet.withheld_until,
    )
    is_silent = store.sure_until == was_sure_until
    now[0] += LEASE_S
    lost_later = crawl.fleet.renew(heartbeat, now=now[0])

    assert (lost_at_once, is_silent) == ([], True)
    assert withheld_until == now[0]
    assert (lost_later, crawl.fleet.withheld_until) == ([], None)
    assert store.sure_until > was_sure_until


# ---------------------------------------------------------------------- links between shards


def test_an_owner_that_knows_links_which_the_server_forgot_lets_go(
    opened: ExitStack, tmp_path: Path
) -> None:
    """Their numbers are given to other URLs: it would take those out of the queue."""
    location = new_location()
    crawl = create(opened, location, tmp_path, 2)
    sender, owner = (crawl.claim(shard, OPTIONS) for shard in range(2))
    enter(sender, candidate("/page"))
    owner.pass_links(10)
    with LocalClient(location) as client:
        forget = _forgetting(client, crawl)
        sender.commit(Batch(outgoing=[(1, candidate("/forgotten", "b.example"))]))
        (forgotten,) = owner.pass_links(10).new
        forget()
        client.hdel(crawl.keys.shard(0), "token")
    following = crawl.claim(0, OPTIONS)
    following.commit(Batch(outgoing=[(1, candidate("/other", "b.example"))]))

    with pytest.raises(LeaseLost):
        owner.commit(Batch(pages=[(forgotten, page(forgotten))]))
    with LocalClient(location) as client:
        client.hdel(crawl.keys.shard(1), "token")
    owner.close()
    (queued,) = crawl.claim(1, OPTIONS).queued("b.example", after=START, limit=9)

    assert queued.seq == forgotten.seq
    assert queued.url == candidate("/other", "b.example").url


def test_a_lost_owner_adds_no_link(opened: ExitStack, tmp_path: Path) -> None:
    """The shard that the link belongs to is not its own, and is fenced all the same."""
    location = new_location()
    one, two = create(opened, location, tmp_path, 2), reopen(opened, location, tmp_path)
    stale, owner = one.claim(0, OPTIONS), two.claim(1, OPTIONS)
    two.server.change("HSET", two.keys.shard(0), "beat", long_ago(two))
    two.claim(0, OPTIONS)

    with pytest.raises(LeaseLost):
        stale.commit(Batch(outgoing=[(1, candidate("/stale", "b.example"))]))

    assert owner.pass_links(10).new == []
    assert owner.counts().queued == 0


def test_links_of_a_shard_without_an_owner_are_in_its_queue(
    opened: ExitStack, tmp_path: Path
) -> None:
    """The next owner reads them there, and is not told of them again."""
    crawl = create(opened, new_location(), tmp_path, 2)
    crawl.claim(0, OPTIONS).commit(Batch(outgoing=[(1, candidate("/x", "b.example"))]))

    owner = crawl.claim(1, OPTIONS)

    assert [host for host, _ in owner.queued_hosts()] == ["b.example"]
    assert len(owner.queued("b.example", after=START, limit=9)) == 1
    assert owner.pass_links(10).new == []


def test_links_that_come_faster_than_their_owner_takes_them_wait(
    opened: ExitStack, tmp_path: Path
) -> None:
    """In the waiting room of their shard: an answer has 4,096 of them at most.

    Who added them is told, as long as the owner has not taken them.
    """
    crawl = create(opened, new_location(), tmp_path, 2)
    options = ShardOptions(100_000)
    sender, owner = (crawl.claim(shard, options) for shard in range(2))
    lagging = []
    for part in range(5):
        links = [(1, candidate(f"/{part}/{n}", "b.example")) for n in range(1000)]
        lagging.append(sender.commit(Batch(outgoing=links)).lagging)

    told = owner.pass_links(10_000).new
    let_in = owner.admit_waiting(10_000)
    lagging.append(sender.commit(Batch(outgoing=[(1, candidate("/", "b.example"))])).lagging)

    assert lagging == [0, 0, 0, 0, 1, 0]
    assert (len(told), len(let_in)) == (4096, 904)
    assert [entry.seq for entry in told + let_in] == list(range(1, 5001))
    assert owner.counts().queued == 5000


def test_a_full_queue_of_a_shard_is_no_reason_to_slow_down(
    opened: ExitStack, tmp_path: Path
) -> None:
    """Its own limit is the operator's: what is beyond it waits, whoever owns it."""
    crawl = create(opened, new_location(), tmp_path, 2)
    options = ShardOptions(10)
    sender, _ = (crawl.claim(shard, options) for shard in range(2))

    committed = sender.commit(
        Batch(outgoing=[(1, candidate(f"/{n}", "b.example")) for n in range(50)])
    )

    assert committed.lagging == 0


def test_links_of_a_crawl_that_is_being_wiped_make_nothing_again(
    opened: ExitStack, tmp_path: Path
) -> None:
    """The shard of the sender is still there, the other one is not."""
    crawl = create(opened, new_location(), tmp_path, 2)
    sender = crawl.claim(0, OPTIONS)
    (entry,) = enter(sender, candidate())
    crawl.wipe_shards([1])

    with pytest.raises(CrawlGone):
        sender.commit(
            Batch(pages=[(entry, page(entry))], outgoing=[(1, candidate("/x", "b.example"))])
        )

    with crawl.read(0) as reader:
        assert reader.counts().queued == 1
    assert crawl.server.ask("EXISTS", crawl.keys.shard(1)) == 0


def _forgetting(client, crawl: ValkeyCrawl) -> Callable[[], None]:
    """Return a function that makes all keys of a crawl what they are now."""
    pattern = crawl.keys.meta.removesuffix("meta") + "*"
    kept = {key: client.dump(key) for key in client.keys(pattern)}

    def forget() -> None:
        for key in client.keys(pattern):
            client.delete(key)
        for key, data in kept.items():
            client.restore(key, 0, data)

    return forget


def test_an_emptied_server_is_not_a_finished_crawl(opened: ExitStack, tmp_path: Path) -> None:
    """After FLUSHALL every call says that the crawl is gone, and nothing is made again."""
    server = opened.enter_context(LocalServer())
    crawl = create(opened, f"{server.url}#x", tmp_path)
    store = crawl.claim(0, OPTIONS)
    enter(store, candidate())
    with server.client() as client:
        client.flushall()

        for call in (
            lambda: enter(store, candidate("/new")),
            lambda: renew(crawl),
            crawl.fleet.finished,
            crawl.fleet.unclaimed,
            lambda: crawl.fleet.take_pages(1),
            lambda: crawl.claim(0, OPTIONS),
            lambda: crawl.acknowledge(0, 1),
        ):
            with pytest.raises((CrawlGone, LeaseLost)):
                call()
        assert client.dbsize() == 0


# ---------------------------------------------------------------------- full, read-only, slow


def test_a_full_server_pauses_the_crawl_and_keeps_its_leases(
    opened: ExitStack, tmp_path: Path
) -> None:
    """A commit is refused whole; renewals go through; with more memory the same batch is taken."""
    server = opened.enter_context(LocalServer("--maxmemory-policy", "noeviction"))
    crawl = create(opened, f"{server.url}#x", tmp_path)
    store = crawl.claim(0, OPTIONS)
    (entry,) = enter(store, candidate())
    batch = Batch(pages=[(entry, page(entry))], found=[candidate("/2")])
    with server.client() as client:
        client.config_set("maxmemory", 1_000_000)

        with pytest.raises(StoreFull):
            store.commit(batch)
        with pytest.raises(StoreFull):
            store.commit(batch)
        with crawl.read(0) as reader:
            untouched = reader.counts()
        lost = renew(crawl)
        client.config_set("maxmemory", 0)
    batch.found.append(candidate("/3"))
    committed = store.commit(batch)

    assert (untouched.queued, untouched.fetched, lost) == (1, 0, [])
    assert [new.url[-2:] for new in committed.new] == ["/2", "/3"]
    assert len(list(store.pages())) == 1


def test_a_replica_is_a_server_to_wait_for(opened: ExitStack, tmp_path: Path) -> None:
    """After a failover the old primary refuses to write: nothing is known to be lost."""
    server = opened.enter_context(LocalServer())
    crawl = create(opened, f"{server.url}#x", tmp_path)
    store = crawl.claim(0, OPTIONS)
    with server.client() as client:
        client.replicaof("127.0.0.1", free_port())

        with pytest.raises(StoreAway):
            enter(store, candidate())
        client.replicaof("NO", "ONE")

    assert store.commit(Batch()).new[0].url == candidate().url


def test_scripts_are_loaded_again(opened: ExitStack, tmp_path: Path) -> None:
    """A server that was restarted or whose scripts were flushed has none."""
    location = new_location()
    store = create(opened, location, tmp_path).claim(0, OPTIONS)
    with LocalClient(location) as client:
        client.script_flush()

    assert enter(store, candidate())


def test_a_server_that_hangs_is_away_within_the_timeout(opened: ExitStack, tmp_path: Path) -> None:
    """The loop of the crawl is not held up for longer; the batch is not applied twice."""
    server = opened.enter_context(LocalServer())
    create(opened, f"{server.url}#x", tmp_path).close()
    impatient = ValkeyServer(parse(f"{server.url}#x"), timeout_s=0.3)
    crawl = ValkeyCrawl(impatient, ValkeyCrawl.open(f"{server.url}#x").manifest)
    opened.callback(crawl.close)
    crawl.keep_in(tmp_path)
    store = crawl.claim(0, OPTIONS)
    with server.client() as client:
        client.client_pause(1200, all=True)
        began = time.monotonic()

        with pytest.raises(StoreAway):
            enter(store, candidate())
        took_s = time.monotonic() - began
        time.sleep(1.5)
    committed = store.commit(Batch())

    assert took_s < 1.5
    assert [entry.url for entry in committed.new] == [candidate().url]
    assert store.counts().queued == 1


def test_a_busy_script_makes_the_server_away(opened: ExitStack, tmp_path: Path) -> None:
    """Another client's endless script is no reason to give up."""
    server = opened.enter_context(LocalServer("--busy-reply-threshold", "50"))
    store = create(opened, f"{server.url}#x", tmp_path).claim(0, OPTIONS)
    busy = server.client()
    thread = threading.Thread(target=_loop, args=(busy,))
    thread.start()
    time.sleep(0.3)
    with server.client() as client:
        try:
            with pytest.raises(StoreAway):
                enter(store, candidate())
        finally:
            client.script_kill()
            thread.join()
    busy.close()

    assert store.commit(Batch()).new


def _loop(client) -> None:
    with pytest.raises(Exception, match="killed"):
        client.eval("while true do end", 0)


# ---------------------------------------------------------------------- poison


@pytest.mark.parametrize(
    ("suffix", "poison", "use"),
    [
        ("l:1:a.example", b"\x00\x00\x00\x01\x21", "queued"),
        ("l:1:a.example", b"\x00\x00\x00\x01\x7f{]", "queued"),
        ("h", b"\xff", "host"),
        ("i", b"\x00\x00\x00\x01a.example", "pass_links"),
        ("i", b"\x00\x00\x00\x01b\x00many\x00!", "pass_links"),
        ("n", b"many", "queued_hosts"),
    ],
)
def test_poisoned_values_are_refused_with_their_key(
    suffix: str, poison: bytes, use: str, opened: ExitStack, tmp_path: Path
) -> None:
    """The crawl stops with an explanation instead of acting on them."""
    location = new_location()
    crawl = create(opened, location, tmp_path)
    store = crawl.claim(0, OPTIONS)
    enter(store, candidate())
    key = crawl.keys.of_shard(0, suffix)
    with LocalClient(location) as client:
        if suffix[0] in "li":
            client.delete(key)
            client.rpush(key, poison)
            client.hincrby(crawl.keys.arrivals, "0", 1)
            store.arrived.ask_soon()
        else:
            client.hset(key, "https://a.example" if suffix == "r" else "a.example", poison)
    calls = {
        "queued": lambda: store.queued("a.example", after=START, limit=9),
        "host": lambda: store.host("a.example"),
        "robots": lambda: store.robots("https://a.example"),
        "pass_links": lambda: store.pass_links(10),
        "queued_hosts": lambda: list(store.queued_hosts()),
    }

    with pytest.raises(Poisoned) as caught:
        calls[use]()

    assert key in str(caught.value)


def test_an_order_that_another_owner_has_carried_out_ends_the_lease(
    opened: ExitStack, tmp_path: Path
) -> None:
    """A member that was stopped for long finds it gone: that is no damage."""
    location = new_location()
    crawl = create(opened, location, tmp_path)
    store = crawl.claim(0, OPTIONS)
    enter(store, candidate())
    store.commit(Batch(retries=[RetryUrls()]))
    with LocalClient(location) as client:
        client.delete(crawl.keys.of_shard(0, "y"))

    with pytest.raises(LeaseLost):
        store.bring_back(10)


ODD = ["null", "-1", "1e300", "-1e300", "NaN", "Infinity", "1e400", '"x"', "[]", "true", "0.5"]


@pytest.mark.parametrize("odd", ODD)
def test_odd_values_of_a_host_are_mended_and_said(
    odd: str, opened: ExitStack, tmp_path: Path
) -> None:
    """In every field of its record at once; a record of a robots.txt is not used."""
    location = new_location()
    crawl = create(opened, location, tmp_path)
    store = crawl.claim(0, OPTIONS)
    enter(store, candidate())
    fields = ",".join([odd] * (len(HostRecord._fields) - 1))
    with LocalClient(location) as client:
        client.hset(crawl.keys.of_shard(0, "h"), "a.example", f'["a.example",{fields}]')
        record = f'["https://a.example",{odd},{odd},{odd},{odd},{odd}]'
        client.hset(crawl.keys.of_shard(0, "r"), "https://a.example", record)

    host = store.host("a.example")
    robots = store.robots("https://a.example")
    said = store.take_mended()
    store.commit(Batch(hosts=[HostRecord("a.example", updated_at=1.0)]))

    assert host is not None
    assert out_of_range(host) is None
    assert robots is None
    assert {words.split(": ")[1] for words in said} == {"a.example", "the record of a robots.txt"}


@pytest.mark.parametrize("way", ["own", "link"])
def test_a_shard_without_numbers_for_more_urls_ends_the_crawl(
    way: str, opened: ExitStack, tmp_path: Path
) -> None:
    """A number that is given again would be that of another URL; nothing is changed."""
    crawl = create(opened, new_location(), tmp_path, 2)
    crawl.server.change("HSET", crawl.keys.shard(0), "seq", MAX_SEQ - 1)
    store, sender = (crawl.claim(shard, OPTIONS) for shard in range(2))
    (last,) = store.commit(offer([candidate("/last")])).new
    (page_of_sender,) = enter(sender, candidate("/page"))
    more = Batch(pages=[(page_of_sender, page(page_of_sender))], outgoing=[(0, candidate("/more"))])
    commit = partial(sender.commit, more)
    if way == "own":
        commit = partial(store.commit, offer([candidate("/more")]))
    with pytest.raises(StoreError, match="--shards") as refused:
        commit()

    assert last.seq == MAX_SEQ
    assert refused.value.exit_code == 4
    for shard in range(2):
        with crawl.read(shard) as reader:
            assert reader.counts().queued == 1
    assert crawl.server.ask("HGET", crawl.keys.shard(0), "seq") == b"%d" % MAX_SEQ


@pytest.mark.parametrize(("schema", "age"), [(99, "newer"), (0, "older")])
def test_another_schema_is_refused(
    schema: int, age: str, opened: ExitStack, tmp_path: Path
) -> None:
    """It says which release to use, whatever else is in the manifest, and changes nothing."""
    location = new_location()
    crawl = create(opened, location, tmp_path)
    text = b'{"schema":%d,"shards":"as many as you like"}' % schema
    with LocalClient(location) as client:
        client.set(crawl.keys.manifest, text)

        for use in (ValkeyCrawl.open, ValkeyCrawl.wipe):
            with pytest.raises(StoreError, match=f"{age} release .*schema {schema}") as caught:
                use(location)

        assert caught.value.exit_code == 4
        assert client.get(crawl.keys.manifest) == text


def test_a_machine_whose_wall_clock_is_wrong_sees_the_same_wait(
    opened: ExitStack, tmp_path: Path
) -> None:
    """Its instants are kept on the server's clock, its age on the clock of the shard."""
    location = new_location()
    crawl = create(opened, location, tmp_path)
    store = crawl.claim(0, OPTIONS)
    now, mono = time.time(), time.monotonic()
    record = HostRecord(
        "a.example", next_at=now + 600, updated_at=now, updated_mono=mono, boot="another machine"
    )
    store.commit(Batch(hosts=[record]))
    store.close()
    wrong_s = 7200.0
    other = ValkeyCrawl(
        ValkeyServer(parse(location), wall=lambda: time.time() + wrong_s),
        crawl.manifest,
    )
    opened.callback(other.close)
    other.keep_in(tmp_path)

    known = other.claim(0, OPTIONS).host("a.example")

    assert known is not None
    left_s = known.next_at - (time.time() + wrong_s)
    assert left_s == pytest.approx(600, abs=5)
    assert known.boot == boot_id()
    assert known.updated_mono == pytest.approx(mono, abs=5)


@pytest.mark.parametrize("set_s", [-3600.0, 60.0, 3600.0])
@pytest.mark.parametrize("is_killed", [False, True])
def test_a_wait_does_not_depend_on_the_clock_of_the_server(
    set_s: float, is_killed: bool, opened: ExitStack, tmp_path: Path
) -> None:
    """That clock is set between two owners: what is left is what their own clocks have counted."""
    location, now, wall = new_location(), [1000.0], time.time()
    owner = member(opened, location, tmp_path, now)
    store = owner.claim(0, OPTIONS)
    wait = HostRecord("a.example", updated_at=wall, updated_mono=now[0], boot="b")
    wait = wait._replace(next_at=wall + 600.0)
    store.commit(Batch(hosts=[wait]))
    other = member(opened, location, tmp_path, now)
    other.fleet.unclaimed()
    now[0] += 100.0
    if is_killed:
        store.lose()
    store.close()
    key = owner.keys.of_shard(0, "h")
    kept = unpacked_on_server(other.server.ask("HGET", key, "a.example"), key)
    shifted = kept._replace(updated_at=kept.updated_at - set_s, next_at=kept.next_at - set_s)
    other.server.change("HSET", key, "a.example", packed_on_server(shifted))

    known = other.claim(0, OPTIONS).host("a.example")

    assert known is not None
    left_s = known.next_at - known.updated_at - (now[0] - known.updated_mono)
    assert 500.0 <= left_s <= 500.0 + 2 * SLACK * 100.0


def test_a_robots_txt_from_the_future_is_new(opened: ExitStack, tmp_path: Path) -> None:
    """The server's clock was set back an hour: it expires in its own time, not in an hour more."""
    crawl, wall = create(opened, new_location(), tmp_path), time.time()
    store = crawl.claim(0, OPTIONS)
    record = RobotsRecord("https://a.example", 503, b"", wall + 3600, wall + 3660)
    store.commit(Batch(robots={"https://a.example": record}))

    known = store.robots("https://a.example")

    assert known is not None
    assert known.expires_at - wall == pytest.approx(60.0, abs=10.0)


def test_time_that_no_member_has_seen_pass_does_not_shorten_a_wait(
    opened: ExitStack, tmp_path: Path
) -> None:
    """All members are gone for an hour, and another machine goes on: the wait is served."""
    location, now, wall = new_location(), [1000.0], time.time()
    owner = member(opened, location, tmp_path, now)
    store = owner.claim(0, OPTIONS)
    wait = HostRecord("a.example", updated_at=wall, updated_mono=now[0], boot="b")
    wait = wait._replace(next_at=wall + 600.0)
    store.commit(Batch(hosts=[wait]))
    now[0] += 100.0
    store.close()
    now[0] += 3600.0

    other = member(opened, location, tmp_path, now)
    known = other.claim(0, OPTIONS).host("a.example")

    assert known is not None
    left_s = known.next_at - known.updated_at - (now[0] - known.updated_mono)
    assert left_s == pytest.approx(500.0, abs=0.01)


class LocalClient:
    """A plain client, to look at a location behind the store's back."""

    def __init__(self, location: str) -> None:
        import redis

        self._client = redis.Redis.from_url(location.partition("#")[0])

    def __enter__(self):
        return self._client

    def __exit__(self, *_: object) -> None:
        self._client.close()


def test_figures_tell_what_happened(
    opened: ExitStack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Leases, takeovers, refused writes and memory are plain numbers for metrics."""
    monkeypatch.setattr(ValkeyFleet, "lease_s", 0.2)
    location = new_location()
    one = create(opened, location, tmp_path)
    stale = one.claim(0, OPTIONS)
    enter(stale, candidate())
    time.sleep(0.3)
    two = reopen(opened, location, tmp_path)
    two.claim(0, OPTIONS)
    with pytest.raises(LeaseLost):
        enter(stale, candidate("/late"))
    renew(one)

    loser, winner = one.fleet.figures(), two.fleet.figures()

    assert (loser.leases, loser.refused, loser.commits) == (0, 1, 2)
    assert (winner.leases, winner.takeovers) == (1, 1)
    assert winner.memory_bytes > 0
