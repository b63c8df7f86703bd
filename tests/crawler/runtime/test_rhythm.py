"""How often a member of a shared crawl writes to the store, in virtual time."""

from __future__ import annotations

from collections import Counter
from functools import partial
from itertools import pairwise
from math import inf
from typing import TYPE_CHECKING, Any

import pytest
from tests.crawler.frontier.virtual_crawl import html, virtual_crawl
from tests.crawler.runtime.harness import modest
from virtual.fetcher import FakeFetcher, FakeReply, VirtualClock

from mannerly.crawler.runtime.engine import Engine
from mannerly.crawler.store.fleet import SHARED, LeaseLost

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tests.crawler.frontier.virtual_crawl import Asked

    from mannerly.crawler.model import Fetched
    from mannerly.crawler.store.base import Batch, Committed, ShardStore, StoreError

HOST = "http://a.test"


class _Written:
    """An exchange, and how many shards each commit was for.

    Each call takes `takes_s` of a clock. From the instant `lost_at` on the first shard is lost.
    """

    def __init__(
        self, clock: VirtualClock | None = None, takes_s: float = 0.0, lost_at: float = inf
    ) -> None:
        self.shards: list[int] = []
        self._clock = clock or VirtualClock()
        self._takes_s = takes_s
        self._lost_at = lost_at
        self._first: ShardStore | None = None

    def commit(
        self, batches: Sequence[tuple[ShardStore, Batch]], meanwhile: Callable[[], None]
    ) -> list[Committed | StoreError]:
        if batches:
            self.shards.append(len(batches))
            self._first = self._first or batches[0][0]
        self.work(meanwhile)
        return [
            LeaseLost("another run has it") if self._is_lost(store) else store.commit(batch)
            for store, batch in batches
        ]

    def pass_links(
        self, stores: Sequence[ShardStore], limit: int, meanwhile: Callable[[], None]
    ) -> list[Committed]:
        self.work(meanwhile)
        return [store.pass_links(limit) for store in stores]

    def work(self, meanwhile: Callable[[], None]) -> None:
        for _ in range(2):
            self._clock.advance(self._takes_s / 2)
            meanwhile()

    def _is_lost(self, store: ShardStore) -> bool:
        return store is self._first and self._clock.now >= self._lost_at


@pytest.fixture
def commits(monkeypatch: pytest.MonkeyPatch) -> list[tuple[float, int]]:
    """Return the instants of commits that wrote pages, and how many pages."""
    made: list[tuple[float, int]] = []
    real = Engine.commit

    def commit(engine: Engine) -> None:
        pages = sum(shard.left.uncommitted for shard in engine.shards.all)
        if pages:
            made.append((engine._clock.now(), pages))
        real(engine)

    monkeypatch.setattr(Engine, "commit", commit)
    return made


def crawl(answer: Any, seeds: Sequence[str], **options: Any) -> Any:
    chosen = modest(delay_s=0.02, concurrency=512)
    return virtual_crawl(answer, seeds, chosen, rhythm=SHARED, **options)


def test_while_there_is_work_commits_are_half_a_second_apart(
    commits: list[tuple[float, int]],
) -> None:
    links = [f"/{number}" for number in range(200)]

    crawled = crawl(lambda _, path: html(path, links if path == "/" else ()), [f"{HOST}/"])

    assert len(crawled.pages) == 201
    # The first has the links, the last comes when nothing else is left to do.
    steady = [at for at, _ in commits[1:-1]]
    assert len(steady) > 5
    assert all(0.499 <= after - at <= 0.55 for at, after in pairwise(steady))


def test_a_page_is_committed_within_a_second(commits: list[tuple[float, int]]) -> None:
    links = [f"/{number}" for number in range(200)]

    crawled = crawl(lambda _, path: html(path, links if path == "/" else ()), [f"{HOST}/"])

    arrived = iter([asked.t + 0.01 for asked in crawled.pages])
    for at, pages in commits:
        assert all(at - next(arrived) <= 0.7 for _ in range(pages))
    assert next(arrived, None) is None


def test_a_host_that_has_run_dry_gets_its_links_soon(commits: list[tuple[float, int]]) -> None:
    """Each page has the link to the next one, and only a commit makes it known."""
    crawled = crawl(lambda _, path: html(path, [f"{path}x"]), [f"{HOST}/"], until=_asked(50))

    first, last = crawled.pages[0], crawled.pages[-1]
    assert (last.t - first.t) / 49 < 0.1


def test_a_few_dry_hosts_do_not_hasten_the_others(commits: list[tuple[float, int]]) -> None:
    links = [f"/{number}" for number in range(300)]

    def answer(host: str, path: str) -> FakeReply:
        if host == "a.test":
            return html(path, [f"{path}x"])
        return html(path, links if path == "/" else ())

    hosts = [f"http://{letter}.test/" for letter in "abcdefgh"]
    crawl(answer, hosts, shards=16, until=_asked(1500))

    within = [at for at, _ in commits if 1.0 < at < 3.0]
    assert len(within) <= 4


def test_a_request_to_wait_is_committed_at_once_and_alone() -> None:
    links = [f"/{number}" for number in range(200)]
    fleet = _Written()

    def answer(host: str, path: str) -> FakeReply:
        if host == "a.test" and path == "/7":
            return FakeReply(429, headers={"retry-after": "30"}, latency_s=0.01)
        return html(path, links if path == "/" else ())

    hosts = [f"http://{letter}.test/" for letter in "abcdefgh"]
    crawl(answer, hosts, shards=16, exchange=fleet, until=_asked(600))

    assert fleet.shards.count(1) == 1
    assert min(set(fleet.shards) - {1}) > 3


