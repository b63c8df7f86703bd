"""`mannerly retry --failed-handlers`: handlers that failed run again, on kept answers."""

from __future__ import annotations

import json
import threading
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest
from tests.harness.commands import invoke, run
from tests.harness.sites import Request as Asked
from tests.harness.sites import serving

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.processes

SPIDER = """
import mannerly

shop = mannerly.Spider(
    "{origin}/", follow=False, delay=0.01, max_rate=100, strategy="fixed", keep_bodies={keep}
)

@shop.on("*/")
def front(page):
    for n in range(6):
        yield page.follow(f"/{{n}}", label="product", data={{"n": n}})
    form = {{"q": "tea"}}
    yield page.follow("/search", method="POST", form=form, label="product", data={{"n": 7}})

@shop.on(label="product")
def product(page):
    {bug}
    yield {{"n": page.data["n"], "text": page.select_one("h1").text}}
    if page.data["n"] == 1:
        yield page.follow("/more", label="more")

@shop.on(label="more")
def more(page):
    yield {{"n": "more", "text": page.select_one("h1").text}}
"""
BUG = "assert page.data['n'] % 2 == 0, 'an odd one'"


class Site:
    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.asked: Counter[str] = Counter()

    def __call__(self, request: Asked) -> None:
        with self.lock:
            self.asked[f"{request.command} {request.path}"] += 1
        request.read()
        request.answer(404 if "robots" in request.path else 200, f"<h1>{request.path}</h1>")


def write_spider(folder: Path, origin: str, *, keep: bool, bug: str = "pass") -> None:
    (folder / "shop.py").write_text(SPIDER.format(origin=origin, keep=keep, bug=bug))


def items(folder: Path) -> list[dict[str, Any]]:
    done = run("export", "crawl-shop", "-o", "items:items.jsonl", "-q", cwd=folder)
    assert done.returncode in (0, 1), done.stderr
    return [json.loads(line) for line in (folder / "items.jsonl").read_text().splitlines()]


WANTED = sorted(["0", "1", "2", "3", "4", "5", "7", "more"])


@pytest.mark.parametrize("keep", [True, False])
def test_handlers_run_again_when_they_are_mended(tmp_path: Path, *, keep: bool) -> None:
    """Without a request where answers are kept; else pages are fetched once more, POSTs, too."""
    site = Site()
    with serving(site) as origin:
        write_spider(tmp_path, origin, keep=keep, bug=BUG)
        first = run("run", "shop.py", "-q", cwd=tmp_path)
        before = Counter(site.asked)
        still = run("retry", "crawl-shop", "--failed-handlers", "-q", cwd=tmp_path)
        write_spider(tmp_path, origin, keep=keep)
        between = Counter(site.asked)
        mended = run("retry", "crawl-shop", "--failed-handlers", cwd=tmp_path)
        after = site.asked - between
        last = run("run", "shop.py", "-q", cwd=tmp_path)
        none = run("retry", "crawl-shop", "--failed-handlers", cwd=tmp_path)

    failed = {"GET /1": 1, "GET /3": 1, "GET /5": 1, "POST /search": 1}
    asked = Counter({what: n for what, n in after.items() if "robots" not in what})
    assert first.returncode == still.returncode == 1
    assert "handlers failed on 4 pages, first on" in still.stderr
    assert (between - before)["GET /1"] == (0 if keep else 1)
    assert mended.returncode == 0, mended.stderr
    assert ("Ran the handlers of 4 pages on kept answers" in mended.stderr) == keep
    assert asked == {"GET /more": 1} | ({} if keep else failed)
    assert last.returncode == 0, last.stderr
    assert none.returncode == 2
    assert "no handler has failed on a page" in none.stderr
    assert sorted(str(each["n"]) for each in items(tmp_path)) == WANTED


def test_missing_answers_and_failed_handlers_are_two_orders(tmp_path: Path) -> None:
    """That no answer is missing is no reason to leave the handlers out."""
    with serving(Site()) as origin:
        write_spider(tmp_path, origin, keep=True, bug=BUG)
        run("run", "shop.py", "-q", cwd=tmp_path)
        write_spider(tmp_path, origin, keep=True)
        done = run("retry", "crawl-shop", "--missing", "--failed-handlers", cwd=tmp_path)

    assert done.returncode == 0, done.stderr
    assert "Ran the handlers of 4 pages on kept answers" in done.stderr
    assert sorted(str(each["n"]) for each in items(tmp_path)) == WANTED


def test_page_whose_kept_answer_is_damaged_is_fetched_again(tmp_path: Path) -> None:
    """Its handler runs on the new answer; pages without a failure are left alone."""
    site = Site()
    with serving(site) as origin:
        write_spider(tmp_path, origin, keep=True, bug=BUG)
        run("run", "shop.py", "-q", cwd=tmp_path)
        write_spider(tmp_path, origin, keep=True)
        before = Counter(site.asked)
        for segment in (tmp_path / "crawl-shop").glob("*.warc.gz"):
            segment.write_bytes(bytes(segment.stat().st_size))
        done = run("retry", "crawl-shop", "--failed-handlers", cwd=tmp_path)
        after = site.asked - before

    assert done.returncode == 0, done.stderr
    assert "Fetching 4 pages again: no kept answer that can be read" in done.stderr
    failed = ("GET /1", "GET /3", "GET /5", "POST /search")
    asked = {what: n for what, n in after.items() if "robots" not in what}
    assert asked == dict.fromkeys((*failed, "GET /more"), 1)
    assert sorted(str(each["n"]) for each in items(tmp_path)) == WANTED


def test_loop_gets_the_items_of_handlers_that_ran_again(tmp_path: Path) -> None:
    """Those of other pages do not come again."""
    from mannerly.crawler.spider import find_spider

    with serving(Site()) as origin:
        write_spider(tmp_path, origin, keep=True, bug=BUG)
        with pytest.warns(RuntimeWarning, match="failed on 4 pages"):
            before = list(
                find_spider(f"{tmp_path}/shop.py").spider.run(data_dir=tmp_path / "crawl")
            )
        write_spider(tmp_path, origin, keep=True)
        done = run("retry", tmp_path / "crawl", "--failed-handlers", "-q", cwd=tmp_path)
        after = list(find_spider(f"{tmp_path}/shop.py").spider.run(data_dir=tmp_path / "crawl"))

    assert done.returncode == 0, done.stderr
    assert sorted(str(each["n"]) for each in before + after) == WANTED


def test_file_that_is_gone_is_named(tmp_path: Path) -> None:
    """Nothing is changed, and nothing is asked for."""
    with serving(Site()) as origin:
        write_spider(tmp_path, origin, keep=True, bug=BUG)
        run("run", "shop.py", "-q", cwd=tmp_path)
    (tmp_path / "shop.py").unlink()

    done = invoke("retry", tmp_path / "crawl-shop", "--failed-handlers")

    assert done.exit_code == 2
    assert "there is no file" in done.stderr
