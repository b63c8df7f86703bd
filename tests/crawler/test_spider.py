"""Spiders run by a program: items as they come, each once, in helpers or in its own process."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections import Counter
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

import pytest
from tests.harness.sites import Request as Asked
from tests.harness.sites import free_port, serving

import mannerly
from mannerly.crawler.options.values import OptionError
from mannerly.crawler.page.extract import ExtractError, load
from mannerly.exports import export

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PRODUCTS = 12
FAST: dict[str, Any] = {"delay": 0.005, "max_rate": 200, "strategy": "fixed"}
SCRIPT = """
import sys
import mannerly

shop = mannerly.Spider("http://a.example/", delay=0.005)

@shop.on(label="product")
def product(page):
    import os
    return {"name": page.select_one("h1").text, "pid": os.getpid()}

@shop.on("*/")
def front(page):
    return [page.follow(f"/{n}", label="product") for n in range(3)]
"""
GUARDED = """
if __name__ == "__main__":
    import json, os
    found = list(shop.run(sys.argv[1], data_dir=sys.argv[2]))
    print(json.dumps([os.getpid(), found]))
"""


def shop_site(request: Asked) -> None:
    """Links products and a page that is not there; products link to `/more`."""
    if request.path == "/":
        links = "".join(f'<a class=product href="/{n}">{n}.50</a>' for n in range(PRODUCTS))
        request.answer(200, f'<html>{links}<a href="/gone">gone</a></html>')
    elif request.path[1:].isdecimal():
        request.answer(200, f'<html><h1>{request.path[1:]}</h1><a href="/more">more</a></html>')
    elif request.path == "/more":
        request.answer(200, "<html><h1>more</h1></html>")
    else:
        request.answer(404)


@pytest.fixture
def origin() -> Iterator[str]:
    with serving(shop_site) as origin:
        yield origin


def spider_of(origin: str, **options: Any) -> mannerly.Spider:
    """Return a spider that only this process has."""
    shop = mannerly.Spider(origin, **{**FAST, **options})

    @shop.on("*/")
    def front(page: mannerly.Page) -> Iterator[object]:
        for link in page.select("a.product"):
            yield page.follow(link, label="product", data={"price": link.text})

    @shop.on(label="product")
    def product(page: mannerly.Page) -> Iterator[dict[str, str]]:
        yield {"name": page.select_one("h1").text, "price": page.data["price"]}
        yield {"second": page.url}

    return shop


def products(items: list[dict[str, Any]]) -> Counter[str]:
    return Counter(each["name"] for each in items if "name" in each)


EACH_ONCE = Counter(str(n) for n in range(PRODUCTS))


def test_run_yields_every_item_once(origin: str, tmp_path: Path) -> None:
    """They are kept, too; a second run has nothing to add."""
    shop = spider_of(origin)

    found = list(shop.run(data_dir=tmp_path / "crawl"))

    assert products(found) == EACH_ONCE
    assert {each["name"]: each["price"] for each in found if "name" in each}["7"] == "7.50"
    assert shop.result is not None
    assert shop.result.stats.extracted.items == len(found) == 2 * PRODUCTS
    assert list(shop.run(data_dir=tmp_path / "crawl")) == []
    kept = tmp_path / "items.jsonl"
    export(tmp_path / "crawl", f"items:{kept}")
    assert sorted(map(json.loads, kept.read_text().splitlines()), key=str) == sorted(found, key=str)


@pytest.mark.parametrize("taken", [2, 5])
def test_loop_that_was_left_goes_on(origin: str, tmp_path: Path, taken: int) -> None:
    """However often, in the middle of a page, too: what was acknowledged never comes again."""
    shop, done, in_hand = spider_of(origin), list[dict[str, Any]](), None
    for _ in range(3 * PRODUCTS):
        before = len(done)
        for item in shop.run(data_dir=tmp_path / "crawl"):
            if in_hand is not None:
                assert item == in_hand
                in_hand = None
            if len(done) == before + taken:
                in_hand = item
                break
            done.append(item)
        else:
            break

    assert in_hand is None
    assert products(done) == EACH_ONCE
    assert Counter(each["second"] for each in done if "second" in each) == Counter(
        f"{origin}/{n}" for n in range(PRODUCTS)
    )


def test_loop_takes_what_a_run_without_it_has_found(origin: str, tmp_path: Path) -> None:
    """As after `mannerly run`; once. `fresh` begins both anew, requests sent once included."""
    shop = spider_of(origin)
    shop.on("*/more")(lambda page: page.follow("/7", method="POST", label="none"))
    with mannerly.Crawl(origin, data_dir=tmp_path / "crawl", extract=shop, **FAST) as crawl:
        crawl.run()
    found, again = (list(shop.run(data_dir=tmp_path / "crawl")) for _ in range(2))

    anew = list(shop.run(data_dir=tmp_path / "crawl", fresh=True))

    assert products(found) == EACH_ONCE
    assert again == []
    assert products(anew) == EACH_ONCE


def test_run_in_an_event_loop(origin: str) -> None:
    """As `run`; asynchronous handlers have an event loop of their own."""
    shop = mannerly.Spider(origin, follow=False, **FAST)

    @shop.on("*")
    async def each(page: mannerly.Page) -> dict[str, str]:
        await asyncio.sleep(0)
        return {"url": page.url}

    async def all_of() -> list[dict[str, Any]]:
        async with aclosing(shop.arun()) as items:
            return [item async for item in items]

    assert asyncio.run(all_of()) == [{"url": f"{origin}/"}]


def test_errors_go_to_their_handler(origin: str) -> None:
    """A status of 400 and more, and a URL without an answer; each with its label."""
    shop = mannerly.Spider(origin, follow=False, max_attempts=1, **FAST)
    nowhere = f"http://127.0.0.1:{free_port()}/"

    @shop.on("*/")
    def front(page: mannerly.Page) -> Iterator[object]:
        yield page.follow("/gone", label="lost")
        yield page.follow("/1", label="unheard")
        yield mannerly.Request(nowhere, label="away")

    @shop.on_error
    def failed(page: mannerly.Page) -> dict[str, object]:
        return {"label": page.label, "status": page.status, "has_error": page.error is not None}

    found = {each["label"]: each for each in shop.run(robots_unreachable="allow")}

    assert found["lost"]["status"] == 404
    assert shop.result is not None
    assert shop.result.stats.extracted.lacking == {"unheard": 1}
    if "away" in found:  # its host may have been given up before it was asked
        assert found["away"] == {"label": "away", "status": None, "has_error": True}


def test_only_what_handlers_yield_is_asked_without_follow(origin: str) -> None:
    """Products link to `/more`, which nobody asks for."""
    shop = spider_of(origin, follow=False)
    seen = []
    shop.on("*/more")(lambda page: seen.append(page.url))

    assert products(list(shop.run())) == EACH_ONCE
    assert seen == []


def test_handlers_that_failed_are_said(origin: str) -> None:
    """A program that gets no items is told why."""
    shop = mannerly.Spider(origin, follow=False, **FAST)
    shop.on("*")(lambda page: page.data["price"])

    with pytest.warns(RuntimeWarning, match="failed on 1 page, first: KeyError: 'price'"):
        assert list(shop.run()) == []


def test_seeds_and_options_of_a_run_take_the_place_of_those_of_the_spider(origin: str) -> None:
    """A spider can be tried elsewhere."""
    shop = spider_of("https://shop.example/")

    assert products(list(shop.run(f"{origin}/", max_urls=3))).total() == 2


def test_what_cannot_be_meant_is_refused() -> None:
    """Where the spider is made."""
    with pytest.raises(OptionError, match="did you mean max_rate"):
        mannerly.Spider("https://a.example/", max_rat=4)  # type: ignore[call-arg]
    with pytest.raises(OptionError, match="a spider has handlers"):
        mannerly.Spider("https://a.example/", extract="a:b")
    with pytest.raises(ValueError, match="ftp"):
        mannerly.Spider("ftp://a.example/")
    with pytest.raises(ValueError, match="from -1000 to 1000"):
        mannerly.Request("https://a.example/", priority=2000)


def python(*words: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *map(str, words)], capture_output=True, text=True, check=False, timeout=120
    )


@pytest.mark.processes
def test_spider_of_a_script_runs_in_helpers(origin: str, tmp_path: Path) -> None:
    """They import the script, which runs its crawl only as the main one."""
    script = tmp_path / "shop.py"
    script.write_text(SCRIPT + GUARDED)

    done = python(script, origin, tmp_path / "crawl")

    assert done.returncode == 0, done.stderr
    own, found = json.loads(done.stdout)
    assert sorted(each["name"] for each in found) == ["0", "1", "2"]
    assert own not in {each["pid"] for each in found}


KILLED = """
if __name__ == "__main__":
    import os
    with open(sys.argv[3], "a", buffering=1) as file:
        for number, item in enumerate(shop.run(sys.argv[1], data_dir=sys.argv[2])):
            if number == 1:
                os.kill(os.getpid(), 9)
            print(item["name"], file=file)
