"""A change touches few files: each is made in a copy of the source, and tried there.

The numbers are those of docs/explanation/changing.md. If a trial fails because a further file knows
kinds, states or fetchers, move that knowledge into the table, or the number grows.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest
from tests.harness.sites import serving

pytestmark = pytest.mark.processes

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "explanation" / "changing.md"
CORE = "src/mannerly/politeness"
CRAWLER = "src/mannerly/crawler"


class Edit(NamedTuple):
    """Add text to a file, behind a line of it; without a line: to the end of a new file."""

    file: str
    text: str
    behind: str = ""


class Change(NamedTuple):
    """Something new in a crawl, and a program that uses it."""

    row: str  # of the table in the document
    edits: tuple[Edit, ...]
    trial: str
    most: int  # files


KIND = Change(
    "a request kind",
    (
        Edit(f"{CRAWLER}/kinds.py", "    FEED = 10\n", "    REQUISITE = 9 "),
        Edit(
            f"{CRAWLER}/kinds.py",
            "    _row(Kind.FEED, Form.LISTING, max_bytes=4096, depth=1),\n",
            "    _row(Kind.REQUISITE, ",
        ),
        Edit(
            f"{CRAWLER}/web/seeds.py",
            "SOURCES[Kind.FEED] = Source('feed', Kind.FEED, read_commoncrawl)\n",
            "SOURCES = {",
        ),
    ),
    """
from tests.crawler.shard.shard_world import ShardWorld
import os
from pathlib import Path
from mannerly.crawler.kinds import Kind, Form
from mannerly.crawler.model import Candidate
from mannerly.crawler.store.base import ShardOptions
from mannerly.crawler.store.sqlite.shard import SqliteStore, create_shard

feed = Candidate("http://a.example/feed", "a.example", 0, 0, None, kind=Kind.FEED)
os.mkdir("shard")
create_shard(Path("shard"), 0, shards=1)
store = SqliteStore(Path("shard"), 0, ShardOptions(frontier_limit=9), shards=1)
world = ShardWorld("http://a.example/seed", store=store)
world.shard.offer([feed])
world.shard.commit(world.now)
world.wait(1)
world.pass_robots()
bodies = {"seed": b"", "feed": b'{"url": "http://a.example/page"}', "page": b"hello"}
while world.stats.fetched < 2:
    world.wait(1)
    for request in world.start():
        name = request.url.rpartition("/")[2]
        assert (name == "feed") == (request.max_bytes == 4096), request
        world.answer(request, body=bodies[name])
    world.shard.commit(world.now)
assert [each[1].url for each in store.stored(Form.LISTING)] == ["http://a.example/feed"]
assert {record.url[-4:] for _, record in store.pages()} == {"seed", "page"}
counts = store.counts()
assert (counts.fetched, counts.lists) == (2, 1), counts
assert (world.stats.fetched, world.stats.robots) == (2, 2), world.stats
""",
    3,
)

STATE = Change(
    "a host state",
    (
        Edit(f"{CORE}/model.py", '    NIGHT = "night"\n', '    PACE = "pace"'),
        Edit(f"{CRAWLER}/host_view.py", '    NIGHT = "night"\n', '    SHARED = "shared"'),
        Edit(
            f"{CRAWLER}/host_view.py",
            """    HostStatus.NIGHT: StateRow(
        "☾)", "clock", "waiting", "asleep", cause="it is night there", reasons=(Reason.NIGHT,)
    ),
""",
            "        reasons=(Reason.SHARED,),\n        has_instant=False,\n    ),",
        ),
        Edit(
            f"{CRAWLER}/shard/doing.py",
            "    if host.name == 'b.example':\n        return Reason.NIGHT, now + 60.0\n",
            '    """Return what the next request waits for and until when; None: for nothing."""',
        ),
    ),
    """
from tests.crawler.shard.shard_world import ShardWorld
from mannerly.cli.display import Display
from mannerly.cli.host_table import host_table, legend
from mannerly.crawler.events import HostsSeen, Watched
from mannerly.crawler.host_view import BACK, NOT_FETCHING, HostStatus
from mannerly.crawler.inspection.host_words import fields_of, sentence
from mannerly.service.app import host_states

