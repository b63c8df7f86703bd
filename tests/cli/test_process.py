"""The command as the shell sees it: real processes, a real server on the loopback address."""

from __future__ import annotations

import json
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.exports.stored_example import make_crawl
from tests.harness.commands import run_at
from tests.harness.sites import Request, serving

import mannerly
from mannerly.crawler.store import open_crawl

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.processes

PATIENCE_S = 60
SOURCE = str(Path(mannerly.__file__).parents[1])  # the package under test, wherever it is installed


def respond(request: Request) -> None:
    is_page = request.path in ("/", "/start")
    body = "<title>Home</title>" if is_page else ""
    if request.path == "/start":
        body += "<a href=/missing>a</a> <a href=http://other.example/>b</a> <a href=ftp://c/>c</a>"
    request.answer(200 if is_page else 404, body)


@pytest.fixture
def site() -> Iterator[str]:
    with serving(respond) as origin:
        yield f"{origin}/"


def test_crawl_is_run_exported_and_resumed(tmp_path: Path, site: str) -> None:
    """From a URL to records on stdout; what is finished has nothing left to do."""
    options = ("--processes", "1", "--seeding-strategy", "none", "--data-dir", "mine")

    first = run_at(tmp_path, "crawl", site, *options, "-o", "-")
    again = run_at(tmp_path, "resume", "mine", "--json", "--quiet")

    (record,) = [json.loads(line) for line in first.stdout.splitlines()]
    assert (first.returncode, again.returncode) == (0, 0)
    assert (record["url"], record["status"], record["title"]) == (site, 200, "Home")
    assert "Finished: 1 page in" in first.stderr
    assert "\x1b" not in first.stderr
    assert json.loads(again.stdout)["fetched"] == 0
    assert again.stderr == ""


def test_summary_export_and_status_count_the_same_pages(tmp_path: Path, site: str) -> None:
    """A sitemap is no page; every reason is in words, and the audited requests are counted."""
    options = ("--strategy", "fixed", "--delay", "0.1", "--data-dir", "mine", "-o", "-")

    crawl = run_at(tmp_path, "crawl", site + "start", *options)
    status = run_at(tmp_path, "status", "mine", "--json")

    total = json.loads(status.stdout)["total"]
    assert (total["fetched"], total["lists"]) == (2, 1)
    assert len(crawl.stdout.splitlines()) == 2
    assert "Finished: 2 pages in" in crawl.stderr
    assert "Answers      1 × 2xx   1 × 4xx" in crawl.stderr
    assert "Skipped      1 link to another host (--scope)   1 not http(s)" in crawl.stderr
    # robots.txt, the sitemap and two pages.
    assert "all 4 requests kept each host's gap" in crawl.stderr


def test_gaps_are_told_with_what_was_required(tmp_path: Path, site: str) -> None:
    """By the result of the crawl, and of each host by its record."""
    options = ("--processes", "1", "--data-dir", "mine", "--delay", "0.2", "--quiet", "--json")

    result = json.loads(run_at(tmp_path, "crawl", site + "start", *options).stdout)
    (host,) = json.loads(run_at(tmp_path, "hosts", "mine", "--json").stdout)
    shown = run_at(tmp_path, "host", "show", "mine", site).stdout

    tightest = result["tightest_gap"]
    assert (result["audited"], result["too_early"]) == (4, 0)
    assert tightest["host"] == host["host"]
    assert tightest["smallest_gap_s"] >= 0.98 * tightest["required_gap_s"] >= 0.19
    assert host["smallest_gap_s"] >= 0.98 * host["required_gap_s"] >= 0.19
    assert host["early"] == 0
    assert f"smallest gap    {host['smallest_gap_s']:.3f} s, required" in shown
    assert "state           done" in shown


def test_source_of_other_hosts_widens_the_scope_and_says_so(tmp_path: Path, site: str) -> None:
    """With certificate transparency the scope is the site, unless another one is asked for."""
    index = site + "none?q={site}"
    usual = ("--processes", "1", "--seeding-strategy", "ct", "--ct-url", index)

    widened = run_at(tmp_path, "crawl", site, *usual, "--data-dir", "a")
    resumed = run_at(tmp_path, "crawl", site, *usual, "--data-dir", "a")
    narrow = run_at(tmp_path, "crawl", site, *usual, "--data-dir", "b", "--scope", "host")

    scopes = []
    for name in ("a", "b"):
        with closing(open_crawl(tmp_path / name)) as store:
            scopes.append(store.manifest.settings["scope"])
    assert (widened.returncode, resumed.returncode, narrow.returncode) == (0, 0, 0)
    assert scopes == ["site", "host"]
    assert "so the scope is the site" in widened.stderr
    assert "the scope is the site" not in narrow.stderr


def test_mistake_is_exit_code_two_with_an_empty_stdout(tmp_path: Path) -> None:
    """One sentence, whatever the terminal."""
    outcome = run_at(tmp_path, "crawl", "no://where", "--quiet")

    assert (outcome.returncode, outcome.stdout) == (2, "")
    assert outcome.stderr.startswith("mannerly: no://where cannot be crawled: only http and https")


def test_reader_that_goes_away_ends_an_export_in_silence(tmp_path: Path) -> None:
    """`| head` is no reason for a traceback."""
    crawl = make_crawl(tmp_path / "crawl")

    outcome = subprocess.run(
        f"{sys.executable} -m mannerly export {crawl} -o - | true",
        shell=True,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )

    assert "Traceback" not in outcome.stderr


@pytest.mark.parametrize("stderr", ["2>&-", "2>/dev/full", "2>&1 >/dev/null | true"])
@pytest.mark.parametrize("processes", [1, 2])
def test_a_crawl_goes_on_when_nobody_hears_it(
    tmp_path: Path, site: str, stderr: str, processes: int
) -> None:
    """What it has to tell is lost, and nothing else."""
    command = f"{sys.executable} -m mannerly crawl {site} --processes {processes}"
    options = "--seeding-strategy none --log-interval 0.01 --log-format text --data-dir mine"

    outcome = subprocess.run(
        f"{command} {options} {stderr}",
        shell=True,
        cwd=tmp_path,
        stdout=subprocess.DEVNULL,
        timeout=PATIENCE_S,
        check=False,
    )
    left = run_at(tmp_path, "status", "mine", "--json")

    assert outcome.returncode == 0
    assert json.loads(left.stdout)["total"]["fetched"] == 1
