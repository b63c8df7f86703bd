"""Crawls that extract: what the function returns is kept with its page, exactly once."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from collections import Counter
from typing import TYPE_CHECKING

import pytest
from tests.exports.archive_site import Answer, archive_site
from tests.exports.duck import ask
from tests.harness.commands import MANNERLY, run
from tests.harness.waiting import eventually

import mannerly
from mannerly.crawler.options.values import OptionError
from mannerly.exports import export

if TYPE_CHECKING:
    from pathlib import Path

    from mannerly import Page

FAST = {"delay": 0.001, "start_rate": 1000, "max_rate": 1000, "strategy": "fixed"}
PACE = ["--delay", "0.005", "--start-rate", "200", "--max-rate", "200", "--strategy", "fixed"]


def shop(pages: int) -> dict[str, Answer]:
    answers = {
        f"/{number}": Answer(f"<html><title>{number}</title><b>{number}</b>".encode())
        for number in range(pages)
    }
    links = "".join(f'<a href="{path}">x</a>' for path in [*answers, "/missing"])
    return {**answers, "/": Answer(f"<html>{links}</html>".encode())}


def rows(file: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in file.read_text().splitlines()]


def test_items_of_every_page_are_exported(tmp_path: Path) -> None:
    """As JSON lines, CSV and Parquet; pages that are not 2xx have none."""

    def extract(page: Page) -> list[dict[str, object]]:
        found = page.select_one("b")
        return [{"url": page.url, "n": int(found.text), "=tag": ["a"]}] if found else []

    with archive_site(shop(5)) as site:
        for _ in mannerly.crawl(site.url, data_dir=tmp_path / "crawl", extract=extract, **FAST):
            pass
    for name in ("items.jsonl", "items.csv", "items.parquet"):
        export(tmp_path / "crawl", f"items:{tmp_path / name}")

    numbers = [row["n"] for row in rows(tmp_path / "items.jsonl")]
    with (tmp_path / "items.csv").open(newline="") as file:
        table = list(csv.DictReader(file))
    found = ask(f"SELECT n FROM '{tmp_path / 'items.parquet'}'")
    assert sorted(numbers) == sorted(n for (n,) in found) == list(range(5))
    assert sorted(row["n"] for row in table) == list("01234")
    assert "'=tag" in table[0], "a key is text of a program, and a cell all the same"


@pytest.mark.processes
def test_command_extracts_with_a_file(tmp_path: Path) -> None:
    """The function of a file, its failures counted and shown, in two processes."""
    (tmp_path / "my_items.py").write_text(
        "def extract(page):\n"
        "    if page.url.endswith('/3'):\n"
        "        raise ValueError('no price')\n"
        "    return {'title': page.title}\n"
    )
    with archive_site(shop(6)) as site:
        words = ["crawl", site.url, "--data-dir", "crawl", *PACE, "--processes", "2"]
        words += ["--extract", "my_items.py:extract", "-o", "items:items.jsonl"]
        ended = run(*words, cwd=tmp_path)

    titles = Counter(row["title"] for row in rows(tmp_path / "items.jsonl"))
    assert ended.returncode == 0, ended.stderr
    assert {title for title in titles if title} == {"0", "1", "2", "4", "5"}
    assert "extract failed on 1 page" in ended.stderr
    assert "no price" in ended.stderr


@pytest.mark.processes
def test_mistake_in_the_name_is_found_before_the_first_request(tmp_path: Path) -> None:
    """Exit code 2, and no directory."""
    with archive_site(shop(1)) as site:
        words = ["crawl", site.url, "--data-dir", "crawl", "--extract", "gone.py:f"]
        ended = run(*words, cwd=tmp_path)

        assert ended.returncode == 2
        assert "there is no file" in ended.stderr
        assert site.requests == []
    assert list(tmp_path.iterdir()) == []


def test_function_that_others_cannot_import_needs_one_process(tmp_path: Path) -> None:
    """The message says what to do."""
    with pytest.raises(OptionError, match="processes=1"):
        mannerly.Crawl("http://127.0.0.1:1/", extract=lambda page: None, processes=2)


@pytest.mark.processes
@pytest.mark.parametrize("kills", [4, pytest.param(10, marks=pytest.mark.long)])
def test_items_records_and_archive_agree_whatever_is_killed(tmp_path: Path, kills: int) -> None:
    """Every page once in records, items and WARC; fetched again at most what was in flight."""
    (tmp_path / "my_items.py").write_text("def extract(page):\n    return {'url': page.url}\n")
    pages = 30 * (kills + 1)
    words = [
        *MANNERLY,
        "crawl",
        "--data-dir",
        "crawl",
        *PACE,
        "--keep-bodies",
        "--concurrency",
        "8",
    ]
    words += ["--extract", "my_items.py:extract", "--seeding-strategy", "none", "-q"]
    with archive_site(shop(pages)) as site:
        for kill in range(1, kills + 1):
            process = subprocess.Popen([*words, site.url], cwd=tmp_path)
            eventually(lambda wanted=kill: len(site.requests) >= 25 * wanted)
            process.kill()
            process.wait()
        subprocess.run([*words, site.url], cwd=tmp_path, check=True, timeout=60)
        asked = Counter(request.split(b" ", 2)[1].decode() for request in site.requests)
    for name in ("pages.jsonl", "items:items.jsonl", "site.warc.gz"):
        table, colon, file = name.rpartition(":")
        export(tmp_path / "crawl", f"{table}{colon}{tmp_path / file}")

    recorded = Counter(str(row["url"]) for row in rows(tmp_path / "pages.jsonl"))
    items = Counter(str(row["url"]) for row in rows(tmp_path / "items.jsonl"))
    index = subprocess.run(
        [sys.executable, "-m", "cdxj_indexer.main", str(tmp_path / "site.warc.gz")],
        capture_output=True, text=True, timeout=60, check=True,
    ).stdout  # fmt: skip
    archived = Counter(json.loads(line.split(" ", 2)[2])["url"] for line in index.splitlines())
    del archived[site.url + "robots.txt"]
    wanted = {site.url, *(site.url + str(number) for number in range(pages))}
    assert recorded == archived == Counter([*wanted, site.url + "missing"])
    assert items == Counter(wanted)
    again = sum(count - 1 for path, count in asked.items() if path != "/robots.txt")
    assert again <= 8 * kills
