"""Spiders as people write them: the test's project runs them with `scrapy crawl NAME`."""

from __future__ import annotations

import asyncio

import scrapy
from scrapy.exceptions import DropItem
from scrapy.linkextractors import LinkExtractor
from scrapy.spiders import CrawlSpider, Rule


class Lists(scrapy.Spider):
    """Lists lead to details, with a value from the list; some are moved, some are missing."""

    name = "lists"

    def __init__(self, origin, **values):
        super().__init__(**values)
        self.start_urls = [f"{origin}/list/0"]

    def parse(self, response):
        for link in response.css("a.detail"):
            yield response.follow(
                link,
                self.parse_detail,
                cb_kwargs={"price": link.attrib["data-price"]},
                errback=self.note_missing,
                priority=2,
            )
        yield from response.follow_all(css="a.next")

    def parse_detail(self, response, price):
        yield {"page": response.url.rpartition("/")[2], "price": price}

    def note_missing(self, failure):
        yield {"missing": failure.value.response.url.rpartition("/")[2]}


class Rules(CrawlSpider):
    """The same pages by rules; lists are followed, details are parsed."""

    name = "rules"
    rules = (
        Rule(LinkExtractor(allow=r"/list/")),
        Rule(LinkExtractor(allow=r"/detail/"), callback="parse_detail"),
    )

    def __init__(self, origin, **values):
        super().__init__(**values)
        self.start_urls = [f"{origin}/list/0"]

    def parse_detail(self, response):
        yield {"page": response.url.rpartition("/")[2]}


class Piped(Rules):
    """The same with pipelines: one waits and changes, one drops."""

    name = "piped"
    custom_settings = {  # noqa: RUF012 - the form of Scrapy
        "ITEM_PIPELINES": {"durable_spiders.Slow": 1, "durable_spiders.OnlyEven": 2}
    }


class Slow:
    """Waits with each item, and marks it."""

    async def process_item(self, item):
        await asyncio.sleep(0.002)
        return {**item, "seen": True}


class OnlyEven:
    """Drops every second item."""

    def process_item(self, item):
        if int(item["page"]) % 2:
            raise DropItem("odd")
        return item


class Members(scrapy.Spider):
    """Logs in by a form, and reads pages for members."""

    name = "members"

    def __init__(self, origin, **values):
        super().__init__(**values)
        self.start_urls = [f"{origin}/login"]

    def parse(self, response):
        return scrapy.FormRequest.from_response(
            response, formdata={"password": "secret"}, callback=self.parse_list
        )

    def parse_list(self, response):
        yield from response.follow_all(css="a", callback=self.parse_page)

    def parse_page(self, response):
        yield {"page": response.url.rpartition("/")[2], "text": response.text}


class Memory(scrapy.Spider):
    """Asks for pages whose callbacks cannot be stored, in the start and later."""

    name = "memory"

    def __init__(self, origin, **values):
        super().__init__(**values)
        self.origin = origin

    async def start(self):
        yield {"from": "start"}
        yield scrapy.Request(f"{self.origin}/detail/1", callback=lambda _: {"page": 1})
        yield scrapy.Request(f"{self.origin}/detail/2", self.parse, dont_filter=True)
        yield scrapy.Request(f"{self.origin}/detail/2", self.parse, dont_filter=True)

    def parse(self, response):
        yield {"page": 2}
        yield response.follow("/detail/3", callback=lambda _: {"page": 3})


class Halfway(scrapy.Spider):
    """Yields an item and a request, and then waits for another page within the callback."""

    name = "halfway"

    def __init__(self, origin, **values):
        super().__init__(**values)
        self.start_urls = [f"{origin}/list/3"]

    async def parse(self, response):
        yield {"before": 1}
        yield response.follow("/detail/1", self.parse_detail)
        await self.crawler.engine.download_async(scrapy.Request(response.urljoin("/detail/2")))
        yield {"after": 1}

    def parse_detail(self, response):
        yield {"page": 1}
