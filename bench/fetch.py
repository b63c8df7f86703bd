"""What the fetch stage adds to curl: requests a second and CPU a request, next to a bare loop.

The server is an epoll loop in another process that answers every request with the same bytes on
a kept-alive connection. "bare" is the least that can be written around curl's multi handle: no
guard, no caps, no headers read, no typed result. Both run in turns within one run, so noise hits
both; the best of the rounds is shown, because noise only ever adds.
"""

from __future__ import annotations

import math
import multiprocessing
import select
import socket
import time
from io import BytesIO

import pycurl

from mannerly.crawl.fetch import NetworkGuard, Request
from mannerly.crawl.fetch.curl import CurlFetcher

REQUESTS = 6000
ROUNDS = 3
CONNECTIONS = (64, 512)
BODY = b"<html><body>" + b"<p>hello</p>" * 80 + b"</body></html>"
ANSWER = (
    b"HTTP/1.1 200 OK\r\nDate: Mon, 01 Jan 2024 00:00:00 GMT\r\nServer: tiny\r\n"
    b"Content-Type: text/html; charset=utf-8\r\nCache-Control: max-age=60\r\n"
    b'ETag: "abc"\r\nVary: Accept-Encoding\r\nContent-Length: %d\r\n\r\n' % len(BODY)
) + BODY


def serve(listener: socket.socket) -> None:
    poll = select.epoll()
    poll.register(listener, select.EPOLLIN)
    clients: dict[int, socket.socket] = {}
    while True:
        for descriptor, _ in poll.poll():
            if descriptor == listener.fileno():
                client, _ = listener.accept()
                clients[client.fileno()] = client
                poll.register(client, select.EPOLLIN)
            elif clients[descriptor].recv(65536):
                clients[descriptor].sendall(ANSWER)
            else:
                clients.pop(descriptor).close()


class WithFetcher:
    def __init__(self, url: str, connections: int) -> None:
        self.url = url
        self.connections = connections
        self.fetcher = CurlFetcher(NetworkGuard(seeds=[url]))

    def fetch(self, count: int) -> None:
        fetcher = self.fetcher
        started = finished = 0
        while finished < count:
            while started < count and fetcher.in_flight < self.connections:
                fetcher.start(Request(self.url, "127.0.0.1", timeout_s=20))
                started += 1
            for fetched in fetcher.wait(1.0):
                assert fetched.status == 200, fetched
                finished += 1

    def close(self) -> None:
        self.fetcher.close()


class Bare:
    def __init__(self, url: str, connections: int) -> None:
        self.url = url
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

    def begin(self, handle: pycurl.Curl) -> None:
        handle.setopt(pycurl.URL, self.url)
        handle.setopt(pycurl.WRITEDATA, BytesIO())
        self.multi.add_handle(handle)

    def turn(self) -> None:
        pause_s = max(0.0, min(1.0, self.alarm_at - time.monotonic()))
        for descriptor, event in self.poll.poll(pause_s):
            self.multi.socket_action(descriptor, event & (select.EPOLLIN | select.EPOLLOUT))
        if self.alarm_at <= time.monotonic():
            self.alarm_at = math.inf
            self.multi.socket_action(pycurl.SOCKET_TIMEOUT, 0)

    def fetch(self, count: int) -> None:
        idle = list(self.handles)
        started = finished = 0
        while finished < count:
            while idle and started < count:
                self.begin(idle.pop())
                started += 1
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


def measure(way: type[WithFetcher | Bare], url: str, connections: int) -> tuple[float, float]:
    """Wall and CPU seconds of one round, on connections that are already open."""
    client = way(url, connections)
    client.fetch(2 * connections)
    wall, cpu = time.perf_counter(), time.process_time()
    client.fetch(REQUESTS)
    times = time.perf_counter() - wall, time.process_time() - cpu
    client.close()
    return times


def run() -> None:
    """Print a row for each number of connections and each way."""
    listener = socket.create_server(("127.0.0.1", 0), backlog=1024)
    server = multiprocessing.Process(target=serve, args=(listener,), daemon=True)
    server.start()
    url = f"http://127.0.0.1:{listener.getsockname()[1]}/page"
    print(f"{'':<12}{'connections':>12}{'requests/s':>12}{'CPU ms/request':>16}")
    try:
        for connections in CONNECTIONS:
            ways = {"fetcher": WithFetcher, "bare": Bare}
            rounds = [
                {name: measure(way, url, connections) for name, way in ways.items()}
                for _ in range(ROUNDS)
            ]
            for name in ways:
                wall_s = min(times[name][0] for times in rounds)
                cpu_ms = min(times[name][1] for times in rounds) * 1000 / REQUESTS
                rate = REQUESTS / wall_s
                print(f"{name:<12}{connections:>12}{rate:>12,.0f}{cpu_ms:>16.4f}")
    finally:
        server.terminate()
        server.join()
        listener.close()
