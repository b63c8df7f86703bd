"""Render a site of 200 pages: requests a page, and speed against bare Playwright, on one machine.

Each page has 12 things: six styles and scripts that all pages share, four that its section shares,
a list of links that is fresh for ten minutes, and a picture. The picture is blocked unless
`--pictures` is given. The pace is switched off, because Playwright has none. The server counts the
requests.

    bare        Playwright, a fresh context a page, four at once: what most people write
    mannerly    mannerly crawl --render all --no-pacing

CPU time is that of all processes, the browser's included.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from shutil import which
from typing import ClassVar

PAGES = 200
SECTIONS = 4
TABS = 4

_APP = b"""fetch('/api').then(r => r.json()).then(links => {
  document.title = 'Page ' + location.pathname;
  for (const href of links) {
    const a = document.createElement('a'); a.href = href; a.textContent = href;
    document.body.append(a);
  }
})"""


def _page(number: int) -> bytes:
    section = number % SECTIONS
    shared = "".join(f"<link rel=stylesheet href=/all{n}.css>" for n in range(3))
    shared += "".join(f"<script src=/all{n}.js></script>" for n in range(2))
    own = "".join(f"<link rel=stylesheet href=/section{section}-{n}.css>" for n in range(2))
    own += "".join(f"<script src=/section{section}-{n}.js></script>" for n in range(2))
    return (
        f"<!doctype html><html><head>{shared}{own}</head><body><img src=/picture{number}.png>"
        "<script src=/app.js></script></body></html>"
    ).encode()


class _Site(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    log: ClassVar[Counter[str]] = Counter()

    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        self.log[path] += 1
        status, kind, body = 200, "text/css", b"p { color: red }"
        if path == "/" or path.startswith("/p/"):
            kind, body = "text/html", _page(int(path.removeprefix("/p/").strip("/") or 0))
        elif path == "/app.js":
            kind, body = "text/javascript", _APP
        elif path.endswith(".js"):
            kind, body = "text/javascript", b"window.loaded = 1"
        elif path.startswith("/api"):
            links = [f'"/p/{n}"' for n in range(1, PAGES)]
            kind, body = "application/json", f"[{','.join(links)}]".encode()
        elif path.endswith(".png"):
            kind, body = "image/png", b""
        elif not path.endswith(".css"):
            status, kind, body = 404, "text/plain", b""
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", "max-age=600")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Print nothing."""


class _Server(ThreadingHTTPServer):
    request_queue_size = 256
    daemon_threads = True

    def handle_error(self, *_: object) -> None:
        """Print nothing: a client may hang up."""


def _bare(origin: str, chromium: str) -> int:
    """Show every page in a fresh context, with four threads; return how many had their title."""
    from playwright.sync_api import sync_playwright

    def show(numbers: range) -> int:
        good = 0
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(
                executable_path=chromium, args=["--no-sandbox", "--disable-gpu"]
            )
            for number in numbers:
                context = browser.new_context()
                page = context.new_page()
                page.goto(f"{origin}/p/{number}" if number else origin, wait_until="networkidle")
                good += page.title().startswith("Page ")
                context.close()
            browser.close()
        return good

    with ThreadPoolExecutor(TABS) as pool:
        return sum(pool.map(show, [range(first, PAGES, TABS) for first in range(TABS)]))


def _mannerly(origin: str, chromium: str, *, pictures: bool) -> int:
    """Crawl the site; return how many pages had their title."""
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "pages.csv"
        words = [
            sys.executable,
            "-m",
            "mannerly",
            "crawl",
            origin,
            "--render",
            "all",
            "--no-pacing",
        ]
        words += ["--browser", chromium, "--data-dir", f"{folder}/crawl", "-o", str(target)]
        words += ["--render-tabs", str(TABS), "--concurrency", "32"]
        words += ["--browser-no-sandbox"] if os.geteuid() == 0 else []
        words += ["--render-block", "none"] if pictures else []
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        if done.returncode:
            print(done.stderr[-2000:], file=sys.stderr)
        return target.read_text().count(",Page /")


def _cpu_s() -> float:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


def run(options: list[str] | None = None) -> None:
    """Print pages, requests, time and CPU time of both."""
    parser = argparse.ArgumentParser("bench rendering")
    parser.add_argument("--pictures", action="store_true", help="fetch pictures, too")
    parser.add_argument("--only", choices=["bare", "mannerly"])
    given = parser.parse_args(options or [])
    chromium = which("chromium")
    if chromium is None:
        print("there is no Chromium")
        return
    server = _Server(("127.0.0.1", 0), _Site)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    origin = f"http://127.0.0.1:{server.server_address[1]}"
    print("              pages   requests   a page   seconds   pages/s   CPU s   pages/CPU s")
    for name in ("bare", "mannerly"):
        if given.only not in (None, name):
            continue
        _Site.log.clear()
        began, cpu = time.perf_counter(), _cpu_s()
        if name == "bare":
            pages = _bare(origin, chromium)
        else:
            pages = _mannerly(origin, chromium, pictures=given.pictures)
        took, used = time.perf_counter() - began, _cpu_s() - cpu
        requests = _Site.log.total()
        print(
            f"  {name:<10} {pages:7} {requests:10} {requests / PAGES:8.2f} {took:9.1f} "
            f"{pages / took:9.2f} {used:7.1f} {pages / used:13.2f}"
        )
    server.shutdown()


if __name__ == "__main__":
    run(sys.argv[1:])
