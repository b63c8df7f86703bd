"""A shop on several hosts for spiders: lists, details, a search by POST, members behind a login.

`Shop` answers and counts; `spider` is the text of a spider for it; `wanted` is what the spider
must bring, each once, whatever is killed.
"""

from __future__ import annotations

import json
import threading
from collections import Counter
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

from tests.harness.sites import serving

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.harness.sites import Request

ON_A_LIST = 20
SPIDER = """
import mannerly
from dataclasses import dataclass

shop = mannerly.Spider(*{origins}, follow=False, delay={delay}, max_rate=1000, strategy="fixed")


@dataclass
class Product:
    shop: str
    name: str
    price: float


@shop.on("*/")
def front(page):
    yield page.follow("/list?page=0", label="list")
    for word in {words}:
        yield page.follow("/search", method="POST", json={{"q": word}}, label="found", data=word)
    yield page.follow("/login", session="member", label="login")


@shop.on(label="list")
def listed(page):
    for row in page.select("a.product"):
        yield page.follow(row, label="product", data={{"price": row.attrs["title"]}})
    for link in page.select("a.next"):
        yield page.follow(link, label="list")


@shop.on(label="product")
def product(page):
    yield Product(page.url.split("/")[2], page.select_one("h1").text, float(page.data["price"]))


@shop.on(label="found")
async def found(page):
    yield {{"shop": page.url.split("/")[2], "word": page.data, "found": page.json()["found"]}}


@shop.on(label="login")
def login(page):
    form = page.form("#in")
    yield form.submit({{"user": "ann", "password": "env:SHOP_PASSWORD"}}, label="account")


@shop.on(label="account")
def account(page):
    for link in page.select("a.order"):
        yield page.follow(link, label="order", session=page.session)


@shop.on(label="order")
def order(page):
    yield {{"shop": page.url.split("/")[2], "order": page.select_one("h1").text}}


@shop.on_error
def failed(page):
    yield {{"failed": page.url, "status": page.status}}
"""
PASSWORD = "sesame"


class Shop:
    """Answers for one host; `asked` counts requests by method, path and body."""

    def __init__(self, products: int, words: int, orders: int) -> None:
        self.products, self.orders = products, orders
        self.words = [f"word{number}" for number in range(words)]
        self.lock = threading.Lock()
        self.asked: Counter[str] = Counter()

    def __call__(self, request: Request) -> None:
        url, body = urlsplit(request.path), request.read()
        with self.lock:
            self.asked[f"{request.command} {request.path} {body.decode()}"] += 1
        is_member = "sid=ann" in request.headers.get("Cookie", "")
        name = url.path.rpartition("/")[2]
        match url.path.split("/")[1]:
            case "":
                request.answer(200, "<html><a href=/list?page=0>products</a></html>")
            case "list":
                request.answer(200, self._list(int(parse_qs(url.query)["page"][0])))
            case "product" if int(name) < self.products:
                request.answer(200, f"<html><h1>{name}</h1></html>")
            case "search":
                found = {"found": len(json.loads(body)["q"])}
                request.answer(200, json.dumps(found), {"Content-Type": "application/json"})
            case "login":
                form = (
                    "<form id=in method=post action=/go><input name=user><input name=token value=t>"
                )
                request.answer(200, form)
            case "go" if parse_qs(body.decode())["password"] == [PASSWORD]:
                request.answer(303, "", {"Location": "/account", "Set-Cookie": "sid=ann; Path=/"})
            case "account" if is_member:
                links = "".join(
                    f"<a class=order href=/order/{n}>{n}</a>" for n in range(self.orders)
                )
                request.answer(200, f"<html>{links}</html>")
            case "order" if is_member:
                request.answer(200, f"<html><h1>{name}</h1></html>")
            case _:
                request.answer(404)

    def _list(self, page: int) -> str:
        first = page * ON_A_LIST
        numbers = range(first, min(first + ON_A_LIST, self.products))
        rows = [f'<a class=product href="/product/{n}" title="{n}.50">{n}</a>' for n in numbers]
        more = f'<a class=next href="/list?page={page + 1}">more</a>' if numbers else ""
        return f"<html>{''.join(rows)}{more}</html>"


class Shops:
    """Several of them, each on an address of its own."""

    def __init__(self, origins: list[str], shops: list[Shop]) -> None:
        self.origins, self.shops = origins, shops

    @property
    def asked(self) -> int:
        """Return how many requests all of them have had."""
        return sum(sum(each.asked.values()) for each in self.shops)

    def repeated_posts(self) -> dict[str, int]:
        """Return how often anything but a GET came more than once."""
        counts = Counter[str]()
        for shop in self.shops:
            counts.update(
                {what: n for what, n in shop.asked.items() if n > 1 and not what.startswith("GET")}
            )
        return dict(counts)

    def spider(self, folder: Path, delay: float) -> Path:
        """Write the spider into a folder."""
        file = folder / "shop.py"
        words = self.shops[0].words
        fronts = [f"{origin}/" for origin in self.origins]
        file.write_text(SPIDER.format(origins=fronts, words=words, delay=delay))
        return file

    def wanted(self) -> Counter[str]:
        """Return every item, as text."""
        found: list[dict[str, Any]] = []
        for origin, shop in zip(self.origins, self.shops, strict=True):
            name = {"shop": origin.partition("//")[2]}
            found += [name | {"name": str(n), "price": n + 0.5} for n in range(shop.products)]
            found += [name | {"word": word, "found": len(word)} for word in shop.words]
            found += [name | {"order": str(n)} for n in range(shop.orders)]
        return as_counted(found)


def as_counted(items: list[dict[str, Any]]) -> Counter[str]:
    """Return items as texts that do not depend on the order of fields."""
    return Counter(json.dumps(each, sort_keys=True) for each in items)


@contextmanager
def open_shops(hosts: int, *, products: int, words: int, orders: int) -> Iterator[Shops]:
    """Serve shops on 127.0.0.1 and the addresses behind it."""
    shops = [Shop(products, words, orders) for _ in range(hosts)]
    with ExitStack() as stack:
        origins = [
            stack.enter_context(serving(shop, (f"127.0.0.{number}", 0)))
            for number, shop in enumerate(shops, 1)
        ]
        yield Shops(origins, shops)
