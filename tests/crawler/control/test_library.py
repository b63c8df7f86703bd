"""The same orders from a program: to its own crawl in any store, and to one of another process."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest
from tests.crawler.control.steering import DIR, Shell, keeps, until_requests, window
from tests.harness.waiting import eventually

import mannerly
from mannerly.crawler.control import AddSeeds
from mannerly.crawler.store import wipe
from mannerly.demo import DemoWeb, Feature, Site, plain_sites

if TYPE_CHECKING:
    from pathlib import Path

    from tests.crawler.control.steering import Said

    from mannerly.crawler.stored import StoredCrawl
    from mannerly.demo import Record

pytestmark = pytest.mark.processes


def order_in_a_thread(crawl: StoredCrawl, word: str) -> float:
    """Give an order from another thread than the one that made the crawl; return when."""
    thread = threading.Thread(target=getattr(crawl, word))
    thread.start()
    thread.join()
    return time.monotonic()


@dataclass
class Steered:
    """What the servers saw, by host: two seeds and one that was added."""

    hosts: tuple[str, ...]
    while_paused: dict[str, list[Record]]
    state: str
    steered: dict[str, list[Record]]
    afterwards: dict[str, list[Record]]
    ending: str
    seen: set[str]
    canary: str


def steer(location: Path | str) -> Steered:
    sites = [
        *plain_sites(2, pages=200),
        Site(name="added", pages=200, disallow=(), features=frozenset({Feature.INTERNAL})),
    ]
    with DemoWeb(sites) as web:
        first, second, added = web.hosts
        with mannerly.Crawl(
            web.seeds()[:2],
            data_dir=location,
            scope="any",
            strategy="fixed",
            delay=0.05,
            max_rate="unlimited",
            seeding_strategy="none",
        ) as crawl:
            crawl.start()
            until_requests(web, 4)
            while_paused = window(web, order_in_a_thread(crawl, "pause"), 0.4)
            state = crawl.status().state
            crawl.set(max_rate=4)
            crawl.host(second).set(delay_s=0.1, max_rate="unlimited")
            crawl.add(f"http://{added}/")
            steered = window(web, order_in_a_thread(crawl, "unpause"), 1.2)
            crawl.host(first).pause()
            afterwards = window(web, time.monotonic(), 0.4)
            crawl.stop()
            ending = crawl.wait(20).ending.value
        seen = {record.host for record in web.log()}
        return Steered(
            web.hosts, while_paused, state, steered, afterwards, ending, seen, web.canary
        )


@dataclass
class Other:
    """The same of a crawl in another process."""

    while_paused: dict[str, list[Record]]
    afterwards: dict[str, list[Record]]
    ended: Said


def steer_other(directory: Path) -> Other:
    shell = Shell(directory)
    options = ("--strategy", "fixed", "--delay", "0.05", "--seeding-strategy", "none")
    with DemoWeb(plain_sites(2, pages=200)) as web:
        words = ("crawl", *web.seeds(), "--data-dir", DIR, *options, "--processes", 2)
        with shell.start(*words) as run:
            until_requests(web, 4)
            with mannerly.open(shell.crawl_dir) as crawl:
                crawl.pause()
                while_paused = window(web, time.monotonic(), 0.4)
                crawl.host(web.hosts[0]).pause()
                crawl.unpause()
                afterwards = window(web, time.monotonic(), 0.4)
                crawl.stop()
            return Other(while_paused, afterwards, run.end())


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Steered], Other]:
    """Run crawls in a directory, in memory and in another process, side by side."""
    folder = tmp_path_factory.mktemp("library")
    places = {"directory": folder / "crawl", "memory": "memory:steered"}
    with ThreadPoolExecutor(3) as pool:
        mine = {kind: pool.submit(steer, place) for kind, place in places.items()}
        other = pool.submit(steer_other, folder / "other")
        found = {kind: future.result() for kind, future in mine.items()}, other.result()
    wipe(places["memory"])
    return found


@pytest.fixture
def stories(told: tuple[dict[str, Steered], Other]) -> dict[str, Steered]:
    return told[0]


@pytest.fixture
def other(told: tuple[dict[str, Steered], Other]) -> Other:
    return told[1]


@pytest.mark.parametrize("kind", ["directory", "memory"])
def test_program_steers_its_own_crawl(kind: str, stories: dict[str, Steered]) -> None:
    """Pause, a host's pace, an option, a seed, unpause, stop; the guard lets in the seeds only."""
    story = stories[kind]
    first, second, added = story.hosts
    assert not any(story.while_paused.values())
    assert story.state == "paused"
    assert keeps(story.steered[first], 0.25)
    assert keeps(story.steered[second], 0.1)
    assert len(story.steered[second]) > 8
    assert story.steered[added]
    assert not story.afterwards[first]
    assert story.afterwards[second]
    assert story.ending == "stopped"
    assert story.canary not in story.seen


def test_program_steers_a_crawl_of_another_process(other: Other) -> None:
    """`mannerly.open` has the same words."""
    assert not any(other.while_paused.values())
    assert [bool(seen) for seen in other.afterwards.values()] == [False, True]
    assert other.ended.code == 143


def test_seed_of_a_program_is_added_once(tmp_path: Path) -> None:
    """Running the same program again does not add it again."""
    with DemoWeb(plain_sites(2, pages=3)) as web:
        first, second = web.seeds()
        for seeds in (first, [first, second], [first, second]):
            with mannerly.Crawl(
                seeds,
                data_dir=tmp_path / "crawl",
                strategy="fixed",
                delay=0.01,
                seeding_strategy="none",
            ) as crawl:
                crawl.start().wait(20)
        with mannerly.open(tmp_path / "crawl") as stored:
            orders = [order for _, order in stored.store.orders()]
            pages = len(list(stored.pages()))

    assert orders == [AddSeeds((second,))]
    assert pages == 6


def test_program_may_look_at_its_crawl_from_any_thread(tmp_path: Path) -> None:
    """While it runs: the store of the running crawl is not used by two threads at once."""
    with (
        DemoWeb(plain_sites(2, pages=15)) as web,
        mannerly.Crawl(
            web.seeds(),
            data_dir=tmp_path / "crawl",
            strategy="fixed",
            delay=0.05,
            max_rate="unlimited",
            seeding_strategy="none",
        ) as crawl,
    ):
        crawl.start()
        looks = 0
        while crawl.result is None:
            crawl.status(), crawl.hosts(), crawl.host(web.hosts[0]).show()
            crawl.explain(web.seeds()[0])
            looks += 1
        result = crawl.wait(20)

    assert looks > 5
    assert result.ending.value == "finished"


def test_order_right_before_the_end_is_not_lost(tmp_path: Path) -> None:
    """A crawl does not end with control records unread: what was acknowledged is acted on."""
    with (
        DemoWeb(plain_sites(2, pages=2)) as web,
        mannerly.Crawl(
            web.seeds()[0],
            data_dir=tmp_path / "crawl",
            seeding_strategy="none",
            strategy="fixed",
            delay=0.01,
        ) as crawl,
    ):
        crawl.pause()
        crawl.start()
        eventually(lambda: crawl.status().workers)
        crawl.unpause()
        crawl.add(web.seeds()[1])
        result = crawl.wait(20)

    assert (result.ending.value, result.pending, result.stats.fetched) == ("finished", 0, 4)
