"""Scrapy projects with the durable queue: real `scrapy crawl` processes that are killed."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.harness.commands import SOURCE_PATH
from tests.harness.sites import HTML, serving
from tests.harness.waiting import PATIENCE_S

from mannerly.adapters.spider_queue import extracted
from mannerly.exports import ExportError, export

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.harness.sites import Request

pytestmark = pytest.mark.processes

LISTS, DETAILS = 4, 10  # lists, and details on each
FAST = {"strategy": "fixed", "delay_s": 0.002, "min_delay_s": 0.002, "max_rate": "unlimited"}
SETTINGS = f"""
SPIDER_MODULES = ["durable_spiders"]
ADDONS = {{"mannerly.adapters.scrapy.Durable": 0}}
MANNERLY_SETTINGS = {FAST!r}
TELNETCONSOLE_ENABLED = False
REMOTE_CONTROL_ENABLED = False
"""


class Shop:
    """The site. From request number `held_from` on it answers nothing, until that is moved."""

    def __init__(self) -> None:
        self.origin = ""
        self.log: list[str] = []
        self.held_from = sys.maxsize
        self._moved = threading.Condition()

    def hold_after(self, count: int) -> None:
        """Answer `count` more requests."""
        with self._moved:
            self.held_from = len(self.log) + count

    def let_go(self) -> None:
        """Answer every request."""
        with self._moved:
            self.held_from = sys.maxsize
            self._moved.notify_all()

    def respond(self, request: Request) -> None:
        form = request.read().decode()
        with self._moved:
            self.log.append(f"{request.command} {request.path}")
            number = len(self.log)
            self._moved.wait_for(lambda: number <= self.held_from, PATIENCE_S)
        _, kind, *rest = request.path.split("/")
        number = int(rest[0]) if rest else 0
        if kind == "list":
            request.answer(200, _list(number))
        elif kind == "detail" and number % 10 == 7:
            request.answer(302, headers={"Location": f"/moved/{number}"})
        elif kind == "detail" and number % 10 == 8:
            request.answer(404, "missing")
        elif kind == "login" and request.command == "POST":
            is_right = "password=secret" in form and "token=7" in form
            request.answer(
                303,
                headers={"Location": "/members", "Set-Cookie": f"member={is_right}; Path=/"},
            )
        elif kind == "login":
            request.answer(
                200,
                "<form method=post action=/login><input name=token value=7>"
                "<input name=password></form>",
            )
        elif kind == "members":
            request.answer(200, "".join(f"<a href=/member/{n}>page</a>" for n in range(20)))
        elif kind == "member":
            is_known = "member=True" in request.headers.get("Cookie", "")
            said = f"welcome to {request.path}" if is_known else "who are you?"
            request.answer(200, said, HTML)
        else:
            # A body of its own: one that many URLs share may be a challenge, and slows down.
            request.answer(200, f"<title>{request.path}</title>")


def _list(number: int) -> str:
    first = number * DETAILS
    links = [
        f'<a class="detail" data-price="{each * 3}" href="/detail/{each}">a detail</a>'
        for each in range(first, first + DETAILS)
    ]
    if number + 1 < LISTS:
        links.append(f'<a class="next" href="/list/{number + 1}">next</a>')
    return "<html><body>" + "".join(links) + '<a href="/list/0">first</a></body></html>'


@pytest.fixture
def shop() -> Iterator[Shop]:
    site = Shop()
    with serving(site.respond) as site.origin:
        yield site
        site.let_go()


class Project:
    """A Scrapy project in a directory of its own."""

    def __init__(self, folder: Path, shop: Shop) -> None:
        self.folder = folder
        self.shop = shop
        (folder / "scrapy.cfg").write_text("[settings]\ndefault = shop_settings\n")
        self.set(SETTINGS)

    def set(self, text: str) -> None:
        """Write the settings."""
        (self.folder / "shop_settings.py").write_text(text)

    def _command(self, spider: str) -> dict[str, Any]:
        path = os.pathsep.join((SOURCE_PATH, str(self.folder), str(Path(__file__).parent)))
        return {
            "args": [
                *(sys.executable, "-m", "scrapy", "crawl", spider),
                *("-a", f"origin={self.shop.origin}", "--loglevel", "INFO"),
            ],
            "cwd": self.folder,
            "env": {**os.environ, "PYTHONPATH": path},
            "text": True,
        }

    def run(self, spider: str, code: int = 0) -> str:
        """Run a spider to its end; return its log."""
        done = subprocess.run(
            **self._command(spider), stderr=subprocess.PIPE, timeout=PATIENCE_S, check=False
        )
        assert done.returncode == code, done.stderr
        return done.stderr

    @contextmanager
    def running(self, spider: str) -> Iterator[subprocess.Popen[str]]:
        """Run a spider while a block runs; kill it at its end."""
        process = subprocess.Popen(**self._command(spider), stderr=subprocess.DEVNULL)
        try:
            yield process
        finally:
            process.kill()
            process.wait()

    def kill_after(self, spider: str, count: int) -> None:
        """Run a spider for `count` answers, and kill it while the next ones are in flight."""
        self.shop.hold_after(count)
        with self.running(spider) as process:
            deadline = time.monotonic() + PATIENCE_S
            while len(self.shop.log) <= self.shop.held_from:
                assert process.poll() is None, "the spider ended before it was killed"
                assert time.monotonic() < deadline
                time.sleep(0.01)
        self.shop.let_go()

    def items(self, spider: str) -> list[str]:
        """Return the items as `export` writes them, sorted."""
        file = self.folder / "items.jsonl"
        export(self.folder / f"crawl-{spider}", f"items:{file}")
        return sorted(file.read_text().splitlines())


@pytest.fixture
def project(tmp_path: Path, shop: Shop) -> Project:
    return Project(tmp_path, shop)


def lines(*items: dict[str, object]) -> list[str]:
    return sorted(json.dumps(item, separators=(",", ":")) for item in items)


def of_all_details() -> list[dict[str, object]]:
    every = range(LISTS * DETAILS)
    found = [{"page": str(n), "price": str(n * 3)} for n in every if n % 10 != 8]
    return found + [{"missing": str(n)} for n in every if n % 10 == 8]


@pytest.mark.parametrize(
    ("spider", "wanted"),
    [
        ("lists", of_all_details()),
        ("rules", [{"page": str(n)} for n in range(40) if n % 10 != 8]),
        ("piped", [{"page": str(n), "seen": True} for n in range(0, 40, 2) if n % 10 != 8]),
    ],
)
def test_every_item_is_there_once_after_five_kills(
    project: Project, spider: str, wanted: list[dict[str, object]]
) -> None:
    """Killed within the first list, details and redirects: nothing is lost, nothing is doubled."""
    for count in (0, 3, 5, 7, 9):
        project.kill_after(spider, count)

    project.run(spider)

    assert project.items(spider) == lines(*wanted)
    paths = {line.split()[1] for line in project.shop.log}
    assert paths >= {f"/list/{n}" for n in range(LISTS)} | {f"/detail/{n}" for n in range(40)}


def test_spider_that_has_ended_asks_for_nothing(project: Project) -> None:
    """The same command again finds that all is done, and says how to begin anew."""
    project.run("lists")
    asked = len(project.shop.log)

    log = project.run("lists")

    assert len(project.shop.log) == asked
    assert project.items("lists") == lines(*of_all_details())
    assert "remove the directory" in log


def test_cookies_survive_five_kills(project: Project) -> None:
    """A spider that has logged in goes on as a member, and its form is sent once."""
    for count in (0, 5, 3, 3, 3):  # none of them while the form is in flight
        project.kill_after("members", count)

    project.run("members")

    wanted = [{"page": str(n), "text": f"welcome to /member/{n}"} for n in range(20)]
    assert project.items("members") == lines(*wanted)
    assert project.shop.log.count("POST /login") == 1


def test_form_in_flight_is_not_sent_again(project: Project) -> None:
    """A POST whose answer a kill has cut off is said and counted, now and only once."""
    project.kill_after("members", 1)
    assert project.shop.log == ["GET /login", "POST /login"]

    first, second = project.run("members"), project.run("members")

    assert project.shop.log == ["GET /login", "POST /login"]
    assert f"not sent again: {project.shop.origin}/login" in first
    assert "'mannerly/unanswered': 1" in first
    assert "mannerly/unanswered" not in second


def test_requests_that_cannot_be_stored_are_counted_and_said(project: Project) -> None:
    """They run from memory; after a kill those of start() come again, and others are named."""
    log = project.run("memory")
    items = [{"from": "start"}, {"page": 1}, {"page": 2}, {"page": 2}, {"page": 3}]
    assert project.items("memory") == lines(*items)
    # Two pages ask for /detail/3; the second request is dropped before or after it was counted.
    assert re.search(r"'scheduler/unserializable': [23]\b", log)


def test_requests_in_memory_are_named_after_a_kill(project: Project) -> None:
    """Of what was in memory, only the requests of start() can come again."""
    shop = project.shop
    shop.hold_after(0)
    with project.running("memory") as process:
        deadline = time.monotonic() + PATIENCE_S
        while len(shop.log) < 3:
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.01)
    shop.let_go()

    log = project.run("memory")

    items = [{"from": "start"}, {"page": 1}, {"page": 2}, {"page": 2}, {"page": 3}]
    assert project.items("memory") == lines(*items)
    assert f"those of start() come again): {shop.origin}/detail/1" in log
    assert "'mannerly/lost': 1" in log


def test_items_of_a_callback_that_was_cut_off_are_not_kept(project: Project) -> None:
    """What a callback yielded before a kill appears with its end, once."""
    project.kill_after("halfway", 1)
    assert list(extracted(project.folder / "crawl-halfway")) == []

    project.run("halfway")

    assert project.items("halfway") == lines({"before": 1}, {"after": 1}, {"page": 1})


def test_one_process_at_a_time(project: Project) -> None:
    """A second process is refused with the reason, and the first is not disturbed."""
    project.shop.hold_after(1)
    with project.running("lists"):
        deadline = time.monotonic() + PATIENCE_S
        while len(project.shop.log) < 2:
            assert time.monotonic() < deadline
            time.sleep(0.01)

        log = project.run("lists", code=1)

    assert "crawl-lists is in use by another process" in log


def test_directory_of_another_spider_is_refused(project: Project) -> None:
    """MANNERLY_DIR names the directory; a queue is not mixed with another one."""
    project.set(SETTINGS + 'MANNERLY_DIR = "kept"\n')
    project.run("lists")
    assert (project.folder / "kept" / "spider.db").exists()

    log = project.run("rules", code=1)

    assert "has the queue of spider 'lists', not of 'rules'" in log


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ('SCHEDULER = "scrapy.core.scheduler.Scheduler"', "Durable is a scheduler"),
        ('DUPEFILTER_CLASS = "scrapy.dupefilters.BaseDupeFilter"', "REQUEST_FINGERPRINTER_CLASS"),
    ],
)
def test_settings_that_would_turn_it_off_are_refused(
    project: Project, line: str, words: str
) -> None:
    """A project with a scheduler of its own is told, and nothing is sent."""
    project.set(SETTINGS + line + "\n")

    assert words in project.run("lists", code=1)
    assert project.shop.log == []


def test_scrapy_that_does_not_tell_the_end_is_refused(project: Project) -> None:
    """An engine that handles answers elsewhere ends with a clear error and no request."""
    project.set(
        SETTINGS
        + "from scrapy.core.engine import ExecutionEngine\n"
        + "del ExecutionEngine._handle_downloader_output\n"
    )

    log = project.run("lists", code=1)

    assert "Durable cannot tell when a request was handled" in log
    assert project.shop.log == []


def test_only_items_can_be_exported(project: Project) -> None:
    """A spider has no records of pages: it is said how to write its items."""
    project.run("halfway")

    with pytest.raises(ExportError, match="items:FILE"):
        export(project.folder / "crawl-halfway", str(project.folder / "pages.csv"))
