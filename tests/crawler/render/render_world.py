"""Sites for tests of rendering, a canary that nothing may reach, and crawls that render them."""

from __future__ import annotations

import json
import os
import socket
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from tests.harness.programs import program
from tests.harness.sites import serving

import mannerly

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from tests.harness.sites import Request

    Answer = tuple[int, str, str]  # status, media type, body

HTML, SCRIPT, JSON = "text/html", "text/javascript", "application/json"
CHROMIUM = ("chromium", "chromium")  # the program and its package


class Site:
    """A site whose answers are given by path; its log is the judge."""

    def __init__(self, answers: Mapping[str, Answer]) -> None:
        self.answers = dict(answers)
        self.log: list[str] = []  # paths, in their order
        self.arrivals: list[tuple[float, str]] = []
        self.headers: dict[str, dict[str, str]] = {}  # of the last request, by path
        self._lock = threading.Lock()

    def __call__(self, request: Request) -> None:
        path = request.path
        with self._lock:
            self.log.append(path if request.command == "GET" else f"{request.command} {path}")
            self.arrivals.append((request.arrived_at, path))
            self.headers[path] = {name.lower(): text for name, text in request.headers.items()}
        status, kind, body = self.answers.get(path.partition("?")[0], (404, HTML, ""))
        request.answer(status, body, {"Content-Type": kind})

    def count(self, path: str) -> int:
        """Return how often a path was asked for."""
        return self.log.count(path)


class Canary:
    """Counts every connection and every datagram that reaches its ports, whatever it says."""

    def __init__(self) -> None:
        self.contacts: list[str] = []
        self._tcp = socket.create_server(("127.0.0.1", 0))
        self.port = self._tcp.getsockname()[1]
        self._udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._udp.bind(("127.0.0.1", self.port))
        for listen in (self._accept, self._receive):
            threading.Thread(target=listen, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._tcp.accept()
            except OSError:
                return
            connection.settimeout(1.0)
            try:
                said = connection.recv(200)
            except OSError:
                said = b""
            self.contacts.append(f"tcp {said[:80]!r}")
            connection.close()

    def _receive(self) -> None:
        while True:
            try:
                said, _ = self._udp.recvfrom(2000)
            except OSError:
                return
            self.contacts.append(f"udp {said[:80]!r}")

    def close(self) -> None:
        """End its threads."""
        for each in (self._tcp, self._udp):
            each.close()


@contextmanager
def canary() -> Iterator[Canary]:
    """Listen on a port while a block runs."""
    listening = Canary()
    try:
        yield listening
    finally:
        listening.close()


def rendered(origin: str, place: Path, **options: Any) -> dict[str, mannerly.Page]:
    """Crawl a site, every page of it rendered; return its pages by their paths."""
    program(*CHROMIUM)
    given = {
        "render": "all",
        "browser_no_sandbox": os.geteuid() == 0,
        "pacing": False,
        "data_dir": str(place / "crawl"),
    }
    pages = {}
    for page in mannerly.crawl(origin + "/", **(given | options)):
        pages[page.url.removeprefix(origin)] = page
    return pages


def page(script: str, title: str = "") -> Answer:
    """Return a page that is nothing but a script."""
    return 200, HTML, f"<!doctype html><title>{title}</title><div id=app></div>{script}"


def data(value: object) -> Answer:
    """Return an answer of an API."""
    return 200, JSON, json.dumps(value)


__all__ = [
    "HTML",
    "JSON",
    "SCRIPT",
    "Canary",
    "Site",
    "canary",
    "data",
    "page",
    "rendered",
    "serving",
]
