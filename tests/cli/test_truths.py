"""What commands say about a crawl is true and tells what to do: on real sockets and servers."""

from __future__ import annotations

import json
import os
import re
import shlex
import socket
import time
from contextlib import closing, suppress
from typing import TYPE_CHECKING

import pytest
from tests.crawler.fetch.raw_server import RawServer, answer
from tests.crawler.fleet.fleet_world import run as process
from tests.crawler.store.valkey_server import LocalServer
from tests.harness.commands import invoke

import mannerly
from mannerly.crawler.model import Now
from mannerly.crawler.store import crawls_in
from mannerly.exports.whole import whole_file
from mannerly.hosts import open_host_memory
from mannerly.hosts.base import Holder, HostBudget
from mannerly.politeness.pace import Lesson

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


FAST = ("--strategy", "fixed", "--delay", "0.001", "--max-rate", "unlimited")
PLAIN = (*FAST, "--seeding-strategy", "none", "--memory", "none")
PAGES = {
    "/": b'<link rel=stylesheet href="/main.css"><a href="/library/re.html">re</a>',
    "/library/re.html": b'<link rel=stylesheet href="/main.css">text',
}


def serve(connection: socket.socket, path: str) -> bool:
    body = PAGES.get(path)
    status = "404 Not Found" if body is None else "200 OK"
    with suppress(OSError):
        connection.sendall(answer(body or b"", status, "Content-Type: text/html"))
    return True


@pytest.fixture
def site() -> Iterator[RawServer]:
    with RawServer(serve) as server:
        yield server


def explained(directory: Path, url: str) -> dict[str, str]:
    done = invoke("explain", directory, url, "--json")
    assert done.exit_code == 0, done.stderr
    return json.loads(done.stdout)


def test_explain_takes_a_path_of_a_seeds_host(site: RawServer, tmp_path: Path) -> None:
    """Also with a dot in it: a path is no host."""
    invoke("crawl", site.url(), "--data-dir", tmp_path / "crawl", *PLAIN)

    found = explained(tmp_path / "crawl", "/library/re.html")
    unknown = explained(tmp_path / "crawl", "/library/none.html")

    assert (found["url"], found["state"]) == (site.url("/library/re.html"), "fetched")
    assert (unknown["url"], unknown["state"]) == (site.url("/library/none.html"), "unknown")


def test_explain_tells_where_a_stylesheet_is_linked(site: RawServer, tmp_path: Path) -> None:
    """With --links it is known which page has it, and that it is no page."""
    invoke("crawl", site.url(), "--data-dir", tmp_path / "crawl", "--links", *PLAIN)

    found = explained(tmp_path / "crawl", "/main.css")

    assert found["because"].startswith(f"linked from {site.url()} (link), and not fetched")


def test_explain_names_tls_as_the_cause(tmp_path: Path) -> None:
    """A host that does not speak https is given up with that, for each of its URLs."""
    with RawServer(serve) as server:
        url = server.url().replace("http://", "https://")
        words = ("--robots-patience", "0", "--give-up-after", "1", *PLAIN)

        invoke("crawl", url, "--data-dir", tmp_path / "crawl", *words)
        found = explained(tmp_path / "crawl", url)

    assert found["state"] == "given up"
    assert "TLS" in found["because"]


@pytest.mark.parametrize("contact", ["nobody", "a b@c", "ftp://a.example/", "me@", "http://"])
def test_a_contact_that_reaches_no_one_is_refused(contact: str, tmp_path: Path) -> None:
    """It is an e-mail address or the URL of a page, on the command line and in the library."""
    done = invoke("crawl", "a.example", "--contact", contact, "--data-dir", tmp_path / "crawl")

    assert done.exit_code == 2
    assert "an e-mail address, or the URL of a page" in done.stderr
    with pytest.raises(ValueError, match="an e-mail address"):
        mannerly.Crawl("https://a.example/", contact=contact)


def test_what_a_killed_export_left_is_removed_by_the_next_one(tmp_path: Path) -> None:
    """Of the same file, unless another export is writing it at this moment."""
    left = [tmp_path / f".{name}.{'0a' * 8}.new" for name in ("x.jsonl", "y.jsonl")]
    for file in left:
        file.write_bytes(b"a part")
        os.utime(file, (1, 1))

    with whole_file(tmp_path / "x.jsonl") as first:
        (written,) = set(tmp_path.glob(".x.jsonl.*.new"))
        os.utime(written, (1, 1))
        with whole_file(tmp_path / "x.jsonl") as second:
            second.write(b"2")
        first.write(b"1")

    assert sorted(file.name for file in tmp_path.iterdir()) == [left[1].name, "x.jsonl"]
    assert (tmp_path / "x.jsonl").read_bytes() == b"1"


