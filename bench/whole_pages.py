"""Crawl a folder of HTML with `--requisites`, and look whether its archive shows whole pages.

    python -m bench whole_pages --folder /usr/share/doc/postgresql-doc-15/html --pages 20

The folder is served on loopback and crawled twice, with and without `--requisites`. The server is
stopped then, so that nothing can come from it, and pywb replays each archive in Chromium. Of each
of some pages, chosen at random, this prints the files that were missing, and whether
the picture is that of the original, pixel for pixel. `--pictures DIR` keeps the pictures.

It needs `make .venv/replay/.installed` and Chromium.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
import threading
import time
import zipfile
from contextlib import contextmanager, suppress
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from shutil import which
from typing import TYPE_CHECKING, NamedTuple

from ._replay import is_pywb_here, replaying

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from playwright.sync_api import Browser, Request, Response, ViewportSize

BRISK = ("--strategy", "fixed", "--max-rate", "unlimited", "--delay", "0.002")
PICTURE: ViewportSize = {"width": 1200, "height": 900}
HEAD = 90  # pixels of pywb above the page
FRAMED: ViewportSize = {"width": 1200, "height": 900 + HEAD}


class Shown(NamedTuple):
    """What a browser showed of one page."""

    picture: bytes
    files: int  # that were answered
    missing: list[str]


class _Files(SimpleHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    asked: list[str] = []  # noqa: RUF012 - of all servers of this program

    def handle(self) -> None:
        with suppress(OSError):  # the client has gone
            super().handle()

    def log_request(self, *_: object) -> None:
        self.asked.append(self.path)

    def log_message(self, *_: object) -> None:
        """Print nothing."""


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """Serve a folder while a block runs."""
    _Files.asked.clear()
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Files, directory=str(folder)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/"
    finally:
        server.shutdown()
        server.server_close()


def crawl(url: str, place: Path, *options: str) -> Path:
    """Crawl a site; return its archive."""
    target = place.with_suffix(".wacz")
    words = [sys.executable, "-m", "mannerly", "crawl", url, "--data-dir", str(place)]
    words += ["--keep-bodies", "-o", str(target), "--memory", "none", *BRISK, *options]
    began = time.monotonic()
    ended = subprocess.run(words, capture_output=True, text=True, check=False)
    if ended.returncode:
        raise SystemExit(ended.stdout + ended.stderr)
    took_s, asked = time.monotonic() - began, len(_Files.asked)
    repeated = asked - len(set(_Files.asked))
    print(
        f"{' '.join(options) or 'without --requisites':24} {asked:,} requests in {took_s:.0f} s, "
        f"{repeated} of them for a URL that was asked before, "
        f"{target.stat().st_size / 1e6:.1f} MB"
    )
    _Files.asked.clear()
    return target


def pages_of(archive: Path) -> list[str]:
    """Return the URLs of the pages of an archive."""
    with zipfile.ZipFile(archive) as opened:
        _, *lines = opened.read("pages/pages.jsonl").splitlines()
    return [json.loads(line)["url"] for line in lines]


def look(browser: Browser, urls: Sequence[str], prefix: str = "") -> list[Shown]:
    """Open pages, and note which files were missing; with a prefix in the frame of pywb."""
    shown = []
    for url in urls:
        page = browser.new_page(viewport=FRAMED if prefix else PICTURE)
        answered: list[str] = []
        missing: list[str] = []

        def note(
            answer: Response, answered: list[str] = answered, missing: list[str] = missing
        ) -> None:
            (missing if answer.status >= 400 else answered).append(answer.url)

        def fail(request: Request, missing: list[str] = missing) -> None:
            missing.append(f"{request.url} ({request.failure})")

        page.on("response", note)
        page.on("requestfailed", fail)
        page.goto(prefix + url, wait_until="load")
        page.wait_for_load_state("networkidle")
        frame = page.locator("#replay_iframe").bounding_box() if prefix else None
        top = 1 if frame is None else int(frame["y"]) + 1  # the frame has a line above it
        picture = page.screenshot(clip={"x": 0, "y": top, "width": 1200, "height": 898})
        own = [each for each in missing if "/favicon.ico" not in each]
        shown.append(Shown(picture, len(answered), own))
        page.close()
    return shown


def run(options: Sequence[str] = ()) -> None:
    """Crawl, replay, compare."""
    parser = argparse.ArgumentParser(prog="python -m bench whole_pages", description=__doc__)
    parser.add_argument("--folder", type=Path, default=None)
    parser.add_argument("--pages", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--pictures", type=Path)
    chosen = parser.parse_args(list(options))
    browser_path = which("chromium") or which("chromium-browser")
    if chosen.folder is None or browser_path is None or not is_pywb_here():
        print("left out: give --folder; it needs Chromium and `make .venv/replay/.installed`")
        return
    from playwright.sync_api import sync_playwright

    with tempfile.TemporaryDirectory() as text, sync_playwright() as playwright:
        place = Path(text)
        browser = playwright.chromium.launch(
            executable_path=browser_path, args=["--no-sandbox", "--disable-gpu"]
        )
        with served(chosen.folder) as url:
            archives = {
                "with": crawl(url, place / "with", "--requisites"),
                "without": crawl(url, place / "without"),
            }
            known = sorted(pages_of(archives["with"]))
            urls = random.Random(chosen.seed).sample(known, min(chosen.pages, len(known)))
            seen = {"original": look(browser, urls)}
        for name, archive in archives.items():
            (place / f"replay-{name}").mkdir()
            with replaying(archive, place / f"replay-{name}") as prefix:
                seen[name] = look(browser, urls, prefix.replace("/2020id_/", "/2020/"))
        browser.close()
    _print(urls, seen, chosen.pictures)


def _print(urls: Sequence[str], seen: dict[str, list[Shown]], pictures: Path | None) -> None:
    for name in ("with", "without"):
        print(f"\nreplayed {name} --requisites: files missing, picture as the original")
        for url, original, replay in zip(urls, seen["original"], seen[name], strict=True):
            lost = replay.missing
            is_same = "same" if replay.picture == original.picture else "DIFFERENT"
            print(f"  {len(lost):3} of {original.files:3}  {is_same:9}  {url}")
            for each in lost[:3]:
                print(f"        {each}")
        whole = sum(not each.missing for each in seen[name])
        same = sum(
            each.picture == original.picture
            for each, original in zip(seen[name], seen["original"], strict=True)
        )
        print(f"  whole: {whole} of {len(urls)} pages; the same picture: {same}")
    if pictures is not None:
        pictures.mkdir(parents=True, exist_ok=True)
        for name, pages in seen.items():
            for number, page in enumerate(pages):
                (pictures / f"{number:02}-{name}.png").write_bytes(page.picture)
