"""Requests with a method and a body, on real connections."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import pytest
from tests.harness.sites import Request as Asked
from tests.harness.sites import serving

from mannerly.crawler.fetch.curl import CurlFetcher
from mannerly.crawler.fetch.guard import NetworkGuard
from mannerly.crawler.fetch.settings import FetchSettings
from mannerly.crawler.model import Fetched, Request
from mannerly.crawler.payload import payload

if TYPE_CHECKING:
    from collections.abc import Iterator


class Received(NamedTuple):
    """A request as the server has it."""

    method: str
    body: bytes
    content_type: str | None
    length: str | None


def answering(log: list[Received]) -> type[Asked]:
    """A site that answers every method, and notes what it got."""

    def note(self: Asked) -> None:
        headers = self.headers
        log.append(
            Received(self.command, self.read(), headers["Content-Type"], headers["Content-Length"])
        )
        self.answer(200, b"ok")

    methods = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
    return type("Site", (Asked,), dict.fromkeys([f"do_{method}" for method in methods], note))


@pytest.fixture
def site() -> Iterator[tuple[str, list[Received]]]:
    log: list[Received] = []
    with serving(answering(log)) as origin:
        yield origin, log


def fetched(requests: list[Request], **settings: bool) -> list[Fetched]:
    """Answers, one request after the other on one fetcher."""
    guard = NetworkGuard(allow_net=["127.0.0.0/8"])
    fetcher = CurlFetcher(guard, FetchSettings(user_agent="test", **settings))
    answers: list[Fetched] = []
    try:
        for request in requests:
            fetcher.start(request)
            while fetcher.in_flight:
                answers += fetcher.wait(1.0)
    finally:
        fetcher.close()
    return answers


def made(origin: str, method: str = "GET", body: bytes = b"", **headers: str) -> Request:
    named = tuple((name.replace("_", "-"), value) for name, value in headers.items())
    return Request(
        f"{origin}/x", "127.0.0.1", 10.0, 1000, named, None, method == "HEAD", False, method, body
    )


def test_one_handle_sends_every_method_in_turn(site: tuple[str, list[Received]]) -> None:
    """Nothing of a request is left for the next one: neither method, nor body, nor length."""
    origin, log = site
    json = {"Content_Type": "application/json"}
    requests = [
        made(origin),
        made(origin, "POST", b'{"q":"\x00"}', **json),
        made(origin),
        made(origin, "PUT", b"put", Content_Type="text/plain"),
        made(origin, "HEAD"),
        made(origin, "POST"),
        made(origin, "DELETE"),
        made(origin, "POST", b"1", **json),
        made(origin, "POST", b"22", **json),
        made(origin, "PATCH", b"p", **json),
        made(origin, "OPTIONS"),
        made(origin),
    ]

    answers = fetched(requests)

    assert [answer.status for answer in answers] == [200] * len(requests)
    assert [(each.method, each.body) for each in log] == [(r.method, r.body) for r in requests]
    assert [each.length for each in log] == [
        *(None, "9", None, "3", None, "0", None, "1", "2", "1", None, None)
    ]
    assert log[1].content_type == "application/json"
    assert log[-1].content_type is None


def test_a_large_body_leaves_without_asking(site: tuple[str, list[Received]]) -> None:
    """As large as a payload may be; no server is waited for before."""
    origin, log = site
    body = bytes(range(256)) * 4096

    (answer,) = fetched([made(origin, "POST", body, Content_Type="application/octet-stream")])

    assert answer.status == 200
    assert log == [Received("POST", body, "application/octet-stream", str(len(body)))]


def test_what_is_kept_of_a_request_names_its_secrets(site: tuple[str, list[Received]]) -> None:
    """The archive has the method, and headers as they are stored."""
    origin, _ = site
    carried = payload("POST", body=b"1", secrets=(("X-Token", "env:TOKEN"),))
    request = made(origin, "POST", b"1", X_Token="geheim")
    request.payload = carried

    (answer,) = fetched([request], keep_raw=True)

    assert answer.exchange is not None
    assert answer.exchange.request.startswith(b"POST /x HTTP/1.1\r\n")
    assert b"X-Token: env:TOKEN\r\n" in answer.exchange.request
    assert b"geheim" not in answer.exchange.request
