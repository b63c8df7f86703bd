"""`mannerly run`: a spider from a file, its items in a file, each once whatever is killed."""

from __future__ import annotations

import json
import threading
from collections import Counter
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

import pytest
from tests.harness.commands import invoke, run, started
from tests.harness.sites import Request as Asked
from tests.harness.sites import serving
from tests.harness.waiting import eventually

from mannerly.crawler.spider import find_spider

if TYPE_CHECKING:
    from pathlib import Path

LISTS, ON_A_LIST = 4, 12
WORDS = ("tea", "cups")
SHOP = """
import mannerly
from dataclasses import dataclass

shop = mannerly.Spider(
    "{origin}/", follow=False, delay=0.02, max_rate=50, strategy="fixed", max_urls={most}
)


@dataclass
class Product:
    name: str
    price: float


@shop.on("*/")
def front(page):
    yield page.follow("/list?page=0", label="list")
    for word in {words}:
        yield page.follow(
            "/search", method="POST", json={{"q": word}}, label="results", data=word, priority=1
        )


@shop.on(label="list")
def listed(page):
    for row in page.select("a.product"):
        yield page.follow(row, label="product", data={{"price": row.attrs["title"]}})
    for link in page.select("a.next"):
        yield page.follow(link, label="list")


@shop.on(label="product")
async def product(page):
    yield Product(page.select_one("h1").text, float(page.data["price"]))


@shop.on(label="results")
def results(page):
    yield {{"word": page.data, "found": page.json()["found"]}}


@shop.on_error
def failed(page):
    yield {{"failed": page.label}}
"""


class Shop:
    """Lists with products and their prices, pages of products without it, a search by POST."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.asked: Counter[str] = Counter()

    def __call__(self, request: Asked) -> None:
        with self.lock:
            self.asked[f"{request.command} {request.path}"] += 1
        url = urlsplit(request.path)
        if url.path == "/":
            request.answer(200, "<html><a href='/about'>about</a></html>")
        elif url.path == "/list" and not request.path.endswith(f"={LISTS}"):
            number = int(parse_qs(url.query)["page"][0])
            first = number * ON_A_LIST
            rows = [
                f'<a class=product href="/{n}" title="{n}.50">{n}</a>'
                for n in range(first, first + ON_A_LIST)
            ]
            following = f'<a class=next href="/list?page={number + 1}">more</a>'
            request.answer(200, f"<html>{''.join(rows)}{following}</html>")
        elif url.path == "/search":
            word = json.loads(request.read())["q"]
            text = json.dumps({"found": len(word)})
            request.answer(200, text, {"Content-Type": "application/json"})
        elif url.path[1:].isdecimal() and int(url.path[1:]) < LISTS * ON_A_LIST:
            request.answer(200, f"<html><h1>{url.path[1:]}</h1></html>")
        else:
            request.answer(404)


def spider_file(folder: Path, origin: str, most: int | None = None) -> Path:
    file = folder / "shop.py"
    file.write_text(SHOP.format(origin=origin, words=WORDS, most=most))
    return file


def lines(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text().splitlines()]


def are_complete(found: list[dict[str, Any]]) -> None:
    """Each product once with its price, each search once, and the list that is not there."""
    products = Counter((each["name"], each["price"]) for each in found if "name" in each)
    assert products == Counter((str(n), n + 0.5) for n in range(LISTS * ON_A_LIST))
    others = sorted((each for each in found if "name" not in each), key=str)
    assert others == [
        {"failed": "list"},
        {"word": "cups", "found": 4},
        {"word": "tea", "found": 3},
    ]


@pytest.mark.processes
def test_kills_cost_no_item_and_double_none(tmp_path: Path) -> None:
    """`kill -9` five times, and the same command again: every item once in the file."""
    shop = Shop()
    with serving(shop) as origin:
        file = spider_file(tmp_path, origin)
        words = ("run", file, "-o", "items.jsonl", "-q")
        for _ in range(5):
            before = sum(shop.asked.values())
            with started(*words, cwd=tmp_path) as process:
                eventually(lambda seen=before: sum(shop.asked.values()) >= seen + 7)
                process.kill()
                eventually(lambda ended=process: ended.poll() is not None)
        done = run(*words, cwd=tmp_path)
        lost = shop.asked["POST /search"]
        again = run("retry", "crawl-shop", "--unanswered", "-q", cwd=tmp_path)
        last = run(*words, cwd=tmp_path)

    assert done.returncode == 0, done.stderr
    assert again.returncode == 0 or "skipped are: none" in again.stderr  # no kill hit a search
    assert last.returncode == 0, last.stderr
    assert lost <= len(WORDS)  # no search was sent twice by itself
    assert shop.asked["GET /about"] == 0
    are_complete(lines(tmp_path / "items.jsonl"))


def test_items_are_written_and_other_seeds_may_be_given(tmp_path: Path) -> None:
    """A table before the colon is written as by `crawl`; options win over those of the spider."""
    with serving(Shop()) as origin:
        file = spider_file(tmp_path, "https://shop.invalid", most=1)
        done = run(
            *("run", file, f"{origin}/", "-o", "items.csv", "-o", "pages:pages.jsonl"),
            *("--max-urls", 20, "-q"),
            cwd=tmp_path,
        )

    assert done.returncode == 0, done.stderr
    assert len(lines(tmp_path / "pages.jsonl")) == 20
    assert (tmp_path / "items.csv").read_text().startswith("word,found")
    assert (tmp_path / "crawl-shop").is_dir()


BROKEN = """
import mannerly
shop = mannerly.Spider("{origin}/", delay=0.005)

