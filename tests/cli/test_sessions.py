"""Sessions of spiders: logins that are kept through redirects, forms and `kill -9`."""

from __future__ import annotations

import json
import sqlite3
import threading
from contextlib import closing
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, urlsplit

import pytest
from tests.harness.commands import environment, run, started
from tests.harness.sites import Request as Asked
from tests.harness.sites import serving
from tests.harness.waiting import eventually

if TYPE_CHECKING:
    from pathlib import Path

PAGES = 12
SPIDER = """
import mannerly

shop = mannerly.Spider("{origin}/", follow=False, delay=0.02, max_rate=50, strategy="fixed")

@shop.on("*/")
def front(page):
    for who in ("ann", "bob"):
        yield page.follow("/login?" + who, session=who, label="login", data=who)

@shop.on(label="login")
def login(page):
    form = page.form("#in")
    yield form.submit({{"user": page.data, "password": "env:SHOP_PASSWORD"}}, label="account")

@shop.on(label="account")
def account(page):
    for row in page.select("a"):
        yield page.follow(row, label="order", session=page.session)

@shop.on(label="order")
def order(page):
    yield {{"order": page.select_one("h1").text, "session": page.session}}

@shop.on_error
def failed(page):
    yield {{"failed": page.url, "status": page.status}}
"""


class Members:
    """A shop in which every page needs the cookie of a login."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.asked = 0
        self.cookies: list[tuple[str, str]] = []

    def __call__(self, request: Asked) -> None:
        url, cookie = urlsplit(request.path), request.headers.get("Cookie", "")
        with self.lock:
            self.asked += 1
            self.cookies.append((request.path, cookie))
        user = cookie.partition("sid=")[2].partition(";")[0]
        if url.path == "/":
            request.answer(200, "<html></html>", {"Set-Cookie": "outside=1"})
        elif url.path == "/login":
            form = "<form id=in method=post action=/go><input name=user><input name=token value=t>"
            request.answer(200, form, {"Set-Cookie": "before=1; Path=/"})
        elif url.path == "/go":
            sent = parse_qs(request.read().decode())
            is_right = sent["password"] == ["sesame"] and sent["token"] == ["t"]
            where = {"Location": f"/orders/{sent['user'][0]}"}
            named = {"Set-Cookie": f"sid={sent['user'][0]}; Path=/"}
            request.answer(303 if is_right else 401, "", where | named)
        elif user and url.path == f"/orders/{user}":
            links = "".join(f"<a href=/order/{user}/{n}>{n}</a>" for n in range(PAGES))
            request.answer(200, f"<html>{links}</html>")
        elif user and url.path.startswith(f"/order/{user}/"):
            request.answer(200, f"<html><h1>{url.path}</h1></html>")
        else:
            request.answer(403)


@pytest.mark.processes
def test_logins_survive_kills(tmp_path: Path) -> None:
    """Two at once, each with its own cookies; the password is in no file and no line."""
    shop = Members()
    variables = {**environment(), "SHOP_PASSWORD": "sesame"}
    with serving(shop) as origin:
        (tmp_path / "shop.py").write_text(SPIDER.format(origin=origin))
        words = ("run", "shop.py", "-o", "items.jsonl", "-q")
        # The first kill is behind both logins: one that is lost is not sent again.
        for seen in (10, 16, 22):
            with started(*words, cwd=tmp_path, env=variables) as process:
                eventually(lambda most=seen: shop.asked >= most)
                process.kill()
                eventually(lambda ended=process: ended.poll() is not None)
        done = run(*words, cwd=tmp_path, env=variables)

    found = [json.loads(line) for line in (tmp_path / "items.jsonl").read_text().splitlines()]
    wanted = [
        {"order": f"/order/{user}/{n}", "session": user}
        for user in ("ann", "bob")
        for n in range(PAGES)
    ]
    files = [each for each in tmp_path.rglob("*") if each.is_file()]
    assert done.returncode == 0, done.stderr
    assert sorted(found, key=str) == sorted(wanted, key=str)
    assert all("before=1" in cookie for path, cookie in shop.cookies if path.startswith("/order"))
    assert not any("outside" in cookie for _, cookie in shop.cookies)
    assert not any(b"sesame" in each.read_bytes() for each in files)
    assert all(
        each.stat().st_mode & 0o77 == 0 for each in tmp_path.joinpath("crawl-shop").iterdir()
    )


def test_plain_values_of_forms_are_printed_nowhere(tmp_path: Path) -> None:
    """They are in the crawl's own file alone, which others cannot read."""
    code = SPIDER.replace("env:SHOP_PASSWORD", "sesame")
    with serving(Members()) as origin:
        (tmp_path / "shop.py").write_text(code.format(origin=origin))
        done = run("run", "shop.py", "-o", "items.jsonl", "-o", "pages:pages.csv", cwd=tmp_path)
        chosen = ("--label", "login", "--data", '"ann"')
        tried = run("try", "shop.py", f"{origin}/login", *chosen, cwd=tmp_path)

    assert done.returncode == 0, done.stderr
    assert f"POST {origin}/go label=account" in tried.stdout
    for text in (done.stdout, done.stderr, tried.stdout, tried.stderr):
        assert "sesame" not in text
    holding = [
        each
        for each in tmp_path.rglob("*")
        if each.is_file() and each.suffix not in (".py", ".pyc") and b"sesame" in each.read_bytes()
    ]
    assert {each.parent.name for each in holding} == {"crawl-shop"}
    with closing(sqlite3.connect(tmp_path / "crawl-shop" / "shard-0.db")) as database:
        assert database.execute("SELECT count(*) FROM sessions").fetchone() == (2,)


def test_secret_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    """Exit code 1, and the command that sends the request when the secret is there."""
    shop = Members()
    with serving(shop) as origin:
        (tmp_path / "shop.py").write_text(SPIDER.format(origin=origin))
        first = run("run", "shop.py", "-q", cwd=tmp_path)
        variables = environment(SHOP_PASSWORD="sesame")
        again = run(
            *("retry", "crawl-shop", "--skipped", "secret_missing", "-q"),
            cwd=tmp_path,
            env=variables,
        )
        last = run("run", "shop.py", "-o", "items.jsonl", "-q", cwd=tmp_path, env=variables)

    assert first.returncode == 1
    assert "2 requests not sent, for lack of env:SHOP_PASSWORD" in first.stderr
    assert "mannerly retry crawl-shop --skipped secret_missing" in first.stderr
    assert again.returncode == 0, again.stderr
    assert last.returncode == 0, last.stderr
    assert len((tmp_path / "items.jsonl").read_text().splitlines()) == 2 * PAGES
