"""Every screen says the same of a host, at one frozen instant, in every state that a host can have.

A shard is driven into a state and commits; then the clock stands still. The live view prints what
the shard's memory says, all others what its store says, and the two must be equal field by field.
"""

from __future__ import annotations

import json
import time
from itertools import count
from typing import TYPE_CHECKING, Any

import pytest
from prometheus_client.parser import text_string_to_metric_families
from tests.crawler.shard.shard_world import EPOCH_S, ShardWorld, brisk

from mannerly.cli.display import Display
from mannerly.cli.host_table import host_table
from mannerly.cli.hosts import hosts as hosts_command
from mannerly.cli.hosts import show_host
from mannerly.crawler import store as stores
from mannerly.crawler.control import HostPause, Pause
from mannerly.crawler.events import Watched
from mannerly.crawler.host_view import HostStatus, HostView, LimitedBy
from mannerly.crawler.inspection.host_words import cause, fields_of, limit_words, sentence
from mannerly.crawler.model import Now
from mannerly.crawler.stats import Present, Stats
from mannerly.crawler.store.base import Manifest, ShardOptions
from mannerly.crawler.stored import StoredCrawl, open_crawl
from mannerly.live.meter import Meter
from mannerly.politeness import LimitKind, Settings
from mannerly.politeness.model import ErrorKind
from mannerly.report.facts import read
from mannerly.service.host_table import HostQuery, HostTable
from mannerly.service.metrics import Reading, metrics_text

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

HOST = "a.example"
URLS = [f"https://{HOST}/{number}" for number in range(5)]
NAMES = count()
WIDE = Display(columns=160, rows=50)
CALM = Settings(strategy="learned", start_delay_s=1.0, seed=1)


class Crawl:
    """A stored crawl whose one shard is driven by hand."""

    def __init__(self, location: str, urls: list[str] = URLS, memory: str | None = None) -> None:
        manifest = Manifest.new(seeds=urls[:1], settings={}, shards=1, created_at=EPOCH_S)
        self.store = stores.create_crawl(location, manifest)
        self.store.hold()
        self.world = ShardWorld(
            *urls,
            settings=brisk(politeness=CALM),
            store=self.store.claim(0, ShardOptions(1000)),  # type: ignore[arg-type]
            watched=Watched.HOSTS,
            memory=memory,
        )
        self.location = location
        self._ordered = 0
        self.is_running = True

    def order(self, order: Pause | HostPause) -> None:
        """Give an order as a command does, and let the shard carry it out."""
        self.store.order(order)
        for number, each in self.store.orders(after=self._ordered):
            self.world.shard.control(number, each, self.world.now)
            self._ordered = number

    def turn(self) -> None:
        self.world.wait(1.0)
        self.world.start()

    def settle(self) -> None:
        """Commit, and read: from here on the clock stands still."""
        self.world.shard.commit(self.world.now)
        self.world.shard.tick(self.world.now)
        self.world.shard.commit(self.world.now)

    def stop(self) -> None:
        self.settle()
        self.store.close()
        self.is_running = False

    def one_page(self, status: int = 200, **headers: str) -> None:
        self.world.wait(1.0)
        (request, *_) = self.world.start()
        self.world.answer(request, status, **headers)


def fetching(crawl: Crawl) -> None:
    crawl.world.pass_robots()
    crawl.one_page()
    crawl.one_page()


def asked_to_wait(crawl: Crawl) -> None:
    fetching(crawl)
    crawl.one_page(429, retry_after="50")


def backing_off(crawl: Crawl) -> None:
    fetching(crawl)
    for _ in range(6):  # the breaker opens; before that each is asked for again
        crawl.world.wait(5.0)
        for request in crawl.world.start():
            crawl.world.answer(request, error=ErrorKind.TIMEOUT)


def without_robots(crawl: Crawl) -> None:
    for _ in range(3):
        for request in crawl.world.start():
            crawl.world.answer(request, 503)
        crawl.world.wait(5.0)
    crawl.world.start()


def slow_by_robots(crawl: Crawl) -> None:
    for request in crawl.world.start():
        crawl.world.answer(request, 200, b"User-agent: *\nCrawl-delay: 9")
    crawl.world.wait(9.0)
    crawl.one_page()


def paused_host(crawl: Crawl) -> None:
    fetching(crawl)
    crawl.order(HostPause(HOST))


def given_up(crawl: Crawl) -> None:
    fetching(crawl)
    crawl.world.shard.given_up.give_up(HOST, "timeout", crawl.world.now)


def given_up_and_paused(crawl: Crawl) -> None:
    given_up(crawl)
    crawl.order(HostPause(HOST))


