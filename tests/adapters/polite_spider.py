"""A Scrapy project in one file: a spider with the add-on; prints its statistics as JSON.

python polite_spider.py '{"MANNERLY_SETTINGS": {...}}' URL…
"""

from __future__ import annotations

import json
import sys

import scrapy
from scrapy.crawler import CrawlerProcess


class PageSpider(scrapy.Spider):
    """Asks for URLs, and follows nothing."""

    name = "pages"
    handle_httpstatus_list = (404,)

    async def start(self):
        for url in sys.argv[2:]:
            yield scrapy.Request(url)

    def parse(self, response):
        yield {"url": response.url}


process = CrawlerProcess(
    {
        "ADDONS": {"mannerly.adapters.scrapy.Polite": 0},
        "LOG_LEVEL": "WARNING",
        "TELNETCONSOLE_ENABLED": False,
        **json.loads(sys.argv[1]),
    }
)
crawler = process.create_crawler(PageSpider)
process.crawl(crawler)
process.start()
stats = crawler.stats.get_stats()
print(json.dumps({name: value for name, value in stats.items() if isinstance(value, int | str)}))
