"""The live page in a real browser: each of its parts is shown, and its buttons reach the crawl.

One crawl and one browser serve all tests of this module, in the order in which they are written:
the last ones end the crawl. The judge of every action is the log of the servers that are crawled.
"""

from __future__ import annotations

import json
import os
import re
import signal
import threading
import time
from contextlib import contextmanager
from importlib.resources import files
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest
from tests.harness.commands import live_page, run, started
from tests.harness.waiting import PATIENCE_S, eventually
from tests.report.browser import browser_ends, require_browser, tab
from tests.report.site import Planted, Server, html, served
from tests.service.asking import page_within

from mannerly.crawler.stored import StoredCrawl, open_crawl
from mannerly.demo import DemoWeb, plain_sites
from mannerly.service import crawl_api, server

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Iterator

    from tests.report.browser import Seen

pytestmark = pytest.mark.processes

__all__ = ["browser_ends"]  # a fixture of this module, too

GAP_S = 0.5
EVIL = "<img src=x onerror=window.stolen=1>"
PLANTED = {
    "/": Planted(html('<a href="/missing">m</a><a href="/slow">s</a>', EVIL)),
    "/missing": Planted(html(EVIL, EVIL), 404),
    "/slow": Planted(html("slow"), delay_s=8.0),
}
BUSY = {
    "/": Planted(html('<a href="/busy">b</a>', "Busy")),
    "/busy": Planted(html("busy"), 429, headers={"Retry-After": "3"}),
}


class Shown(NamedTuple):
    """A crawl with its page, and the servers that it crawls."""

    web: DemoWeb
    planted: Server
    process: subprocess.Popen[str]
    address: str


@contextmanager
def crawled(
    directory: Path, *seeds: str, options: tuple[str, ...] = ()
) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Crawl with --dashboard; yield the process and the page's address."""
    command = [
        *("crawl", *seeds, "--dashboard", "--processes", "1"),
        *("--strategy", "fixed", "--delay", str(GAP_S), "--per-host", "1", "--timeout", "1"),
        *("--seeding-strategy", "none", "--data-dir", str(directory / "c"), *options),
    ]
    with started(*command) as process:
        yield process, live_page(process)


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shown]:
    require_browser()
    directory = tmp_path_factory.mktemp("live")
    with (
        DemoWeb(plain_sites(3, pages=400)) as web,
        served(PLANTED) as planted,
        served(BUSY) as busy,
    ):
        seeds = (web.url("plain-0"), web.url("plain-1"), f"{planted.home}/", f"{busy.home}/")
        with crawled(directory, *seeds) as (process, address):
            yield Shown(web, planted, process, address)


@contextmanager
def opened(shown: Shown, *, width: int = 1280, scheme: str = "light") -> Iterator[Seen]:
    """Open the page, and wait until it shows hosts. At the end it has no message left."""
    with tab(width=width, scheme=scheme) as seen:
        seen.page.goto(shown.address)
        seen.page.evaluate("localStorage.clear()")
        seen.page.wait_for_selector("tr[data-host]")
        yield seen
        assert seen.messages == []


@pytest.fixture
def seen(shown: Shown) -> Iterator[Seen]:
    with opened(shown) as seen:
        yield seen


def silent_after(web: DemoWeb, name: str, *, settle_s: float = 1.0, look_s: float = 2.0) -> bool:
    """Return whether a host gets no request from a second after now on."""
    time.sleep(settle_s)
    before = len(web.log_of(name))
    time.sleep(look_s)
    return len(web.log_of(name)) == before


# ---------------------------------------------------------------------- what it shows


