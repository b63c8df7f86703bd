"""Measure what the fetch stage adds to curl: requests/s and CPU per request, next to a bare loop.

The server is an epoll loop in another process that answers every request with the same bytes on
a kept-alive connection: a small page of one host, or one of 45 KB of many hosts. "bare" is the
least that can be written around curl's multi handle: no guard, no caps, no headers read, no typed
result. Both take turns within one run, so that other load affects both. The best round is shown,
because other load can only add time.

The last rows request the same hosts after many others were visited: state of known hosts must not
make requests more expensive.
"""

from __future__ import annotations

import math
import multiprocessing
import select
import socket
import time
from io import BytesIO
from itertools import cycle, islice
from typing import NamedTuple

import pycurl

from mannerly.crawler.fetch.curl import CurlFetcher
from mannerly.crawler.fetch.guard import NetworkGuard
from mannerly.crawler.model import Request

REQUESTS = 4000
ROUNDS = 3
HEAD = (
    b"HTTP/1.1 200 OK\r\nDate: Mon, 01 Jan 2024 00:00:00 GMT\r\nServer: tiny\r\n"
    b"Content-Type: text/html; charset=utf-8\r\nCache-Control: max-age=60\r\n"
    b'ETag: "abc"\r\nVary: Accept-Encoding\r\nConnection: keep-alive\r\nContent-Length: %d\r\n\r\n'
)
PARAGRAPH = b"<p>hello, hello</p>"


class Case(NamedTuple):
    """One case: a path, the number of hosts, of requests at once, and of hosts visited before."""

    name: str
    path: str
    hosts: int
    connections: int
    others: int = 0

    def urls(self, port: int) -> list[tuple[str, str]]:
        return addresses(1, self.hosts, port, self.path)

    def elsewhere(self, port: int) -> list[tuple[str, str]]:
        return addresses(2, self.others, port, "/small")


CASES = (
    Case("1 KB", "/small", 1, 64),
    Case("1 KB", "/small", 1, 512),
    Case("45 KB", "/page", 64, 64),
    Case("45 KB", "/page", 64, 512),
    Case("45 KB after 10,000 hosts", "/page", 64, 512, others=10_000),
)


def addresses(network: int, hosts: int, port: int, path: str) -> list[tuple[str, str]]:
    """URLs and hosts in 127.`network`.0.0/16."""
    names = [f"127.{network}.{number // 250}.{number % 250 + 1}" for number in range(hosts)]
    return [(f"http://{name}:{port}{path}", name) for name in names]


def answer(paragraphs: int) -> bytes:
    body = b"<html><body>" + PARAGRAPH * paragraphs + b"</body></html>"
    return HEAD % len(body) + body


def serve(listener: socket.socket) -> None:
    poll = select.epoll()
    poll.register(listener, select.EPOLLIN)
    clients: dict[int, socket.socket] = {}
    small, page = answer(50), answer(2400)
    while True:
        for descriptor, _ in poll.poll():
            if descriptor == listener.fileno():
                client, peer = listener.accept()
                if not peer[0].startswith("127."):
                    client.close()
                    continue
                clients[client.fileno()] = client
                poll.register(client, select.EPOLLIN)
            elif asked := clients[descriptor].recv(65536):
                clients[descriptor].sendall(page if asked.startswith(b"GET /page") else small)
            else:
                clients.pop(descriptor).close()


class WithFetcher:
    def __init__(self, connections: int) -> None:
        self.connections = connections
        self.fetcher = CurlFetcher(NetworkGuard(allow_net=["127.0.0.0/8"]))

    def fetch(self, urls: list[tuple[str, str]], count: int) -> None:
        fetcher = self.fetcher
        upcoming = islice(cycle(urls), count)
        finished = 0
        while finished < count:
            for url, host in islice(upcoming, self.connections - fetcher.in_flight):
                fetcher.start(Request(url, host, timeout_s=20))
            for fetched in fetcher.wait(1.0):
                assert fetched.status == 200, fetched
                finished += 1

    def close(self) -> None:
        self.fetcher.close()


