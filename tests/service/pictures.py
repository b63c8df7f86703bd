"""Take pictures of the live page and the report: `python -m tests.service.pictures DIR [WHAT…]`.

    few     a crawl of five hosts: four of the demonstration with a limit each, and one that is down
    many    a crawl of 5,000 hosts
    jobs    the list of jobs of a service
    report  the report of a site with one fault of each kind

Each at 400, 1280 and 2560 px, light and dark, and with the panel of a host open. Everything is
real: servers, crawl, page and browser. It takes about a minute for each of them.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from tests.harness.commands import live_page, started
from tests.report.browser import ARGUMENTS, CHROMIUM
from tests.report.conftest import crawl_of
from tests.report.site import FAULTY, served
from tests.service.running import ServiceProcess

from mannerly.crawler.stored import open_crawl
from mannerly.demo import DemoWeb, demo_sites, plain_sites
from mannerly.report import find, write_html

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from playwright.sync_api import Browser, Page

WIDTHS = (400, 1280, 2560)
SCHEMES = ("light", "dark")
FEW = ("bucket", "retry-after", "crawl-delay", "outage")
MANY = 5000


@contextmanager
def crawled(web: DemoWeb, seeds: Sequence[str], *options: str) -> Iterator[str]:
    """Crawl with --dashboard; yield the address of the page."""
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory) / "seeds.txt"
        file.write_text("\n".join(seeds))
        words = ("crawl", file, "--dashboard", "--data-dir", f"{directory}/demonstration")
        with started(*words, "--quiet", *options) as process:
            yield live_page(process)


def shoot(browser: Browser, address: str, into: Path, name: str, host: str = "") -> None:
    """Take all pictures of one page."""
    for scheme in SCHEMES:
        for width in WIDTHS:
            page = _opened(browser, address, width, scheme)
            page.screenshot(path=into / f"{name}-{width}-{scheme}.png", full_page=True)
            if host:
                page.click(host)
                page.wait_for_selector("#host:not(.hidden) .facts")
                page.wait_for_timeout(500)
                picture = into / f"{name}-{width}-{scheme}-host.png"
                if width > 900:
                    page.locator("#hosts-part").screenshot(path=picture)
                else:
                    page.screenshot(path=picture)
            page.close()
            print(f"{name} {width} {scheme}", flush=True)


def _sized(browser: Browser, width: int, scheme: str) -> Page:
    height = {400: 860, 1280: 900}.get(width, 1440)
    return browser.new_page(
        viewport={"width": width, "height": height},
        color_scheme="dark" if scheme == "dark" else "light",
    )


def _opened(browser: Browser, address: str, width: int, scheme: str) -> Page:
    page = _sized(browser, width, scheme)
    page.on("console", lambda each: print("console:", each.text, flush=True))
    page.on("pageerror", lambda each: print("error:", each, flush=True))
    page.set_default_timeout(60_000)
    if source := os.environ.get("MANNERLY_STATIC"):  # while the page is being changed
        kinds = {".js": "text/javascript", ".css": "text/css", ".html": "text/html"}
        page.route(
            "**/static/*.*",
            lambda route: route.fulfill(
                path=Path(source) / Path(route.request.url).name,
                content_type=kinds.get(Path(route.request.url).suffix, "image/svg+xml"),
            ),
        )
    page.goto(address)
    page.wait_for_selector("tr[data-host], #jobs", timeout=60_000)
    page.wait_for_timeout(2500)
    return page


def few(browser: Browser, into: Path) -> None:
    """Five hosts; one asks to wait, one has an outage, one does not answer."""
    with DemoWeb([site for site in demo_sites() if site.name in FEW]) as web:
        seeds = [*web.seeds(), f"http://{web.hosts[0].replace('127.0.0.2', '127.9.9.9')}/"]
        with crawled(web, seeds, "--allow-net", "127.0.0.0/8", "--seeding-strategy", "none") as at:
            time.sleep(float(os.environ.get("MANNERLY_WAIT", "60")))
            host = web.host("retry-after")
            shoot(browser, at, into, "few", f"tr[data-host='{host}']")


def many(browser: Browser, into: Path) -> None:
    """Five thousand hosts, at a request a second each at most."""
    with DemoWeb(plain_sites(MANY, pages=200)) as web:  # more than are crawled meanwhile
        options = ("--allow-net", "127.0.0.0/8", "--seeding-strategy", "none", "--max-rate", "1")
        with crawled(web, web.seeds(), *options) as at:
            time.sleep(float(os.environ.get("MANNERLY_WAIT", "40")))
            shoot(browser, at, into, "many", "tr[data-host] >> nth=3")


def jobs(browser: Browser, into: Path) -> None:
    """The list of jobs of a service: running, waiting, paused, finished and failed ones."""
    options = {"seeding_strategy": "none", "max_rate": 20, "start_rate": 20}
    with (
        DemoWeb(plain_sites(4, pages=300)) as web,
        tempfile.TemporaryDirectory() as root,
        ServiceProcess(Path(root), "--jobs", "2") as service,
    ):
        done = service.create(web.url("plain-0"), options={**options, "max_urls": 5}, name="short")
        service.create("http://127.0.0.1:9/", name="nobody there", options={"give_up_after": 1})
        while service.state(done) != "finished":
            time.sleep(0.2)
        for number in (1, 2, 3):
            more = {"schedule": "0 3 * * *"} if number == 2 else {}
            kind = "check" if number == 3 else "crawl"
            service.create(web.url(f"plain-{number}"), options=options, kind=kind, **more)
        paused = service.create(web.url("plain-0"), options=options, name="held back")
        service.call("POST", f"/api/jobs/{paused}/pause")
        time.sleep(3)
        shoot(browser, service.address, into, "jobs")


def report(browser: Browser, into: Path) -> None:
    """The report of a site with faults."""
    with served(FAULTY) as site, tempfile.TemporaryDirectory() as directory:
        file = Path(directory) / "report.html"
        location = crawl_of(site, Path(directory) / "crawl", text_digest="all")
        with open_crawl(location) as crawl:
            write_html(find(crawl), file)
        for scheme in SCHEMES:
            for width in WIDTHS:
                page = _sized(browser, width, scheme)
                page.goto(file.as_uri())
                page.screenshot(path=into / f"report-{width}-{scheme}.png", full_page=True)
                page.close()
                print(f"report {width} {scheme}", flush=True)


PICTURES = {"few": few, "many": many, "jobs": jobs, "report": report}


def main(arguments: Sequence[str]) -> None:
    """Take the pictures."""
    from playwright.sync_api import sync_playwright

    if not arguments or arguments[0].startswith("-") or not {*arguments[1:]} <= {*PICTURES}:
        sys.exit(__doc__)
    into, wanted = Path(arguments[0]), arguments[1:] or PICTURES
    into.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        for what in wanted:
            PICTURES[what](browser, into)
        browser.close()


if __name__ == "__main__":
    main(sys.argv[1:])
