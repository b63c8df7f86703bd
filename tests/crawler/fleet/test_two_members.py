"""Members of one crawl in one process, on the twin in memory, with real servers and sockets."""

from __future__ import annotations

import threading
import time
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.crawler.fleet.fleet_world import come_first, require_gaps
from tests.harness.waiting import eventually
from virtual.store import memory_fleet
from virtual.store.memory_crawl import crawls
from virtual.store.memory_fleet import SharedMemoryCrawl

from mannerly.crawler.control import Stop
from mannerly.crawler.runtime import fleet_member
from mannerly.crawler.runtime.beginning import new_manifest
from mannerly.crawler.runtime.coordinator import Membership
from mannerly.crawler.runtime.ending import Ending, StopSwitch
from mannerly.crawler.runtime.run import Run, run
from mannerly.crawler.runtime.worker import Worker
from mannerly.crawler.settings import CrawlSettings
from mannerly.crawler.store import create_crawl, open_crawl, wipe
from mannerly.crawler.store.base import Heartbeat, ShardOptions, StoreInUse
from mannerly.crawler.store.fleet import CrawlGone, StoreAway
from mannerly.crawler.web.choices import ScopeMode
from mannerly.demo import DemoWeb, plain_sites
from mannerly.politeness import Settings

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.processes

SHARDS = 12
_names = count()


def settings(**options: Any) -> CrawlSettings:
    """Any host, 50 requests/s to each."""
    pace = Settings(strategy="fixed", delay_s=0.02, max_rate="unlimited")
    usual: dict[str, Any] = {
        "politeness": pace,
        "concurrency": 32,
        "seeding": "none",
        "scope": ScopeMode.ANY,
        "timeout_s": 5.0,
        "allow_net": ("127.0.0.0/8",),
    }
    return CrawlSettings(**usual | options)


class Member(threading.Thread):
    """One run of a shared crawl, in a thread."""

    def __init__(self, location: str, chosen: CrawlSettings, patience_s: float = 300.0) -> None:
        super().__init__(daemon=True)
        store = open_crawl(location)
        assert isinstance(store, SharedMemoryCrawl)
        self.store = store
        self.ending: Ending | None = None
        self.error: Exception | None = None
        self.pages = self.lost = 0
        self.switch = StopSwitch()
        self._run = Run(
            store=store,
            settings=chosen,
            is_resumed=True,
            interrupts=self.switch,
            membership=Membership(Path(), store_patience_s=patience_s),
            last_order=len(store.orders()),
        )
        self.start()

    def run(self) -> None:
        try:
            self.ending, stats = run(self._run)
            self.pages, self.lost = stats.pages, stats.shards_lost
        except Exception as error:  # noqa: BLE001 - the test looks at it
            self.error = error
        finally:
            self.store.close()

    def end(self) -> Ending | None:
        self.join(60.0)
        assert not self.is_alive()
        return self.ending


@pytest.fixture(scope="module")
def web() -> Iterator[DemoWeb]:
    with DemoWeb(plain_sites(8, pages=15, neighbours=2)) as web:
        yield web


@pytest.fixture
def crawl(web: DemoWeb) -> Iterator[str]:
    location = f"memory+shared:{next(_names)}"
    seeds = [f"http://{host}/" for host in web.hosts]
    create_crawl(location, new_manifest(settings(), seeds, shards=SHARDS)).close()
    yield location
    with suppress(StoreInUse):
        wipe(location)


def paced(delay_s: float, **options: Any) -> CrawlSettings:
    """The same with another pace."""
    pace = Settings(strategy="fixed", delay_s=delay_s, max_rate="unlimited")
    return settings(politeness=pace, **options)


def shares(location: str) -> list[int]:
    """Return how many shards each member has."""
    store = open_crawl(location)
    assert isinstance(store, SharedMemoryCrawl)
    return [len(card.shards) for card in store.workers()]


def records(location: str) -> list[str]:
    store = open_crawl(location)
    found = []
    for shard in range(SHARDS):
        with store.read(shard) as reader:
            found += [record.url for _, record in reader.pages()]
    return found


def test_two_members_finish_one_crawl(crawl: str) -> None:
    """Every page is recorded once, both members take part, and both end by themselves."""
    calm = paced(0.25)
    members = [Member(crawl, calm) for _ in range(2)]

    assert [member.end() for member in members] == [Ending.FINISHED, Ending.FINISHED]
    assert all(member.pages for member in members)
    found = records(crawl)
    assert len(found) == len(set(found)) == sum(member.pages for member in members)


