"""Archive two real manuals while the crawl is killed again and again, and check every page.

    python -m bench manuals                     ten kills, some two minutes
    python -m bench manuals --kills 0           without kills

The Python and the PostgreSQL manual, as Debian packages bring them (python3-doc, postgresql-doc),
are served by nginx, compressed, and crawled with --keep-bodies and --extract. All processes of the
crawl are killed (SIGKILL) at random instants, and the same command is run again. Then:

    records, items, archive    every URL once in each, none missing
    fetched again              by the server's log: of each run, URLs that a later run asked for,
                               which must be at most the requests that can be in flight
    warcio check               of every segment and of the exported `.warc.gz`
    replay                     every record: status and body from pywb are those of the server

Exit code 1 if one of these does not hold.
"""

from __future__ import annotations

import json
import os
import pwd
import random
import subprocess
import sys
import time
from argparse import ArgumentParser
from collections import Counter
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from torture.command import Command, ask

from ._figures import write
from ._replay import asked, is_pywb_here, replaying
from .scale import temporary
from .web.server import is_nginx_here, running

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

PORT = 18090
PACKAGES = {"python3-doc": "python3*/html", "postgresql-doc": "postgresql-doc-*/html"}
WORKERS = 16
RATE = 100  # requests per second to each host
PATIENCE_S = 600.0
EXTRACT = """
def extract(page):
    return {"url": page.url, "heading": page.select_one("h1").text if page.select_one("h1") else ""}
"""
NGINX = """
{user}
daemon off;
pid {directory}/pid;
error_log stderr crit;
worker_processes 1;
events {{ worker_connections 1024; }}
http {{
  types {{ text/html html; text/css css; text/plain txt; application/javascript js;
          image/png png; image/svg+xml svg; text/x-python py; application/zip zip; }}
  default_type application/octet-stream;
  gzip on;
  gzip_types text/plain text/css;
  log_format urls '$msec $status http://$http_host$request_uri';
  access_log {directory}/access.log urls;
  client_body_temp_path {directory}/body;
  proxy_temp_path {directory}/proxy;
  fastcgi_temp_path {directory}/fastcgi;
  uwsgi_temp_path {directory}/uwsgi;
  scgi_temp_path {directory}/scgi;
  {servers}
}}
"""
SERVER = "server {{ listen {address}:{port}; root {root}; index index.html; autoindex on; }}"


class Asked(NamedTuple):
    """A line of the server's log."""

    wall: float
    status: int
    url: str


class Manuals:
    """The manuals, while they are served."""

    def __init__(self, roots: list[Path], log: Path) -> None:
        self.hosts = [f"127.3.0.{number + 1}:{PORT}" for number in range(len(roots))]
        self._log = log

    @property
    def seeds(self) -> list[str]:
        """The first page of each."""
        return [f"http://{host}/" for host in self.hosts]

    def log(self) -> list[Asked]:
        """Return every request so far, but for robots.txt."""
        found = []
        for line in self._log.read_text().splitlines():
            wall, status, url = line.split(" ", 2)
            if not url.endswith("/robots.txt"):
                found.append(Asked(float(wall), int(status), url))
        return found


def roots() -> list[Path]:
    """Return the directories of the manuals, in the order of their packages.

    Raises:
        SystemExit: one of them, nginx or pywb is not installed.
    """
    found = []
    for package, pattern in PACKAGES.items():
        places = [each for each in Path("/usr/share/doc").glob(pattern) if each.is_dir()]
        places = [each.resolve() for each in places if (each / "index.html").exists()]
        if not places:
            sys.exit(f"{package} is not installed: apt install {package}")
        found.append(max(places))
    if not is_nginx_here():
        sys.exit("nginx is not installed: apt install nginx-light")
    if not is_pywb_here():
        sys.exit("pywb is not installed: make .venv/replay/.installed")
    return found


@contextmanager
def served(directory: Path) -> Iterator[Manuals]:
    """Serve the manuals, each on an address of its own, while a block runs."""
    places = roots()
    servers = [
        SERVER.format(address=f"127.3.0.{number + 1}", port=PORT, root=root)
        for number, root in enumerate(places)
    ]
    user = f"user {pwd.getpwuid(0).pw_name};" if os.geteuid() == 0 else ""
    config = directory / "nginx.conf"
    config.write_text(
        NGINX.format(user=user, directory=directory, servers="\n  ".join(servers)), "utf-8"
    )
    command = ["nginx", "-p", str(directory), "-c", str(config), "-e", "stderr"]
    with running(command, ("127.3.0.1", PORT), os.sched_getaffinity(0)):
        yield Manuals(places, directory / "access.log")


