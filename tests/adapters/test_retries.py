"""Repeats by an adapter: when the core says so, and never closer than the host allows."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import aiohttp
import httpx
import httpx2
import pytest
import requests

import mannerly.adapters.aiohttp
import mannerly.adapters.httpx
import mannerly.adapters.httpx2
import mannerly.adapters.requests
from mannerly.politeness import Settings
from mannerly.politeness.drivers.aio import AsyncPoliteness
from mannerly.politeness.drivers.threads import ThreadedPoliteness

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

    from tests.adapters.loopback_site import Site

    Ask = Callable[..., tuple[int, str]]

PACE = Settings(strategy="fixed", delay_s=0.05, max_rate="unlimited", seed=1)


def with_httpx(url: str, retries: int, client: ModuleType = httpx, **request: object):
    adapter = getattr(mannerly.adapters, client.__name__)
    transport = adapter.PoliteTransport(politeness=ThreadedPoliteness(PACE), retries=retries)
    with client.Client(transport=transport) as session:
        answer = session.request(**{"method": "GET", "url": url, **request})
        return answer.status_code, answer.text


def with_httpx2(url: str, retries: int, **request: object):
    return with_httpx(url, retries, httpx2, **request)


def with_async_httpx(url: str, retries: int, **request: object):
    async def ask():
        transport = mannerly.adapters.httpx.AsyncPoliteTransport(
            politeness=AsyncPoliteness(PACE), retries=retries
        )
        async with httpx.AsyncClient(transport=transport) as session:
            answer = await session.request(**{"method": "GET", "url": url, **request})
            return answer.status_code, answer.text

    return asyncio.run(ask())


def with_requests(url: str, retries: int, **request: object):
    polite = mannerly.adapters.requests.PoliteAdapter(
        politeness=ThreadedPoliteness(PACE), retries=retries
    )
    with requests.Session() as session:
        session.trust_env = False
        session.mount("http://", polite)
        if "content" in request:
            request["data"] = request.pop("content")
        answer = session.request(**{"method": "GET", "url": url, **request})
        return answer.status_code, answer.text


def with_aiohttp(url: str, retries: int, **request: object):
    async def ask():
        polite = mannerly.adapters.aiohttp.polite(AsyncPoliteness(PACE), retries=retries)
        if "content" in request:
            request["data"] = request.pop("content")
        async with aiohttp.ClientSession(middlewares=(polite,)) as session:
            answer = await session.request(**{"method": "GET", "url": url, **request})
            return answer.status, await answer.text()

    return asyncio.run(ask())


CLIENTS = [with_httpx, with_httpx2, with_async_httpx, with_requests, with_aiohttp]
every_client = pytest.mark.parametrize("ask", CLIENTS, ids=lambda ask: ask.__name__[5:])


@every_client
def test_a_refused_request_is_repeated_after_its_retry_after(ask: Ask, site: Site) -> None:
    """The caller sees the page, and the server one request per second as it has asked."""
    status, text = ask(site.url("/busy/1"), 2)

    assert (status, "A page" in text) == (200, True)
    assert site.paths == ["/busy/1", "/busy/1"]
    assert min(site.gaps_s) >= 0.9


@every_client
def test_a_refusal_of_which_half_comes_is_repeated_after_its_retry_after(
    ask: Ask, site: Site
) -> None:
    """The headers say when; the body that broke off does not count as another failure."""
    status, text = ask(site.url("/cut/1"), 1)

    assert (status, "A page" in text) == (200, True)
    assert site.paths == ["/cut/1", "/cut/1"]
    assert min(site.gaps_s) >= 0.9


@every_client
def test_a_page_of_which_half_comes_is_asked_for_again(ask: Ask, site: Site) -> None:
    """It is a failure of the host, and the caller gets the whole page."""
    status, text = ask(site.url("/half/1"), 1)

    assert (status, "A page" in text) == (200, True)
    assert site.paths == ["/half/1", "/half/1"]


@every_client
def test_the_caller_sees_the_last_answer(ask: Ask, site: Site) -> None:
    """When nothing is left the refusal comes out as it is, with its body."""
    status, text = ask(site.url("/full/1"), 2)

    assert (status, text) == (503, "no room")
    assert site.paths == ["/full/1"] * 3


@every_client
def test_a_request_that_may_have_been_done_is_not_repeated(ask: Ask, site: Site) -> None:
    """A POST that was answered with 503 may have been done; one that was refused with 429 not."""
    failed = ask(site.url("/full/1"), 2, method="POST", content=b"x")
    refused = ask(site.url("/busy/2"), 2, method="POST", content=b"x")

    assert (failed[0], refused[0]) == (503, 200)
    assert site.paths == ["/full/1", "/busy/2", "/busy/2"]


def test_a_body_that_can_be_read_once_is_not_sent_again(site: Site) -> None:
    """A generator has nothing left after the first attempt."""
    for ask in (with_httpx, with_requests):
        status, _ = ask(site.url(f"/busy/{ask.__name__}"), 2, method="POST", content=iter([b"x"]))

        assert status == 429
    assert len(site.paths) == 2


def test_pages_are_looked_at_and_come_out_whole(site: Site) -> None:
    """The body of an error is known to the core, and a body that is read in pieces is complete."""
    reported = []

    class Listening(ThreadedPoliteness):
        def report(self, permit, response):
            reported.append(response)
            return super().report(permit, response)

    transport = mannerly.adapters.httpx.PoliteTransport(politeness=Listening(PACE))
    with httpx.Client(transport=transport) as session:
        for path in ("/page/1", "/page/2", "/long/1"):
            with session.stream("GET", site.url(path)) as answer:
                assert len(b"".join(answer.iter_bytes())) == int(answer.headers["content-length"])

    one, other, long = reported
    assert one.body_digest == other.body_digest is not None
    assert long.body_digest is None
    assert [each.url for each in reported] == [site.url(p) for p in site.paths]


def test_less_than_no_retries_is_a_mistake() -> None:
    """It is found when the adapter is made."""
    with pytest.raises(ValueError, match="retries"):
        mannerly.adapters.httpx.PoliteTransport(retries=-1)