def test_page_shows_what_the_crawl_does(shown: Shown, seen: Seen) -> None:
    """Parts 1, 2 and 11: sentence, course over time, proof; nothing is asked from elsewhere."""
    page = seen.page

    for chart in ("main", "refused", "queue", "flight", "latency"):
        page.wait_for_selector(f"#chart-{chart} canvas")
    sentence, badge = page.inner_text("#sentence"), page.inner_text("#badge")
    numbers = page.inner_text("#numbers")
    page.click("#spans button:has-text('1 h')")
    chosen = page.get_attribute("#spans button:has-text('1 h')", "aria-pressed")
    page.wait_for_selector(".event")  # a host asked us to wait
    page.wait_for_selector("#proof-sentence:has-text('kept')")
    page.wait_for_selector("#proof-dots circle")
    page.wait_for_selector("#latest a")
    latest = page.inner_text("#latest")

    assert re.search(r"pages/(s|min) from|request|waiting", sentence, re.IGNORECASE)
    assert badge.strip() in ("Running", "Waiting")
    assert "Fetched" in numbers
    assert re.fullmatch(r"(Fetching|Fetched) http://127\.\S+", latest)
    assert chosen == "true"
    assert page.inner_text("#proof-badge").strip() == "Kept"
    assert page.locator("#proof-hosts tbody tr").count() >= 2
    assert {url.split("/")[2] for url in seen.requests} == {shown.address.split("/")[2]}


def test_hosts_are_sorted_filtered_and_opened(shown: Shown, seen: Seen) -> None:
    """Part 3: a click on a head sorts, again reverses; a filter; a state; the panel of a host."""
    page = seen.page
    host = shown.web.host("plain-1")

    page.click("th.name button")
    page.wait_for_selector("th.name[aria-sort=ascending]")
    upwards = page.locator("#hosts td.name").all_inner_texts()
    page.click("th.name button")
    page.wait_for_selector("th.name[aria-sort=descending]")
    downwards = page.locator("#hosts td.name").all_inner_texts()
    page.fill("#host-filter", "no-such-host")
    page.wait_for_selector("text=No host matches “no-such-host”")
    page.click("text=Clear filter")
    page.click("#host-filters button:has-text('Fetching')")
    page.wait_for_selector("#host-filters button:has-text('Fetching')[aria-pressed=true]")
    page.click(f"tr[data-host='{host}']")
    page.wait_for_selector("#host .facts")
    panel = page.inner_text("#host")

    assert upwards == sorted(upwards) == downwards[::-1]
    assert len(upwards) == 4
    assert "Gap in force" in panel
    assert "0.500 s" in panel
    page.keyboard.press("Escape")
    page.wait_for_selector("#host", state="hidden")


def test_rows_do_not_move_until_sorted_again(shown: Shown, seen: Seen) -> None:
    """Values change in place; the server says when the order has changed."""
    page = seen.page
    names = page.locator("#hosts td.name").all_inner_texts()

    answer = page.evaluate(
        """async (names) => {
          const query = new URLSearchParams({ sort: "host", order: "asc" });
          for (const name of [...names].sort().reverse()) query.append("keep", name);
          const headers = { Authorization: `Bearer ${sessionStorage.getItem("token")}` };
          return (await fetch(`/api/jobs/this/hosts?${query}`, { headers })).json();
        }""",
        names,
    )

    assert answer["is_moved"]
    assert [each["host"] for each in answer["hosts"]] == sorted(names, reverse=True)


def test_errors_are_grouped_and_tried_again(shown: Shown, seen: Seen) -> None:
    """Part 4: by kind and host, with the URLs; "retry" asks again for what had no answer."""
    page, planted = seen.page, shown.planted

    page.wait_for_selector("#errors button.fold:has-text('404')")
    page.wait_for_selector("#errors tr:has-text('Timed out') >> text=Retry 1", timeout=90_000)
    page.click("#errors button.fold:has-text('404')")
    page.click("#errors tr.sub button:has-text('Show')")
    page.wait_for_selector("#errors tr.url a")
    listed = page.inner_text("#errors tr.url")
    before = planted.asked().count("/slow")
    planted.pages["/slow"] = Planted(html("quick now"))
    page.click("#errors tr:has-text('Timed out') >> text=Retry 1")
    eventually(lambda: planted.asked().count("/slow") > before)
    page.wait_for_selector("#errors tr:has-text('Timed out')", state="detached")

    assert listed == f"{planted.home}/missing"


def test_url_is_explained(shown: Shown, seen: Seen) -> None:
    """Part 6: from the field of the top bar, with the key for it."""
    page = seen.page

    page.keyboard.press("/")
    page.keyboard.type(f"{shown.planted.home}/missing")
    page.keyboard.press("Enter")
    page.wait_for_selector("#explanation .badge")

    assert "Fetched" in page.inner_text("#explanation")
    assert "404" in page.inner_text("#explanation")


