"""Scrapy as its documentation advises for broad crawls: `python scrapy_crawl.py SEEDS OUTPUT`.

Its settings are tuned (many requests at once, the downloader-aware queue, uvloop, no cookies,
retries, redirects, statistics or logs, one task a response for items), and what a crawler does with
a page is left to Scrapy: its link extractor, its duplicate filter, its feed export. Tracking
parameters are taken off with w3lib's function for that.

`scrapy_bare_crawl.py` is the same with all of that written by hand.
"""

from __future__ import annotations

import sys
from time import time
from typing import TYPE_CHECKING

from scrapy import Request, Spider
from scrapy.linkextractors import LinkExtractor
from scrapy_bare_crawl import main
from w3lib.url import url_query_cleaner

if TYPE_CHECKING:
    from pathlib import Path

TRACKING = ("utm_source", "utm_medium", "utm_campaign")


def without_tracking(url: str) -> str:
    return url_query_cleaner(url, TRACKING, remove=True) if "utm_" in url else url


class WholeWeb(Spider):
    """Follows every link."""

    name = "whole"
    links = LinkExtractor(process_value=without_tracking)
    seeds: Path

    async def start(self):
        for seed in self.seeds.read_text().split():
            yield Request(seed)

    def parse(self, response):
        links = self.links.extract_links(response)
        for link in links:
            yield Request(link.url)
        yield {
            "url": response.url,
            "status": response.status,
            "title": response.css("title::text").get(),
            "links": len(links),
            "at": time(),
        }


if __name__ == "__main__":
    main(WholeWeb, *sys.argv[1:])
