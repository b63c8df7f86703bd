"""`mannerly.testing.page`: handlers are tested without a network."""

from __future__ import annotations

import pytest

import mannerly
from mannerly.testing import page


def test_page_is_one_of_a_crawl() -> None:
    """Its record, its headers and what led to it."""
    made = page(
        "<title>Shop</title><h1>Té</h1><a href=/2>next</a>",
        url="https://Shop.example/1",
        headers={"X-Stock": "3"},
        label="product",
        data={"price": 4},
    )

    assert (made.url, made.status, made.error) == ("https://shop.example/1", 200, None)
    assert (made.title, made.record.h1, made.record.host) == ("Shop", "Té", "shop.example")
    assert made.select_one("h1").text == "Té"  # type: ignore[union-attr]
    assert made.links == ["https://shop.example/2"]
    assert made.headers["x-stock"] == "3"
    assert (made.label, made.data) == ("product", {"price": 4})
    assert made.follow("2").url == "https://shop.example/2"
    assert page('{"a": 1}', headers={"Content-Type": "application/json"}).json() == {"a": 1}


def test_spider_picks_the_handler_of_a_page() -> None:
    """By label, by pattern, and for errors."""
    shop = mannerly.Spider("https://shop.example/")
    shop.on(label="product")(lambda page: "product")
    shop.on("*/list")(lambda page: "list")
    shop.on_error(lambda page: f"{page.status} {page.error}")

    assert shop(page(label="product")) == "product"
    assert shop(page(url="https://shop.example/list")) == "list"
    assert shop(page(status=404)) == "404 None"
    assert shop(page(status=None, error="timeout")) == "None timeout"
    assert shop(page(status=301)) is None


def test_page_that_no_crawl_could_have_is_refused() -> None:
    """As in a crawl, so that a test cannot pass where a crawl would fail."""
    with pytest.raises(ValueError, match="not a URL"):
        page(url="ftp://shop.example/")
    with pytest.raises(ValueError, match="values of JSON"):
        page(data=object())
