"""Real clients, asyncio and threads, on a real server: the judge is the server's log."""

from __future__ import annotations

import asyncio
import socket
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TYPE_CHECKING

import aiohttp
import httpx
import httpx2
import pytest
import requests

import mannerly
import mannerly.adapters.aiohttp
import mannerly.adapters.httpx
import mannerly.adapters.httpx2
import mannerly.adapters.requests
from mannerly.politeness import Settings
from mannerly.politeness.drivers.aio import AsyncPoliteness
from mannerly.politeness.drivers.threads import ThreadedPoliteness
from mannerly.politeness.errors import HostUnavailable
from mannerly.politeness.testing import FakeClock

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path
    from types import ModuleType

    from tests.adapters.loopback_site import Site

    from mannerly.politeness.drivers.base import DriverBase

    Ask = Callable[[Settings, Sequence[str]], DriverBase[object]]

GAP_S = 0.5
LEAST_S = (
    GAP_S / 2
)  # some clients connect after they have their slot, so the first gap can be smaller
EVERY_HALF_SECOND = Settings(strategy="fixed", delay_s=GAP_S, seed=1)


def ask_with_httpx(settings: Settings, urls: Sequence[str], client: object = httpx) -> object:
    polite = getattr(mannerly.adapters, client.__name__).PoliteTransport(
        politeness=ThreadedPoliteness(settings)
    )
    with (
        client.Client(transport=polite, follow_redirects=True, timeout=5.0) as session,
        ThreadPoolExecutor(4) as pool,
    ):

        def get(url: str) -> None:
            with suppress(client.TransportError):
                session.get(url)

        list(pool.map(get, urls))
    return polite.politeness


def ask_with_httpx2(settings: Settings, urls: Sequence[str]) -> object:
    return ask_with_httpx(settings, urls, httpx2)


def ask_with_async_httpx(settings: Settings, urls: Sequence[str], client: object = httpx) -> object:
    async def ask() -> object:
        polite = getattr(mannerly.adapters, client.__name__).AsyncPoliteTransport(
            politeness=AsyncPoliteness(settings)
        )
        async with client.AsyncClient(transport=polite, follow_redirects=True) as session:
            answers = [session.get(url) for url in urls]
            await asyncio.gather(*answers, return_exceptions=True)
        return polite.politeness

    return asyncio.run(ask())


def ask_with_async_httpx2(settings: Settings, urls: Sequence[str]) -> object:
    return ask_with_async_httpx(settings, urls, httpx2)


def ask_with_aiohttp(settings: Settings, urls: Sequence[str]) -> object:
    async def get(session: aiohttp.ClientSession, url: str) -> None:
        with suppress(aiohttp.ClientError):
            async with session.get(url) as response:
                await response.read()

    async def ask() -> object:
        politeness = AsyncPoliteness(settings)
        polite = mannerly.adapters.aiohttp.polite(politeness)
        async with aiohttp.ClientSession(middlewares=(polite,)) as session:
            await asyncio.gather(*(get(session, url) for url in urls))
        return politeness

    return asyncio.run(ask())


def ask_with_requests(settings: Settings, urls: Sequence[str]) -> object:
    polite = mannerly.adapters.requests.PoliteAdapter(politeness=ThreadedPoliteness(settings))
    with requests.Session() as session, ThreadPoolExecutor(4) as pool:
        session.trust_env = False
        session.mount("http://", polite)

        def get(url: str) -> None:
            with suppress(requests.RequestException):
                session.get(url, timeout=5)

        list(pool.map(get, urls))
    return polite.politeness


CLIENTS = [
    ask_with_httpx,
    ask_with_httpx2,
    ask_with_async_httpx,
    ask_with_async_httpx2,
    ask_with_aiohttp,
    ask_with_requests,
]
every_client = pytest.mark.parametrize("ask", CLIENTS, ids=lambda ask: ask.__name__[9:])


@pytest.mark.processes
@every_client
def test_requests_and_hops_of_redirects_keep_the_gap(ask: Ask, site: Site) -> None:
    """At the server, no two requests start closer than the delay, whoever asks for them."""
    urls = [site.url("/moved/1"), site.url("/page/2")]

    politeness = ask(EVERY_HALF_SECOND, urls)

    assert sorted(site.paths) == ["/moved/1", "/page/1", "/page/2"]
    assert min(site.gaps_s) >= LEAST_S
    host = politeness.host(urls[0])
    assert host is not None
    assert (host.requests, host.failures, host.in_flight) == (3, 0, 0)


@every_client
def test_retry_after_holds_for_every_request_to_the_host(ask: Ask, site: Site) -> None:
    """After a 429 with a Retry-After of one second nothing is sent for that long."""
    ask(EVERY_HALF_SECOND, [site.url("/busy/1"), site.url("/page/2")])

    waits_s = [
        gap_s for gap_s, path in zip(site.gaps_s, site.paths, strict=False) if path == "/busy/1"
    ]
    assert all(wait_s >= 0.75 for wait_s in waits_s)
    assert site.paths.count("/busy/1") == 1


@every_client
def test_errors_are_reported_as_failures_of_the_host(ask: Ask, site: Site) -> None:
    """A connection that is closed without an answer, and one that is refused, count as failures."""
    with socket.create_server(("127.0.0.1", 0)) as closed:
        refused = f"http://127.0.0.1:{closed.getsockname()[1]}/"

    politeness = ask(EVERY_HALF_SECOND, [site.url("/broken/1"), refused])

    for url in (site.url("/"), refused):
        host = politeness.host(url)
        assert host is not None
        assert host.failures  # aiohttp tries a second time, in a slot of its own
        assert host.in_flight == 0


