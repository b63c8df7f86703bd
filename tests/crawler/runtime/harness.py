"""A crawl as a real process that can be killed, told to stop, and asked what it left behind.

The crawl runs in a session of its own, so that the supervisor and every child can be found and
killed at once, as a power button would. What it did is read from what survives it: the web's own
log and the store. Instants of both sides are the machine's monotonic clock, so they can be
compared.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import msgspec
from tests.harness.commands import environment
from tests.harness.processes import has_taken, kill_session, send, session
from tests.harness.waiting import PATIENCE_S, eventually

from mannerly.crawler.settings import CrawlSettings
from mannerly.crawler.store import open_crawl
from mannerly.demo import paths
from mannerly.politeness import Settings

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from types import TracebackType

    from mannerly.crawler.model import HostRecord, PageRecord
    from mannerly.demo import DemoWeb, Record

_CRAWL = """
import json, sys
from pathlib import Path
import msgspec
from mannerly.crawler.crawl import run_crawl as crawl
from mannerly.crawler.settings import CrawlSettings
order = json.load(sys.stdin)
settings = msgspec.convert(order["settings"], CrawlSettings, strict=False)
try:
    result = crawl(settings, order["seeds"], Path(order["data_dir"]))
except Exception as error:
    answer = {"error": type(error).__name__, "text": str(error)}
else:
    answer = {
        "ending": result.ending.value,
        "pending": result.pending,
        "fetched": result.stats.fetched,
        "robots": result.stats.robots,
        "retries": result.stats.requests.retries,
        "seconds": result.seconds,
    }
print(json.dumps(answer), flush=True)
"""


# A program that runs before a crawl: it is not ended by force, however long its own end takes.
PATIENT = "from mannerly.crawler.runtime import ending; ending.HANGS_S = 60.0\n"


def is_still(web: DemoWeb) -> bool:
    """Return whether no request came within a second."""
    before = len(web.log())
    time.sleep(1.0)
    return len(web.log()) == before


def modest(**options: Any) -> CrawlSettings:
    """Settings for small hosts on loopback: 20 requests/s to each, nothing but links."""
    delay_s = options.pop("delay_s", 0.05)
    pace = Settings(strategy="fixed", delay_s=delay_s, max_rate="unlimited")
    usual: dict[str, Any] = {
        "politeness": pace,
        "concurrency": 8,
        "seeding": "none",
        "timeout_s": 5.0,
    }
    return CrawlSettings(**usual | options)


@dataclass(frozen=True)
class Left:
    """What a crawl said when it ended."""

    answer: dict[str, Any]
    complaints: str  # on standard error

    @property
    def ending(self) -> str:
        return str(self.answer.get("ending") or self.answer)


class Crawler:
    """One run of a crawl in a process of its own; `before` is a program that it runs first."""

    def __init__(
        self, settings: CrawlSettings, seeds: Sequence[str], data_dir: Path, *, before: str = ""
    ) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", before + _CRAWL],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
            env=environment(),
        )
        order = {
            "settings": msgspec.to_builtins(settings),
            "seeds": list(seeds),
            "data_dir": str(data_dir),
        }
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(order))
        self._process.stdin.close()
        self._process.stdin = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.kill()

    def workers(self) -> list[int]:
        """Return the supervisor's children, in the order in which they were started."""
        mine = Path(f"/proc/{self._process.pid}/task/{self._process.pid}/children")
        return [int(pid) for pid in mine.read_text().split()]

    def tell(self, number: signal.Signals) -> float:
        """Send a signal to the supervisor; return when."""
        self._process.send_signal(number)
        return time.monotonic()

    def tell_twice(self, number: signal.Signals) -> float:
        """Send a signal to the supervisor, and once more as soon as the first has arrived."""
        self.tell(number)
        eventually(lambda: has_taken(self._process.pid, number))
        return self.tell(number)

    def tell_group(self, number: signal.Signals) -> None:
        """Send a signal to the group of the supervisor, as a terminal does."""
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, number)

    def everyone(self) -> list[int]:
        """Return all processes of the crawl that run: those of its session."""
        return session(self._process.pid)

    def tell_workers(self, number: signal.Signals) -> None:
        """Send a signal to the children alone, as far as there are any."""
        for pid in self.workers():
            send(pid, number)

    @property
    def is_stopped(self) -> bool:
        """Return whether the process has been stopped with SIGSTOP."""
        fields = Path(f"/proc/{self._process.pid}/stat").read_text().rpartition(")")[2].split()
        return fields[0] == "T"

    @staticmethod
    def is_alive(pid: int) -> bool:
        """Return whether a process runs; one that was not reaped yet does not."""
        try:
            return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
        except OSError:
            return False

    def kill(self) -> float:
        """SIGKILL for all of it at once; return when nothing of it runs any more."""
        kill_session(self._process.pid)
        self._process.communicate()
        eventually(lambda: not self.everyone())
        return time.monotonic()

    @staticmethod
    def kill_worker(pid: int) -> float:
        """SIGKILL for one of the processes alone; returns when it is gone."""
        os.kill(pid, signal.SIGKILL)
        return time.monotonic()

    def left(self, *, within_s: float = PATIENCE_S) -> Left:
        """Wait for the end."""
        text, errors = self._process.communicate(timeout=within_s)
        if not text:
            raise AssertionError(f"the crawl died ({self._process.returncode}): {errors}")
        return Left(json.loads(text), errors)


@dataclass(frozen=True)
class Kept:
    """What the stores of a crawl hold."""

    pages: list[PageRecord]
    hosts: dict[str, HostRecord]
    skipped: dict[str, str]  # and given up
    pending: int

    @property
    def urls(self) -> list[str]:
        return [page.url for page in self.pages]


def kept(data_dir: Path) -> Kept:
    """Read every shard of a crawl that is not running."""
    pages: list[PageRecord] = []
    hosts: dict[str, HostRecord] = {}
    skipped: dict[str, str] = {}
    pending = 0
    store = open_crawl(data_dir)
    for number in range(store.manifest.shards):
        with store.read(number) as reader:
            pages += [page for _, page in reader.pages()]
            hosts |= {record.host: record for record in reader.hosts()}
            skipped |= {each.url: each.reason for each in reader.skipped()}
            skipped |= {each.url: each.reason for each in reader.given_up()}
            counts = reader.counts()
            pending += counts.queued + counts.outgoing
    store.close()
    return Kept(pages, hosts, skipped, pending)


def real_pages(web: DemoWeb) -> Iterator[str]:
    """Every URL that a complete crawl of this web must have fetched."""
    for host, site in web.sites.items():
        for path in paths(site):
            yield f"http://{host}{path}"


def url_of(record: Record) -> str:
    return f"http://{record.host}{record.path}"


def page_requests(log: Iterable[Record]) -> list[Record]:
    """What counts against --max-urls: neither robots.txt nor a sitemap."""
    return [r for r in log if not r.path.endswith(("/robots.txt", ".xml"))]