class Bare:
    def __init__(self, connections: int) -> None:
        self.poll = select.epoll()
        self.known: set[int] = set()
        self.alarm_at = math.inf
        self.multi = pycurl.CurlMulti()
        self.multi.setopt(pycurl.M_SOCKETFUNCTION, self.on_socket)
        self.multi.setopt(pycurl.M_TIMERFUNCTION, self.on_timer)
        self.handles = [pycurl.Curl() for _ in range(connections)]

    def on_socket(self, what: int, descriptor: int, _multi: object, _data: object) -> None:
        if what == pycurl.POLL_REMOVE:
            self.known.discard(descriptor)
            self.poll.unregister(descriptor)
            return
        events = select.EPOLLIN if what == pycurl.POLL_IN else select.EPOLLIN | select.EPOLLOUT
        if descriptor in self.known:
            self.poll.modify(descriptor, events)
        else:
            self.known.add(descriptor)
            self.poll.register(descriptor, events)

    def on_timer(self, delay_ms: int) -> None:
        self.alarm_at = math.inf if delay_ms < 0 else time.monotonic() + delay_ms / 1000

    def begin(self, handle: pycurl.Curl, url: str) -> None:
        handle.setopt(pycurl.URL, url)
        handle.setopt(pycurl.WRITEDATA, BytesIO())
        self.multi.add_handle(handle)

    def turn(self) -> None:
        pause_s = max(0.0, min(1.0, self.alarm_at - time.monotonic()))
        for descriptor, event in self.poll.poll(pause_s):
            self.multi.socket_action(descriptor, event & (select.EPOLLIN | select.EPOLLOUT))
        if self.alarm_at <= time.monotonic():
            self.alarm_at = math.inf
            self.multi.socket_action(pycurl.SOCKET_TIMEOUT, 0)

    def fetch(self, urls: list[tuple[str, str]], count: int) -> None:
        upcoming = islice(cycle(urls), count)
        idle = list(self.handles)
        finished = 0
        while finished < count:
            for url, _ in islice(upcoming, len(idle)):
                self.begin(idle.pop(), url)
            self.turn()
            _, succeeded, failed = self.multi.info_read()
            assert not failed
            for handle in succeeded:
                assert handle.getinfo(pycurl.RESPONSE_CODE) == 200
                self.multi.remove_handle(handle)
                idle.append(handle)
                finished += 1

    def close(self) -> None:
        self.multi.close()
        self.poll.close()


def measure(way: type[WithFetcher | Bare], case: Case, port: int) -> tuple[float, float]:
    """Wall and CPU seconds of one round, on connections that are already open."""
    client = way(case.connections)
    client.fetch(case.elsewhere(port), case.others)
    urls = case.urls(port)
    client.fetch(urls, 2 * case.connections)
    wall, cpu = time.perf_counter(), time.process_time()
    client.fetch(urls, REQUESTS)
    times = time.perf_counter() - wall, time.process_time() - cpu
    client.close()
    return times


def run() -> None:
    """Print a row for each case and each way."""
    # All addresses, because the hosts are many; the server answers loopback only.
    listener = socket.create_server(("0.0.0.0", 0), backlog=1024)
    server = multiprocessing.Process(target=serve, args=(listener,), daemon=True)
    server.start()
    port = listener.getsockname()[1]
    print(f"{'':<26}{'connections':>12}{'':>10}{'requests/s':>12}{'CPU ms/request':>16}")
    try:
        for case in CASES:
            ways: dict[str, type[WithFetcher | Bare]] = {"fetcher": WithFetcher, "bare": Bare}
            rounds = [
                {name: measure(way, case, port) for name, way in ways.items()}
                for _ in range(ROUNDS)
            ]
            for name in ways:
                rate = REQUESTS / min(times[name][0] for times in rounds)
                cpu_ms = min(times[name][1] for times in rounds) * 1000 / REQUESTS
                row = f"{case.name:<26}{case.connections:>12}{name:>10}"
                print(f"{row}{rate:>12,.0f}{cpu_ms:>16.4f}")
    finally:
        server.terminate()
        server.join()
        listener.close()
