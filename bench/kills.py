"""Kill crawlers with `kill -9`, run the same command again, and count what is left of the crawl.

    python -m bench kills                    five kills each, some minutes
    python -m bench kills --only scrapy --kills 1 --pages 300

    scrapy     its own queue on disk (JOBDIR), items by its own feed (-o)
    crawlee    its own storage on disk, not purged at the start, items by its own dataset
    durable    the same Scrapy spider with ADDONS = {"mannerly.adapters.scrapy.Durable": 0}
    mannerly   a spider of ours (`mannerly run`)

The site is one host on loopback: every page leads to ten others, and gives each of them a value
that belongs to its item. A crawler is killed with its children when the site has had another sixth
of its pages. After the last kill the command is run until it ends by itself; `exit` is that of the
last run. A page is asked again if the site has had more than one request for it.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from argparse import ArgumentParser
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, NamedTuple

from ._figures import write
from .peers import HERE, UNPACED, environment_of
from .scale import temporary

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

LINKS = 10  # of each page
LONGEST_S = 300.0  # for one run
PROGRAMS = HERE / "peer_programs"

SETTINGS = """
SPIDER_MODULES = ["kills_scrapy"]
TELNETCONSOLE_ENABLED = False
REMOTE_CONTROL_ENABLED = False
LOG_LEVEL = "ERROR"
"""
DURABLE = """
ADDONS = {"mannerly.adapters.scrapy.Durable": 0}
MANNERLY_DIR = "crawl"
MANNERLY_SETTINGS = {
    "strategy": "fixed", "delay_s": 0.0001, "min_delay_s": 0.0001, "max_rate": "unlimited",
    "max_concurrency": 64,
}
"""
SCRAPY = (sys.executable, "-m", "scrapy", "crawl", "numbers")


class Way(NamedTuple):
    """One crawler: its files, its command, and how its items are read at the end."""

    prepare: Callable[[Path, str], None]  # with a directory and the URL of the first page
    command: Callable[[Path], list[str]]
    items: Callable[[Path], list[dict[str, int]]]


@dataclass(frozen=True, slots=True)
class Left:
    """The state of a crawl after its kills."""

    pages: int  # that were fetched
    items: int  # different ones
    doubled: int  # items beyond the first of each page
    wrong: int  # items without the value of the page that led to them
    again: int  # requests beyond the first of each page
    exit: int


class Site:
    """The pages, and the count of requests for each. `reached` is set after `limit` requests."""

    def __init__(self, pages: int) -> None:
        self.asked: Counter[int] = Counter()
        self.reached = threading.Event()
        self._limit = sys.maxsize
        self._lock = threading.Lock()
        site = self

        class Pages(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                number = self.path.strip("/")
                is_page = number.isdigit() and int(number) < pages
                body = page(int(number), pages) if is_page else b""
                if is_page:
                    site.note(int(number))
                self.send_response(200 if is_page else 404)
                self.send_header("Content-Type", "text/html")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                pass

        class Server(ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, *_: object) -> None:
                """Nothing: clients are killed."""

        self.server = Server(("127.0.0.1", 0), Pages)
        self.url = f"http://127.0.0.1:{self.server.server_port}/0"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def note(self, number: int) -> None:
        with self._lock:
            self.asked[number] += 1
            if len(self.asked) >= self._limit:
                self.reached.set()

    def reach(self, pages: int) -> None:
        """Set `reached` when so many different pages were asked for."""
        with self._lock:
            self._limit = pages
            self.reached.clear()


def page(number: int, pages: int) -> bytes:
    """Return a page: links to its children, with a value for each."""
    first = number * LINKS + 1
    links = "".join(
        f'<li><a href="/{each}" data-value="{each * 3}">page {each}</a></li>'
        for each in range(first, min(first + LINKS, pages))
    )
    text = "<p>Some words of a page.</p>" * 40
    return f"<html><title>Page {number}</title><ul>{links}</ul>{text}</html>".encode()


def json_lines(file: Path) -> list[dict[str, int]]:
    """Return the items of a file; a line that was cut by a kill is none."""
    found = []
    for line in file.read_text().splitlines() if file.exists() else []:
        try:
            found.append(json.loads(line))
        except ValueError:
            continue
    return found


def prepare_scrapy(settings: str) -> Callable[[Path, str], None]:
    def prepare(place: Path, url: str) -> None:
        shutil.copy(PROGRAMS / "kills_scrapy.py", place)
        (place / "settings.py").write_text(f"{SETTINGS}{settings}\nFIRST = {url!r}\n")
        (place / "scrapy.cfg").write_text("[settings]\ndefault = settings\n")

    return prepare


def prepare_crawlee(place: Path, url: str) -> None:
    (place / "first").write_text(url)


def crawlee_items(place: Path) -> list[dict[str, int]]:
    files = (place / "storage" / "datasets").glob("*/0*.json")
    return [json.loads(text) for file in files if (text := file.read_text())]


def prepare_ours(place: Path, url: str) -> None:
    text = (PROGRAMS / "kills_mannerly.py").read_text()
    (place / "numbers.py").write_text(text.replace("http://127.0.0.1/0", url))


def ours_command(_: Path) -> list[str]:
    options = [each for each in UNPACED if each != "--json"]
    command = [sys.executable, "-m", "mannerly", "run", "numbers.py", *options]
    return [*command, "--data-dir", "crawl", "-o", "items.jsonl"]


def exported_items(place: Path) -> list[dict[str, int]]:
    command = [sys.executable, "-m", "mannerly", "export", "crawl", "-o", "items:all.jsonl"]
    subprocess.run(command, cwd=place, check=True, capture_output=True)
    return json_lines(place / "all.jsonl")


WAYS = {
    "scrapy": Way(
        prepare_scrapy('JOBDIR = "job"'),
        lambda _: [*SCRAPY, "-o", "items.jsonl"],
        lambda place: json_lines(place / "items.jsonl"),
    ),
    "crawlee": Way(
        prepare_crawlee,
        lambda _: [
            str(environment_of("crawlee")),
            str(PROGRAMS / "kills_crawlee.py"),
        ],
        crawlee_items,
    ),
    "durable": Way(prepare_scrapy(DURABLE), lambda _: [*SCRAPY], exported_items),
    "mannerly": Way(prepare_ours, ours_command, exported_items),
}


def killed(way: Way, kills: int, pages: int, place: Path) -> Left:
    """Run a crawler with kills; return what is left."""
    place.mkdir()
    site = Site(pages)
    way.prepare(place, site.url)
    command = way.command(place)
    for number in range(kills):
        site.reach((number + 1) * pages // (kills + 1))
        process = _start(command, place)
        while process.poll() is None and not site.reached.wait(0.005):
            pass
        has_ended = process.poll() is not None
        _end(process)
        if has_ended:  # it takes itself for finished: another kill would find nothing to kill
            break
    process = _start(command, place)
    try:
        code = process.wait(LONGEST_S)
    except subprocess.TimeoutExpired:
        code = -1
    _end(process)
    site.server.shutdown()
    items = way.items(place)
    numbers = Counter(item["page"] for item in items)
    wrong = sum(item["value"] != item["page"] * 3 for item in items)
    again = site.asked.total() - len(site.asked)
    return Left(len(site.asked), len(numbers), numbers.total() - len(numbers), wrong, again, code)


def _start(command: Sequence[str], place: Path) -> subprocess.Popen[bytes]:
    with (place / "log").open("ab") as log:
        return subprocess.Popen(
            command, cwd=place, stdout=log, stderr=log, start_new_session=True, env=dict(os.environ)
        )


def _end(process: subprocess.Popen[bytes]) -> None:
    """Kill a process and all that it has started."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def run(options: Sequence[str] = ()) -> dict[str, dict[str, float]]:
    """Kill each crawler, and print a row for each."""
    parser = ArgumentParser(prog="python -m bench kills")
    parser.add_argument("--kills", type=int, default=5)
    parser.add_argument("--pages", type=int, default=1500)
    parser.add_argument("--only", choices=WAYS, action="append")
    given = parser.parse_args(list(options))
    print(f"{given.pages:,} pages, {given.kills} × kill -9, the same command again each time\n")
    print("|            | pages | items | doubled | wrong | asked again | exit |")
    print("|------------|------:|------:|--------:|------:|------------:|-----:|")
    figures = {}
    with temporary() as folder:
        for name in given.only or WAYS:
            left = killed(WAYS[name], given.kills, given.pages, folder / name)
            figures[name] = {
                "pages": left.pages,
                "items": left.items,
                "doubled": left.doubled,
                "wrong": left.wrong,
                "again": left.again,
                "exit": left.exit,
            }
            print(
                f"| {name:10} | {left.pages:5,} | {left.items:5,} | {left.doubled:7,} | "
                f"{left.wrong:5,} | {left.again:11,} | {left.exit:4} |",
                flush=True,
            )
    write("kills", figures)
    return figures
