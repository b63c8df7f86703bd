"""A report after a real recrawl: what is new, changed and gone, by the real commands."""

from __future__ import annotations

import csv
from typing import TYPE_CHECKING

import pytest
from tests.harness.commands import invoke
from tests.report.browser import browser_ends, opened
from tests.report.site import FAULTY, Planted, html, redirect, served

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["browser_ends"]  # a fixture of this module, too

PACE = ("--strategy", "fixed", "--delay", "0.01", "--max-rate", "unlimited", "--processes", "1")
TWINS = '<a href="/docs/gone-soon">soon</a><a href="/docs/b">b</a>'


def run(*words: object) -> str:
    done = invoke(*words)
    assert done.exit_code in (0, 1), done.output
    return done.output


@pytest.fixture(scope="module")
def again(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A site with faults, crawled; then some of it changes, and it is crawled again."""
    place = tmp_path_factory.mktemp("again")
    data_dir = place / "crawl"
    site = FAULTY | {
        "/docs/a": Planted(html(TWINS, "Twins")),
        "/docs/gone-soon": Planted(html("still here", "Soon")),
        "/docs/was-missing": Planted(status=404),
        "/docs/c": Planted(html('<a href="/docs/was-missing">later</a> words', "C")),
    }
    with served(site) as server:
        run("crawl", f"{server.home}/", "--data-dir", data_dir, "--links", *PACE, "-q")
        server.pages |= {
            "/docs/gone-soon": Planted(html("gone", "Gone"), 410),
            "/docs/was-missing": Planted(html("here now", "Here")),
            "/docs/b": Planted(html('<p id="here">other words</p><a href="/docs/new">n</a>', "B")),
            "/docs/new": Planted(html("new", "New")),
            "/v1": redirect("/v3"),
            "/docs/hidden": Planted(html("not hidden any more", "Hidden")),
        }
        run("recrawl", data_dir, "-q")
        report = ["-o", place / "report.html", "--csv", place / "csv"]
        said = run("report", data_dir, *report)
        assert "links are broken" in said
        return place, server.home


def test_changes_of_a_recrawl_are_in_the_table(again: tuple[Path, str]) -> None:
    """Each with what has happened to it; nothing that is the same, and nothing twice."""
    place, home = again
    with (place / "csv" / "changes.csv").open(newline="", encoding="utf-8") as file:
        rows = [
            (row["change"], row["url"].removeprefix(home), row["what"])
            for row in csv.DictReader(file)
        ]

    assert rows == [
        ("gone", "/docs/gone-soon", "200 → 410, still linked from 1 page"),
        ("new", "/docs/new", "linked from 1 page"),
        ("new", "/docs/was-missing", "linked from 1 page"),
        ("changed", "/docs/b", "other content"),
        ("changed", "/docs/hidden", "other content"),
        ("changed", "/v1", "another target"),
    ]


def test_the_other_tables_are_those_of_the_second_crawl(again: tuple[Path, str]) -> None:
    """A page that is gone is a broken link now, one that came back is none any more."""
    place, home = again
    with (place / "csv" / "broken.csv").open(newline="", encoding="utf-8") as file:
        broken = {row["target"].removeprefix(home) for row in csv.DictReader(file)}
    with (place / "csv" / "redirects.csv").open(newline="", encoding="utf-8") as file:
        chains = file.read()

    assert broken == {"/gone", "/failing", "/loop-1", "/docs/gone-soon"}
    assert f"{home}/v2" not in chains


@pytest.mark.processes
def test_a_reader_sees_what_changed(again: tuple[Path, str]) -> None:
    """The numbers, the rows with the worst first, and the day of the crawl before."""
    place, _ = again
    with opened(place / "report.html") as seen:
        changes = seen.page.locator("#changes")
        head = changes.locator("h2").inner_text()
        badges = changes.locator(".badges").inner_text().split()[:3]
        first = changes.locator("tbody tr").first.inner_text().split("\n")
        lead = seen.page.locator("main").inner_text()

    assert "What changed" in head
    assert badges == ["new2", "changed3", "gone1"]
    assert first[0].strip() == "gone"
    assert "6 pages are new, changed or gone since" in lead