"""


@pytest.mark.processes
def test_loop_that_was_killed_goes_on(origin: str, tmp_path: Path) -> None:
    """What was acknowledged when the program was killed does not come again."""
    script, names = tmp_path / "shop.py", tmp_path / "names"
    script.write_text(SCRIPT.replace("0.005", "0.02") + KILLED)

    ends = [python(script, origin, tmp_path / "crawl", names).returncode for _ in range(4)]

    assert ends == [-9, -9, 0, 0]
    assert sorted(names.read_text().split()) == ["0", "1", "2"]


@pytest.mark.processes
def test_script_without_a_guard_is_told_so_before_the_first_request(tmp_path: Path) -> None:
    """Each helper would run the crawl once more."""
    script = tmp_path / "shop.py"
    script.write_text(
        f"{SCRIPT}\nfor item in shop.run(data_dir={str(tmp_path / 'crawl')!r}): ...\n"
    )

    done = python(script)

    assert done.returncode == 1
    assert 'put that below `if __name__ == "__main__":`' in done.stderr
    assert not (tmp_path / "crawl").exists()


def test_file_that_breaks_is_named_with_its_line(tmp_path: Path) -> None:
    """The line that raised, of the file itself; and no half of a module is kept."""
    file = tmp_path / "broken_shop.py"
    file.write_text("import json\nx = 1\njson.loads('nonsense')\n")
    with pytest.raises(ExtractError, match=r"JSONDecodeError: .* \(line 3\)"):
        load(f"{file}:shop")
    file.write_text("x = 1\ndef (:\n")
    with pytest.raises(ExtractError, match=r"SyntaxError: .*line 2\)"):
        load(f"{file}:shop")

    assert "mannerly_extract_broken_shop" not in sys.modules
