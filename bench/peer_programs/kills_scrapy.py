"""The spider of `python -m bench kills` for Scrapy: numbered pages, with a value from above."""

from __future__ import annotations

from scrapy import Spider


class Numbers(Spider):
    """Follows every link, and hands its value on."""

    name = "numbers"

    async def start(self):
        from scrapy import Request

        yield Request(self.settings["FIRST"], cb_kwargs={"value": 0})

    def parse(self, response, value):
        for link in response.css("a"):
            number = int(link.attrib["data-value"])
            yield response.follow(link, cb_kwargs={"value": number})
        yield {"page": int(response.url.rpartition("/")[2]), "value": value}
