"""The program of `python -m bench kills` for Crawlee: the same as `kills_scrapy.py`.

Its queue and its dataset are those on disk, which are kept from one run to the next.
"""

from __future__ import annotations

import asyncio
from datetime import timedelta
from pathlib import Path

from crawlee import ConcurrencySettings, Request, service_locator
from crawlee.configuration import Configuration
from crawlee.crawlers import ParselCrawler, ParselCrawlingContext


async def main(first: str) -> None:
    settings = Configuration(
        storage_dir="storage", purge_on_start=False, persist_state_interval=timedelta(seconds=1)
    )
    service_locator.set_configuration(settings)
    crawler = ParselCrawler(
        concurrency_settings=ConcurrencySettings(
            min_concurrency=16, desired_concurrency=16, max_concurrency=16
        ),
        configure_logging=False,
    )

    @crawler.router.default_handler
    async def page(context: ParselCrawlingContext) -> None:
        links = context.selector.css("a")
        base = context.request.url.rpartition("/")[0]
        await context.add_requests(
            [
                Request.from_url(
                    base + link.attrib["href"], user_data={"value": int(link.attrib["data-value"])}
                )
                for link in links
            ]
        )
        number = int(context.request.url.rpartition("/")[2])
        value = int(str(context.request.user_data["value"]))
        await context.push_data({"page": number, "value": value})

    await crawler.run([Request.from_url(first, user_data={"value": 0})])


if __name__ == "__main__":
    asyncio.run(main(Path("first").read_text()))