@pytest.mark.parametrize("client", [httpx, httpx2], ids=lambda client: client.__name__)
def test_delay_counts_from_the_bytes_not_from_the_connection(
    client: ModuleType, site: Site
) -> None:
    """A transport says when its connection is open, and a trace of the user's is called as well."""
    politeness = ThreadedPoliteness(EVERY_HALF_SECOND, clock=(clock := FakeClock()))
    transport = getattr(mannerly.adapters, client.__name__).PoliteTransport(politeness=politeness)
    events: list[str] = []

    def connect_for_three_seconds(event: str, _: object) -> None:
        events.append(event)
        if event == "connection.connect_tcp.complete":
            clock.advance(3.0)

    with client.Client(transport=transport) as session:
        session.get(site.url("/page/1"), extensions={"trace": connect_for_three_seconds})

    assert any(event.endswith("send_request_headers.started") for event in events)
    assert politeness.ready_at(site.url("/")) == 3.0 + GAP_S


def test_clients_that_are_given_one_politeness_share_one_pace(site: Site) -> None:
    """Two clients of different packages with one `ThreadedPoliteness` never add up."""
    politeness = ThreadedPoliteness(EVERY_HALF_SECOND)
    adapter = mannerly.adapters.requests.PoliteAdapter(politeness=politeness)
    transport = mannerly.adapters.httpx.PoliteTransport(politeness=politeness)

    with requests.Session() as first, httpx.Client(transport=transport) as second:
        first.trust_env = False
        first.mount("http://", adapter)
        first.get(site.url("/page/1"))
        second.get(site.url("/page/2"))
        first.get(site.url("/page/3"))

    assert min(site.gaps_s) >= LEAST_S
    assert politeness.snapshot().requests == 3


def test_client_waits_no_longer_than_its_deadline(site: Site) -> None:
    """`deadline_s` ends the wait for a slot with a TimeoutError, and nothing is sent."""
    transport = mannerly.adapters.httpx.PoliteTransport(
        politeness=ThreadedPoliteness(Settings(strategy="fixed", delay_s=60.0)), deadline_s=0.01
    )

    with httpx.Client(transport=transport) as client:
        client.get(site.url("/page/1"))
        with pytest.raises(TimeoutError, match="no slot"):
            client.get(site.url("/page/2"))

    assert site.paths == ["/page/1"]


def test_host_that_is_paused_is_not_asked(site: Site) -> None:
    """A host without slots raises an error that names it, and nothing is sent."""
    politeness = ThreadedPoliteness()
    politeness.pause(site.url("/"))
    transport = mannerly.adapters.httpx.PoliteTransport(politeness=politeness)

    with (
        httpx.Client(transport=transport) as client,
        pytest.raises(HostUnavailable, match=r"127\.0\.0\.1"),
    ):
        client.get(site.url("/page/1"))

    assert site.log == []


def test_adapter_closes_its_own_politeness_only() -> None:
    """A politeness that was given stays open, since others may use it."""
    given = ThreadedPoliteness()

    with httpx.Client(transport=mannerly.adapters.httpx.PoliteTransport(politeness=given)):
        pass

    with given.slot("https://example.com/") as slot:
        slot.report(status=200)
    assert given.snapshot().requests == 1


def test_adapters_share_hosts_by_one_argument(site: Site, tmp_path: Path) -> None:
    """`memory=` of an adapter makes its politeness; the host is given back when it is closed."""
    place = tmp_path / "hosts.sqlite"

    async def ask() -> None:
        transport = mannerly.adapters.httpx.AsyncPoliteTransport(memory=place)
        async with httpx.AsyncClient(transport=transport) as client:
            await client.get(site.url("/page/1"))

    asyncio.run(ask())
    with mannerly.adapters.requests.PoliteAdapter(memory=place).politeness as politeness:
        transport = mannerly.adapters.httpx2.PoliteTransport(politeness=politeness)
        with httpx2.Client(transport=transport) as client:
            client.get(site.url("/page/2"))

    assert site.paths == ["/page/1", "/page/2"]
    assert min(site.gaps_s) >= 0.5  # the first requests to a host are a second apart


def test_a_memory_beside_a_politeness_is_a_mistake() -> None:
    """The politeness has a memory already, or none on purpose."""
    with pytest.raises(ValueError, match="not both"):
        mannerly.adapters.httpx.PoliteTransport(politeness=ThreadedPoliteness(), memory="user")


def test_adapters_are_found_without_importing_them() -> None:
    """`mannerly.adapters.httpx` works after `import mannerly`; other names are errors."""
    assert mannerly.adapters.httpx.PoliteTransport.__module__ == "mannerly.adapters.httpx"
    assert "scrapy" in dir(mannerly.adapters)
    with pytest.raises(AttributeError, match="urllib"):
        _ = mannerly.adapters.urllib


@pytest.mark.parametrize("client", ["aiohttp", "httpx", "httpx2"])
def test_two_loops_do_not_share_a_client(client: str, site: Site) -> None:
    """The second one gets an error in place of an endless wait."""
    politeness = AsyncPoliteness(EVERY_HALF_SECOND)

    async def ask() -> None:
        if client == "aiohttp":
            polite = mannerly.adapters.aiohttp.polite(politeness)
            async with aiohttp.ClientSession(middlewares=(polite,)) as session:
                (await session.get(site.url("/page/1"))).close()
        else:
            adapter = getattr(mannerly.adapters, client)
            transport = adapter.AsyncPoliteTransport(politeness=politeness)
            module = httpx if client == "httpx" else httpx2
            async with module.AsyncClient(transport=transport) as session:
                await session.get(site.url("/page/1"))

    first = asyncio.new_event_loop()
    try:
        first.run_until_complete(ask())
        with pytest.raises(RuntimeError, match="another event loop"):
            asyncio.run(ask())
    finally:
        first.close()
