"""`mannerly extract`: handlers over kept answers; `mannerly about`: what made the items."""

from __future__ import annotations

import csv
import gzip
import json
import signal
from typing import TYPE_CHECKING

import pytest
from tests.crawler.store.valkey_server import LocalServer
from tests.harness.commands import invoke, run, started
from tests.harness.sites import Request, serving
from tests.harness.waiting import eventually

import mannerly

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = pytest.mark.processes

SHOP = """
import mannerly

shop = mannerly.Spider("{origin}/list", follow=False, delay=0.005, keep_bodies=True)


@shop.on("*/list")
def listed(page):
    for number in range(4):
        yield page.follow(f"/{{number}}", label="product", data={{"number": number}})
    yield page.follow("/search", method="POST", form={{"q": "tea"}}, label="result")
    yield page.follow("/none")
    yield page.follow("/odd", label="unknown")


@shop.on(label="product")
def product(page):
    yield {{"title": page.title, "number": page.data["number"]}}


@shop.on(label="result")
def result(page):
    yield {{"found": page.title}}


@shop.on_error
def failed(page):
    yield {{"failed": page.status}}
"""
NEWER = """
import os
import time

import mannerly

shop = mannerly.Spider("https://shop.invalid/", extract_timeout=1.0)


@shop.on(label="product")
def product(page):
    number = page.data["number"]
    if number == 1:
        return {"price": 1 / 0}
    if number == 2:
        os._exit(3)
    if number == 3:
        time.sleep(60)
    return {"price": page.select_one("b").text}


def titles(page):
    return {"title": page.title}
"""


def answer(request: Request) -> None:
    if request.path == "/none":
        request.answer(404)
    else:
        request.answer(200, f"<title>Page {request.path[1:]}</title><b>4.50</b>")


