"""Crawlee as its documentation shows it: `python crawlee_crawl.py SEEDS OUTPUT`.

Everything in memory, uvloop, a fixed number of requests at once instead of its autoscaling, no
sessions, no retries, no logs. Links are found, made absolute and deduplicated by `enqueue_links`;
tracking parameters are taken off in the hook that it has for that.

`crawlee_bare_crawl.py` is the same with the links handled by hand.
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

import uvloop
from crawlee_bare_crawl import tuned_crawler

if TYPE_CHECKING:
    from crawlee import RequestOptions, RequestTransformAction
    from crawlee.crawlers import ParselCrawlingContext


def without_tracking(request: RequestOptions) -> RequestOptions | RequestTransformAction:
    if "?utm_" not in request["url"]:
        return "unchanged"
    request["url"] = request["url"].partition("?")[0]
    return request


async def crawl(homes: list[str], file: TextIO) -> None:
    crawler = tuned_crawler()

    @crawler.router.default_handler
    async def page(context: ParselCrawlingContext) -> None:
        await context.enqueue_links(strategy="all", transform_request_function=without_tracking)
        line = {
            "url": context.request.url,
            "status": context.http_response.status_code,
            "title": context.selector.css("title::text").get(),
            "links": len(context.selector.css("a")),
        }
        file.write(json.dumps(line) + "\n")

    await crawler.run(homes)


def main(seeds: str, output: str) -> None:
    homes = Path(seeds).read_text().split()
    with Path(output).open("w") as file:
        uvloop.install()
        asyncio.run(crawl(homes, file))


if __name__ == "__main__":
    main(*sys.argv[1:])