def test_pages_that_wait_for_a_commit_take_no_places_of_requests(
    commits: list[tuple[float, int]],
) -> None:
    """Two requests at a time, and more than two pages a commit."""
    links = [f"/{number}" for number in range(100)]
    chosen = modest(delay_s=0.02, concurrency=2)

    virtual_crawl(
        lambda _, path: html(path, links if path == "/" else ()),
        [f"{HOST}/"],
        chosen,
        rhythm=SHARED,
    )

    assert max(pages for _, pages in commits) > 10


def test_too_many_pages_that_wait_call_for_a_commit(commits: list[tuple[float, int]]) -> None:
    links = [f"/{number}" for number in range(100)]
    rhythm = SHARED._replace(uncommitted=5)

    crawled = virtual_crawl(
        lambda _, path: html(path, links if path == "/" else ()),
        [f"{HOST}/"],
        modest(delay_s=0.02, concurrency=4),
        rhythm=rhythm,
    )

    assert len(crawled.pages) == 101
    assert max(pages for _, pages in commits) <= 5 + 4


def test_hosts_of_many_shards_share_a_few_requests_fairly() -> None:
    """With room for four requests at once no host waits for longer than two rounds of all hosts."""
    links = [f"/{number}" for number in range(60)]

    def answer(host: str, path: str) -> FakeReply:
        return html(path, links if path == "/" else ())._replace(latency_s=0.25)

    hosts = [f"http://h{number}.test/" for number in range(16)]
    hosts += [f"http://{letter}.one.test/" for letter in "abcd"]  # in one shard
    chosen = modest(delay_s=0.1, concurrency=4)
    crawled = virtual_crawl(
        answer,
        hosts,
        chosen,
        shards=32,
        rhythm=SHARED,
        exchange=_Written(),
        until=_asked(400),
    )

    by_host: dict[str, list[float]] = {}
    for asked in crawled.pages:
        by_host.setdefault(asked.host, []).append(asked.t)
    assert len(by_host) == 20
    round_s = crawled.pages[-1].t / len(crawled.log) * len(hosts)
    longest_s = max(b - a for times in by_host.values() for a, b in pairwise(times))
    assert longest_s <= 2 * round_s


def test_answers_that_come_while_the_store_works_are_taken_once() -> None:
    """Whatever takes long: each page is fetched once, and each host keeps its delay."""
    links = [f"/{number}" for number in range(100)]
    clock = VirtualClock()
    fleet = _Written(clock, takes_s=0.05)

    hosts = [f"http://{letter}.test/" for letter in "abcdefgh"]
    crawled = crawl(
        lambda _, path: html(path, links if path == "/" else ()),
        hosts,
        shards=16,
        exchange=fleet,
        clock=clock,
    )

    by_host: dict[str, list[Asked]] = {}
    for asked in crawled.pages:
        by_host.setdefault(asked.host, []).append(asked)
    assert crawled.is_finished
    assert all(len({asked.path for asked in each}) == 101 for each in by_host.values())
    assert len(crawled.pages) == len(hosts) * 101
    gaps = [after.t - first.t for each in by_host.values() for first, after in pairwise(each)]
    assert min(gaps) >= 0.02 - 1e-9


def test_nothing_leaves_between_an_answer_and_what_is_learned_from_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The answer may be a refusal: while one waits to be taken, the sockets are left alone."""
    links = [f"/{number}" for number in range(100)]
    clock = VirtualClock()
    fleet = _Written(clock, takes_s=0.05)
    passes: list[list[int]] = [[]]  # the answers of each look at the sockets
    met: list[list[int]] = []  # those of them while the store worked
    wait, work = FakeFetcher.wait, fleet.work

    def noted_wait(fetcher: FakeFetcher, timeout_s: float) -> list[Fetched]:
        answers = wait(fetcher, timeout_s)
        passes[-1].append(len(answers))
        return answers

    def noted_work(meanwhile: Callable[[], None]) -> None:
        passes.append([])
        work(meanwhile)
        met.append(passes[-1])
        passes.append([])

    monkeypatch.setattr(FakeFetcher, "wait", noted_wait)
    monkeypatch.setattr(fleet, "work", noted_work)
    crawl(
        lambda _, path: html(path, links if path == "/" else ()),
        [f"http://{letter}.test/" for letter in "abcd"],
        shards=16,
        exchange=fleet,
        clock=clock,
    )

    assert any(sum(each) for each in met)
    assert not any(sum(each[:-1]) for each in met)


def test_an_answer_for_a_shard_that_is_lost_meanwhile_is_dropped() -> None:
    """Its pages are the next owner's; the other shards go on."""
    links = [f"/{number}" for number in range(100)]
    clock = VirtualClock()
    fleet = _Written(clock, takes_s=0.05, lost_at=1.0)

    crawled = crawl(
        lambda _, path: html(path, links if path == "/" else ()),
        [f"http://{letter}.test/" for letter in "abcd"],
        shards=16,
        exchange=fleet,
        clock=clock,
    )

    pages = Counter(asked.host for asked in crawled.pages)
    (lost,) = [host for host, count in pages.items() if count < 101]
    assert sorted(pages.values())[1:] == [101] * 3
    assert max(asked.t for asked in crawled.pages if asked.host == lost) < 1.7


def _asked(number: int) -> Any:
    return partial(lambda number, log: len(log) > number, number)