@shop.on("*")
def each(page):
    yield {{"url": page.url}}
    yield page.follow("/0", label="misspelled")
    yield {{"price": page.data["price"]}}
"""


def test_handlers_that_failed_are_counted_over_all_runs(tmp_path: Path) -> None:
    """Exit code 1, also when the run that saw it was an earlier one; links are followed."""
    with serving(Shop()) as origin:
        (tmp_path / "shop.py").write_text(BROKEN.format(origin=origin))
        words = ("run", "shop.py", "--data-dir", "mine", "-o", "-", "-q")
        first, second = run(*words, cwd=tmp_path), run(*words, cwd=tmp_path)

    for done in (first, second):
        assert done.returncode == 1
        assert done.stdout == ""
        assert "handlers failed on 1 page, first on" in done.stderr
        assert "KeyError: 'price'" in done.stderr


def test_label_without_a_handler_is_in_the_summary(tmp_path: Path) -> None:
    """Once, with its count."""
    code = BROKEN.replace('    yield {{"price": page.data["price"]}}\n', "")
    with serving(Shop()) as origin:
        (tmp_path / "shop.py").write_text(code.format(origin=origin))
        done = run("run", "shop.py", cwd=tmp_path)

    assert done.returncode == 0, done.stderr
    assert done.stderr.count("no handler for label misspelled: 1 page") == 1


@pytest.mark.parametrize(
    ("name", "code", "words"),
    [
        ("a.py", "import mannerly\n", "a.py has no spider: write NAME = mannerly.Spider(URL)"),
        ("a.py", "x = 1\ny = (\n", "SyntaxError: '(' was never closed (a.py, line 2)"),
        ("a.py", "x = 1\n1 / 0\n", "ZeroDivisionError: division by zero (line 2)"),
        (
            "a.py",
            "from mannerly import Spider\none = Spider()\ntwo = Spider()\n",
            "a.py has several spiders, one, two: name one, as in",
        ),
        ("a.py:b", "from mannerly import Spider\none = Spider()\n", "no spider b (it has: one)"),
        ("a.py", "from mannerly import Spider\none = Spider()\n", "nothing to crawl: give a URL"),
        (
            "a.py",
            "from mannerly import Spider\none = Spider('https://a.example/', max_rat=1)\n",
            "did you mean max_rate? (line 2)",
        ),
        ("b.py", "", "there is no file"),
        ("a:b", "", "is not FILE.py or FILE.py:NAME"),
    ],
)
def test_file_that_cannot_be_meant_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, code: str, words: str
) -> None:
    """With exit code 2, the line if there is one, and no directory."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.py").write_text(code)

    done = invoke("run", name)

    assert done.exit_code == 2
    assert words in done.stderr
    assert [each.name for each in tmp_path.glob("crawl-*")] == []


def test_one_of_several_spiders_is_found_by_name(tmp_path: Path) -> None:
    """By the name of its variable; its place is where helpers look for it."""
    file = tmp_path / "two.py"
    file.write_text(
        "import mannerly\none = mannerly.Spider()\ntwo = mannerly.Spider('https://b/')\n"
    )

    found = find_spider(f"{file}:two")

    assert (found.name, found.place) == ("two", f"{file}:two")
    assert found.spider.seeds == ("https://b/",)