@pytest.fixture(scope="module")
def crawled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory with a spider and its crawl; its server is not there any more."""
    place = tmp_path_factory.mktemp("shop")
    with serving(answer) as origin:
        (place / "shop.py").write_text(SHOP.format(origin=origin))
        done = run("run", "shop.py", "-o", "items.jsonl", "--quiet", cwd=place)
    assert done.returncode == 0, done.stderr
    (place / "newer.py").write_text(NEWER)
    return place


def lines(path: Path) -> list[object]:
    return sorted((json.loads(line) for line in path.read_text().splitlines()), key=str)


def test_the_same_handlers_make_the_same_items(crawled: Path, tmp_path: Path) -> None:
    """Label, data, a POST and the handler of errors included; requests are counted by label."""
    target = tmp_path / "again.jsonl"

    done = invoke("extract", crawled / "crawl-shop", crawled / "shop.py", "-o", target)

    assert done.exit_code == 0, done.stderr
    assert lines(target) == lines(crawled / "items.jsonl")
    assert len(lines(target)) == 6
    assert "Handlers yielded 7 requests, which were not sent: product 4," in done.stderr
    assert "Pages whose label no handler has: unknown 1" in done.stderr


def test_failures_cost_their_page_alone(crawled: Path, tmp_path: Path) -> None:
    """One raises, one ends its process, one takes too long; page and line are named."""
    target = tmp_path / "items.jsonl"

    done = invoke("extract", crawled / "crawl-shop", crawled / "newer.py", "-o", target)

    line = NEWER.splitlines().index('        return {"price": 1 / 0}') + 1
    assert done.exit_code == 1
    assert lines(target) == [{"price": "4.50"}]
    assert "handlers failed on 3 pages, first on http://127.0.0.1" in done.stderr
    assert f"/1: ZeroDivisionError: division by zero (line {line})" in done.stderr


def test_every_format_has_the_items_of_one_run(crawled: Path, tmp_path: Path) -> None:
    """Parquet has in its metadata what made it."""
    parquet = pytest.importorskip("pyarrow.parquet")
    names = [tmp_path / f"items.{each}" for each in ("jsonl", "jsonl.gz", "csv", "parquet")]
    outputs = [word for name in names for word in ("-o", name)]

    done = invoke("extract", crawled / "crawl-shop", f"{crawled}/newer.py:titles", *outputs)

    assert done.exit_code == 0, done.stderr
    titles = sorted(item["title"] for item in lines(names[0]))  # type: ignore[index]
    assert len(titles) == 7
    packed = gzip.decompress(names[1].read_bytes()).splitlines()
    assert sorted(json.loads(line)["title"] for line in packed) == titles
    with names[2].open(newline="") as file:
        assert sorted(row["title"] for row in csv.DictReader(file)) == titles
    table = parquet.read_table(names[3])
    assert sorted(table.column("title").to_pylist()) == titles
    about = json.loads(table.schema.metadata[b"mannerly"])
    assert (about["handlers"], about["items"], about["pages"]) == ("titles", 7, 7)


def test_the_version_of_items_is_known(crawled: Path, tmp_path: Path) -> None:
    """Also after the file of the handlers has changed, or the items have."""
    (tmp_path / "my.py").write_text(NEWER)
    target = tmp_path / "items.jsonl"
    invoke("extract", crawled / "crawl-shop", f"{tmp_path}/my.py:titles", "-o", target)

    first = invoke("about", target)
    told = json.loads(invoke("about", target, "--json").stdout)
    (tmp_path / "my.py").write_text(NEWER + "\n")
    second = invoke("about", target)
    target.write_text("{}\n")
    third = invoke("about", target)

    assert first.exit_code == 0, first.stderr
    assert "7 items of 7 pages" in first.stdout
    assert f"version   {told['version']} (unchanged since)" in first.stdout
    assert f"version   {told['version']} (changed since)" in second.stdout
    assert (third.exit_code, "was changed since" in third.stderr) == (1, True)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (lambda place: [place / "crawl-shop", place / "no.py"], "there is no file"),
        (lambda place: [place / "crawl-shop", place / "newer.py", "-o", "pages.warc.gz"], ".jsonl"),
        (lambda place: [place / "no", place / "newer.py"], "there is no crawl"),
        (lambda place: [place / "plain", place / "newer.py"], "--keep-bodies --fresh"),
    ],
)
def test_mistakes_are_said_and_nothing_is_written(
    crawled: Path, tmp_path: Path, words: Callable[[Path], list[object]], said: str
) -> None:
    """Exit code 2, and the output stays as it was."""
    target = tmp_path / "items.jsonl"
    target.write_text("before")
    with serving(answer) as origin:
        list(mannerly.crawl(f"{origin}/1", data_dir=crawled / "plain", fresh=True))

    done = invoke("extract", *words(crawled), "-o", target)

    assert done.exit_code == 2
    assert said in done.stderr
    assert target.read_text() == "before"


def test_interrupting_leaves_the_earlier_items(crawled: Path, tmp_path: Path) -> None:
    """Ctrl-C while handlers run: no new file, no part of one, no helper."""
    target = tmp_path / "items.jsonl"
    target.write_text("before")
    mark = tmp_path / "began"
    slow = f"import time\ndef slow(page):\n    open({str(mark)!r}, 'w')\n    time.sleep(600)\n"
    (tmp_path / "slow.py").write_text(slow)
    words = ("extract", str(crawled / "crawl-shop"), "slow.py:slow", "-o", str(target))

    with started(*words, cwd=tmp_path) as process:
        eventually(mark.exists)
        process.send_signal(signal.SIGINT)
        code = process.wait(timeout=30)

    assert code == 1
    assert target.read_text() == "before"
    assert {each.name for each in tmp_path.iterdir()} - {"__pycache__"} == {
        "items.jsonl",
        "began",
        "slow.py",
    }


def test_answers_of_a_crawl_in_a_server(crawled: Path, tmp_path: Path) -> None:
    """They are in the data directory of its worker; without it, records are said to be missing."""
    target, words = tmp_path / "items.jsonl", ("--keep-bodies", "--quiet", "--max-urls", "1")
    handlers = f"{crawled}/newer.py:titles"
    with LocalServer() as server, serving(answer) as origin:
        url = f"redis://127.0.0.1:{server.port}/0"
        place = ("--crawl", "shop", "--data-dir", str(tmp_path / "worker"))
        crawl = run("crawl", f"{origin}/1", "--redis-url", url, *place, *words)
        done = run("extract", url, handlers, *place, "-o", str(target))
        blind = run("extract", f"{url}#shop", handlers, "-o", "-")

    assert crawl.returncode == 0, crawl.stderr
    assert done.returncode == 0, done.stderr
    assert lines(target) == [{"title": "Page 1"}]
    assert (blind.returncode, blind.stdout) == (1, "")
    assert "1 record of pages are missing" in blind.stderr


def test_a_damaged_answer_costs_its_page_alone(crawled: Path, tmp_path: Path) -> None:
    """It is counted and said; an error of a handler that ran in the crawl is no error of a page."""
    place, target = tmp_path / "crawl", tmp_path / "items.jsonl"
    (tmp_path / "broken.py").write_text("def titles(page):\n    raise ValueError('no')\n")
    (tmp_path / "mended.py").write_text("def titles(page):\n    return {'error': page.error}\n")
    with serving(answer) as origin:
        list(
            mannerly.crawl(
                [f"{origin}/{number}" for number in range(3)],
                data_dir=place,
                keep_bodies=True,
                extract=f"{tmp_path}/broken.py:titles",
                start_rate=50,
            )
        )
    with mannerly.open(place) as crawl, crawl.view() as view:
        kept = [at for reader in view.readers for _, _, at in reader.kept_pages() if at]
    with (place / kept[1].segment).open("r+b") as segment:
        segment.seek(kept[1].offset + kept[1].length // 2)
        segment.write(b"damaged")

    done = invoke("extract", place, f"{tmp_path}/mended.py:titles", "-o", target)

    assert done.exit_code == 1
    assert "the kept answers of 1 page cannot be read" in done.stderr
    assert lines(target) == [{"error": None}] * 2