def test_pages_and_report_are_saved_now(shown: Shown, seen: Seen, tmp_path: Path) -> None:
    """Part 10: the pages so far in two formats, and the report, while the crawl runs."""
    page = seen.page
    saved: dict[str, bytes] = {}
    for kind, name in (("jsonl", "pages.jsonl"), ("csv", "pages.csv"), ("report", "report.html")):
        with page.expect_download(timeout=120_000) as download:
            page.click(f"#export-part [data-export={kind}]")
        assert download.value.suggested_filename == name
        download.value.save_as(tmp_path / name)
        saved[kind] = (tmp_path / name).read_bytes()

    records = [json.loads(line) for line in saved["jsonl"].splitlines()]
    assert f"{shown.planted.home}/missing" in {record["url"] for record in records}
    assert len(saved["csv"].splitlines()) >= len(records)
    assert b"<title>" in saved["report"]
    assert b"Politeness" in saved["report"]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_page_has_no_serious_accessibility_finding(shown: Shown, scheme: str) -> None:
    """By axe-core, with the panel of a host open and closed, and the list of keys."""
    source = files("axe_playwright_python").joinpath("axe.min.js").read_text("utf-8")
    with opened(shown, scheme=scheme) as seen:
        page = seen.page
        page.wait_for_selector("#chart-main canvas")
        page.evaluate(source)

        found = page.evaluate("axe.run()")["violations"]
        page.click("tr[data-host]")
        page.wait_for_selector("#host .facts")
        page.click("#keys-open")
        found += page.evaluate("axe.run()")["violations"]

    serious = [
        (each["id"], node["target"], node.get("failureSummary"))
        for each in found
        if each["impact"] in ("serious", "critical")
        for node in each["nodes"]
    ]
    assert serious == []


_TOO_WIDE = """() => document.documentElement.scrollWidth <= innerWidth ? [] :
  [...document.querySelectorAll("*")]
    .filter((each) => each.getBoundingClientRect().right > innerWidth)
    .map((each) => `${each.tagName} ${each.id} ${each.className}`)"""


@pytest.mark.parametrize("width", [320, 400, 640, 1280, 2560])
def test_page_never_scrolls_sideways(shown: Shown, width: int) -> None:
    """On a phone, at 400 % of 1280 px (320 px), and on a large screen; with a host open, too."""
    with opened(shown, width=width) as seen:
        page = seen.page
        page.wait_for_selector("#proof-dots svg")

        wide = page.evaluate(_TOO_WIDE)
        page.click("tr[data-host]")
        page.wait_for_selector("#host .facts")
        wide += page.evaluate(_TOO_WIDE)
        small = page.evaluate(
            """() => [...document.querySelectorAll("main button, .bar button, .bar summary")]
              .filter((each) => each.offsetParent && !each.closest("th, .fold, .text, .act"))
              .map((each) => each.getBoundingClientRect().height)"""
        )

    assert wide == []
    assert width > 640 or min(small) >= 36


def test_keys_reach_every_part(shown: Shown, seen: Seen) -> None:
    """F j k Enter Esc 1-5 ?, and single keys can be turned off."""
    page = seen.page

    page.keyboard.press("j")
    first = page.evaluate("document.activeElement.dataset.host")
    page.keyboard.press("j")
    second = page.evaluate("document.activeElement.dataset.host")
    page.keyboard.press("k")
    back = page.evaluate("document.activeElement.dataset.host")
    page.keyboard.press("Enter")
    page.wait_for_selector("#host .facts")
    page.keyboard.press("Escape")
    page.wait_for_selector("#host", state="hidden")
    parts = []
    for key in "12345":
        page.keyboard.press(key)
        parts.append(page.evaluate("document.activeElement.id"))
    page.keyboard.press("f")
    filtered = page.evaluate("document.activeElement.id")
    page.keyboard.press("Escape")
    page.keyboard.press("?")
    page.wait_for_selector("#keys[open]")
    page.click("#keys-on")
    page.click("#keys button")
    page.keyboard.press("f")
    after = page.evaluate("document.activeElement.id")

    assert first
    assert first == back != second
    titles = ["time-title", "hosts-title", "errors-title", "queue-title", "proof-title"]
    assert parts == titles
    assert filtered == "host-filter"
    assert after != "host-filter"


