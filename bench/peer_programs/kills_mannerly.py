"""The spider of `python -m bench kills` for mannerly: the same as `kills_scrapy.py`."""

from __future__ import annotations

import mannerly

numbers = mannerly.Spider("http://127.0.0.1/0", follow=False)


@numbers.on("*")
def page(page):
    for link in page.select("a"):
        yield page.follow(link, label="page", data={"value": int(link.attrs["data-value"])})
    yield {"page": 0, "value": 0}


@numbers.on(label="page")
def child(page):
    for link in page.select("a"):
        yield page.follow(link, label="page", data={"value": int(link.attrs["data-value"])})
    yield {"page": int(page.url.rpartition("/")[2]), "value": page.data["value"]}
