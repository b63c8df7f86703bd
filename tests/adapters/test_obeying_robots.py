"""Adapters that obey robots.txt: fetched in slots, shared with other programs."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import aiohttp
import httpx
import httpx2
import pytest
import requests
from tests.adapters.loopback_site import running_site

import mannerly.adapters.aiohttp
import mannerly.adapters.httpx
import mannerly.adapters.httpx2
import mannerly.adapters.requests
from mannerly.politeness import Settings
from mannerly.politeness.drivers.aio import AsyncPoliteness
from mannerly.politeness.drivers.threads import ThreadedPoliteness
from mannerly.politeness.errors import HostUnavailable, RobotsDisallowed

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path
    from types import ModuleType

    from tests.adapters.loopback_site import Site

    Ask = Callable[..., list[object]]

PACE = Settings(strategy="fixed", delay_s=0.1, max_rate="unlimited", seed=1)


def with_httpx(urls: Sequence[str], memory: Path | None = None, client: ModuleType = httpx):
    adapter = getattr(mannerly.adapters, client.__name__)
    with ThreadedPoliteness(PACE, memory=memory) as politeness:
        transport = adapter.PoliteTransport(politeness=politeness, robots="obey")
        with client.Client(transport=transport) as session:
            return [result(lambda url=url: session.get(url).status_code) for url in urls]


def with_httpx2(urls: Sequence[str], memory: Path | None = None):
    return with_httpx(urls, memory, httpx2)


def with_requests(urls: Sequence[str], memory: Path | None = None):
    with ThreadedPoliteness(PACE, memory=memory) as politeness, requests.Session() as session:
        session.trust_env = False
        polite = mannerly.adapters.requests.PoliteAdapter(politeness=politeness, robots="obey")
        session.mount("http://", polite)
        return [result(lambda url=url: session.get(url).status_code) for url in urls]


def with_async_httpx(urls: Sequence[str], memory: Path | None = None):
    async def ask():
        async with AsyncPoliteness(PACE, memory=memory) as politeness:
            transport = mannerly.adapters.httpx.AsyncPoliteTransport(
                politeness=politeness, robots="obey"
            )
            async with httpx.AsyncClient(transport=transport) as session:
                answers = await asyncio.gather(*map(session.get, urls), return_exceptions=True)
        return [getattr(each, "status_code", each) for each in answers]

    return asyncio.run(ask())


def with_aiohttp(urls: Sequence[str], memory: Path | None = None):
    async def ask():
        async with AsyncPoliteness(PACE, memory=memory) as politeness:
            polite = mannerly.adapters.aiohttp.polite(politeness, robots="obey")
            async with aiohttp.ClientSession(middlewares=(polite,)) as session:
                answers = await asyncio.gather(*map(session.get, urls), return_exceptions=True)
        return [getattr(each, "status", each) for each in answers]

    return asyncio.run(ask())


def result(ask: Callable[[], object]) -> object:
    try:
        return ask()
    except Exception as error:  # noqa: BLE001 - what the caller gets
        return error


FAMILIES = {
    with_httpx: httpx.TransportError,
    with_httpx2: httpx2.TransportError,
    with_async_httpx: httpx.TransportError,
    with_requests: requests.RequestException,
    with_aiohttp: aiohttp.ClientError,
}


def with_adapter(adapter: mannerly.adapters.requests.PoliteAdapter) -> requests.Session:
    session = requests.Session()
    session.trust_env = False
    session.mount("http://", adapter)
    return session


CALLS = {
    "httpx": lambda politeness, **options: httpx.Client(
        transport=mannerly.adapters.httpx.PoliteTransport(
            politeness=politeness, robots="obey", **options
        )
    ),
    "requests": lambda politeness, **options: with_adapter(
        mannerly.adapters.requests.PoliteAdapter(politeness=politeness, robots="obey", **options)
    ),
}


@pytest.mark.parametrize("ask", FAMILIES, ids=lambda ask: ask.__name__[5:])
def test_a_url_that_robots_txt_forbids_is_not_asked_for(ask: Ask, site: Site) -> None:
    """The error is one of the client's own, and says which line; each hop has kept the gap."""
    site.has_rules = True

    page, refused = ask([site.url("/page/1"), site.url("/private/2")])

    assert page == 200
    assert isinstance(refused, RobotsDisallowed)
    assert isinstance(refused, FAMILIES[ask])
    assert "line 2, Disallow: /private" in str(refused)
    assert site.paths == ["/robots.txt", "/rules", "/page/1"]
    assert min(site.gaps_s) >= 0.05


@pytest.mark.parametrize("client", CALLS)
def test_rules_are_fetched_with_the_user_agent_of_the_request(client: str, site: Site) -> None:
    """Not with that of the first request of all, which went to another site."""
    with (
        running_site() as other,
        ThreadedPoliteness(PACE) as politeness,
        CALLS[client](politeness) as session,
    ):
        session.get(other.url("/page/1"), headers={"User-Agent": "first/1.0"})
        session.get(site.url("/page/1"), headers={"User-Agent": "second/1.0"})

    assert other.agents["/robots.txt"] == "first/1.0"
    assert site.agents["/robots.txt"] == "second/1.0"


@pytest.mark.parametrize("client", CALLS)
def test_waiting_for_robots_txt_is_waiting_for_a_slot(client: str, site: Site) -> None:
    """A host with a long Retry-After raises at once, one with a long gap after the deadline."""
    slow = Settings(strategy="fixed", delay_s=3600.0)
    for status, options, expected in (
        (429, {}, HostUnavailable),
        (200, {"deadline_s": 0.01}, TimeoutError),
    ):
        with ThreadedPoliteness(slow) as politeness:
            with politeness.slot(site.url("/")) as slot:
                headers = {"retry-after": "7200"} if status == 429 else {}
                slot.report(status=status, headers=headers)
            with CALLS[client](politeness, **options) as session, pytest.raises(expected):
                session.get(site.url("/page/1"))

    assert site.log == []


@pytest.mark.processes
@pytest.mark.parametrize("others", [with_httpx, with_async_httpx])
def test_rules_are_kept_where_hosts_are_shared(others: Ask, site: Site, tmp_path: Path) -> None:
    """A second program with the same memory obeys them without asking for them."""
    site.has_rules = True
    place = tmp_path / "hosts.sqlite"

    with_requests([site.url("/page/1")], place)
    (refused,) = others([site.url("/private/2")], place)

    assert isinstance(refused, RobotsDisallowed)
    assert site.paths == ["/robots.txt", "/rules", "/page/1"]


def test_another_word_for_robots_is_a_mistake() -> None:
    """It is found when the adapter is made."""
    with pytest.raises(ValueError, match="obey"):
        mannerly.adapters.httpx.PoliteTransport(robots="ignore")
