"""Many names of one server, on real sockets: names under .localhost all lead to this machine."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest
from tests.crawler.fetch.raw_server import RawServer, answer
from tests.crawler.runtime.harness import kept, modest

from mannerly.crawler.crawl import run_crawl
from mannerly.crawler.runtime.ending import Ending
from mannerly.crawler.web.choices import ScopeMode

if TYPE_CHECKING:
    import socket
    from pathlib import Path

pytestmark = pytest.mark.processes

RATE = 16.0


def site(connection: socket.socket, path: str) -> bool:
    """Two pages under every name."""
    body = b'<a href="/more">more</a>' if path == "/" else b"more"
    known = path in ("/", "/more")
    head = ("200 OK", "Content-Type: text/html") if known else ("404 Not Found",)
    connection.sendall(answer(body if known else b"", *head))
    return True


@pytest.mark.parametrize(
    ("name", "per_second"),
    [("www.s{}.localhost", RATE), ("n{}.site.localhost", 10.0)],
    ids=["several sites", "one site"],
)
def test_one_server_behind_many_names_is_not_asked_faster(
    tmp_path: Path, name: str, per_second: float
) -> None:
    """Ten names could be asked a hundred times a second; all pages come, and none too early."""
    with RawServer(site, "127.0.0.1") as server:
        seeds = [f"http://{name.format(number)}:{server.port}/" for number in range(10)]
        settings = modest(
            delay_s=0.1, allow_net=("127.0.0.0/8", "::1"), address_max_rate=RATE, concurrency=64
        )
        result = run_crawl(settings, seeds, tmp_path / "crawl")

    pages = kept(tmp_path / "crawl").pages
    assert result.ending is Ending.FINISHED
    assert sorted(page.url for page in pages if page.status == 200) == sorted(
        url for seed in seeds for url in (seed, seed + "more")
    )
    times = sorted(server.arrivals)
    assert len(times) == 30
    # The first five names of a site go before it is known that they share its pace.
    assert times[-1] - times[0] >= (len(times) - 6) / per_second * 0.9


def test_names_met_as_links_are_contacted_one_by_one(tmp_path: Path) -> None:
    """Of 24 names that a page invents, 20 are contacted at once and then one a second."""
    contacts: list[float] = []

    def invents(connection: socket.socket, path: str) -> bool:
        if path == "/robots.txt":
            contacts.append(time.monotonic())
        names = [f"http://x{number}.site.localhost:{server.port}/" for number in range(24)]
        body = "".join(f"<a href={name}>x</a>" for name in names) if path == "/" else ""
        connection.sendall(answer(body.encode(), "200 OK", "Content-Type: text/html"))
        return True

    with RawServer(invents, "127.0.0.1") as server:
        settings = modest(
            delay_s=0.01, allow_net=("127.0.0.0/8", "::1"), scope=ScopeMode.SITE, concurrency=64
        )
        result = run_crawl(
            settings, [f"http://www.site.localhost:{server.port}/"], tmp_path / "crawl"
        )

    assert result.ending is Ending.FINISHED
    assert len(contacts) == 25
    assert max(contacts) - min(contacts) >= 3.0
