"""Extract functions that ask for more: labels, data, forms; each item once, whatever is killed."""

from __future__ import annotations

import json
import threading
from collections import Counter
from typing import TYPE_CHECKING

import pytest
from tests.harness.commands import run, started
from tests.harness.sites import Request as Asked
from tests.harness.sites import serving
from tests.harness.waiting import eventually

import mannerly
from mannerly.exports import export

if TYPE_CHECKING:
    from pathlib import Path

PRODUCTS = 60
CODE = """
from dataclasses import dataclass

@dataclass
class Product:
    name: str
    price: str


def extract(page):
    if page.label == "product":
        yield Product(page.select_one("h1").text, page.data["price"])
    elif page.label == "results":
        yield {"found": page.json()["found"], "asked": page.data}
    elif page.label == "broken":
        yield {"lost": True}
        yield page.follow("/never")
        raise ValueError("no price")
    elif page.depth == 0:
        for link in page.select("a"):
            yield page.follow(link, label="product", data={"price": link.text})
        words = {"q": "tea"}
        yield page.follow("/search", method="POST", json=words, label="results", data=["tea"])
        yield page.follow("/broken", label="broken")
        yield page.follow("/0", label="product", data={"price": "late"})
"""


class Shop:
    """A list of products with their prices; the pages of products do not have them."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.asked: Counter[str] = Counter()
        self.words: list[object] = []

    def __call__(self, request: Asked) -> None:
        with self.lock:
            self.asked[f"{request.command} {request.path}"] += 1
        if request.path == "/":
            links = "".join(f'<a href="/{n}">{n}.50</a>' for n in range(PRODUCTS))
            request.answer(200, f"<html>{links}</html>")
        elif request.path == "/search":
            self.words.append(json.loads(request.read()))
            request.answer(200, '{"found": 3}', {"Content-Type": "application/json"})
        elif request.path[1:].isdecimal() or request.path == "/broken":
            request.answer(200, f"<html><h1>{request.path[1:]}</h1></html>")
        else:
            request.answer(404)


@pytest.fixture
def code(tmp_path: Path) -> Path:
    file = tmp_path / "shop.py"
    file.write_text(CODE)
    return file


def items(directory: Path) -> list[dict[str, object]]:
    file = directory.parent / "items.jsonl"
    export(directory, f"items:{file}")
    return [json.loads(line) for line in file.read_text().splitlines()]


def are_complete(found: list[dict[str, object]]) -> None:
    products = {each["name"]: each["price"] for each in found if "name" in each}
    assert products == {str(n): f"{n}.50" for n in range(PRODUCTS)}
    others = [each for each in found if "name" not in each]
    assert others == [{"found": 3, "asked": ["tea"]}]
    assert len(found) == PRODUCTS + 1


@pytest.mark.processes
def test_what_a_function_asks_for_is_fetched_with_what_it_carries(
    tmp_path: Path, code: Path
) -> None:
    """In helpers; each product once although pages link to it, and a failure costs its own page."""
    shop, directory = Shop(), tmp_path / "crawl"
    with serving(shop) as origin:
        done = run(
            *("crawl", origin, "--data-dir", directory, "--extract", f"{code}:extract"),
            *("--delay", "0.005", "--max-rate", "200", "--strategy", "fixed", "-q"),
        )

    assert done.returncode == 0, done.stderr
    are_complete(items(directory))
    assert shop.words == [{"q": "tea"}]
    assert shop.asked["GET /never"] == 0
    assert shop.asked["GET /broken"] == 1
    assert [shop.asked[f"GET /{n}"] for n in range(PRODUCTS)] == [1] * PRODUCTS


def test_a_function_of_the_program_asks_in_its_own_process(tmp_path: Path) -> None:
    """A lambda or a nested function can do the same."""
    shop, directory = Shop(), tmp_path / "crawl"

    def extract(page: mannerly.Page) -> object:
        if page.depth == 0:
            return [mannerly.Request(f"{page.url}7", label="x", data=1, dont_filter=True)] * 2
        return {"label": page.label, "data": page.data} if page.label else None

    with serving(shop) as origin:
        for _ in mannerly.crawl(
            origin, data_dir=directory, extract=extract, max_depth=0, delay=0.005, strategy="fixed"
        ):
            pass

    assert items(directory) == [{"label": "x", "data": 1}] * 2
    assert shop.asked["GET /7"] == 2


@pytest.mark.processes
def test_kills_cost_no_item_and_double_none(tmp_path: Path, code: Path) -> None:
    """`kill -9` at any moment, then resume: every item once, with the data of its request."""
    shop, directory = Shop(), tmp_path / "crawl"
    pace = ("--delay", "0.02", "--max-rate", "50", "--strategy", "fixed", "-q")
    with serving(shop) as origin:
        words = ["crawl", origin, "--data-dir", directory, "--extract", f"{code}:extract", *pace]
        for kill in range(4):
            before = sum(shop.asked.values())
            with started(*words) as process:
                eventually(lambda seen=before: sum(shop.asked.values()) >= seen + 9)
                process.kill()
                eventually(lambda ended=process: ended.poll() is not None)
            if kill == 0 and not (directory / "crawl.json").exists():
                continue
            words = ["resume", directory, "-q"]
        run("resume", directory, "-q")
        run("retry", directory, "--unanswered", "-q")

    are_complete(items(directory))