def test_a_member_that_joins_a_finished_crawl_sends_nothing(crawl: str, web: DemoWeb) -> None:
    """It ends at once, with the ending of a finished crawl."""
    assert Member(crawl, settings()).end() is Ending.FINISHED
    before = len(web.log())

    late = Member(crawl, settings())

    assert late.end() is Ending.FINISHED
    assert len(web.log()) == before


def test_a_member_without_shards_says_what_it_waits_for(crawl: str) -> None:
    """On its screen, and on the heartbeat that `status` shows."""
    other, store = open_crawl(crawl), open_crawl(crawl)
    assert other.fleet is not None
    assert store.fleet is not None
    other.fleet.join(Path())
    claimed = [other.claim(shard, ShardOptions(100)) for shard in range(SHARDS)]
    other.renew(Heartbeat("member-1", "machine", 1, list(range(SHARDS)), 0, time.time()))
    store.fleet.join(Path())
    worker = Worker(
        store,
        settings(memory="none"),
        fleet_member.FleetMember(store.fleet, patience_s=1.0),
        is_resumed=True,
    )

    worker.poll(time.monotonic())
    stats, heartbeats = worker.stats(), other.workers()
    worker.close()

    assert len(claimed) == SHARDS
    assert stats.now.idle_reason == "waiting for shards: all are with 1 other worker"
    assert stats.is_left_to_others
    assert [heartbeat.waits_for for heartbeat in heartbeats] == [None, "waiting for shards"]


def test_a_stop_ends_all_members(crawl: str) -> None:
    """As SIGTERM would."""
    slow = paced(2.0)
    members = [Member(crawl, slow) for _ in range(2)]
    time.sleep(1.0)

    open_crawl(crawl).order(Stop())

    assert [member.end() for member in members] == [Ending.TERMINATED, Ending.TERMINATED]
    assert open_crawl(crawl).fleet.unclaimed().released == list(range(SHARDS))  # type: ignore[union-attr]


def test_a_crawl_that_is_gone_ends_its_members(crawl: str) -> None:
    """With an error that says so, never as finished."""
    slow = paced(2.0)
    member = Member(crawl, slow)
    time.sleep(1.0)

    del crawls[crawl]

    assert member.end() is None
    assert isinstance(member.error, CrawlGone)


def test_patience_with_a_store_that_is_away_has_an_end(crawl: str, web: DemoWeb) -> None:
    """Nothing is sent meanwhile; then the run ends with the reason."""
    member = Member(crawl, settings(), patience_s=1.0)
    time.sleep(0.5)
    member.store.is_away = True

    assert member.end() is None
    assert isinstance(member.error, StoreAway)
    assert "--store-patience" in str(member.error)


def test_pages_of_a_limit_are_shared(web: DemoWeb) -> None:
    """All members together fetch as many pages as --max-urls says."""
    location = f"memory+shared:{next(_names)}"
    limited = settings(max_urls=50)
    seeds = [f"http://{host}/" for host in web.hosts]
    create_crawl(location, new_manifest(limited, seeds, shards=SHARDS)).close()

    members = [Member(location, limited) for _ in range(2)]

    assert {member.end() for member in members} == {Ending.MAX_URLS}
    assert len(records(location)) == 50


def test_shards_of_a_member_that_is_cut_off_are_taken_over(
    monkeypatch: pytest.MonkeyPatch, crawl: str, web: DemoWeb
) -> None:
    """It falls silent before others may send, is refused when it comes back, and goes on."""
    monkeypatch.setattr(memory_fleet, "LEASE_S", 2.0)
    monkeypatch.setattr(memory_fleet, "MARGIN_S", 0.7)
    monkeypatch.setattr(fleet_member, "RENEW_S", 0.4)
    before, is_punctual = len(web.log()), come_first(web.pid)
    calm = paced(0.3)
    cut_off, other = (Member(crawl, calm) for _ in range(2))
    eventually(lambda: min(shares(crawl), default=0) == SHARDS // 2)
    cut_off.store.is_away = True
    eventually(lambda: shares(crawl) == [SHARDS])
    cut_off.store.is_away = False

    assert [cut_off.end(), other.end()] == [Ending.FINISHED, Ending.FINISHED]
    assert cut_off.lost > 0
    found = records(crawl)
    assert len(found) == len(set(found))
    require_gaps(web.log()[before:], 0.3, is_punctual=is_punctual)
