"""Scrapy with its links handled by hand: `python scrapy_bare_crawl.py SEEDS OUTPUT`.

Its own broad-crawl advice (many requests at once, the downloader-aware queue, no cookies, retries,
redirects or logs), uvloop, and what a profile showed beyond that:

- CONCURRENT_ITEMS starts that many tasks for every response; one is enough here;
- links are read from lxml's tree: a selector for each of a million attributes is expensive;
- a set of known URLs is checked before the duplicate filter, which stays on but would otherwise
  build and hash a request for every link;
- statistics and the middlewares that this web does not need are off.
"""

from __future__ import annotations

import sys
from pathlib import Path
from time import time
from urllib.parse import urljoin

from scrapy import Request, Spider
from scrapy.crawler import CrawlerProcess

SETTINGS = {
    "TWISTED_REACTOR": "twisted.internet.asyncioreactor.AsyncioSelectorReactor",
    "ASYNCIO_EVENT_LOOP": "uvloop.Loop",
    "USER_AGENT": "scrapy",
    "ROBOTSTXT_OBEY": True,
    "CONCURRENT_REQUESTS": 512,
    "CONCURRENT_REQUESTS_PER_DOMAIN": 16,
    "DOWNLOAD_DELAY": 0,
    "CONCURRENT_ITEMS": 1,
    "AUTOTHROTTLE_ENABLED": False,
    "SCHEDULER_PRIORITY_QUEUE": "scrapy.pqueues.DownloaderAwarePriorityQueue",
    "COOKIES_ENABLED": False,
    "RETRY_ENABLED": False,
    "REDIRECT_ENABLED": False,
    "REFERER_ENABLED": False,
    "TELNETCONSOLE_ENABLED": False,
    "MEMUSAGE_ENABLED": False,
    "LOG_LEVEL": "ERROR",
    "METAREFRESH_ENABLED": False,
    "HTTPPROXY_ENABLED": False,
    "STATS_CLASS": "scrapy.statscollectors.DummyStatsCollector",
    "EXTENSIONS": {"scrapy.extensions.logstats.LogStats": None},
    "SPIDER_MIDDLEWARES": {
        "scrapy.spidermiddlewares.depth.DepthMiddleware": None,
        "scrapy.spidermiddlewares.urllength.UrlLengthMiddleware": None,
    },
    "DOWNLOADER_MIDDLEWARES": {
        "scrapy.downloadermiddlewares.offsite.OffsiteMiddleware": None,
        "scrapy.downloadermiddlewares.httpauth.HttpAuthMiddleware": None,
        "scrapy.downloadermiddlewares.stats.DownloaderStats": None,
    },
}


class WholeWeb(Spider):
    """Follows every link."""

    name = "whole"
    seeds: Path

    def __init__(self) -> None:
        super().__init__()
        self.known = set(self.seeds.read_text().split())
        self.hosts = {url.split("/", 3)[2] for url in self.known}

    async def start(self):
        for seed in list(self.known):
            yield Request(seed)

    def parse(self, response):
        here = response.url
        tree = response.selector.root
        hrefs = [href for element in tree.iter("a") if (href := element.get("href"))]
        for href in set(hrefs):
            url = (href if href.startswith("http") else urljoin(here, href)).partition("#")[0]
            if "?utm_" in url:
                url = url.partition("?")[0]
            if url not in self.known and url.startswith("http"):
                self.known.add(url)
                if url.split("/", 3)[2] in self.hosts:
                    yield Request(url)
        title = tree.findtext(".//title")
        yield {
            "url": here,
            "status": response.status,
            "title": title,
            "links": len(hrefs),
            "at": time(),
        }


def main(spider: type[Spider], seeds: str, output: str) -> None:
    spider.seeds = Path(seeds)
    process = CrawlerProcess({**SETTINGS, "FEEDS": {output: {"format": "jsonlines"}}})
    process.crawl(spider)
    process.start()


if __name__ == "__main__":
    main(WholeWeb, *sys.argv[1:])
