"""The first minute of a new user with a mistake: the cause within seconds, a code, what to do.

Each is one real command on real sockets, judged by what it prints and how it exits.
"""

from __future__ import annotations

import time
from datetime import UTC, datetime
from ipaddress import ip_address
from typing import TYPE_CHECKING

import pytest
from cryptography import x509
from tests.cli.test_endings import HTML, PATIENCE_S, QUICK, SITE
from tests.crawler.fetch.certificates import Authority
from tests.crawler.fetch.raw_server import RawServer, answer, routes
from tests.harness.commands import run_at
from tests.harness.sites import free_port

if TYPE_CHECKING:
    import socket
    import subprocess
    from collections.abc import Callable
    from pathlib import Path

pytestmark = pytest.mark.processes

HERE = x509.IPAddress(ip_address("127.0.0.1"))
LISTS = "  mannerly crawl --help lists all options.\n"
WITHIN_S = 15  # is promised; a busy machine gets five times that


@pytest.fixture
def crawl(tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run `mannerly crawl`, and see that it ends in time and without a traceback."""

    def crawl(*arguments: str) -> subprocess.CompletedProcess[str]:
        began = time.monotonic()
        outcome = run_at(tmp_path, "crawl", *arguments, *QUICK)
        assert time.monotonic() - began < 5 * WITHIN_S <= PATIENCE_S
        assert "Traceback" not in outcome.stderr
        return outcome

    return crawl


def says(outcome: subprocess.CompletedProcess[str], *lines: str) -> bool:
    """Return whether these lines are printed, in this order."""
    at = 0
    for line in lines:
        at = outcome.stderr.find(line, at)
        if at < 0:
            raise AssertionError(f"{line!r} is not in\n{outcome.stderr}")
    return True


Command = "Callable[..., subprocess.CompletedProcess[str]]"


def test_dead_port(crawl: Command) -> None:
    """Nothing listens there."""
    url = f"http://127.0.0.1:{free_port()}/"

    outcome = crawl(url)

    assert outcome.returncode == 3
    assert says(
        outcome,
        "× Failed: no seed could be fetched",
        f"  {url}   connection refused: no server is running on this port",
        "  Check the port, and that the server runs; then run the same command again.",
    )


def test_name_that_does_not_exist(crawl: Command) -> None:
    """A misspelled host."""
    outcome = crawl("https://handbok.invalid/")

    assert outcome.returncode == 3
    assert says(
        outcome,
        "  https://handbok.invalid/   host name not found",
        "  Check the name, then run the same command again.",
    )


@pytest.mark.parametrize("kind", ["self-signed", "expired"])
def test_wrong_certificate(crawl: Command, tmp_path: Path, kind: str) -> None:
    """With the option that trusts another authority."""
    until = datetime(2021, 1, 1, tzinfo=UTC)
    made = Authority(tmp_path).certificate(HERE, **({"until": until} if kind == "expired" else {}))
    with RawServer(SITE, tls=made.context()) as server:
        outcome = crawl(server.url())

    assert outcome.returncode == 3
    assert says(
        outcome, f"  {server.url()}   the certificate", "--ca-file trusts another authority"
    )


def test_misspelled_file(crawl: Command) -> None:
    """Before anything is fetched."""
    outcome = crawl("seeds.tx.txt")

    assert outcome.returncode == 2
    assert says(outcome, "file not found: seeds.tx.txt; if it is a host, write https:// before it")


def test_robots_txt_that_forbids_all(crawl: Command) -> None:
    """Nothing else is asked for."""
    forbids = routes({"/robots.txt": answer(b"User-agent: *\nDisallow: /\n")})
    with RawServer(forbids) as server:
        outcome = crawl(server.url())

    assert outcome.returncode == 3
    assert says(
        outcome, f"  {server.url()}   forbidden by robots.txt", "Start\n  from a URL that it allows"
    )


@pytest.mark.parametrize(
    ("status", "advice"),
    [("401 Unauthorized", "The page asks for a login."), ("403 Forbidden", "The site refuses us.")],
)
def test_page_that_refuses(crawl: Command, status: str, advice: str) -> None:
    """A login that is asked for by its status."""
    with RawServer(routes({"/": answer(b"no", status)})) as server:
        outcome = crawl(server.url())

    assert outcome.returncode == 3
    assert says(outcome, f"  {server.url()}   the server answered {status}", advice)


def test_seed_that_leads_to_another_host(crawl: Command) -> None:
    """It was fetched, and there is nothing more: exit 1, and the commands that follow."""
    there = f"http://127.0.0.2:{free_port()}/"
    moved = answer(b"", "301 Moved Permanently", f"Location: {there}")
    with RawServer(routes({"/": moved})) as server:
        outcome = crawl(server.url())

    assert outcome.returncode == 1
    assert says(
        outcome,
        "◇ Incomplete: 1 page; the seed leads to another host",
        f"  {server.url()}  301 →  {there}",
        f"  mannerly crawl {there}   # crawl there instead",
        f"  mannerly crawl {server.url()} {there}   # or both",
    )


def test_seed_that_leads_to_a_page_that_is_skipped(crawl: Command) -> None:
    """Forbidden by robots.txt: not another host, and nothing was found all the same."""
    pages = {
        "/robots.txt": answer(b"User-agent: *\nDisallow: /private\n"),
        "/": answer(b"", "302 Found", "Location: /private/"),
    }
    with RawServer(routes(pages)) as server:
        outcome = crawl(server.url())

    assert outcome.returncode == 1
    assert says(
        outcome,
        "the seed leads to a page that was skipped",
        f"302 →  {server.url('/private/')}   forbidden by robots.txt",
        "  Start from a page that may be fetched.",
    )


def test_seed_that_leads_elsewhere_beside_one_that_does_not(crawl: Command) -> None:
    """Then the crawl is finished: only a crawl that could not begin is not."""
    moved = answer(b"", "302 Found", "Location: http://127.0.0.1:9/")
    with RawServer(routes({"/a": moved, "/b": answer(b"x", "200 OK", HTML)})) as server:
        outcome = crawl(server.url("/a"), server.url("/b"))

    assert outcome.returncode == 0
    assert says(outcome, "✓ Finished: 2 pages")


def test_seed_that_leads_to_a_login(crawl: Command) -> None:
    """On its own host, so that it can be followed, and still nothing was found."""
    login = answer(b"<form><input type=password></form>", "200 OK", HTML)
    moved = answer(b"", "302 Found", "Location: /login?next=%2F")
    with RawServer(routes({"/": moved, "/login?next=%2F": login, "/login": login})) as server:
        outcome = crawl(server.url())

    assert outcome.returncode == 1
    assert says(
        outcome,
        "the seed leads to a login page",
        f"  {server.url()}  302 →  {server.url('/login?next=%2F')}",
        "  Start from a page that needs no login.",
    )


def test_robots_txt_that_never_comes(crawl: Command) -> None:
    """The limit that is named is the one for robots.txt, with the option that goes on without."""

    def wait(connection: socket.socket, _path: str) -> bool:
        connection.recv(1)  # until the other side gives up
        return False

    with RawServer(wait) as server:
        outcome = crawl(server.url(), "--robots-timeout", "0.2")

    assert outcome.returncode == 3
    assert says(outcome, "no robots.txt in time (--robots-timeout", "--robots-unreachable allow")
    assert " --timeout" not in outcome.stderr


def test_server_that_resets(crawl: Command) -> None:
    """A server that closes every connection has problems of its own."""

    def close(connection: socket.socket, _path: str) -> bool:
        connection.close()
        return False

    with RawServer(close) as server:
        outcome = crawl(server.url())

    assert outcome.returncode == 3
    assert says(outcome, f"  {server.url()}   the host closed the connection", "Run the same comm")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (
            ("crawl", "--max-url", "5"),
            f"mannerly: no option --max-url. Did you mean --max-urls?\n{LISTS}",
        ),
        (
            ("crwal", "x"),
            (
                "mannerly: no command crwal. Did you mean crawl?\n"
                "  mannerly --help lists all commands.\n"
            ),
        ),
        (
            ("hosts",),
            "mannerly: missing argument 'DIR'.\n  mannerly hosts --help lists all options.\n",
        ),
    ],
)
def test_wrong_command_line(tmp_path: Path, arguments: tuple[str, ...], words: str) -> None:
    """Two lines: what is wrong with the nearest right one, and where all are listed."""
    outcome = run_at(tmp_path, *arguments)

    assert (outcome.returncode, outcome.stderr) == (2, words)


@pytest.mark.parametrize("arguments", [(), ("host",), ("config",)])
def test_without_a_command_there_is_help(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    """Nothing is wrong with it but the missing command: exit 2, and no sign of an error."""
    outcome = run_at(tmp_path, *arguments)

    assert outcome.returncode == 2
    assert outcome.stderr.startswith(f"Usage: {' '.join(('mannerly', *arguments))} [OPTIONS]")
