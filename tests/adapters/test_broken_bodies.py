"""Answers of which only the beginning comes: what their headers ask for is done all the same."""

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

    from mannerly.politeness.drivers.base import DriverBase

    Ask = Callable[[str], tuple[int, DriverBase[object]]]

PACE = Settings(strategy="fixed", delay_s=0.05, max_rate="unlimited", seed=1)
SOON_S = 0.3


def with_httpx(url: str, client: ModuleType = httpx):
    politeness = ThreadedPoliteness(PACE)
    adapter = getattr(mannerly.adapters, client.__name__)
    transport = adapter.PoliteTransport(politeness=politeness)
    with (
        client.Client(transport=transport, timeout=SOON_S) as session,
        session.stream("GET", url) as answer,
    ):
        with pytest.raises(client.TransportError):
            answer.read()
        return answer.status_code, politeness


def with_httpx2(url: str):
    return with_httpx(url, httpx2)


def with_async_httpx(url: str):
    async def ask():
        politeness = AsyncPoliteness(PACE)
        transport = mannerly.adapters.httpx.AsyncPoliteTransport(politeness=politeness)
        async with (
            httpx.AsyncClient(transport=transport, timeout=SOON_S) as session,
            session.stream("GET", url) as answer,
        ):
            with pytest.raises(httpx.TransportError):
                await answer.aread()
            return answer.status_code, politeness

    return asyncio.run(ask())


def with_requests(url: str):
    politeness = ThreadedPoliteness(PACE)
    with requests.Session() as session:
        session.trust_env = False
        session.mount("http://", mannerly.adapters.requests.PoliteAdapter(politeness=politeness))
        with session.get(url, stream=True, timeout=SOON_S) as answer:
            with pytest.raises(requests.RequestException):
                _ = answer.content
            return answer.status_code, politeness


def with_aiohttp(url: str):
    async def ask():
        politeness = AsyncPoliteness(PACE)
        polite = mannerly.adapters.aiohttp.polite(politeness)
        timeout = aiohttp.ClientTimeout(total=None, sock_read=SOON_S)
        async with (
            aiohttp.ClientSession(middlewares=(polite,), timeout=timeout) as session,
            session.get(url) as answer,
        ):
            with pytest.raises(aiohttp.ClientError):
                await answer.read()
            return answer.status, politeness

    return asyncio.run(ask())


CLIENTS = [with_httpx, with_httpx2, with_async_httpx, with_requests, with_aiohttp]


@pytest.mark.parametrize("path", ["/cut/1", "/stuck/1"])
@pytest.mark.parametrize("ask", CLIENTS, ids=lambda ask: ask.__name__[5:])
def test_retry_after_holds_if_the_body_breaks_off(ask: Ask, path: str, site: Site) -> None:
    """The caller gets the refusal, and its body raises what happened to it."""
    status, politeness = ask(site.url(path))

    host = politeness.host(site.url("/"))
    assert host is not None
    assert status == 429
    assert (host.refusals, host.network_errors, host.in_flight) == (1, 0, 0)
    if path == "/stuck/1":
        assert politeness.ready_at(site.url("/")) - politeness.now() > 20.0


async def test_retry_after_holds_if_the_caller_leaves(site: Site) -> None:
    """A task that is cancelled while the body does not come has seen the headers."""
    politeness = AsyncPoliteness(PACE)
    seen = asyncio.Event()

    class Telling(httpx.AsyncHTTPTransport):
        async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
            answer = await super().handle_async_request(request)
            asyncio.get_running_loop().call_later(0.1, seen.set)
            return answer

    transport = mannerly.adapters.httpx.AsyncPoliteTransport(Telling(), politeness=politeness)
    async with httpx.AsyncClient(transport=transport, timeout=60.0) as session:
        asking = asyncio.create_task(session.get(site.url("/stuck/1")))
        await seen.wait()
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking

    assert politeness.ready_at(site.url("/")) - politeness.now() > 20.0


async def test_nothing_is_repeated_when_the_time_of_a_request_is_over(site: Site) -> None:
    """The `total` of aiohttp ends the attempts, too: nobody waits for a Retry-After after it."""

    class NeverSleeping(AsyncPoliteness):
        async def sleep_until(self, instant: float) -> None:
            raise AssertionError(instant)

    polite = mannerly.adapters.aiohttp.polite(NeverSleeping(PACE), retries=3)
    timeout = aiohttp.ClientTimeout(total=SOON_S)
    async with (
        aiohttp.ClientSession(middlewares=(polite,), timeout=timeout) as session,
        session.get(site.url("/stuck/1")) as answer,
    ):
        with pytest.raises(TimeoutError):
            await answer.read()

    assert answer.status == 429
