"""`mannerly check` on two servers with planted faults; the judge is their log."""

from __future__ import annotations

import csv
import json
from collections import Counter
from contextlib import chdir
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest
from tests.harness.commands import invoke
from tests.report.links_site import HOME, two_servers
from tests.report.site import Planted, Server, html, redirect, served

if TYPE_CHECKING:
    from click.testing import Result

DELAY_S = 0.5
JITTER_S = 0.1  # between a request and its line in the log, on a busy machine
PACE = ("--start-rate", "50", "--max-rate", "unlimited", "--quiet")


def check(server: Server, *options: object) -> Result:
    arguments = ["check", f"{server.home}/", "--allow-net", "127.0.0.0/8", *map(str, options)]
    return invoke(*arguments)


def broken(outcome: Result, *servers: Server) -> dict[str, str]:
    """The answers by target, with the origins named."""
    found = {}
    for each in json.loads(outcome.stdout)["broken"]:
        target = each["target"]
        for name, server in zip(("home:", "other:"), servers, strict=False):
            target = target.replace(server.home, name)
        found[target] = each["answer"]
    return found


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


class Checked(NamedTuple):
    """What the command said, and the two servers that it asked."""

    outcome: Result
    home: Server
    other: Server


@pytest.fixture(scope="module")
def checked(tmp_path_factory: pytest.TempPathFactory) -> Checked:
    """One check of both. It takes seconds: a page that wants a login slows its host down."""
    with two_servers() as (home, other), chdir(tmp_path_factory.mktemp("check")):
        return Checked(check(home, *PACE, "--json"), home, other)


def test_everything_planted_is_found_and_nothing_else(checked: Checked) -> None:
    """Pages, images, styles, scripts, anchors and links to other sites; robots.txt is obeyed."""
    outcome, home, other = checked

    assert outcome.exit_code == 1
    assert broken(outcome, home, other) == {
        "home:/missing": "404",
        "home:/missing.gif": "404",
        "home:/missing-2x.gif": "404",
        "home:/missing.css": "404",
        "home:/missing.js": "404",
        "home:/unfollowed": "404",
        "home:/#nowhere": "no such anchor",
        "home:/was-a#absent": "no such anchor",
        "other:/gone": "404",
        "other:/gone-after-hop": "404",
        "other:/broken-no-head": "410",
        "http://127.0.0.3:9/x": "connection refused",
    }
    result = json.loads(outcome.stdout)
    missing = next(each for each in result["broken"] if each["target"].endswith("/missing"))
    assert [(link["page"], link["text"]) for link in missing["linked_from"]] == [
        (f"{home.home}/", "no page"),
        (f"{home.home}/", "moved"),
        (f"{home.home}/a", "again"),
    ]
    assert sum(result["unchecked"].values()) == 3
    assert not {path for path in [*home.asked(), *other.asked()] if "/private/" in path}


def test_no_link_is_asked_for_twice(checked: Checked) -> None:
    """But for a GET after a refused HEAD; what was crawled is not asked for again."""
    _, home, other = checked

    assert max(Counter(home.asked()).values()) == 1
    assert set(home.asked("GET")) == {"/", "/a", "/missing", "/moved", "/was-a"}
    twice = [path for path, count in Counter(other.asked()).items() if count > 1]
    assert sorted(twice) == ["/broken-no-head", "/login", "/no-head"]
    assert Counter(other.asked("HEAD")).most_common(1)[0][1] == 1
    assert sorted(other.asked("GET")) == sorted(twice)


@pytest.mark.processes
def test_no_host_is_asked_faster_than_allowed() -> None:
    """By the servers' logs: each keeps the minimum delay, and gets one request at a time."""
    with two_servers() as (home, other):
        check(home, *PACE, "--delay", DELAY_S, "--exclude", "http://127.0.0.3*")

    assert len(other.log) > 5
    assert min(other.gaps_s()) >= DELAY_S - JITTER_S
    assert min(home.gaps_s()) >= DELAY_S - JITTER_S


def test_a_sound_site_exits_0(tmp_path: Path) -> None:
    """It says how much was checked, and leaves nothing behind."""
    pages = {
        "/": Planted(html('<a href="/a#x">a</a><img src="/i.gif">')),
        "/a": Planted(html("<p id=x>")),
    }
    pages |= {"/i.gif": HOME["/ok.gif"]}
    with served(pages) as home:
        outcome = check(home, *PACE[:-1])

    assert outcome.exit_code == 0, outcome.stderr
    assert outcome.stdout == ""
    assert "No link is broken: 2 pages and 1 other link were checked" in outcome.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_redirect_that_never_ends_is_broken() -> None:
    """With the pages that link to it."""
    pages = {"/": Planted(html('<a href="/1">go</a>')), "/1": redirect("/2"), "/2": redirect("/1")}
    with served(pages) as home:
        outcome = check(home, *PACE)

    assert outcome.exit_code == 1
    assert f"redirect loop: {home.home}/1\n    linked from {home.home}/ “go”" in outcome.stdout


def test_what_is_broken_is_written_to_files(tmp_path: Path) -> None:
    """As a report, as CSV and as JSON."""
    pages = {"/": Planted(html('<a href="/gone">=cmd()</a>'))}
    with served(pages) as home:
        outcome = check(home, *PACE, "-o", "r.html", "-o", "r.csv", "-o", "r.json")

    assert outcome.exit_code == 1
    with Path("r.csv").open(newline="", encoding="utf-8") as file:
        assert [row["text"] for row in csv.DictReader(file)] == ["'=cmd()"]
    assert json.loads(Path("r.json").read_bytes())["broken"][0]["answer"] == "404"
    assert Path("r.html").read_text("utf-8").startswith("<!doctype html>")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("-o", "x.pdf"), "a check is written as .html, .csv or .json"),
        (("-o", "no/x.csv"), "there is no directory no"),
        (("--fail-on", "broke>0"), "there is no broke; allowed: broken, failed"),
    ],
)
def test_mistakes_are_found_before_the_first_request(options: tuple[str, ...], said: str) -> None:
    """With exit code 2."""
    with served({}) as home:
        outcome = check(home, *options)

    assert outcome.exit_code == 2
    assert said in outcome.stderr
    assert home.log == []


def test_a_limit_of_pages_leaves_the_rest_unvisited() -> None:
    """Links of the pages that were visited are checked; the others are counted, not crawled."""
    pages = {"/": Planted(html('<a href="/a">a</a><a href="/b">b</a><img src="/no.gif">'))}
    pages |= {"/a": Planted(html("a")), "/b": Planted(html("b"))}
    with served(pages) as home:
        outcome = check(home, *PACE, "--max-urls", "1", "--json", "--seeding-strategy", "none")

    assert home.asked() == ["/", "/no.gif"]
    assert broken(outcome, home) == {"home:/no.gif": "404"}
    assert json.loads(outcome.stdout)["unchecked"] == {"not visited: a limit was reached before": 2}
