"""`mannerly try`: one page, its handler, and what it yields."""

from __future__ import annotations

import json
import signal
from typing import TYPE_CHECKING

import pytest
from tests.harness.commands import invoke, run, started
from tests.harness.sites import Request, port_of, serving
from tests.harness.waiting import eventually

import mannerly

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
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


@pytest.fixture
def kept(shop: Path, tmp_path: Path) -> Path:
    """A crawl of the shop with its answers; its server is not there any more."""
    with serving(answer) as origin:
        shop.write_text(SHOP.replace("https://shop.invalid/", f"{origin}/list"))
        done = invoke("run", shop, "--keep-bodies", "--data-dir", tmp_path / "crawl", "--quiet")
    assert done.exit_code == 0, done.stderr
    (tmp_path / "origin").write_text(origin)
    return tmp_path / "crawl"


def test_kept_page_has_the_label_and_the_data_of_its_request(shop: Path, kept: Path) -> None:
    """Unless others are given."""
    url = f"{(kept.parent / 'origin').read_text()}/1"

    own = invoke("try", shop, url, "--data-dir", kept)
    given = invoke("try", shop, url, "--data-dir", kept, "--data", '{"price": 7}')

    assert json.loads(own.stdout) == {"price": 4, "title": "Page /1"}
    assert json.loads(given.stdout) == {"price": 7, "title": "Page /1"}


@pytest.mark.processes
def test_watching_runs_the_handler_on_every_save(shop: Path, kept: Path, tmp_path: Path) -> None:
    """Also on saves of what it imports; a broken file is said, and waited for."""
    url = f"{(kept.parent / 'origin').read_text()}/1"
    (tmp_path / "prices.py").write_text("FACTOR = 1\n")
    text = shop.read_text().replace('page.data["price"]', 'page.data["price"] * prices.FACTOR')
    log = tmp_path / "log"

    def printed(words: str) -> Callable[[], bool]:
        return lambda: words in log.read_text() and log.read_text().endswith("Ctrl-C ends\n")

    shop.write_text("import prices\n" + text)
    with (
        log.open("w") as out,
        started(
            *("try", str(shop), url, "--data-dir", str(kept), "--watch"),
            cwd=tmp_path,
            stdout=out,
            stderr=out,
        ) as process,
    ):
        eventually(printed('{"price":4,'))
        (tmp_path / "prices.py").write_text("FACTOR = 2\n")
        eventually(printed('{"price":8,'))
        shop.write_text("import prices\nthis is no Python\n")
        eventually(printed("cannot be loaded: SyntaxError"))
        shop.write_text("import prices\n" + text.replace('"title"', '"name"'))
        eventually(printed('"name":"Page /1"'))
        process.send_signal(signal.SIGINT)
        code = process.wait(timeout=30)

    assert code == 0


@pytest.mark.processes
def test_shell_has_the_page(kept: Path, tmp_path: Path) -> None:
    """A kept one, with label and data; what is typed runs in Python."""
    url = f"{(kept.parent / 'origin').read_text()}/1"
    typed = "print(page.title, page.label, page.data)\nprint(page.select_one('title').text)\n"

    done = run("shell", kept, url, cwd=tmp_path, input=typed)

    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["Page /1 product {'price': 4}", "Page /1"]


def test_shell_asks_politely_for_a_page_that_is_not_kept(
    origin: str, kept: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It says so; three words are a mistake."""
    monkeypatch.chdir(tmp_path)

    done = invoke("shell", kept, f"{origin}/list", stdin="print(page.status, page.title)\n")
    wrong = invoke("shell", kept, "https://a.example/", "https://b.example/")

    assert done.stdout.splitlines() == ["200 Page /list"], done.stderr
    assert "has no kept answer of" in done.stderr
    assert (wrong.exit_code, "give a crawl and a URL" in wrong.stderr) == (2, True)
