"""The live page in a real browser: what it shows, and that its buttons reach the crawl.

The judge of every action is the log of the servers that are crawled.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from contextlib import contextmanager, suppress
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest
from tests.crawler.runtime.harness import SOURCE_PATH, eventually
from tests.report.browser import browser, browser_ends, require_browser

from mannerly.demo import DemoWeb, plain_sites

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Page

__all__ = ["browser_ends"]  # a fixture of this module, too

GAP_S = 0.5
NAMES = ("plain-0", "plain-1", "plain-2")


class Shown(NamedTuple):
    """A crawl with its page, and the web that it crawls."""

    web: DemoWeb
    page: Page
    process: subprocess.Popen[str]
    address: str
    requests: list[str]
    messages: list[str]


@contextmanager
def crawled(directory: Path, *options: str) -> Iterator[tuple[DemoWeb, subprocess.Popen[str], str]]:
    """Crawl three hosts with --dashboard; yield the web, the process and the page's address."""
    with DemoWeb(plain_sites(3, pages=200)) as web:
        command = [
            *(sys.executable, "-m", "mannerly", "crawl", web.url("plain-0"), web.url("plain-1")),
            *("--dashboard", "--strategy", "fixed", "--delay", str(GAP_S), "--per-host", "1"),
            *("--seeding-strategy", "none", "--processes", "1", "--data-dir", str(directory / "c")),
            *options,
        ]
        process = subprocess.Popen(
            command,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
            env=os.environ | {"PYTHONPATH": SOURCE_PATH},
        )
        try:
            assert process.stderr is not None
            lines = iter(process.stderr.readline, "")
            address = next(line.split()[-1] for line in lines if line.startswith("Live page:"))
            yield web, process, address
        finally:
            with suppress(ProcessLookupError):  # it has ended
                os.killpg(process.pid, signal.SIGKILL)
            process.communicate()


@pytest.fixture
def shown(tmp_path: Path) -> Iterator[Shown]:
    require_browser()
    with crawled(tmp_path) as (web, process, address):
        page = browser().new_page(viewport={"width": 1280, "height": 900})
        requests: list[str] = []
        messages: list[str] = []
        page.on("request", lambda each: requests.append(each.url))
        page.on("console", lambda each: messages.append(each.text))
        page.on("pageerror", lambda each: messages.append(str(each)))
        page.set_default_timeout(60_000)
        page.goto(address)
        page.wait_for_selector("tr[data-host]")
        yield Shown(web, page, process, address, requests, messages)
        page.close()


def silent_after(web: DemoWeb, name: str, *, settle_s: float = 1.0, look_s: float = 2.0) -> bool:
    """Return whether a host gets no request from a second after now on."""
    time.sleep(settle_s)
    before = len(web.log_of(name))
    time.sleep(look_s)
    return len(web.log_of(name)) == before


def test_page_shows_what_the_crawl_does(shown: Shown) -> None:
    """Sentence, numbers, charts, hosts, errors, proof; nothing from elsewhere, no error."""
    page = shown.page

    for chart in ("main", "queue", "flight", "latency"):
        page.wait_for_selector(f"#chart-{chart} canvas")
    sentence, badge = page.inner_text("#sentence"), page.inner_text("#badge")
    numbers = page.inner_text("#numbers")
    hosts = page.locator("tr[data-host]").count()
    page.fill("#host-filter", "no-such-host")
    page.wait_for_selector("text=No host matches")
    page.click("text=Clear filter")
    page.fill("#explain-url", shown.web.url("plain-0"))
    page.click("#explain-form button")
    page.wait_for_selector("#explanation .badge")
    explained = page.inner_text("#explanation")
    page.wait_for_selector("#proof-sentence:has-text('kept')")

    assert re.search(r"pages/(s|min) from 2 of 2 hosts|request", sentence)
    assert "Running" in badge
    assert "Fetched" in numbers
    assert hosts == 2
    assert "fetched" in explained
    assert shown.messages == []
    assert {url.split("/")[2] for url in shown.requests} == {shown.address.split("/")[2]}


def test_one_host_is_paused_slowed_and_resumed(shown: Shown) -> None:
    """Pause host: silent within a second, the other goes on. Set delay: the gap holds."""
    page, web = shown.page, shown.web
    host = web.host("plain-0")

    page.click(f"tr[data-host='{host}']")
    page.click("#host-pause")
    is_silent = silent_after(web, "plain-0")
    other = len(web.log_of("plain-1"))
    page.click("#host-resume")
    eventually(lambda: len(web.log_of("plain-0")) > 3)
    page.fill("#host-delay", "2")
    page.click("#host-set")
    time.sleep(1.5)
    set_at = time.monotonic()
    eventually(lambda: sum(record.t > set_at for record in web.log_of("plain-0")) >= 3)
    starts = [record.t for record in web.log_of("plain-0") if record.t > set_at]
    went_on = len(web.log_of("plain-1")) > other

    gaps = [later - earlier for earlier, later in pairwise(starts)]
    assert is_silent
    assert went_on
    assert min(gaps) >= 2 * 0.98
    assert shown.messages == []


def test_crawl_is_steered(shown: Shown) -> None:
    """Seeds are added, a pattern excluded with a preview, limits set, the crawl paused, stopped."""
    page, web = shown.page, shown.web

    page.fill("#seeds", web.url("plain-2"))
    page.click("#seeds-form button")
    page.wait_for_selector("#seeds-answer:has-text('Added 1 seed')")
    eventually(lambda: len(web.log_of("plain-2")) >= 1)
    page.fill("#queue-pattern", f"*{web.host('plain-1')}/*")
    page.click("#queue-form button")
    page.wait_for_selector("#exclude")
    preview = page.inner_text("#queue-preview")
    page.click("#exclude")
    page.click("#ask-yes")
    page.wait_for_selector("#queue-preview:has-text('Excluded')")
    is_excluded = silent_after(web, "plain-1", settle_s=2.0)
    page.fill("#limit-max_urls", "1000")
    page.click("#limits-form button")
    page.wait_for_selector("#limits-answer:has-text('Changed')")
    page.click("#pause")
    is_paused = silent_after(web, "plain-0", settle_s=1.5)
    page.wait_for_selector("#badge.paused")
    page.click("#pause")
    before = len(web.log())
    eventually(lambda: len(web.log()) > before)
    page.click("#stop")
    page.click("#ask-yes")
    code = shown.process.wait(60)

    assert "queued URLs match" in preview
    assert is_excluded
    assert is_paused
    assert code == 143
    page.wait_for_selector("#offline:not(.hidden)")


def test_page_that_dies_costs_the_crawl_nothing(tmp_path: Path) -> None:
    """The crawl goes on after its page was killed, and ends as usual."""
    with crawled(tmp_path, "--max-urls", "12") as (web, process, _address):
        children = _children(process.pid)
        for pid in children:
            os.kill(pid, signal.SIGKILL)
        code = process.wait(60)
        pages = {record.path for record in web.log()}

    assert children
    assert code == 0
    assert len(pages) >= 6


def _children(pid: int) -> list[int]:
    return [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
