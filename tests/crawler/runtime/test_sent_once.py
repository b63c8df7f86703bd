"""A POST and `kill -9`, on the real command: however often a crawl is resumed, it is sent once."""

from __future__ import annotations

import threading
from contextlib import closing
from typing import TYPE_CHECKING

import pytest
from tests.harness.commands import run, started
from tests.harness.sites import Request, serving
from tests.harness.waiting import eventually

from mannerly.crawler.model import Candidate
from mannerly.crawler.payload import payload
from mannerly.crawler.store import open_crawl
from mannerly.crawler.store.base import Batch, ShardOptions
from mannerly.crawler.web.urls import host_key_of

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.processes


class Shop:
    """Notes each order; the first one gets no answer."""

    def __init__(self) -> None:
        self.orders: list[bytes] = []
        self.labelled = 0
        self.has_order = threading.Event()
        self.gone = threading.Event()

    def __call__(self, request: Request) -> None:
        if request.path == "/robots.txt":
            request.answer(404)
        elif request.path == "/order":
            self.orders.append(request.read())
            if len(self.orders) > 1:
                request.answer(200, "<title>ordered</title>")
                return
            self.has_order.set()
            self.gone.wait(60)
            request.hang_up()
        else:
            self.labelled += request.path == "/labelled"
            request.answer(200, "<title>home</title>")


def queue(directory: Path, origin: str, path: str, **parts: object) -> None:
    """Add a request to a crawl that does not run."""
    made = payload(**parts)  # type: ignore[arg-type]
    assert made is not None
    url = origin + path
    with closing(open_crawl(str(directory))) as crawl:
        store = crawl.claim(0, ShardOptions(frontier_limit=99))
        found = Candidate(url, host_key_of(url), 1, 5, origin + "/", 0, made.kind, made)
        assert len(store.commit(Batch(found=[found])).new) == 1
        store.close()


def skipped(directory: Path) -> list[str]:
    with closing(open_crawl(str(directory))) as crawl, crawl.read(0) as reader:
        return [each.reason for each in reader.skipped()]


def test_a_post_in_flight_at_a_kill_is_asked_again_only_on_purpose(tmp_path: Path) -> None:
    """It is recorded as unanswered; `retry --unanswered` sends it once more."""
    shop, directory = Shop(), tmp_path / "crawl"
    options = ("--allow-net", "127.0.0.0/8", "--delay", "0.1", "-q")
    with serving(shop) as origin:
        assert run("crawl", origin, "--data-dir", str(directory), *options).returncode == 0
        queue(directory, origin, "/order", method="POST", body=b"tea", label="order")
        queue(directory, origin, "/labelled", label="page", data={"n": 1})
        with started("resume", str(directory), "-q") as killed:
            assert shop.has_order.wait(60)
            killed.kill()
            eventually(lambda: killed.poll() is not None)
        shop.gone.set()

        resumed = run("resume", str(directory), "-q")
        after_resume, reasons = list(shop.orders), skipped(directory)
        retried = run("retry", str(directory), "--unanswered", "-q")

    assert (resumed.returncode, retried.returncode) == (0, 0)
    assert after_resume == [b"tea"]
    assert reasons == ["unanswered"]
    assert shop.orders == [b"tea", b"tea"]
    assert skipped(directory) == []
    assert shop.labelled >= 1
