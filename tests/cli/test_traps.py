"""A user is told about a trap: how many URLs are held back, of which pattern, and why."""

from __future__ import annotations

import json
import random
import re
from typing import TYPE_CHECKING

from tests.crawler.fetch.raw_server import RawServer, answer
from tests.harness.commands import invoke

from mannerly.crawler.store import open_crawl
from mannerly.crawler.web.priority import is_held_back

if TYPE_CHECKING:
    import socket
    from pathlib import Path


REAL = 50
PACE = ("--strategy", "fixed", "--delay", "0.001", "--max-rate", "unlimited")
FAST = (*PACE, "--seeding-strategy", "none")


def calendar(connection: socket.socket, path: str) -> bool:
    """Fifty pages in a row, and on each of them the way into a calendar without end."""
    rng = random.Random(path)
    number = int(path[1:] or 0) if re.fullmatch(r"/\d*", path) else None
    if path == "/robots.txt" or (number is not None and number >= REAL):
        connection.sendall(answer(b"", "404 Not Found"))
        return True
    days = [f"/calendar/{rng.randrange(9999)}/{rng.randrange(366)}" for _ in range(12)]
    links = days if number is None else [f"/{number + 1}", *days]
    body = f"<title>{path}</title>" + "".join(f"<a href={link}>x</a>" for link in links)
    connection.sendall(answer(body.encode(), "200 OK", "Content-Type: text/html"))
    return True


def test_what_is_held_back_is_said(tmp_path: Path) -> None:
    """The summary counts it by pattern, `explain` tells it of a URL, and real pages are in."""
    data_dir = tmp_path / "crawl"
    with RawServer(calendar) as server:
        done = invoke("crawl", server.url(), "--data-dir", data_dir, "--max-urls", 900, *FAST)
        place = server.url("/").removeprefix("http://").rstrip("/")

    store = open_crawl(data_dir)
    reader = store.read(0)
    queued = reader.queued(place, after=(-1, -1), limit=100_000)
    held_back = [entry.url for entry in queued if is_held_back(entry.priority)]
    fetched = {record.url for _, record in reader.pages()}
    reader.close()
    store.close()
    explained = json.loads(invoke("explain", data_dir, held_back[0], "--json").stdout)
    assert done.exit_code == 0, done.output
    assert {server.url(f"/{page}") for page in range(1, REAL)} <= fetched
    said = f"{len(held_back):,} of these are fetched last: such pages led mostly to more of them: "
    words = " ".join(done.output.split())
    assert f"Held back {said}{place}/calendar/*/* ({len(held_back):,})" in words
    assert explained["state"] == "queued"
    assert (
        "it comes after others: most pages like /calendar/*/* lead to pages of their own kind"
        in explained["because"]
    )
