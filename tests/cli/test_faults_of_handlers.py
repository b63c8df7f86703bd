"""Handlers that fail in every manner, and requests that may not be asked for: the crawl goes on."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from tests.harness.commands import run
from tests.harness.sites import Request as Asked
from tests.harness.sites import serving

import mannerly

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.processes

SPIDER = """
import os, time
import mannerly

shop = mannerly.Spider(
    "{origin}/", delay=0.01, max_rate=100, strategy="fixed", extract_timeout=2, exclude=["*/not*"]
)

FAULTS = ("raise", "hang", "exit", "allocate", "print", "nonsense", "data", "body", "form", "late")

@shop.on("*/")
def front(page):
    for name in FAULTS:
        yield page.follow(name, label=name)
    yield page.follow("/nobody", label="nobody")
    yield page.follow("/not-wanted", label="print")
    yield page.follow("/forbidden", label="print")
    yield mannerly.Request("http://10.0.0.1/", label="print")
    yield page.follow("/raise", label="print")

@shop.on(label="raise")
def raises(page):
    yield {{"lost": 1}}
    yield page.follow("/lost", label="print")
    raise KeyError("price")

@shop.on(label="hang")
def hangs(page):
    while True:
        time.sleep(0.1)

@shop.on(label="exit")
def exits(page):
    os._exit(3)

@shop.on(label="allocate")
def allocates(page):
    bytearray(2_000_000_000)

@shop.on(label="print")
def prints(page):
    print("printed")
    return {{"printed": page.url.rpartition("/")[2]}}

@shop.on(label="nonsense")
def nonsense(page):
    return 42

@shop.on(label="data")
def data(page):
    yield page.follow("/x", label="print", data="x" * 70_000)

@shop.on(label="body")
def body(page):
    yield page.follow("/x", method="POST", body="x" * 2_000_000)

@shop.on(label="form")
def form(page):
    yield page.form("#search").submit()

@shop.on(label="late")
async def late(page):
    yield {{"lost": 2}}
    raise ValueError("too late")
"""
ERRORS = {
    "raise": "KeyError: 'price' (line {line})",
    "hang": "TimeoutError: took longer than 2 s",
    "exit": "ended its process with exit status 3",
    "allocate": "MemoryError: needs more than 1024 MB",
    "nonsense": "TypeError: extract returned int",
    "data": "data has at most 65,536 bytes as JSON, not 70,002",
    "body": "a body has at most 1,048,576 bytes",
    "form": "/form: the form #search is not there (forms of the page: none)",
    "late": "ValueError: too late",
}


def shop(request: Asked) -> None:
    if request.path == "/robots.txt":
        request.answer(200, "User-agent: *\nDisallow: /forbidden\n", {"Content-Type": "text/plain"})
    else:
        link = f"/linked{request.path.replace('/', '-')}"
        request.answer(200, f"<h1>{request.path}</h1><a href={link}>more</a>")


def test_each_fault_costs_its_own_page(tmp_path: Path) -> None:
    """The error is in the record, with its line; links of the page are followed; exit code 1."""
    with serving(shop) as origin:
        (tmp_path / "shop.py").write_text(SPIDER.format(origin=origin))
        tables = ("-o", "items.jsonl", "-o", "pages:pages.jsonl")
        done = run("run", "shop.py", *tables, "--max-depth", 2, cwd=tmp_path)
    with mannerly.open(tmp_path / "crawl-shop") as crawl:
        skipped = {each.url: each.reason for each in crawl.skipped()}

    def lines(name: str) -> list[dict[str, str]]:
        return [json.loads(line) for line in (tmp_path / name).read_text().splitlines()]

    pages = {each["url"].removeprefix(origin): each for each in lines("pages.jsonl")}
    assert done.returncode == 1, done.stderr
    line = 1 + SPIDER.splitlines().index('    raise KeyError("price")')
    for name, error in ERRORS.items():
        assert error.format(line=line) in pages[f"/{name}"]["error"]
        assert f"/linked-{name}" in pages
    assert pages["/print"]["error"] is None
    assert "/lost" not in pages
    assert lines("items.jsonl") == [{"printed": "print"}]
    assert skipped == {f"{origin}/forbidden": "robots", "http://10.0.0.1/": "blocked_address"}
    assert "1 excluded by --exclude" in done.stderr
    assert f"handlers failed on {len(ERRORS)} pages, first on" in done.stderr
    assert "no handler for label nobody: 1 page" in done.stderr
    assert "1 request that was asked for before" in done.stderr
    assert "printed" not in done.stdout
