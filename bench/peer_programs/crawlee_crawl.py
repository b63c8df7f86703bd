"""Crawlee as its documentation shows it: `python crawlee_crawl.py SEEDS OUTPUT`.

Everything in memory, uvloop, a fixed number of requests at once instead of its autoscaling, no
sessions, no retries, no logs. Links are found, made absolute and deduplicated by `enqueue_links`;
tracking parameters are taken off in the hook that it has for that.

`crawlee_bare_crawl.py` is the same with the links handled by hand.
"""

from __future__ import annotations

import json
import sys
from time import time
from typing import TYPE_CHECKING, TextIO

from crawlee_bare_crawl import main, tuned_crawler

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
            "at": time(),
        }
        file.write(json.dumps(line) + "\n")

    await crawler.run(homes)


if __name__ == "__main__":
    main(crawl, *sys.argv[1:])
