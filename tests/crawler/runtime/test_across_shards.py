"""Several processes, one crawl: what one of them learns holds in all, and a host has one pace."""

from __future__ import annotations

import threading
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest
from tests.crawler.fetch.raw_server import RawServer, answer
from tests.crawler.runtime.harness import kept, modest

from mannerly.crawler.crawl import run_crawl as crawl
from mannerly.crawler.frontier.sharding import Sharding
from mannerly.crawler.runtime.ending import Ending
from mannerly.politeness import Settings

if TYPE_CHECKING:
    import socket
    from collections.abc import Mapping
    from pathlib import Path

pytestmark = pytest.mark.processes

SHARD_OF = Sharding(2).shard_of
FIRST, SECOND = (
    next(f"127.0.0.{n}" for n in range(50, 99) if SHARD_OF(f"127.0.0.{n}") == shard)
    for shard in (0, 1)
)
HTML = "Content-Type: text/html"
DELAY_S = 0.5


class Host:
    """Answers by path, and notes what was asked for."""

    def __init__(self) -> None:
        self.pages: Mapping[str, bytes] = {}
        self.asked: list[str] = []
        self._lock = threading.Lock()

    def __call__(self, connection: socket.socket, path: str) -> bool:
        with self._lock:
            self.asked.append(path)
        connection.sendall(self.pages.get(path) or answer(b"", "404 Not Found"))
        return True


def linking(*urls: str) -> bytes:
    return answer("".join(f'<a href="{url}">' for url in urls).encode(), "200 OK", HTML)


def test_redirected_robots_keeps_the_pace_of_the_other_host(tmp_path: Path) -> None:
    """The shard that owns the target fetches it, in one of the host's slots; the rules are kept."""
    here, there = Host(), Host()
    with RawServer(here, FIRST) as first, RawServer(there, SECOND) as second:
        rules = answer(b"User-agent: *\nDisallow: /private\n")
        here.pages = {
            "/robots.txt": answer(b"", "301 Moved", f"Location: {second.url('/rules.txt')}"),
            "/": linking("/private", "/public"),
        }
        there.pages = {"/rules.txt": rules, "/": linking("/1", "/2")}
        pace = Settings(strategy="fixed", delay_s=DELAY_S, max_rate="unlimited")
        settings = modest(politeness=pace, processes=2)
        result = crawl(settings, [first.url("/"), second.url("/")], tmp_path / "c")

    gaps = [later - earlier for earlier, later in pairwise(sorted(second.arrivals))]
    assert result.ending is Ending.FINISHED
    assert sorted(here.asked) == ["/", "/public", "/robots.txt"]
    assert there.asked.count("/rules.txt") == 1
    assert min(gaps) >= DELAY_S - 0.02


def test_seed_that_moves_takes_the_scope_of_all_processes_along(tmp_path: Path) -> None:
    """Links that another process finds to where the seed has moved are followed."""
    old, new, other = Host(), Host(), Host()
    with (
        RawServer(old, FIRST) as moved,
        RawServer(new, FIRST) as target,
        RawServer(other, SECOND) as linked,
    ):
        old.pages = {"/": answer(b"", "301 Moved", f"Location: {target.url('/')}")}
        new.pages = {"/": linking(), "/deep": linking()}
        other.pages = {"/": linking("/p/0")} | {
            f"/p/{n}": linking(f"/p/{n + 1}", target.url("/deep")) for n in range(60)
        }
        settings = modest(processes=2, allow_net=("127.0.0.0/8",))
        result = crawl(settings, [moved.url("/"), linked.url("/")], tmp_path / "c")

    assert result.ending is Ending.FINISHED
    assert new.asked.count("/deep") == 1
    assert target.url("/deep") in kept(tmp_path / "c").urls