def given_up_in_a_paused_crawl(crawl: Crawl) -> None:
    given_up(crawl)
    crawl.order(Pause())


def done(crawl: Crawl) -> None:
    crawl.world.pass_robots()
    for _ in URLS:
        crawl.one_page()


def paused_crawl(crawl: Crawl) -> None:
    asked_to_wait(crawl)
    crawl.order(Pause())


def stopped(crawl: Crawl) -> None:
    asked_to_wait(crawl)
    crawl.stop()


STATES: list[tuple[Callable[[Crawl], None], HostStatus]] = [
    (fetching, HostStatus.FETCHING),
    (slow_by_robots, HostStatus.FETCHING),
    (asked_to_wait, HostStatus.ASKED_TO_WAIT),
    (backing_off, HostStatus.BACKING_OFF),
    (without_robots, HostStatus.BACKING_OFF),
    (paused_host, HostStatus.PAUSED),
    (paused_crawl, HostStatus.PAUSED),
    (given_up, HostStatus.GIVEN_UP),
    (given_up_and_paused, HostStatus.GIVEN_UP),
    (given_up_in_a_paused_crawl, HostStatus.GIVEN_UP),
    (done, HostStatus.DONE),
    (stopped, HostStatus.WAITING),
]


@pytest.fixture(params=["memory", "sqlite"])
def location(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "memory":
        return f"memory:one-truth-{next(NAMES)}"
    return str(tmp_path / "crawl")


def seen_by_the_run(crawl: Crawl) -> HostView | None:
    """The host in the live view; None if it does not show it."""
    stats = crawl.world.stats
    stats.now.host_views = crawl.world.host_views()
    stats.now.is_paused = any(isinstance(order, Pause) for _, order in crawl.store.orders())
    live = Meter().update(stats, 1.0)
    return next((view for view in live.views if view.host == HOST), None)


def printed(command: Callable[..., None], capsys: pytest.CaptureFixture[str], *words: Any) -> str:
    capsys.readouterr()
    command(*words)
    return capsys.readouterr().out


@pytest.mark.parametrize(
    ("drive", "state"), STATES, ids=lambda value: getattr(value, "__name__", "")
)
def test_every_screen_says_the_same(
    drive: Callable[[Crawl], None],
    state: HostStatus,
    location: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Terminal, hosts, host show, explain, live page, API, metrics and report, in each field."""
    crawl = Crawl(location)
    drive(crawl)
    if crawl.is_running:
        crawl.settle()
    monkeypatch.setattr(time, "time", lambda: crawl.world.now.wall)

    with open_crawl(location) as stored:
        (view,) = stored.hosts()
        assert view.state is state
        assert view.age_s == 0.0
        all_screens_agree(view, stored, location, capsys)
        live = seen_by_the_run(crawl) if crawl.is_running else None
        assert live is None or live == view
        if state not in (HostStatus.DONE, HostStatus.GIVEN_UP, HostStatus.WAITING):
            assert live == view
    if crawl.is_running:
        crawl.store.close()


def all_screens_agree(
    view: HostView, stored: StoredCrawl, location: str, capsys: pytest.CaptureFixture[str]
) -> None:
    fields = fields_of(view)
    details = stored.host(HOST).show()
    assert details is not None
    assert details.view == view
    # The API, and the live page, which reads it.
    table = HostTable()
    with stored.view() as crawl:
        page = table.page(crawl, HostQuery())
        one = table.one(crawl, HOST, [])
        report = read(stored).hosts
    assert report == [view]
    assert page["states"] == {status.value: int(status is view.state) for status in HostStatus}
    (row,) = page["hosts"]
    assert one is not None
    assert fields.items() <= row.items()
    assert fields.items() <= one.items()
    # Commands.
    (listed,) = json.loads(printed(lambda: hosts_command(location, json=True), capsys))
    shown = json.loads(printed(lambda: show_host(location, HOST, json=True), capsys))
    as_json = json.loads(json.dumps(fields))
    assert as_json.items() <= listed.items()
    assert as_json.items() <= shown.items()
    assert sentence(view) in printed(lambda: show_host(location, HOST), capsys)
    (line,) = host_table([view], WIDE)[1:]
    assert cause(view, short=True)[:18] in line
    for words in limit_words(view):
        assert words in printed(lambda: show_host(location, HOST), capsys)
        assert f"its limit: {words}" in stored.explain(URLS[-1]).because
    if view.queued and view.state is not HostStatus.GIVEN_UP:
        assert sentence(view) in stored.explain(URLS[-1]).because
    text = metrics_text(
        Reading(Stats(now=Present(host_views=[view])), {}, EPOCH_S), hosts=1
    ).decode()
    samples = {
        sample.name: sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.labels == {"host": HOST}
    }
    assert samples["mannerly_host_delay_seconds"] == view.delay_s
    assert samples["mannerly_host_pages"] == view.fetched
    assert samples["mannerly_host_refusals"] == view.refused
    assert samples["mannerly_host_queue_urls"] == view.queued


def test_limit_that_was_recognised_is_on_every_screen(
    location: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """In plain words, with the second of the wall clock at which the host's windows open."""
    opens_at, kept = 12.0, 0
    crawl = Crawl(location, [f"https://{HOST}/more/{number}" for number in range(400)] + URLS)
    crawl.world.wait(7.0)
    crawl.world.pass_robots()
    window = -1.0
    while crawl.world.now.mono < 900.0:
        crawl.world.wait(0.25)
        for request in crawl.world.start():
            if (now := (crawl.world.now.wall - opens_at) // 60.0) != window:
                window, kept = now, 0
            kept += 1
            crawl.world.answer(request, 200 if kept <= 20 else 429)
    crawl.settle()
    monkeypatch.setattr(time, "time", lambda: crawl.world.now.wall)

    with open_crawl(location) as stored:
        (view,) = stored.hosts()
        (known,) = view.known_limits
        assert known.kind is LimitKind.FIXED
        assert (round(known.requests), known.seconds) == (20, 60.0)
        assert known.opens_at == pytest.approx(opens_at, abs=1.5)
        (words,) = limit_words(view)
        assert words.startswith("20 requests in 60 s, window starts at :1")
        (told,) = fields_of(view)["known_limits"]
        assert told["words"] == words
        assert told["opened_at"] % 60.0 == pytest.approx(known.opens_at)
        assert 0.0 <= view.record.updated_at - told["opened_at"] < 60.0
        all_screens_agree(view, stored, location, capsys)
        assert seen_by_the_run(crawl) == view
    crawl.store.close()


def test_host_of_another_crawl_is_shared_on_every_screen(
    location: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """With the name of the crawl that is sending to it."""
    memory = f"memory:one-truth-{next(NAMES)}"
    other = ShardWorld(*URLS, settings=brisk(politeness=CALM), memory=memory, crawl="other")
    other.pass_robots()
    crawl = Crawl(location, memory=memory)
    crawl.turn()
    crawl.settle()
    monkeypatch.setattr(time, "time", lambda: crawl.world.now.wall)

    with open_crawl(location) as stored:
        (view,) = stored.hosts()
        assert (view.state, view.held_by) == (HostStatus.SHARED, "crawl-other")
        all_screens_agree(view, stored, location, capsys)
        assert seen_by_the_run(crawl) == view
    crawl.store.close()


def test_view_ages_as_its_record_does(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A wait that is over is over on every screen, and each says how old its knowledge is."""
    crawl = Crawl(f"memory:one-truth-{next(NAMES)}")
    asked_to_wait(crawl)
    crawl.settle()
    later = Now(crawl.world.now.mono + 20.0, crawl.world.now.wall + 20.0)
    monkeypatch.setattr(time, "time", lambda: later.wall)

    with open_crawl(crawl.location) as stored:
        (view,) = stored.hosts()
        crawl.world.now = later
        live = seen_by_the_run(crawl)
        monkeypatch.setattr(time, "time", lambda: later.wall + 60.0)
        (past,) = stored.hosts()

    assert view.age_s == pytest.approx(20.0)
    assert live is not None
    assert live.next_in_s == pytest.approx(view.next_in_s)
    assert live.age_s == pytest.approx(view.age_s)
    assert past.state is HostStatus.FETCHING
    crawl.store.close()


def test_pace_that_is_set_is_the_pace_that_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of every host, with the next commit, also if nothing was asked since."""
    from mannerly.crawler.control import HostSet, SetOption

    crawl = Crawl(f"memory:one-truth-{next(NAMES)}")
    fetching(crawl)
    crawl.settle()
    monkeypatch.setattr(time, "time", lambda: crawl.world.now.wall)
    for order, delay_s in (
        (SetOption("max_rate", 0.2), 5.0),
        (HostSet(HOST, delay_s=8.0), 8.0),
    ):
        crawl.order(order)  # type: ignore[arg-type]
        crawl.settle()
        with open_crawl(crawl.location) as stored:
            (view,) = stored.hosts()
        assert view.delay_s == delay_s
        assert view.limited_by is LimitedBy.MAX_RATE
        assert seen_by_the_run(crawl) is not None
    crawl.store.close()