def test_a_start_rate_that_does_not_hold_is_said(site: RawServer, tmp_path: Path) -> None:
    """What earlier crawls have learned of a host decides its pace."""
    host = site.url()[len("http://") : -1]
    lesson = Lesson(delay_s=0.25, floor_s=0.2, allowance=4.0, concurrency=3, is_proven=True)
    words = ("--seeding-strategy", "none", "--start-rate", "20", "--memory", tmp_path / "hosts.db")
    now = Now(time.monotonic(), time.time())
    with closing(open_host_memory(str(tmp_path / "hosts.db"))) as memory:
        memory.join(Holder("1", "other", "other", "w"), now)
        memory.claim("1", {host: 1.0}, now)
        memory.leave("1", [HostBudget(host, lesson)], now)

    done = invoke("crawl", site.url(), "--data-dir", tmp_path / "crawl", *words)
    without = invoke(
        "crawl", site.url(), "--data-dir", tmp_path / "new", *words, "--memory", "none"
    )

    said = f"--start-rate does not hold for {host}: earlier crawls have learned its pace (4.0/s)"
    assert said in done.stderr
    assert "does not hold" not in without.stderr


def test_a_recrawl_does_not_say_that_it_resumes(site: RawServer, tmp_path: Path) -> None:
    """It checks the pages of a crawl."""
    invoke("crawl", site.url(), "--data-dir", tmp_path / "crawl", *PLAIN)

    done = invoke("recrawl", tmp_path / "crawl")

    assert "Resuming" not in done.stderr
    assert f"Checking the pages of the crawl in {tmp_path / 'crawl'}" in done.stderr


@pytest.mark.processes
def test_an_export_of_one_worker_tells_what_others_have(site: RawServer, tmp_path: Path) -> None:
    """How many records, and the command that writes all of them when their directory is added."""
    with LocalServer() as server:
        words = ("--redis-url", server.url, "--crawl", "docs", *PLAIN)
        process("crawl", site.url(), *words, "--data-dir", str(tmp_path / "one"))

        second = process(
            *("crawl", site.url(), *words, "--data-dir", str(tmp_path / "two")),
            *("-o", str(tmp_path / "part.jsonl"), "--json"),
        )
        (command,) = re.findall(r"^  (mannerly export .*)$", second.stderr, re.MULTILINE)
        whole = process(*shlex.split(command)[1:], "--data-dir", str(tmp_path / "one"))

    assert second.returncode == 0, second.stderr
    assert "-o has the part of this worker: 0 of 2 records. Other workers have 2." in second.stderr
    assert json.loads(second.stdout)["records_elsewhere"] == 2
    assert whole.returncode == 0, whole.stderr
    assert len((tmp_path / "part.jsonl").read_text().splitlines()) == 2


@pytest.mark.processes
def test_a_command_that_is_refused_leaves_no_crawl_in_the_server(
    site: RawServer, tmp_path: Path
) -> None:
    """Its data directory holds another crawl: the next command does not find an empty one."""
    invoke("crawl", site.url(), "--data-dir", tmp_path / "crawl", *PLAIN)
    with LocalServer() as server:
        words = ("--redis-url", server.url, "--crawl", "new", *PLAIN)

        done = invoke("crawl", site.url(), *words, "--data-dir", tmp_path / "crawl")
        left = crawls_in(server.url)

    assert done.exit_code == 4
    assert left == []


def test_seeds_that_cannot_be_fetched_come_as_pages(site: RawServer) -> None:
    """With the cause as their error, after all others: a loop over a crawl misses none."""
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        nowhere = f"http://127.0.0.1:{closed.getsockname()[1]}/"

        pages = list(
            mannerly.crawl(
                [nowhere, site.url()],
                seeding_strategy="none",
                strategy="fixed",
                delay=0.001,
                max_rate="unlimited",
                memory="none",
            )
        )

    assert [page.url for page in pages][-1] == nowhere
    assert (pages[-1].status, pages[-1].error) == (None, "connection_refused")
    assert (pages[-1].body, pages[-1].links) == (b"", [])


def test_a_check_names_what_to_type_for_private_addresses(tmp_path: Path) -> None:
    """Links into a private network are not followed, and the option for each is printed."""
    with RawServer(serve) as inside:

        def page(connection: socket.socket, path: str) -> bool:
            body = f'<a href="{inside.url()}">x</a>'.encode() if path == "/" else b""
            status = "200 OK" if path == "/" else "404 Not Found"
            connection.sendall(answer(body, status, "Content-Type: text/html"))
            return True

        with RawServer(page) as server:
            done = invoke("check", server.url(), *PLAIN)
            (said,) = re.findall(
                r"^To check private addresses, too: (.*)$", done.stderr, re.MULTILINE
            )
            again = invoke("check", server.url(), *PLAIN, *said.split())

    assert said == f"--allow-net {inside.url()[len('http://') : -1]}"
    assert "private" not in again.stderr.replace("Private addresses, allowed", "")
