"""Not run: mypy reads it, so that the public API keeps the types that users rely on."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import aclosing, closing
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, assert_type

import mannerly
from mannerly.crawler.host_view import HostView
from mannerly.crawler.inspection.hosts import HostDetails
from mannerly.crawler.inspection.status import Status
from mannerly.crawler.model import PageRecord, Skipped
from mannerly.crawler.runtime.ending import Ending
from mannerly.crawler.stats import Stats
from mannerly.crawler.stored import HostHandle
from mannerly.politeness import (
    Decision,
    GiveUp,
    Grant,
    Outcome,
    Politeness,
    Refuse,
    Response,
    Retry,
    Settings,
    Snapshot,
    Wait,
)
from mannerly.politeness.robots import Robots

if TYPE_CHECKING:
    from mannerly.crawler.options.keywords import CrawlOptions


def contract(core: Politeness) -> float | None:
    decision: Decision = core.reserve("example.com", now=12.5)
    match decision:
        case Grant(permit):
            outcome: Outcome = core.report(permit, Response(status=200, latency_s=0.03), now=12.6)
            again: Retry | GiveUp = core.retry(permit, Response(503), outcome, attempt=1, now=12.6)
            del again
            core.cancel(permit, now=13.0)
        case Wait(until=instant) | Refuse(until=instant):
            return instant
    core.robots("example.com", crawl_delay_s=5.0, now=13.0)
    snapshot: Snapshot = core.snapshot(top=50)
    del snapshot
    return core.ready_at("example.com", now=13.0)


def settings() -> Settings:
    Settings(max_rats=1)  # type: ignore[call-arg]
    Settings(max_hosts="all")  # type: ignore[arg-type]
    Settings().max_hosts = 5  # type: ignore[misc]
    return replace(Settings(strategy="learned", max_rate="unlimited"), seed=1)


def rules(body: bytes) -> tuple[bool, float | None, tuple[str, ...]]:
    robots = Robots.parse(body)
    agent = "mannerly"
    allowed = robots.allowed("https://example.com/", agent)
    return allowed, robots.crawl_delay_s(agent), robots.sitemaps


def loop() -> None:
    for page in mannerly.crawl("https://example.org/", max_urls=500):
        print(page.url, page.status, page.title, len(page.body))
        attributes(page)
    with closing(mannerly.crawl(["https://example.org/"], data_dir=Path("crawl"))) as pages:
        assert_type(next(pages), mannerly.Page)
    plain: Iterator[mannerly.Page] = mannerly.crawl(data_dir="crawl", fresh=False)
    del plain


async def aloop() -> None:
    async for page in mannerly.acrawl(["https://a.example/", "https://b.example/"], scope="site"):
        attributes(page)
    async with aclosing(mannerly.acrawl("https://example.org/")) as pages:
        assert_type(await anext(pages), mannerly.Page)
    plain: AsyncIterator[mannerly.Page] = mannerly.acrawl("https://example.org/")
    del plain


def attributes(page: mannerly.Page) -> None:
    assert_type(page.url, str)
    assert_type(page.status, int | None)
    assert_type(page.title, str | None)
    assert_type(page.error, str | None)
    assert_type(page.content_type, str | None)
    assert_type(page.headers, Mapping[str, str])
    assert_type(page.body, bytes)
    assert_type(page.html, str)
    assert_type(page.links, list[str])
    assert_type(page.depth, int)
    assert_type(page.parent, str | None)
    assert_type(page.redirect_to, str | None)
    assert_type(page.latency_s, float)
    assert_type(page.record, PageRecord)
    page.done()
    page.url = "https://example.org/"  # type: ignore[misc]


def handle(url: str) -> mannerly.CrawlResult:
    with mannerly.Crawl("https://example.org/", data_dir="crawl-example", processes=2) as crawl:
        assert_type(crawl, mannerly.Crawl)
        assert_type(crawl.start(), mannerly.Crawl)
        look(crawl, url)
        host = crawl.host("example.org")
        assert_type(host, HostHandle)
        assert_type(host.show(), HostDetails | None)
        host.set(delay_s=5)
        host.pause()
        host.resume()
        host.forget()
        crawl.add(["https://example.org/new"])
        crawl.add("https://example.org/new")
        crawl.exclude("*/calendar/*")
        crawl.set(max_rate="unlimited", max_urls=None)
        crawl.pause()
        crawl.unpause()
        crawl.stop()
        assert_type(crawl.is_running, bool)
        assert_type(crawl.result, mannerly.CrawlResult | None)
        for page in crawl:
            assert_type(page, mannerly.Page)
        result = crawl.wait(timeout_s=5)
    assert_type(result.ending, Ending)
    assert_type(result.stats, Stats)
    assert_type(result.seconds, float)
    assert_type(result.pending, int)
    result.pending = 0  # type: ignore[misc]
    return result


def look(crawl: mannerly.StoredCrawl, url: str) -> None:
    assert_type(crawl.status(), Status)
    assert_type(crawl.hosts(), list[HostView])
    assert_type(crawl.explain(url).state, str)
    assert_type(crawl.explain(url).because, str)
    assert_type(crawl.pages(), Iterator[PageRecord])
    assert_type(crawl.skipped(), Iterator[Skipped])
    assert_type(crawl.location, str)
    crawl.start()  # type: ignore[attr-defined]


def stored() -> list[str]:
    records = mannerly.open("crawl-example").pages()
    with mannerly.open(Path("crawl-example")) as crawl:
        assert_type(crawl, mannerly.StoredCrawl)
    return [record.url for record in records]


def keywords(polite: mannerly.Settings, core: mannerly.Politeness) -> None:
    del core
    options: CrawlOptions = {
        "max_urls": 5,
        "exclude": ("*.pdf", "*.zip"),
        "ca_file": Path("ca.pem"),
    }
    mannerly.crawl("https://example.org/", politeness=polite, **options)
    mannerly.Crawl("https://example.org/", max_rate="unlimited", include="*/en/*", delay=1)
    mannerly.crawl("https://example.org/", max_url=5)  # type: ignore[call-arg]
    mannerly.crawl("https://example.org/", max_urls="many")  # type: ignore[arg-type]
    mannerly.crawl("https://example.org/", max_rate="fast")  # type: ignore[arg-type]
    mannerly.crawl(5)  # type: ignore[arg-type]


def spider() -> mannerly.Spider:
    shop = mannerly.Spider("https://example.org/", "https://example.com/", max_rate=4)
    mannerly.Spider("https://example.org/", max_url=5)  # type: ignore[call-arg]

    @shop.on("*/list/*")
    def category(page: mannerly.Page) -> mannerly.Request:
        return page.follow("/tea", label="product", data={"price": 4}, priority=1)

    kept: Callable[[mannerly.Page], mannerly.Request] = category  # a decorator keeps the type
    del kept
    assert_type(next(shop.run(data_dir="crawl-shop", max_urls=5)), dict[str, Any])
    return shop


def errors() -> ValueError | None:
    try:
        mannerly.crawl("https://example.org/")
    except mannerly.StoreError as error:
        text: str = str(error)
        del text
    except mannerly.OptionError as error:
        return error
    return None