def test_crawled_text_never_becomes_markup(shown: Shown, seen: Seen) -> None:
    """Titles, URLs and answers of crawled sites are text: no script of theirs runs."""
    page = seen.page
    page.fill("#host-filter", EVIL)
    page.wait_for_selector("text=No host matches")
    page.fill("#explain-url", f"{shown.planted.home}/{EVIL}")
    page.click("#explain-form button")
    page.wait_for_selector("#explanation p")
    page.fill("#queue-pattern", "*onerror*")
    page.wait_for_selector("#queue-preview:has-text('No queued URL matches')")

    assert page.evaluate("window.stolen") is None
    assert page.locator("main img").count() == 0


# ---------------------------------------------------------------------- what it does


def test_one_host_is_paused_slowed_and_resumed(shown: Shown, seen: Seen) -> None:
    """Part 3: pause: silent within a second, the other goes on. Set delay: the gap holds."""
    page, web = seen.page, shown.web
    host = web.host("plain-0")

    page.click(f"tr[data-host='{host}']")
    page.wait_for_selector("#host-pause")
    page.keyboard.press("p")
    is_silent = silent_after(web, "plain-0")
    other = len(web.log_of("plain-1"))
    page.wait_for_selector("#host .badge:has-text('Paused')")
    before = len(web.log_of("plain-0"))
    page.click("#host-resume")
    eventually(lambda: len(web.log_of("plain-0")) > before)
    page.fill("#host-delay", "2")
    ahead = page.inner_text("#host-delay-ahead")
    page.click("#host-set")
    time.sleep(1.5)
    set_at = time.monotonic()
    eventually(lambda: sum(record.t > set_at for record in web.log_of("plain-0")) >= 3)
    starts = [record.t for record in web.log_of("plain-0") if record.t > set_at]
    went_on = len(web.log_of("plain-1")) > other
    page.click("#host-forget")
    page.wait_for_selector("#host .answer:has-text('forgotten')")

    gaps = [later - earlier for earlier, later in pairwise(starts)]
    assert is_silent
    assert went_on
    assert "then take at least" in ahead
    assert min(gaps) >= 2 * 0.98


def test_seeds_are_added(shown: Shown, seen: Seen) -> None:
    """Part 7: a new host is asked within moments; a text that is no URL is refused in words."""
    page = seen.page

    page.fill("#seeds", "not a url")
    page.click("#seeds-form button")
    page.wait_for_selector("#seeds-answer.wrong")
    kept = page.input_value("#seeds")
    page.fill("#seeds", shown.web.url("plain-2"))
    page.click("#seeds-form button")
    page.wait_for_selector("#seeds-answer:has-text('Added 1 seed')")
    eventually(lambda: len(shown.web.log_of("plain-2")) >= 1)

    assert kept == "not a url"
    seen.messages[:] = [each for each in seen.messages if "400" not in each]


def test_limits_are_changed(shown: Shown, seen: Seen) -> None:
    """Part 8: the rate of the crawl falls; a number that is none is refused, and kept."""
    page, web = seen.page, shown.web

    page.wait_for_selector("#limits-now:has-text('at most')")  # the rate that it was started with
    page.click("#limits-change")
    page.fill("#limit-max_urls", "many")
    page.click("#limits-form button")
    page.wait_for_selector("#limits-answer.wrong")
    page.fill("#limit-max_urls", "100000")
    page.fill("#limit-max_rate", "0.2")
    page.click("#limits-form button")
    page.wait_for_selector("#limits-answer:has-text('Changed')")
    page.wait_for_selector("#limits-now:has-text('100,000')")
    time.sleep(1.0)
    before = len(web.log_of("plain-1"))
    time.sleep(3.0)
    sent = len(web.log_of("plain-1")) - before
    page.click("#limits-change")
    page.fill("#limit-max_rate", "")
    page.click("#limits-form button")
    page.wait_for_selector("#limits-now:has-text('as each host allows')")

    assert sent <= 1


