"""Crawlee with its links handled by hand: `python crawlee_bare_crawl.py SEEDS OUTPUT`.

Everything in memory, uvloop, a fixed number of requests at once instead of its autoscaling, no
sessions, no retries, no logs; links read from lxml's tree, and a set of known URLs in front of the
request queue. Pages go straight to a file of JSON lines, which is cheaper than its dataset.
"""

from __future__ import annotations

import asyncio
import json
import logging
import sys
from datetime import timedelta
from pathlib import Path
from time import time
from typing import TYPE_CHECKING, Any, TextIO
from urllib.parse import urljoin

import uvloop
from crawlee import ConcurrencySettings
from crawlee.crawlers import ParselCrawler, ParselCrawlingContext
from crawlee.storage_clients import MemoryStorageClient

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

AT_ONCE = 64


def tuned_crawler() -> ParselCrawler:
    logging.disable(logging.WARNING)
    return ParselCrawler(
        storage_client=MemoryStorageClient(),
        concurrency_settings=ConcurrencySettings(
            min_concurrency=AT_ONCE, max_concurrency=AT_ONCE, desired_concurrency=AT_ONCE
        ),
        respect_robots_txt_file=True,
        use_session_pool=False,
        max_request_retries=0,
        configure_logging=False,
        statistics_log_format="inline",
        request_handler_timeout=timedelta(minutes=5),
    )


async def crawl(homes: list[str], file: TextIO) -> None:
    known = set(homes)
    hosts = {url.split("/", 3)[2] for url in known}
    crawler = tuned_crawler()

    @crawler.router.default_handler
    async def page(context: ParselCrawlingContext) -> None:
        here = context.request.url
        tree = context.selector.root
        hrefs = [href for element in tree.iter("a") if (href := element.get("href"))]
        new = []
        for href in set(hrefs):
            url = (href if href.startswith("http") else urljoin(here, href)).partition("#")[0]
            if "?utm_" in url:
                url = url.partition("?")[0]
            if url not in known and url.startswith("http"):
                known.add(url)
                if url.split("/", 3)[2] in hosts:
                    new.append(url)
        if new:
            await context.add_requests(new)
        title = tree.findtext(".//title")
        line = {
            "url": here,
            "status": context.http_response.status_code,
            "title": title,
            "links": len(hrefs),
            "at": time(),
        }
        file.write(json.dumps(line) + "\n")

    await crawler.run(homes)


def main(
    crawl: Callable[[list[str], TextIO], Coroutine[Any, Any, None]], seeds: str, output: str
) -> None:
    homes = Path(seeds).read_text().split()
    with Path(output).open("w") as file:
        uvloop.install()
        asyncio.run(crawl(homes, file))


if __name__ == "__main__":
    main(crawl, *sys.argv[1:])
