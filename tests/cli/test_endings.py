"""Every ending of a crawl: the exit code, and the cause in words, judged by real processes."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from datetime import UTC, datetime
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from cryptography import x509
from tests.crawler.fetch.certificates import Authority
from tests.crawler.fetch.raw_server import RawServer, answer, hold, routes
from tests.harness.commands import MANNERLY, bare, run_at
from tests.harness.sites import free_port

import mannerly

if TYPE_CHECKING:
    import socket

pytestmark = pytest.mark.processes

PATIENCE_S = 75  # five times the 15 s within which a crawl without a seed has to end
SOURCE = str(Path(mannerly.__file__).parents[1])
HTML = "Content-Type: text/html"
LINKS = b"".join(b"<a href=/%d>x</a>" % number for number in range(50))
SITE = routes(
    {
        "/": answer(LINKS, "200 OK", HTML),
        **{f"/{number}": answer(b"x", "200 OK", HTML) for number in range(50)},
    }
)
QUICK = ("--seeding-strategy", "none", "--processes", "1", "--data-dir", "mine")
FAST = ("--strategy", "fixed", "--delay", "0.01", "--max-rate", "unlimited")


def command(directory: Path, *arguments: object) -> subprocess.Popen[str]:
    """Start the command in a directory, with an empty home."""
    return subprocess.Popen(
        [*MANNERLY, *map(str, arguments)],
        cwd=directory,
        env=bare(directory),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def silent(connection: socket.socket, _path: str) -> bool:
    """Accept a request and never answer it."""
    return hold(connection)


# ---------------------------------------------------------------------- no seed could be fetched


def test_misspelled_host_ends_within_seconds_with_the_cause(tmp_path: Path) -> None:
    """On the terminal, in JSON, by `explain` and `host show`; and again on the next run."""
    began = time.monotonic()
    first = run_at(tmp_path, "crawl", "seeds.invalid", *QUICK, "--json", "-v")
    took_s = time.monotonic() - began
    again = run_at(tmp_path, "resume", "mine")
    explained = run_at(tmp_path, "explain", "mine", "https://seeds.invalid/")
    shown = run_at(tmp_path, "host", "show", "mine", "seeds.invalid")

    words = "host name not found: check the spelling"
    assert (first.returncode, again.returncode) == (3, 3)
    assert took_s < PATIENCE_S
    assert f"  https://seeds.invalid/   {words}" in first.stderr
    assert "there is no file of that name here" in first.stderr
    assert f'Given-up host=seeds.invalid reason="{words}' in first.stderr
    assert json.loads(first.stdout)["seed_problems"] == [
        {"url": "https://seeds.invalid/", "cause": "name_not_resolved"}
    ]
    assert words in again.stderr
    assert words in explained.stdout
    assert f"given up: {words}" in shown.stdout


def test_refused_connection_and_wrong_certificates_are_told_apart(tmp_path: Path) -> None:
    """One line for each seed, whatever it was that went wrong."""
    here = x509.IPAddress(ip_address("127.0.0.1"))
    expired = Authority(tmp_path).certificate(here, until=datetime(2021, 1, 1, tzinfo=UTC))
    refused = f"http://127.0.0.1:{free_port()}/"
    tls = Authority(tmp_path).certificate(here).context()
    forbids = routes({"/robots.txt": answer(b"User-agent: *\nDisallow: /\n")})
    locked = routes({"/": answer(b"no", "401 Unauthorized")})
    with (
        RawServer(SITE, tls=tls) as private,
        RawServer(SITE, tls=expired.context()) as old,
        RawServer(forbids) as closed,
        RawServer(locked) as secret,
        RawServer(silent) as hanging,
    ):
        causes = {
            refused: "connection refused: no server is running on this port",
            private.url(): "the certificate is self-signed (--ca-file, --insecure-host)",
            old.url(): "the certificate",
            closed.url(): "forbidden by robots.txt (--ignore-robots)",
            secret.url(): "the server answered 401 Unauthorized",
            hanging.url(): "connected, but no robots.txt in time (--robots-timeout, ",
        }
        outcome = run_at(tmp_path, "crawl", *causes, *QUICK, "--robots-timeout", "0.7")

    assert outcome.returncode == 3
    for url, cause in causes.items():
        assert f"  {url}   {cause}" in outcome.stderr


def test_unreachable_host_beside_others_is_exit_code_one(tmp_path: Path) -> None:
    """The pages of the others are fetched; the dead host is given up when they are done."""
    with RawServer(routes({"/": answer(b"x", "200 OK", HTML)})) as server:
        seeds = (f"http://127.0.0.1:{free_port()}/", server.url())
        outcome = run_at(tmp_path, "crawl", *seeds, *QUICK, *FAST, "-v")
        shown = run_at(tmp_path, "explain", "mine", seeds[0])
        again = run_at(tmp_path, "resume", "mine")

    assert (outcome.returncode, again.returncode) == (1, 1)
    assert "connection refused" in outcome.stderr
    assert "  mannerly retry mine --given-up\n" in again.stderr
    assert "connection refused" in shown.stdout


def test_waiting_says_for_how_long_and_at_which_try(tmp_path: Path) -> None:
    """A server that accepts and never answers: progress, or the reason for waiting."""
    with RawServer(silent) as server:
        outcome = run_at(
            tmp_path, "crawl", server.url(), *QUICK, "--log-interval", "0.5",
            "--robots-timeout", "5", "--duration", "4.5",
        )  # fmt: skip

    assert outcome.returncode == 0
    assert "reason=answer waited_s=3 timeout_s=5 attempt=1 attempts=3" in outcome.stderr


# ---------------------------------------------------------------------- the other codes


def test_finished_crawl_is_zero(tmp_path: Path) -> None:
    """A page that failed does not change that; a second run has nothing to do and says so."""
    with RawServer(routes({"/": answer(b"<a href=/gone>x</a>", "200 OK", HTML)})) as server:
        first = run_at(tmp_path, "crawl", server.url(), *QUICK, *FAST)
        again = run_at(tmp_path, "crawl", server.url(), *QUICK, *FAST)

    assert (first.returncode, again.returncode) == (0, 0)
    assert "Finished: 2 pages" in first.stderr


@pytest.mark.parametrize(
    ("limit", "words"),
    [
        (("--max-urls", "3"), "Stopped at --max-urls 3: 3 pages"),
        (("--duration", "0.5"), "Stopped at --duration 0.5: "),
    ],
)
def test_limit_that_was_asked_for_is_zero_and_said(
    tmp_path: Path, limit: tuple[str, str], words: str
) -> None:
    """With the number of URLs that are left, and how to resume."""
    with RawServer(SITE) as server:
        outcome = run_at(tmp_path, "crawl", server.url(), *QUICK, *limit, "--json")

    assert outcome.returncode == 0
    assert words in outcome.stderr
    assert "in the queue" in outcome.stderr
    assert "\n  mannerly resume mine\n" in outcome.stderr
    assert json.loads(outcome.stdout)["pending"] > 0


def test_usage_error_is_two_and_locked_state_is_four(tmp_path: Path) -> None:
    """Each in one sentence."""
    usage = run_at(tmp_path, "crawl", "ftp://a.example/")
    with RawServer(SITE) as server, mannerly.Crawl(server.url(), data_dir=tmp_path / "mine") as it:
        it.start()
        locked = run_at(tmp_path, "resume", "mine")

    assert (usage.returncode, locked.returncode) == (2, 4)
    assert "in use by pid" in locked.stderr
    assert locked.stderr.count("\n") <= 2


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)], ids=["ctrl-c", "term"]
)
def test_stopped_crawl_is_resumable(tmp_path: Path, number: int, code: int) -> None:
    """130 after Ctrl-C, 143 after SIGTERM; the command that resumes it is printed."""
    with RawServer(SITE) as server:
        process = command(tmp_path, "crawl", server.url(), *QUICK, "--log-interval", "0.1")
        assert process.stderr is not None
        while "pages=" not in process.stderr.readline():  # notices come before the crawl
            pass
        process.send_signal(number)
        _, said = process.communicate(timeout=PATIENCE_S)

    assert process.returncode == code
    assert "\n  mannerly resume mine\n" in said


def test_fixed_strategy_keeps_to_the_rate_that_was_asked_for(tmp_path: Path) -> None:
    """51 pages at --max-rate 100 take half a second, not a minute; by --delay the same."""
    with RawServer(SITE) as server:
        took = []
        for pace in (("--max-rate", "100"), ("--delay", "0.01", "--max-rate", "unlimited")):
            options = (*QUICK, "--fresh", "--strategy", "fixed", "--json", "--quiet")
            outcome = run_at(tmp_path, "crawl", server.url(), *options, *pace)
            result = json.loads(outcome.stdout)
            took.append((outcome.returncode, result["fetched"], result["seconds"] < 10))

    assert took == [(0, 51, True)] * 2


def test_first_ctrl_c_is_acknowledged(tmp_path: Path) -> None:
    """While the request under way is waited for; a second one would stop at once."""
    with RawServer(silent) as server:
        process = command(tmp_path, "crawl", server.url(), *QUICK, "--log-interval", "0.1")
        assert process.stderr is not None
        while "in_flight=1" not in process.stderr.readline():
            pass
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=PATIENCE_S)

    assert process.returncode == 130
    assert "Z Stopping pages=0 per_second=0.0 queued=1 in_flight=1 " in said