def crawled(manuals: Manuals, directory: Path, kills: int, seed: int) -> list[float]:
    """Crawl, kill it as many times, go on to its end; return the instants of the kills."""
    rng = random.Random(seed)
    (directory / "items.py").write_text(EXTRACT)
    words = ["crawl", *manuals.seeds, "--data-dir", str(directory / "crawl"), "--keep-bodies"]
    words += ["--extract", f"{directory / 'items.py'}:extract", "--allow-net", "127.0.0.0/8"]
    words += ["--strategy", "fixed", "--max-rate", str(RATE), "--concurrency", str(WORKERS)]
    words += ["--per-host", str(WORKERS // 2), "--processes", "2", "--quiet"]
    words += ["--seeding-strategy", "none"]  # they have no sitemap
    output, killed = directory / "output.txt", []
    for _ in range(kills):
        command = Command(words, output)
        wanted, deadline = len(manuals.log()) + rng.randint(20, 160), time.monotonic() + 60
        while len(manuals.log()) < wanted and time.monotonic() < deadline and command.code is None:
            time.sleep(0.01)
        if command.code is not None:
            sys.exit(f"the crawl ended before kill {len(killed) + 1}:\n{output.read_text()}")
        command.kill()
        killed.append(time.time())
    command = Command(words, output)
    if command.wait(PATIENCE_S) != 0:
        command.kill()
        sys.exit(f"the crawl ended with {command.code}:\n{output.read_text()}")
    return killed


def refetched(log: list[Asked], killed: list[float]) -> list[int]:
    """Return, for each kill, how many URLs that were asked for before it were asked for again."""
    edges = [0.0, *killed, float("inf")]
    runs = [
        {each.url for each in log if start <= each.wall < end} for start, end in pairwise(edges)
    ]
    return [len(run & set().union(*runs[n + 1 :])) for n, run in enumerate(runs[:-1])]


def exported(directory: Path, name: str, kind: str = "") -> Path:
    """Export the crawl to a file; return its path."""
    path = directory / name
    code, text = ask("export", str(directory / "crawl"), "-o", f"{kind}{path}")
    if code != 0:
        sys.exit(f"export -o {kind}{name} ended with {code}:\n{text}")
    return path


def rows(path: Path) -> list[dict[str, Any]]:
    with path.open(encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def archived(path: Path) -> Counter[str]:
    """Return how often each URL has an answer in an archive, but for robots.txt."""
    from warcio.archiveiterator import ArchiveIterator

    found: Counter[str] = Counter()
    with path.open("rb") as file:
        for record in ArchiveIterator(file):
            url = record.rec_headers.get_header("WARC-Target-URI")
            if record.rec_type in ("response", "revisit") and not url.endswith("/robots.txt"):
                found[url] += 1
    return found


def is_clean(archive: Path) -> bool:
    """Return whether `warcio check` finds nothing wrong."""
    command = [Path(sys.executable).with_name("warcio"), "check", archive]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def replay_faults(urls: Sequence[str], wacz: Path, directory: Path) -> list[str]:
    """Return the URLs whose status or body from pywb is not that of the server."""
    with replaying(wacz, directory) as prefix:
        return [url for url in urls if asked(prefix + url) != asked(url)]


class Row(NamedTuple):
    """One figure: its name, the text to print, and how much is wrong."""

    name: str
    text: str
    faults: int


def examined(manuals: Manuals, directory: Path, killed: list[float]) -> Iterator[Row]:
    """Yield what a crawl has left behind, beside the server's log."""
    log = manuals.log()
    wanted = {each.url for each in log}
    again = refetched(log, killed)
    pages = rows(exported(directory, "pages.jsonl"))
    records = Counter(row["url"] for row in pages)
    lacking = _not_once(records, wanted)
    yield Row("records", f"{len(pages):,} pages, {lacking} not exactly once", lacking)
    items = Counter(row["url"] for row in rows(exported(directory, "items.jsonl", "items:")))
    lacking = _not_once(items, {row["url"] for row in pages if row["status"] == 200})
    yield Row("items", f"{items.total():,} items, {lacking} not exactly once", lacking)
    warc = exported(directory, "site.warc.gz")
    archive, size = archived(warc), warc.stat().st_size / 1e6
    lacking = _not_once(archive, wanted)
    text = f"{archive.total():,} answers in {size:.1f} MB, {lacking} not exactly once"
    yield Row("archive", text, lacking)
    most = max([*again, 0])
    text = (
        f"{sum(again)} of {len(log):,} requests, at most {most} a kill; {WORKERS} can be in flight"
    )
    yield Row("fetched again", text, int(most > WORKERS))
    clean = [is_clean(file) for file in (*(directory / "crawl").glob("*.warc.gz"), warc)]
    text = f"{clean.count(True)} of {len(clean)} files clean"
    yield Row("warcio check", text, clean.count(False))
    wrong = replay_faults(sorted(records), exported(directory, "site.wacz"), directory)
    text = f"{len(records) - len(wrong):,} of {len(records):,} pages byte for byte"
    yield Row("replay", text + "".join(f"\n  {url}" for url in wrong[:5]), len(wrong))


def run(options: Sequence[str] = ()) -> dict[str, str]:
    """Crawl, check, print, and leave the figures in `.cache/bench/manuals.json`."""
    parser = ArgumentParser(prog="python -m bench manuals")
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args(list(options))
    found = []
    with temporary() as directory, served(directory) as manuals:
        began = time.monotonic()
        killed = crawled(manuals, directory, given.kills, given.seed)
        print(f"{'crawl':15}{time.monotonic() - began:.0f} s, {given.kills} kills", flush=True)
        for row in examined(manuals, directory, killed):
            print(f"{row.name:15}{row.text}", flush=True)
            found.append(row)
    figures = {row.name: row.text for row in found}
    write("manuals", figures)
    if any(row.faults for row in found):
        sys.exit("not all of this holds: " + ", ".join(row.name for row in found if row.faults))
    return figures


def _not_once(found: Counter[str], wanted: set[str]) -> int:
    return sum(found[url] != 1 for url in wanted | found.keys())
