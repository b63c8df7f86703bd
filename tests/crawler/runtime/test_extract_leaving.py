"""An extract function can leave in any way: that costs the items of its page, and nothing else."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from tests.crawler.runtime.test_extract_crawl import PACE, shop
from tests.exports.archive_site import archive_site
from tests.harness.commands import run

import mannerly

pytestmark = pytest.mark.processes

WAYS = {  # what the function does on a page, and the error that the page has then
    "raise SystemExit(3)": "SystemExit: 3",
    "raise GeneratorExit": "GeneratorExit",
    "raise KeyboardInterrupt": "KeyboardInterrupt",
    "recurse()": "RecursionError: maximum recursion depth exceeded",
    "os._exit(0)": "ended its process with exit status 0",
    "os.kill(os.getpid(), signal.SIGSEGV)": "ended its process with SIGSEGV",
    "os.closerange(3, 100)": "ended its process with exit status",
    "time.sleep(600)": "TimeoutError: took longer than 1 s",
    "re.match('(a+)+$', 40 * 'a' + 'b')": "TimeoutError: took longer than 1 s",
    "bytearray(2 << 30)": "MemoryError",
    "return {'a': object()}": "TypeError: Encoding objects of type object is unsupported",
    "return 'text'": "TypeError: extract returned str",
    "return loop": "RecursionError",
}
HARMLESS = (
    "os.fork()",
    "os.fork() or time.sleep(600)",
    "sys.modules.clear()",
    "print('in the way')",
    "os.chdir('/')",
)


class Ended(NamedTuple):
    """A crawl whose function left in every way, on a page of its own for each."""

    folder: Path
    code: int
    items: list[dict[str, Any]]  # as they were written to standard output
    said: str
    records: dict[str, dict[str, Any]]  # by what the function did


@pytest.fixture(scope="module")
def ended(tmp_path_factory: pytest.TempPathFactory) -> Ended:
    folder = tmp_path_factory.mktemp("leaving")
    ways = [*WAYS, *HARMLESS, *["pass"] * 3]
    lines = ["import os, re, signal, sys, time", "loop = {}", "loop['a'] = loop"]
    lines += ["def recurse(): recurse()", "def extract(page):"]
    lines += ["    number = page.url.rpartition('/')[2]"]
    lines += [f"    if number == '{number}': {way}" for number, way in enumerate(ways)]
    lines += ["    return {'number': number}"]
    (folder / "my_items.py").write_text("\n".join(lines))
    with archive_site(shop(len(ways))) as site:
        words = ["crawl", site.url, "--data-dir", "crawl", *PACE]
        words += ["--extract", "my_items.py:extract", "--extract-timeout", "1"]
        words += ["-o", "pages.jsonl", "-o", "items:-"]
        done = run(*words, cwd=folder)
        rows = [json.loads(line) for line in (folder / "pages.jsonl").read_text().splitlines()]
        by_url = {row["url"]: row for row in rows}
        records = {way: by_url[f"{site.url}{number}"] for number, way in enumerate(ways)}
    items = [json.loads(line) for line in done.stdout.splitlines()]
    return Ended(folder, done.returncode, items, done.stderr, records)


@pytest.mark.parametrize("way", WAYS)
def test_leaving_costs_the_items_of_the_page(ended: Ended, way: str) -> None:
    """The page is fetched, has no items, and its record says why."""
    record = ended.records[way]

    assert record["status"] == 200
    assert str(record["error"]).startswith(f"extract_failed: {WAYS[way]}")


@pytest.mark.parametrize("way", HARMLESS)
def test_harm_to_its_own_process_costs_nothing(ended: Ended, way: str) -> None:
    """The page has its item once, and so has every page after it."""
    number = [*WAYS, *HARMLESS].index(way)

    assert ended.records[way]["error"] is None
    assert [item["number"] for item in ended.items].count(str(number)) == 1


def test_crawl_goes_on_and_says_how_many_pages_failed(ended: Ended) -> None:
    """Exit code 0, as for any exception; standard output has the items, and nothing else."""
    numbers = sorted(item["number"] for item in ended.items)
    others = [str(number) for number in range(len(WAYS), len(WAYS) + len(HARMLESS) + 3)]

    assert ended.code == 0
    assert numbers == sorted(["", *others])
    assert f"extract failed on {len(WAYS)} pages" in ended.said
    assert "in the way" in ended.said


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="it reads /proc")
def test_nothing_is_left_behind(ended: Ended) -> None:
    """Neither a helper nor a copy of one that the function has made runs on."""
    left = [process for process in Path("/proc").glob("[0-9]*") if _is_in(process, ended.folder)]

    assert left == []


def _is_in(process: Path, folder: Path) -> bool:
    try:
        return (process / "cwd").readlink() == folder
    except OSError:  # it has ended, or is another user's
        return False


def test_function_of_the_program_costs_its_page_too(tmp_path: Path) -> None:
    """One that other processes cannot import runs in the program, and may raise what it likes."""

    def lonely(page: mannerly.Page) -> dict[str, str]:
        if page.url.endswith("/1"):
            sys.exit(0)
        return {"url": page.url}

    with archive_site(shop(3)) as site:
        pages = mannerly.crawl(
            site.url,
            data_dir=tmp_path / "crawl",
            extract=lonely,
            delay=0.001,
            max_rate=1000,
            strategy="fixed",
        )
        errors = {page.url.removeprefix(site.url): page.error for page in pages}

    assert errors == {
        "": None, "0": None, "1": "extract_failed: SystemExit: 0", "2": None, "missing": None,
    }  # fmt: skip
