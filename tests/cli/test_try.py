"""`mannerly try`: one page, its handler, and what it yields."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from tests.harness.commands import invoke
from tests.harness.sites import Request, port_of, serving

import mannerly

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SHOP = """
import mannerly

shop = mannerly.Spider("https://shop.invalid/", delay=0.005)


@shop.on("*/list")
def listed(page):
    yield {"title": page.title}
    yield page.follow("/1", label="product", data={"price": 4})
    yield page.follow("/login", method="POST", form={"password": "hidden"})


@shop.on(label="product")
def product(page):
    return {"price": page.data["price"], "title": page.title}


@shop.on_error
def failed(page):
    yield {"failed": page.status}
"""

DELAY_S = 2.5  # longer than the delay of a host that has no option and is new


def answer(request: Request) -> None:
    if request.path in ("/list", "/1"):
        request.answer(200, f"<title>Page {request.path}</title>")
    elif request.path == "/old":
        request.answer(301, "", {"Location": "/list"})
    else:
        request.answer(404)


@pytest.fixture
def origin() -> Iterator[str]:
    with serving(answer) as origin:
        yield origin


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    file = tmp_path / "shop.py"
    file.write_text(SHOP)
    return file


@pytest.mark.parametrize("path", ["/list", "/old"])
def test_items_and_requests_are_printed(origin: str, shop: Path, path: str) -> None:
    """A redirect is followed; what a form sends is left out."""
    done = invoke("try", shop, f"{origin}{path}")

    assert done.exit_code == 0, done.stderr
    assert done.stdout.splitlines() == [
        '{"title":"Page /list"}',
        f'GET {origin}/1 label=product data={{"price":4}}',
        f"POST {origin}/login",
    ]
    assert f"{origin}/list: 200, listed" in done.stderr


def test_label_and_data_choose_the_handler(origin: str, shop: Path) -> None:
    """As those of a request that led there."""
    done = invoke("try", shop, f"{origin}/1", "--label", "product", "--data", '{"price": 7}')

    assert json.loads(done.stdout) == {"price": 7, "title": "Page /1"}


def test_error_is_printed_with_its_line(origin: str, shop: Path) -> None:
    """The line of the spider's file."""
    done = invoke("try", shop, f"{origin}/1", "--label", "product")

    assert done.exit_code == 1
    line = SHOP.splitlines().index('    return {"price": page.data["price"], "title": page.title}')
    assert f"line {line + 1}: KeyError: 'price'" in done.stderr


def test_errors_and_pages_without_a_handler(origin: str, shop: Path) -> None:
    """Each is said."""
    missing, unhandled = invoke("try", shop, f"{origin}/no"), invoke("try", shop, f"{origin}/1")

    assert missing.stdout == '{"failed":404}\n'
    assert (unhandled.exit_code, unhandled.stdout) == (0, "")
    assert "200, no handler" in unhandled.stderr


@pytest.mark.parametrize("place", ["file", "variable"])
def test_options_of_single_hosts_hold(
    shop: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    """The delay of the host is kept between its robots.txt and the page, as in a crawl."""
    asked: list[tuple[str, float]] = []

    def logged(request: Request) -> None:
        asked.append((request.path, request.arrived_at))
        answer(request)

    monkeypatch.chdir(tmp_path)
    with serving(logged) as origin:
        host = f"127.0.0.1:{port_of(origin)}"
        if place == "file":
            (tmp_path / "mannerly.toml").write_text(f'[host."{host}"]\ndelay = {DELAY_S}\n')
        else:
            monkeypatch.setenv("MANNERLY_HOST", f"{host}:delay={DELAY_S}")
        done = invoke("try", shop, f"{origin}/list")

    assert done.exit_code == 0, done.stderr
    (first, before), (second, after) = asked
    assert (first, second) == ("/robots.txt", "/list")
    assert after - before >= 0.98 * DELAY_S


def test_kept_answer_is_taken_without_a_request(shop: Path, tmp_path: Path) -> None:
    """The server is not there any more."""
    with serving(answer) as origin:
        list(mannerly.crawl(f"{origin}/list", data_dir=tmp_path / "crawl", keep_bodies=True))

    done = invoke("try", shop, f"{origin}/list", "--data-dir", tmp_path / "crawl")

    assert done.exit_code == 0, done.stderr
    assert done.stdout.startswith('{"title":"Page /list"}')


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--label", "no"), "no handler has the label no (there are: product)"),
        (("--data", "{"), "--data is not JSON"),
        (("--data-dir", "nowhere"), "there is no crawl in nowhere"),
    ],
)
def test_what_cannot_be_meant_is_refused(
    origin: str, shop: Path, words: tuple[str, str], said: str
) -> None:
    """With exit code 2."""
    done = invoke("try", shop, f"{origin}/1", *words)

    assert done.exit_code == 2
    assert said in done.stderr
