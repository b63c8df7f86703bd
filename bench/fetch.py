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
from typing import TYPE_CHECKING

import pycurl

from mannerly.crawl.fetch import NetworkGuard, Request
from mannerly.crawl.fetch.curl import CurlFetcher

if TYPE_CHECKING:
    from collections.abc import Callable

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


def with_fetcher(port: int, connections: int) -> None:
    url = f"http://127.0.0.1:{port}/page"
    fetcher = CurlFetcher(NetworkGuard(seeds=[url]))
    started = finished = 0
    while finished < REQUESTS:
        while started < REQUESTS and fetcher.in_flight < connections:
            fetcher.start(Request(url, "127.0.0.1", timeout_s=20))
            started += 1
        for fetched in fetcher.wait(1.0):
            assert fetched.status == 200, fetched
            finished += 1
    fetcher.close()


class BareLoop:
    def __init__(self) -> None:
        self.poll = select.epoll()
        self.known: set[int] = set()
        self.alarm_at = math.inf
        self.multi = pycurl.CurlMulti()
        self.multi.setopt(pycurl.M_SOCKETFUNCTION, self.on_socket)
        self.multi.setopt(pycurl.M_TIMERFUNCTION, self.on_timer)

    def on_socket(self, what: int, descriptor: int, _multi: object, _data: object) -> None:
        if what == pycurl.POLL_REMOVE:
            self.known.discard(descriptor)
            self.poll.unregister(descriptor)
        elif descriptor in self.known:
            self.poll.modify(descriptor, what)
        else:
            self.known.add(descriptor)
            self.poll.register(descriptor, what if what == 1 else select.EPOLLOUT)

    def on_timer(self, delay_ms: int) -> None:
        self.alarm_at = math.inf if delay_ms < 0 else time.monotonic() + delay_ms / 1000

    def turn(self) -> None:
        pause_s = max(0.0, min(1.0, self.alarm_at - time.monotonic()))
        for descriptor, event in self.poll.poll(pause_s):
            self.multi.socket_action(descriptor, 1 if event & select.EPOLLIN else 2)
        if self.alarm_at <= time.monotonic():
            self.alarm_at = math.inf
            self.multi.socket_action(pycurl.SOCKET_TIMEOUT, 0)


def bare(port: int, connections: int) -> None:
    loop = BareLoop()
    started = finished = 0

    def begin(handle: pycurl.Curl) -> None:
        handle.setopt(pycurl.URL, f"http://127.0.0.1:{port}/page")
        handle.setopt(pycurl.WRITEDATA, BytesIO())
        loop.multi.add_handle(handle)

    handles = [pycurl.Curl() for _ in range(connections)]
    for handle in handles:
        begin(handle)
        started += 1
    while finished < REQUESTS:
        loop.turn()
        _, succeeded, failed = loop.multi.info_read()
        assert not failed
        for handle in succeeded:
            assert handle.getinfo(pycurl.RESPONSE_CODE) == 200
            loop.multi.remove_handle(handle)
            finished += 1
            if started < REQUESTS:
                begin(handle)
                started += 1
    loop.multi.close()
    loop.poll.close()


def measure(job: Callable[[int, int], None], port: int, connections: int) -> tuple[float, float]:
    """Wall and CPU seconds of one round."""
    wall, cpu = time.perf_counter(), time.process_time()
    job(port, connections)
    return time.perf_counter() - wall, time.process_time() - cpu


def run() -> None:
    """Print a row for each number of connections and each way."""
    listener = socket.create_server(("127.0.0.1", 0), backlog=1024)
    server = multiprocessing.Process(target=serve, args=(listener,), daemon=True)
    server.start()
    port = listener.getsockname()[1]
    print(f"{'':<12}{'connections':>12}{'requests/s':>12}{'CPU ms/request':>16}")
    try:
        for connections in CONNECTIONS:
            jobs: dict[str, Callable[[int, int], None]] = {"fetcher": with_fetcher, "bare": bare}
            rounds = [
                {name: measure(job, port, connections) for name, job in jobs.items()}
                for _ in range(ROUNDS)
            ]
            for name in jobs:
                wall_s = min(times[name][0] for times in rounds)
                cpu_ms = min(times[name][1] for times in rounds) * 1000 / REQUESTS
                rate = REQUESTS / wall_s
                print(f"{name:<12}{connections:>12}{rate:>12,.0f}{cpu_ms:>16.4f}")
    finally:
        server.terminate()
        server.join()
        listener.close()