def test_pattern_is_excluded_after_a_preview(shown: Shown, seen: Seen) -> None:
    """Part 5: the queue with its counts; after the question the host is asked no more."""
    page, web = seen.page, shown.web

    page.fill("#queue-pattern", f"*{web.host('plain-1')}/*")
    page.wait_for_selector("#exclude:not([disabled])")
    preview, label = page.inner_text("#queue-preview"), page.inner_text("#exclude")
    page.click("#exclude")
    page.click("#ask-yes")
    page.wait_for_selector("#queue-preview:has-text('Excluded')")

    assert "queued URLs match" in preview
    assert "at least" in preview
    assert re.fullmatch(r"Exclude [\d,]+ URLs…", label)
    assert silent_after(web, "plain-1", settle_s=2.0)


def test_crawl_is_paused_resumed_and_stopped(shown: Shown, seen: Seen) -> None:
    """Part 9: silent within a second and a half; after its end the page says so and stays."""
    page, web = seen.page, shown.web

    page.keyboard.press("Shift+P")
    is_paused = silent_after(web, "plain-0", settle_s=1.5)
    page.wait_for_selector("#badge.paused")
    page.click("#state-action button")
    before = len(web.log())
    eventually(lambda: len(web.log()) > before)
    page.wait_for_selector("#badge.running, #badge.waiting")
    page.click("#stop")
    page.click("#ask-yes")
    code = shown.process.wait(60)
    page.wait_for_selector("#offline:not(.hidden)")

    assert is_paused
    assert code == 143
    assert "Not connected" in page.inner_text("#offline")
    assert "The crawl has ended" in page.inner_text("#offline")
    assert page.is_disabled("#pause")
    seen.messages[:] = [each for each in seen.messages if "ERR_CONNECTION_REFUSED" not in each]


# ---------------------------------------------------------------------- other crawls


def test_phone_says_why_a_host_waits_and_how_long(tmp_path: Path) -> None:
    """A row of a narrow screen has the cause and the next instant, too."""
    asks = BUSY | {"/busy": BUSY["/busy"]._replace(headers={"Retry-After": "600"})}
    with (
        tab(width=400) as seen,
        served(asks) as busy,
        crawled(tmp_path, f"{busy.home}/") as (_process, address),
    ):
        page = seen.page
        page.goto(address)
        row = page.locator("#hosts tr.asked_to_wait")
        row.wait_for(timeout=60_000)

        cells = [row.locator(".next"), row.locator(".why")]
        is_shown = [cell.is_visible() for cell in cells]
        until, why = (cell.inner_text() for cell in cells)

    assert is_shown == [True, True]
    assert re.fullmatch(r"9 min \d+ s|10 min", until)
    assert "Retry-After" in why


def test_page_gives_up_what_it_asks_when_its_crawl_has_ended(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Its reads hang with the store; the console has nothing but its tries to connect again."""
    hangs, goes_on = threading.Event(), threading.Event()

    def opened_late(location: str) -> StoredCrawl:
        if hangs.is_set():
            goes_on.wait(PATIENCE_S)
        return open_crawl(location)

    monkeypatch.setattr(crawl_api, "open_crawl", opened_late)
    # However late the browser hears of the end: no read is refused before it is given up.
    monkeypatch.setattr(server, "LAST_ANSWERS_S", PATIENCE_S)
    directory = str(tmp_path / "c")
    with DemoWeb(plain_sites(1, pages=3)) as web:
        done = run("crawl", *web.seeds(), "--data-dir", directory, "--max-rate", "100")
    with tab() as seen, page_within(directory) as (channel, address):
        page = seen.page
        page.goto(address)
        page.wait_for_selector("tr[data-host]")
        hangs.set()
        with page.expect_request("**/hosts?*"):
            pass

        with page.expect_event("requestfailed", lambda each: "/hosts?" in each.url):
            channel.close()
        page.wait_for_selector("#offline:not(.hidden)")
        said = page.inner_text("#offline")
        goes_on.set()

    assert done.returncode == 0
    assert "The crawl has ended" in said
    assert [each for each in seen.messages if "ERR_CONNECTION_REFUSED" not in each] == []


def test_page_that_dies_costs_the_crawl_nothing(tmp_path: Path) -> None:
    """The crawl goes on after its page was killed, and ends as usual."""
    with (
        DemoWeb(plain_sites(2, pages=50)) as web,
        crawled(tmp_path, *web.seeds(), options=("--max-urls", "12")) as (process, _address),
    ):
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