world = ShardWorld("http://b.example/x", watched=Watched.HOSTS)
world.pass_robots()
world.wait(1)
world.shard.tick(world.now)
view, = world.told(HostsSeen)[-1].hosts
assert view.state is HostStatus.NIGHT, view
assert view.state in NOT_FETCHING and view.state in BACK
assert sentence(view) == "night: it is night there, 1 min to go", sentence(view)
assert fields_of(view)["state"] == "night"
wide = host_table([view], Display(columns=140))[1]
assert "☾ Night" in wide and "it is night there" in wide, wide
assert ") night" in legend([view], Display(columns=80, is_unicode=False))
assert b'"night":["clock","Night","asleep","waiting",false]' in host_states()
""",
    4,
)

SETTING = Change(
    "a setting",
    (
        Edit(
            f"{CRAWLER}/options/declared.py",
            "    least_wait_s: float = option(1.5, 'Wait for this.', low=0, for_jobs=True)\n",
            '    """The fields of the settings of a crawl."""\n',
        ),
    ),
    """
from tests.harness.commands import invoke
from mannerly.crawler.options.values import from_keywords
from mannerly.crawler.settings import CrawlSettings, with_options
from mannerly.service.jobs.model import ALLOWED

assert CrawlSettings().least_wait_s == 1.5
assert with_options(CrawlSettings(), from_keywords({"least_wait": 2})).least_wait_s == 2
assert "least_wait" in ALLOWED
told = invoke("crawl", "--help-all", env={"COLUMNS": "200"}).stdout
assert "--least-wait S" in told and "Wait for this (default 1.5 s)." in told, told
""",
    1,
)

FETCHER = Change(
    "a second fetcher",
    (
        Edit(
            f"{CRAWLER}/fetch/second.py",
            """from .curl import CurlFetcher


class SecondFetcher:
    def __init__(self, *parts):
        self._first = CurlFetcher(*parts)

    def start(self, request):
        print("second:", request.url)
        self._first.start(request)

    def __getattr__(self, name):
        return getattr(self._first, name)
""",
        ),
        Edit(
            f"{CRAWLER}/options/declared.py",
            "    second: bool = option(False, 'Fetch with the second fetcher.')\n",
            '    """The fields of the settings of a crawl."""\n',
        ),
        Edit(
            f"{CRAWLER}/runtime/worker.py",
            """        from mannerly.crawler.fetch.second import SecondFetcher

        if self.settings.second:
            return SecondFetcher(self._guard, chosen, memory)
""",
            "        chosen = fetch_settings(",
        ),
    ),
    """
import sys
from mannerly.cli import main

sys.argv = ["mannerly", "crawl", ORIGIN, "--second", "--quiet", "--data-dir", "crawl"]
sys.argv += ["--allow-net", "127.0.0.1", "--max-urls", "1"]
main()
""",
    3,
)

CHANGES = (KIND, STATE, SETTING, FETCHER)


def copied(edits: tuple[Edit, ...], place: Path) -> Path:
    """Return a copy of the source with edits."""
    shutil.copytree(ROOT / "src", place / "src", ignore=shutil.ignore_patterns("__pycache__"))
    for edit in edits:
        file = place / edit.file
        if not edit.behind:
            file.write_text(edit.text)
            continue
        before, anchor, after = file.read_text().partition(edit.behind)
        rest, newline, after = after.partition("\n")
        assert anchor, f"{edit.file} has no {edit.behind!r}"
        file.write_text(before + anchor + rest + newline + edit.text + after)
    return place


def tried(place: Path, program: str) -> str:
    """Run a program on a copy of the source, and return what it printed."""
    path = os.pathsep.join(map(str, (place / "src", ROOT)))
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=place,
        env=os.environ | {"PYTHONPATH": path, "XDG_STATE_HOME": str(place)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.row)
def test_change_works_with_few_files(change: Change, tmp_path: Path) -> None:
    """Nothing but these files has to be edited."""
    files = {edit.file for edit in change.edits}
    with serving(lambda request: request.answer(200, "hello")) as origin:
        said = tried(copied(change.edits, tmp_path), f"ORIGIN = {origin!r}\n" + change.trial)

    assert len(files) <= change.most
    if change is FETCHER:
        assert f"second: {origin}/\n" in said


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.row)
def test_document_has_the_files_of_the_change(change: Change) -> None:
    """In its row: the same files, and no other one."""
    row = next(
        line for line in PAGE.read_text().splitlines() if line.startswith(f"| {change.row} |")
    )
    now = row.split("|")[2]

    assert set(re.findall(r"`([^`]+\.py)`", now)) >= {
        edit.file.removeprefix("src/mannerly/") for edit in change.edits
    } - {f"{CRAWLER}/fetch/second.py".removeprefix("src/mannerly/")}
