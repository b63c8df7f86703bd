"""`mannerly status URL`: the crawls in a server."""

from __future__ import annotations

import json
import time
from contextlib import closing

import pytest
from tests.crawler.store.valkey_server import LocalServer
from tests.harness.commands import invoke

from mannerly.crawler.store import create_crawl, in_server, open_crawl
from mannerly.crawler.store.base import Heartbeat
from mannerly.crawler.store.contract import new_manifest

pytestmark = pytest.mark.processes


@pytest.mark.parametrize("is_json", [False, True])
def test_a_damaged_crawl_does_not_hide_the_others(is_json: bool) -> None:
    """The sound ones are listed, the damaged one is named with its key, and the exit code is 4."""
    with LocalServer() as server:
        for name in ("sound", "damaged"):
            create_crawl(f"{server.url}#{name}", new_manifest(2)).close()
        with server.client() as client:
            client.hset("mannerly:{damaged}:0:n", "a.example", "many")

        outcome = invoke("status", server.url, *(["--json"] if is_json else []))

    assert outcome.exit_code == 4
    assert "sound" in outcome.stdout
    assert "damaged cannot be read: mannerly:{damaged}:0:n holds" in outcome.stderr
    if is_json:
        assert [each.get("state") for each in json.loads(outcome.stdout)] == ["stopped", None]


def test_a_name_is_shown_as_it_is_given() -> None:
    """Not as it is written in a location: it can be copied into the next command."""
    with LocalServer() as server:
        create_crawl(in_server(server.url, "näws/2026:1"), new_manifest(2)).close()

        listed = invoke("status", server.url)
        words = listed.stdout.splitlines()[1].split()
        found = invoke("status", server.url, "--crawl", words[0])

    assert words[0] == "näws/2026:1"
    assert found.exit_code == 0


def test_a_server_without_crawls_is_said_to_have_none() -> None:
    """With the command that makes one."""
    with LocalServer() as server:
        listed = invoke("status", server.url)

    assert listed.exit_code == 0
    assert f"no crawl in {server.url} yet: mannerly crawl SEED --redis-url" in listed.stderr


def test_a_database_that_a_server_does_not_have_is_named() -> None:
    """It is a mistake in the URL: exit code 2."""
    with LocalServer() as server:
        listed = invoke("status", server.url.replace("/0", "/99"))

    assert listed.exit_code == 2
    assert "has no database 99" in listed.stderr


def test_a_misspelled_directory_does_not_make_pages_lost() -> None:
    """`retry --missing` would fetch everything again that is in it."""
    with LocalServer() as server:
        create_crawl(f"{server.url}#news", new_manifest(2)).close()

        tried = invoke("retry", server.url, "--crawl", "news", "--missing", "--data-dir", "nowhere")
        with closing(open_crawl(f"{server.url}#news")) as crawl:
            orders = crawl.orders()

    assert tried.exit_code == 2
    assert "nowhere (--data-dir)" in tried.stderr
    assert orders == []


def test_what_is_not_there_is_said_with_what_to_do() -> None:
    """The crawls of a server can be listed; a directory may be misspelled."""
    with LocalServer() as server:
        create_crawl(f"{server.url}#news", new_manifest(2)).close()

        missing = invoke("status", server.url, "--crawl", "nwes")
        folder = invoke("export", server.url, "--crawl", "news", "--data-dir", "nowhere", "-o", "-")

    assert (missing.exit_code, folder.exit_code) == (2, 0)  # no page was fetched yet
    assert missing.stderr.endswith(f"`mannerly status {server.url}` lists the crawls there\n")
    assert "nowhere (--data-dir): its records count as missing\n" in folder.stderr


def test_status_counts_the_workers_of_a_crawl() -> None:
    """One has a pid; of several the number is said, and each has a line."""
    with LocalServer() as server, closing(create_crawl(f"{server.url}#x", new_manifest(2))) as one:
        shown = []
        with closing(open_crawl(f"{server.url}#x")) as two:
            for number, store in enumerate((one, two)):
                heartbeat = Heartbeat(f"w{number}", "here", 4711 + number, [], 0, time.time())
                assert store.fleet is not None
                store.fleet.renew(heartbeat, now=0.0)
                shown.append(invoke("status", server.url, "--crawl", "x").stdout)

    assert " (pid 4711), " in shown[0]
    assert " (2 workers), " in shown[1]
    assert [line.split()[0] for line in shown[1].splitlines() if " on here, " in line] == [
        "w0",
        "w1",
    ]
