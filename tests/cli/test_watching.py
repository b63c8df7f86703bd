"""`mannerly watch`: a host is selected and paused with keys, and the time to go is of all hosts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from mannerly.cli.display import Display
from mannerly.cli.watching import Watch, lines
from mannerly.crawler import control
from mannerly.crawler.crawl import Crawl
from mannerly.crawler.stored import open_crawl
from mannerly.demo import DemoWeb, plain_sites

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from mannerly.crawler.stored import StoredCrawl

pytestmark = pytest.mark.processes

LOOK = Display(columns=120, rows=24)


class Keys:
    """No key is pressed by itself."""

    is_taken = False


@pytest.fixture(scope="module")
def location(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A stopped crawl with URLs left on three hosts."""
    place = tmp_path_factory.mktemp("watched") / "crawl"
    pace = {"start_rate": 50.0, "max_rate": 50.0}
    with DemoWeb(plain_sites(3, pages=30)) as web:
        options = {"max_urls": 12, "seeding_strategy": "none", **pace}
        with Crawl(web.seeds(), data_dir=place, **options) as crawl:  # type: ignore[arg-type]
            crawl.run()
    return place


@pytest.fixture
def stored(location: Path) -> Iterator[StoredCrawl]:
    with open_crawl(location) as crawl:
        yield crawl


def pressed(watch: Watch, keys: str) -> list[str]:
    """Press keys, look again, and return the screen."""
    for key in keys:
        watch._press(key)
    return lines(watch._read(), LOOK)


def test_selected_host_is_marked_and_paused(stored: StoredCrawl) -> None:
    """J goes down, k up; p pauses what is selected, and resumes it when it is paused."""
    watch = Watch(stored, 1.0, Keys())  # type: ignore[arg-type]
    first = pressed(watch, "")
    names = [host.host for host in watch._hosts]

    nothing = pressed(watch, "p")
    down = pressed(watch, "jj")
    up = pressed(watch, "k")
    paused = pressed(watch, "p")
    orders = [order for _, order in stored.store.orders()]
    resumed = pressed(watch, "p")

    assert len(names) == 3
    assert not [line for line in first if line.startswith(">")]
    assert "Select a host" in nothing[-1]
    assert [names[1] in line for line in down if line.startswith(">")] == [True]
    assert [names[0] in line for line in up if line.startswith(">")] == [True]
    assert "is paused" in paused[-1]
    assert orders[-1] == control.HostPause(names[0])
    assert "goes on" in resumed[-1]


def test_time_to_go_is_that_of_the_slowest_host(stored: StoredCrawl) -> None:
    """The most of queue x pace over all hosts, whatever part of the table is shown."""
    longest = max(stored.hosts("queued", 100), key=lambda host: host.queue_s)

    found = stored.slowest_host()
    seen = Watch(stored, 1.0, Keys())._read()  # type: ignore[arg-type]

    assert found is not None
    assert found.queue_s == longest.queue_s > 0
    assert seen.live.slowest is not None
    assert seen.live.slowest.queue_s == found.queue_s
