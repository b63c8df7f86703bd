"""Which handler gets a page, and what it may return."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from tests.exports.stored_example import PAGES

from mannerly.crawler.page.extract import extracted_by, items_here
from mannerly.crawler.page.handlers import Handlers, UnknownLabelError
from mannerly.crawler.page.page import Page
from mannerly.crawler.payload import Payload

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

URL = "https://shop.example/category/tea"


def page(
    url: str = URL, *, status: int | None = 200, label: str = "", error: str | None = None
) -> Page:
    record = PAGES[0]._replace(url=url, status=status, error=error, content_type="text/html")
    return Page(record, {}, b"<h1>Tea</h1>", carried=Payload(label=label) if label else None)


@pytest.fixture
def shop() -> Handlers:
    shop = Handlers()

    @shop.on("*/category/*", "*/list?*")
    def category(page: Page) -> str:
        return "category"

    @shop.on("https://shop.example/*")
    @shop.on(label="any")
    def rest(page: Page) -> str:
        return "rest"

    @shop.on(label="product")
    def product(page: Page) -> str:
        return "product"

    return shop


@pytest.mark.parametrize(
    ("asked", "wanted"),
    [
        (page(), "category"),
        (page("https://shop.example/list?p=1"), "category"),
        (page("https://shop.example/about"), "rest"),
        (page("https://other.example/about"), None),
        (page(label="product"), "product"),
        (page("https://other.example/about", label="any"), "rest"),
        (page(status=304), None),
        (page(status=301), None),
        (page(status=404), None),
        (page(status=None, error="timeout"), None),
    ],
)
def test_label_then_first_pattern_picks_the_handler(
    shop: Handlers, asked: Page, wanted: str | None
) -> None:
    """Errors and redirects go to none of them."""
    assert shop(asked) == wanted


def test_label_without_a_handler_is_said_with_those_that_there_are(shop: Handlers) -> None:
    """A pattern does not take its place."""
    with pytest.raises(UnknownLabelError, match=r"label produkt \(there are: any, product\)"):
        shop(page(label="produkt"))


def test_errors_have_a_handler_of_their_own(shop: Handlers) -> None:
    """With any label; redirects are none."""

    @shop.on_error
    def failed(page: Page) -> str:
        return f"failed {page.status or page.error}"

    assert shop(page(status=404, label="unheard")) == "failed 404"
    assert shop(page(status=None, error="timeout")) == "failed timeout"
    assert shop(page(status=302)) is None
    assert shop(page()) == "category"


def test_handlers_that_cannot_be_meant_are_refused(shop: Handlers) -> None:
    """Where they are declared."""
    with pytest.raises(TypeError, match=r'write @spider.on\("'):
        shop.on(lambda page: None)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="give one of them"):
        shop.on()
    with pytest.raises(ValueError, match="give one of them"):
        shop.on("*", label="x")
    with pytest.raises(ValueError, match="already has a handler: product"):
        shop.on(label="product")
    with pytest.raises(ValueError, match="label is empty"):
        shop.on(label="")
    shop.on_error(lambda page: None)
    with pytest.raises(ValueError, match="already"):
        shop.on_error(lambda page: None)


def test_handlers_may_be_asynchronous() -> None:
    """A coroutine and an asynchronous generator, as the plain ones."""
    shop = Handlers()

    @shop.on("*/one")
    async def one(page: Page) -> dict[str, str]:
        return {"url": page.url}

    @shop.on("*/many")
    async def many(page: Page) -> Any:
        yield {"n": 1}
        yield page.follow("/next", label="next", priority=2)

    assert shop(page("https://a.example/one")) == {"url": "https://a.example/one"}
    found = items_here(shop, page("https://a.example/many"))
    assert found.items.items == [b'{"n":1}']
    assert [each.url for each in found.requests] == ["https://a.example/next"]


@dataclass
class Plain:
    name: str


class Struct(msgspec.Struct):
    name: str


class Row(msgspec.Struct, array_like=True):
    name: str


class Model:
    """What pydantic's models have."""

    def model_dump(self, *, mode: str) -> dict[str, str]:
        return {"name": mode}


def test_items_are_of_several_kinds() -> None:
    """All of them are written as objects of JSON; what is none is refused."""

    def of(page: Page) -> Iterator[object]:
        yield from ({"name": "a"}, Plain("b"), Struct("c"), Model())

    found = items_here(of, page()).items

    assert [json.loads(each)["name"] for each in found.items] == ["a", "b", "c", "json"]
    for wrong in (Row("x"), Plain, Struct, Model, {1: 2}, "text"):
        assert "return or yield dict" in str(
            items_here(lambda page, w=wrong: w, page()).items.error
        )


def test_file_of_a_spider_may_have_annotations_as_text(tmp_path: Path) -> None:
    """Its module can be found by those who read the types of fields."""
    file = tmp_path / "shop_notes.py"
    file.write_text(
        "from __future__ import annotations\n"
        "from dataclasses import dataclass\n"
        "import mannerly\n"
        "@dataclass\n"
        "class Tea:\n"
        "    name: str\n"
        "shop = mannerly.Spider('https://shop.example/')\n"
        "@shop.on('*')\n"
        "def tea(page): return Tea('green')\n"
    )
    at = page()

    done = extracted_by(f"{file}:shop", at.record, {}, at.body)

    assert done == ([b'{"name":"green"}'], None, [], False)
    unknown = extracted_by(f"{file}:shop", at.record, {}, at.body, Payload(label="no"))
    assert unknown == ([], None, [], True)
    missing = extracted_by(f"{file}:shop", at.record._replace(status=404), {}, at.body)
    assert missing == ([], None, [], False)
