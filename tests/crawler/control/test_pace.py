"""`set max_rate` and `host pause|resume|set`: the pace of a running crawl, by the servers' log.

One crawl of five hosts shows all of it, in three windows: after orders to a running crawl, after
the crawl was killed right behind an order and resumed, and after further orders.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING

import pytest
from tests.crawler.control.steering import DIR, Shell, both, keeps, until_requests, window

from mannerly.demo import DemoWeb, Site, gaps_s

if TYPE_CHECKING:
    from pathlib import Path

    from tests.crawler.control.steering import Said

    from mannerly.demo import Record

pytestmark = pytest.mark.processes

BOTH = pytest.mark.parametrize("processes", [1, 2])
OPTIONS = ("--strategy", "fixed", "--delay", "0.1", "--max-rate", "unlimited")
# By what happens to it: one keeps the pace of the crawl, the others get orders of their own.
NAMES = ("plain", "faster", "slower", "paused", "alone")
LATENCY_S = 0.35  # of "alone", so that three or four requests are under way at 10 a second


@dataclass
class Paced:
    """What was said and what the servers saw, by the names of the sites."""

    hosts: dict[str, str]
    before: list[Record]
    running: dict[str, list[Record]]
    resumed: dict[str, list[Record]]
    further: dict[str, list[Record]]
    orders: list[Said]
    resumed_text: str
    ended: Said


def tell(processes: int, directory: Path) -> Paced:
    shell = Shell(directory)
    sites = [
        Site(name=name, pages=3000, disallow=(), latency_s=LATENCY_S if name == "alone" else 0.0)
        for name in NAMES
    ]
    with DemoWeb(sites) as web:
        hosts = {name: web.host(name) for name in NAMES}

        def by_name(since: float, seconds: float) -> dict[str, list[Record]]:
            seen = window(web, since, seconds)
            return {name: seen[host] for name, host in hosts.items()}

        words = ("crawl", *web.seeds(), "--data-dir", DIR, "--seeding-strategy", "none", *OPTIONS)
        with shell.start(*words, "--processes", processes) as run:
            until_requests(web, 12, host=hosts["alone"])
            before = web.log()
            orders = shell.say_all(
                ("set", DIR, "max_rate=2"),
                ("host", "set", DIR, hosts["faster"], "--max-rate", "10"),
                ("host", "set", DIR, web.url("slower", "/any"), "--delay", "1"),
                ("host", "set", DIR, hosts["alone"], "--per-host=1", "--max-rate=10"),
                ("host", "pause", DIR, hosts["paused"]),
            )
            running = by_name(max(said.at for said in orders), 2.2)
            # The last of two orders wins, also if the crawl is killed before it could act on it.
            orders.append(shell.say("host", "set", DIR, hosts["slower"], "--delay", "0.7"))
            run.kill()
        with shell.start("resume", DIR) as run:
            until_requests(web, 4)
            resumed = by_name(time.monotonic() - 1.0, 1.8)
            resumed_text = run.text
            orders += shell.say_all(
                ("set", DIR, "max_rate=none"),
                ("host", "set", DIR, hosts["slower"], "--delay=0.1", "--max-rate=1.5"),
                ("host", "set", DIR, hosts["faster"], "--delay=0.05", "--max-rate=unlimited"),
                ("host", "resume", DIR, hosts["paused"]),
            )
            further = by_name(max(said.at for said in orders), 1.6)
            orders.append(shell.say("stop", DIR))
            ended = run.end()
    return Paced(hosts, before, running, resumed, further, orders, resumed_text, ended)


@pytest.fixture(scope="module")
def stories(tmp_path_factory: pytest.TempPathFactory) -> dict[int, Paced]:
    return both(tell, tmp_path_factory.mktemp("pace"))


@BOTH
def test_orders_are_acknowledged_in_one_line(stories: dict[int, Paced], processes: int) -> None:
    """Nothing on standard output, one sentence on standard error, exit 0."""
    story = stories[processes]
    assert {(said.code, said.out, said.err.count("\n")) for said in story.orders} == {(0, "", 1)}
    said = [said.err for said in story.orders]
    assert said[0] == f"Set max_rate=2 for {DIR}\n"
    assert said[2] == f"Set the pace of {story.hosts['slower']} to --delay 1\n"
    assert said[3] == f"Set the pace of {story.hosts['alone']} to --max-rate 10 --per-host 1\n"
    assert said[4].startswith(f"Paused {story.hosts['paused']}. To continue:")


@BOTH
def test_lower_rate_holds_at_the_servers(stories: dict[int, Paced], processes: int) -> None:
    """Two requests a second to each host: in a running crawl, and in the next run."""
    story = stories[processes]
    assert fmean(gaps_s([r for r in story.before if r.host == story.hosts["plain"]])) < 0.3
    assert keeps(story.running["plain"], 0.5)
    assert keeps(story.resumed["plain"], 0.5)


@BOTH
def test_rate_can_be_raised_again(stories: dict[int, Paced], processes: int) -> None:
    """`none` takes the limit away; the delay of the crawl still holds."""
    story = stories[processes]
    assert keeps(story.further["plain"], 0.1)
    assert fmean(gaps_s(story.further["plain"])) < 0.3


@BOTH
def test_pace_of_a_host_wins_over_that_of_the_crawl_in_both_directions(
    stories: dict[int, Paced], processes: int
) -> None:
    """Faster and slower than the others; the URL of a page names its host, too."""
    story = stories[processes]
    assert keeps(story.running["faster"], 0.1)
    assert fmean(gaps_s(story.running["faster"])) < 0.3
    assert keeps(story.running["slower"], 1.0)


@BOTH
def test_pace_of_a_host_survives_a_kill_and_the_last_word_holds(
    stories: dict[int, Paced], processes: int
) -> None:
    """An order that was acknowledged is on disk; later orders for the crawl do not change it."""
    story = stories[processes]
    assert fmean(gaps_s(story.resumed["faster"])) < 0.3
    assert keeps(story.resumed["slower"], 0.7)
    assert fmean(gaps_s(story.resumed["slower"])) < 0.95
    assert keeps(story.further["slower"], 1 / 1.5)
    assert keeps(story.further["faster"], 0.05)
    assert fmean(gaps_s(story.further["faster"])) < 0.1


@BOTH
def test_requests_under_way_at_once_are_limited_for_a_host(
    stories: dict[int, Paced], processes: int
) -> None:
    """More before, one afterwards, in the next run, too."""
    story = stories[processes]
    before = [record for record in story.before if record.host == story.hosts["alone"]]
    assert max(record.in_flight for record in before) > 1
    for seen in (story.running, story.resumed, story.further):
        assert {record.in_flight for record in seen["alone"]} == {1}


@BOTH
def test_paused_host_gets_no_request_and_the_others_go_on(
    stories: dict[int, Paced], processes: int
) -> None:
    """A second later, and in the next run, until it is resumed."""
    story = stories[processes]
    assert not story.running["paused"]
    assert not story.resumed["paused"]
    assert len(story.further["paused"]) > 5


@BOTH
def test_resumed_crawl_says_which_orders_are_in_force(
    stories: dict[int, Paced], processes: int
) -> None:
    """On the terminal, before anything else."""
    story = stories[processes]
    assert "Set earlier with `mannerly set`: max_rate=2\n" in story.resumed_text
    assert f"Paused hosts: {story.hosts['paused']}. To continue:" in story.resumed_text
    assert "Hosts whose pace was set with `mannerly host set`: " in story.resumed_text


@BOTH
def test_crawl_does_not_accuse_itself_after_a_change(
    stories: dict[int, Paced], processes: int
) -> None:
    """The crawl's own audit knows the gaps in force: a host may be faster than the crawl began."""
    ended = stories[processes].ended
    assert ended.code == 143
    assert "■ Stopped by a signal or an order after" in ended.err
    assert "VIOLATED" not in ended.err
