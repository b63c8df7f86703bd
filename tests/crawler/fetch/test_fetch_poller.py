"""Both pollers, on every selector at hand: what is ready, what was hung up, what is forgotten."""

from __future__ import annotations

import select
import selectors
import socket
import subprocess
import sys
from typing import TYPE_CHECKING

import pycurl
import pytest
from tests.crawler.fetch.raw_server import RawServer, answer, reset, says

from mannerly.crawler.fetch.poller import EpollPoller, SelectorPoller, max_sockets, new_poller

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mannerly.crawler.fetch.poller import Poller

IN, OUT = pycurl.CSELECT_IN, pycurl.CSELECT_OUT
SELECTORS = [
    getattr(selectors, name)
    for name in ("EpollSelector", "KqueueSelector", "PollSelector", "SelectSelector")
    if hasattr(selectors, name)
]


@pytest.fixture(params=[*(["epoll"] if hasattr(select, "epoll") else []), *SELECTORS])
def poller(request: pytest.FixtureRequest) -> Iterator[Poller]:
    made = EpollPoller() if request.param == "epoll" else SelectorPoller(request.param())
    yield made
    made.close()


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    here, there = socket.socketpair()
    with here, there:
        yield here, there


def test_poller_reports_what_is_ready(
    poller: Poller, pair: tuple[socket.socket, socket.socket]
) -> None:
    """Only what curl asked for is reported, and a later wish takes the place of an earlier one."""
    here, there = pair
    there.send(b"!")
    found = []
    for wish in (pycurl.POLL_IN, pycurl.POLL_OUT, pycurl.POLL_INOUT):
        poller.update(wish, here.fileno())
        found.append(poller.wait(1.0))

    assert found == [[(here.fileno(), flags)] for flags in (IN, OUT, IN | OUT)]


def test_poller_waits_no_longer_than_told(
    poller: Poller, pair: tuple[socket.socket, socket.socket]
) -> None:
    """Nothing is reported of a quiet socket, nor with no socket at all."""
    assert poller.wait(0.001) == []

    poller.update(pycurl.POLL_IN, pair[0].fileno())

    assert poller.wait(0.001) == []


def test_poller_reports_a_hang_up(
    poller: Poller, pair: tuple[socket.socket, socket.socket]
) -> None:
    """A peer that is gone makes the socket readable, so that curl reads the end."""
    here, there = pair
    poller.update(pycurl.POLL_IN, here.fileno())
    there.close()

    ((descriptor, flags),) = poller.wait(1.0)

    assert descriptor == here.fileno()
    assert flags & IN


def test_poller_reports_a_reset(poller: Poller) -> None:
    """A connection that was reset is reported to a reader and to a writer."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        client = socket.create_connection(listener.getsockname())
        server, _ = listener.accept()
        reset(server)
        server.close()
    with client:
        found = []
        for wish in (pycurl.POLL_IN, pycurl.POLL_OUT):
            poller.update(wish, client.fileno())
            found += poller.wait(1.0)

    assert len(found) == 2
    assert found[0][1] & (IN | pycurl.CSELECT_ERR)
    assert found[1][1] & (OUT | pycurl.CSELECT_ERR)


def test_poller_reports_a_refused_connection(poller: Poller) -> None:
    """A connection attempt that failed makes the socket writable, so that curl asks why."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = listener.getsockname()
    with socket.socket() as client:
        client.setblocking(False)
        client.connect_ex(address)
        poller.update(pycurl.POLL_OUT, client.fileno())

        ((_, flags),) = poller.wait(1.0)

    assert flags & (OUT | pycurl.CSELECT_ERR)


def test_poller_forgets_what_was_closed(poller: Poller) -> None:
    """A socket may be closed before its removal, and be removed twice; its number can be reused."""
    first, second = socket.socketpair()
    number = first.fileno()
    poller.update(pycurl.POLL_IN, number)
    first.close()
    poller.update(pycurl.POLL_REMOVE, number)
    poller.update(pycurl.POLL_REMOVE, number)
    third, fourth = socket.socketpair()
    with second, third, fourth:
        for each in (third, fourth):
            poller.update(pycurl.POLL_OUT, each.fileno())

        ready = poller.wait(1.0)

        assert sorted(ready) == sorted((each.fileno(), OUT) for each in (third, fourth))


def test_new_poller_takes_what_the_system_has(monkeypatch: pytest.MonkeyPatch) -> None:
    """Epoll if there is one; else the default selector, and `select` has room for few sockets."""
    monkeypatch.setattr(select, "epoll", getattr(select, "epoll", object), raising=False)
    with_epoll = max_sockets()
    monkeypatch.delattr(select, "epoll")
    monkeypatch.setattr(selectors, "DefaultSelector", selectors.SelectSelector)

    poller = new_poller()

    poller.close()
    assert isinstance(poller, SelectorPoller)
    assert (with_epoll, max_sockets()) == (sys.maxsize, 480)


FETCH = """
import select, sys
for name in [name for name in dir(select) if "poll" in name.lower()]:
    delattr(select, name)
from mannerly.crawler.fetch.curl import CurlFetcher
from mannerly.crawler.fetch.guard import NetworkGuard
from mannerly.crawler.model import Request
fetcher = CurlFetcher(NetworkGuard(allow_net=["127.0.0.0/8"]))
fetcher.start(Request(sys.argv[1], "127.0.0.1", 5.0))
finished = []
while not finished:
    finished = fetcher.wait(5.0)
fetcher.close()
print(finished[0].body.decode(), type(fetcher._poller).__name__)
"""


@pytest.mark.processes
def test_fetcher_runs_on_a_system_with_select_alone() -> None:
    """Neither an import nor a request needs a name that only some systems have."""
    with RawServer(says(answer())) as server:
        told = subprocess.run(
            [sys.executable, "-c", FETCH, server.url()], capture_output=True, text=True, check=False
        )

    assert (told.stdout, told.stderr) == ("hello SelectorPoller\n", "")
