from __future__ import annotations

import json
import re
import time
from contextlib import closing
from typing import TYPE_CHECKING

import pytest
from tests.crawler.store.fixture_web import SEEDS, served
from tests.exports.stored_example import (
    EXCESS,
    PAGES,
    PRIVATE,
    QUEUED,
    SEED,
    SHARDING,
    make_crawl,
    page,
)
from tests.harness.commands import invoke, run

from mannerly.crawler.control import HostForget, Pause, Unpause
from mannerly.crawler.host_view import NO_ROBOTS, Doing, pack_doing
from mannerly.crawler.kinds import Kind
from mannerly.crawler.model import Candidate, HostRecord
from mannerly.crawler.store import create_crawl, open_crawl
from mannerly.crawler.store.base import Batch, Heartbeat, Manifest, ShardOptions

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def crawl(tmp_path: Path) -> Path:
    return make_crawl(tmp_path / "crawl")


def test_status_adds_the_shards_up(crawl: Path) -> None:
    """Counts per shard and in all, and what is queued."""
    facts = json.loads(invoke("status", crawl, "--json").stdout)

    assert len(facts["shards"]) == 2
    assert (facts["total"]["fetched"], facts["total"]["failed"]) == (len(PAGES) - 1, 1)
    assert facts["total"]["failed"] == 1
    assert facts["longest_queues"] == {"a.example": 1}
    assert (facts["seeds"], facts["pid"], facts["workers"]) == ([SEED], None, [])
    assert (facts["crawl"], facts["state"]) == (str(crawl), "stopped")


def test_status_of_a_crawl_with_one_shard_has_one_row(tmp_path: Path) -> None:
    """The sum would say the same again; a crawl with two has three rows."""
    shown = {}
    for name, shards in (("one", 1), ("two", 2)):
        manifest = Manifest.new(seeds=[SEED], settings={}, shards=shards, created_at=0.0)
        create_crawl(tmp_path / name, manifest).close()
        lines = invoke("status", tmp_path / name).stdout.splitlines()
        shown[name] = [line.split()[0] for line in lines[lines.index("") + 2 :] if line]

    assert shown == {"one": ["all"], "two": ["0", "1", "all"]}


def test_status_works_while_the_crawl_runs(crawl: Path) -> None:
    """The owner keeps its lock, and status tells which process it is."""
    with closing(open_crawl(crawl)) as owner:
        owner.hold()
        owner.renew(Heartbeat("w1", "here", 4711, [0, 1], 12, time.time()))
        outcome = invoke("status", crawl)
        facts = json.loads(invoke("status", crawl, "--json").stdout)

    assert outcome.exit_code == 0
    assert outcome.stdout.startswith(f"{crawl}: running (pid 4711), last activity ")
    assert "w1 on here, pid 4711: 2 shards, 12 pages in this run" in outcome.stdout
    (worker,) = facts["workers"]
    assert 0 <= worker.pop("seen_s") < 60
    assert worker == {
        "id": "w1",
        "machine": "here",
        "pid": 4711,
        "shards": [0, 1],
        "fetched": 12,
        "waits_for": None,
    }
    assert "started from https://a.example/, " in outcome.stdout
    assert "Longest queues:\n          1  a.example" in outcome.stdout


def state_of(crawl: Path) -> str:
    return str(json.loads(invoke("status", crawl, "--json").stdout)["state"])


def test_status_tells_the_state(crawl: Path) -> None:
    """Stopped, running, waiting, paused (running or not), and finished when nothing is left."""
    seen = [state_of(crawl)]
    heartbeat = Heartbeat("w1", "here", 4711, [0, 1], 12, time.time())
    with closing(open_crawl(crawl)) as owner:
        owner.hold()
        seen.append(state_of(crawl))
        owner.renew(heartbeat._replace(waits_for="the disk is full"))
        seen.append(state_of(crawl))
        owner.order(Pause())
        seen.append(state_of(crawl))
    seen.append(state_of(crawl))
    with closing(open_crawl(crawl)) as owner:
        owner.order(Unpause())
        for shard in range(2):
            with owner.claim(shard, ShardOptions(9)) as store:
                entries = store.queued("a.example", after=(-1, -1), limit=9)
                store.commit(Batch(dropped=[(entry, "robots") for entry in entries]))
    seen.append(state_of(crawl))

    assert seen == ["stopped", "running", "waiting", "paused", "paused", "finished"]


def test_crawl_with_links_on_their_way_is_not_finished(crawl: Path) -> None:
    """Neither in an outbox nor in an inbox; they are counted as outgoing in both."""
    here = SHARDING.shard_of("b.example")
    there = 1 - here
    with closing(open_crawl(crawl)) as owner:
        for shard in range(2):
            with owner.claim(shard, ShardOptions(9)) as store:
                entries = store.queued("a.example", after=(-1, -1), limit=9)
                store.commit(Batch(dropped=[(entry, "robots") for entry in entries]))
        finished = state_of(crawl)
        with owner.claim(there, ShardOptions(9)) as store:
            link = Candidate("https://b.example/new", "b.example", 1, 1, SEED)
            store.commit(Batch(outgoing=[(here, link)]))
            outgoing = json.loads(invoke("status", crawl, "--json").stdout)["total"]["outgoing"]
            store.pass_links(1)
    facts = json.loads(invoke("status", crawl, "--json").stdout)

    assert finished == "finished"
    assert (outgoing, facts["total"]["outgoing"], facts["state"]) == (1, 1, "stopped")


def test_sitemaps_are_lists_and_no_pages(crawl: Path) -> None:
    """Status counts as many pages as the export has records."""
    with closing(open_crawl(crawl)) as owner:
        shard = SHARDING.shard_of("a.example")
        with owner.claim(shard, ShardOptions(9)) as store:
            url = "https://a.example/sitemap.xml"
            offered = Candidate(url, "a.example", 0, 0, None, kind=Kind.SITEMAP)
            (entry,) = store.commit(Batch(found=[offered])).new
            store.commit(Batch(pages=[(entry, page(url, status=None, error="timeout"))]))

    total = json.loads(invoke("status", crawl, "--json").stdout)["total"]
    records = [json.loads(line) for line in invoke("export", crawl, "-o", "-").stdout.splitlines()]

    assert (total["fetched"], total["lists"]) == (len(PAGES) - 1, 1)
    assert len(records) == len(PAGES)
    assert total["failed"] == sum(record["status"] is None for record in records)


@pytest.mark.processes
def test_summary_status_and_export_agree(tmp_path: Path) -> None:
    """A page is the same thing in all three, and a sitemap is none."""
    crawl = tmp_path / "crawl"
    with served():
        options = ("--max-urls=3", "--processes=1", "--json", "-q")
        done = run("crawl", SEEDS[0], "--data-dir", crawl, *options, cwd=tmp_path)

    total = json.loads(invoke("status", crawl, "--json").stdout)["total"]
    exported = invoke("export", crawl, "-o", "-").stdout.splitlines()

    assert total["lists"] == 1
    assert json.loads(done.stdout)["fetched"] == total["fetched"] == len(exported) == 3


@pytest.mark.parametrize(
    ("url", "state", "words"),
    [
        (SEED, "fetched", "status 200"),
        ("https://a.example/old", "fetched", f"redirects to {SEED}"),
        ("https://a.example/copy", "fetched", f"its canonical URL is {SEED}"),
        ("https://b.example/broken", "failed", "timed out (--timeout), "),
        (QUEUED, "queued", "its host: given up: stalled"),
        (PRIVATE, "skipped", "forbidden by robots.txt (--ignore-robots)"),
        (EXCESS, "skipped", "beyond --max-per-host"),
        ("a.example/never?utm_source=x", "unknown", "no page, sitemap or seed"),
        ("https://other.example/", "unknown", "links out of scope are counted"),
    ],
)
def test_explain_tells_where_a_url_stands(crawl: Path, url: str, state: str, words: str) -> None:
    """Fetched, failed, queued, skipped or unknown, and why."""
    facts = json.loads(invoke("explain", crawl, url, "--json").stdout)

    assert facts["state"] == state
    assert words in facts["because"]


def test_explain_finds_a_link_between_two_shards(crawl: Path) -> None:
    """Not handed over yet, or handed over and not taken: it is queued, and found by a page."""
    b_owner = SHARDING.shard_of("b.example")
    link = Candidate("https://b.example/new", "b.example", 1, 1, SEED)
    said = []
    with (
        closing(open_crawl(crawl)) as owner,
        owner.claim(1 - b_owner, ShardOptions(9)) as store,
    ):
        store.commit(Batch(outgoing=[(b_owner, link)]))
        said.append(json.loads(invoke("explain", crawl, link.url, "--json").stdout))
        store.pass_links(1)
        said.append(json.loads(invoke("explain", crawl, link.url, "--json").stdout))

    for facts in said:
        assert (facts["state"], facts["found_by"], facts["depth"]) == ("queued", [SEED], 1)
        assert facts["because"] == "in transit to the shard that owns its host"


def test_explain_names_the_line_of_robots_txt_and_the_scope(crawl: Path) -> None:
    """The rule is the stored file's own."""
    outcome = invoke("explain", crawl, PRIVATE)

    assert "robots.txt  disallowed: line 2, Disallow: /private/" in outcome.stdout
    assert "scope       inside" in outcome.stdout
    assert f"found by    {SEED}" in outcome.stdout


def test_explain_follows_a_seed_that_has_moved(tmp_path: Path) -> None:
    """The scope is where the seed leads, as it is for the crawl."""
    home = "https://www.a.example/"
    moved = page(SEED, status=301, redirect_to=home)
    crawl = make_crawl(tmp_path / "moved", [moved, page(home, parent=SEED)])

    facts = json.loads(invoke("explain", crawl, home, "--json").stdout)

    assert facts["scope"] == "inside"


def test_hosts_come_in_the_order_that_was_asked_for(crawl: Path) -> None:
    """Longest queue first, or most fetched; with what is known of each."""
    by_queue = json.loads(invoke("hosts", crawl, "--json").stdout)
    by_fetched = json.loads(invoke("hosts", crawl, "--sort", "fetched", "--json").stdout)

    assert [(host["host"], host["queued"]) for host in by_queue] == [
        ("a.example", 1),
        ("b.example", 0),
    ]
    assert [host["host"] for host in by_fetched] == ["a.example", "b.example"]
    assert (
        len(json.loads(invoke("hosts", crawl, "--sort", "failed", "--limit", 1, "--json").stdout))
        == 1
    )
    shown = invoke("hosts", crawl).stdout
    assert "×  a.example                                 –      –       –        1" in shown
    assert "✓  b.example" in shown
    assert "2 of 2 hosts, by queue. Pace and limit in requests/s.\n" in shown


def test_host_show_takes_whatever_a_person_pastes(crawl: Path) -> None:
    """A host or a URL of it."""
    outcome = invoke("host", "show", crawl, "https://A.example/x")

    assert outcome.exit_code == 0
    assert (
        "pace            2.00/s, 0.50 s between requests, lowered by refusals or failures"
        in outcome.stdout
    )
    assert f"  {QUEUED}" in outcome.stdout


def test_host_show_tells_what_a_host_waits_for(crawl: Path) -> None:
    """For the crawl, if that is not running; a host without a queue waits for nothing."""

    def state(host: str) -> str:
        lines = invoke("host", "show", crawl, host).stdout.splitlines()
        return next(line for line in lines if line.startswith("state")).partition(" ")[2].strip()

    with closing(open_crawl(crawl)) as owner:
        found = [Candidate("https://c.example/", "c.example", 0, 0, None)]
        with owner.claim(SHARDING.shard_of("c.example"), ShardOptions(9)) as store:
            store.commit(Batch(found=found))
    stopped = [state(f"{letter}.example") for letter in "abc"]
    with closing(open_crawl(crawl)) as owner:
        owner.hold()
        running = state("c.example")

    waiting = "waiting: not running"
    assert stopped == ["given up: stalled", "done", waiting]
    assert running == "fetching"


def test_host_forget_waits_for_a_crawl_that_is_not_running(crawl: Path) -> None:
    """The order is kept, and the message says when it takes effect."""
    outcome = invoke("host", "forget", crawl, "a.example")

    with closing(open_crawl(crawl)) as owner:
        orders = [order for _, order in owner.orders()]
    assert outcome.exit_code == 0
    assert "when the crawl is resumed" in outcome.stderr
    assert orders == [HostForget("a.example")]


def test_host_whose_robots_txt_cannot_be_had_is_not_shown_as_active(tmp_path: Path) -> None:
    """`hosts` and `host show` say until when it waits."""
    location, now = tmp_path / "crawl", time.time()
    manifest = Manifest.new(seeds=[SEED], settings={}, shards=1, created_at=now)
    with closing(create_crawl(location, manifest)) as owner:
        store = owner.claim(0, ShardOptions(1000))
        found = [Candidate("http://a.example/", "a.example", 0, 0, None)]
        doing = pack_doing(Doing(waits_for="robots", wait_s=55.0, problem=NO_ROBOTS))
        host = HostRecord("a.example", updated_at=now, doing=doing)
        store.commit(Batch(found=found, hosts=[host]))
        shown = invoke("host", "show", location, "a.example").stdout
        table = invoke("hosts", location).stdout

    assert re.search(r"state +backing off: its robots.txt is unreachable, 5\d s to go", shown)
    assert re.search(r"a\.example +5\d s ", table)
    assert "backing off" in table


def test_host_forget_sends_a_running_crawl_a_record(crawl: Path) -> None:
    """The owner of the shard acts on it: there is one writer."""
    with closing(open_crawl(crawl)) as owner:
        owner.hold()
        outcome = invoke("host", "forget", crawl, "https://A.example/x")

        assert outcome.exit_code == 0
        assert [order for _, order in owner.orders()] == [HostForget("a.example")]


def test_host_that_the_crawl_does_not_have_is_the_users_mistake(crawl: Path) -> None:
    """Exit code 2, for looking and for forgetting."""
    for command in ("show", "forget"):
        outcome = invoke("host", command, crawl, "c.example")

        assert outcome.exit_code == 2
        assert f"c.example is not a host of the crawl in {crawl}" in outcome.stderr


def test_export_writes_data_to_stdout_and_nothing_else(crawl: Path) -> None:
    """A pipe gets records only."""
    outcome = invoke("export", crawl, "-o", "-")

    assert len([json.loads(line) for line in outcome.stdout.splitlines()]) == len(PAGES)
    assert outcome.stderr == ""


def test_export_writes_every_file_that_was_asked_for(crawl: Path, tmp_path: Path) -> None:
    """By suffix, and says so on stderr."""
    table, sitemap = tmp_path / "pages.csv", tmp_path / "sitemap.xml"

    outcome = invoke("export", crawl, "-o", table, "-o", sitemap)

    assert outcome.stdout == ""
    assert outcome.stderr == f"Wrote {table}: 8 records\nWrote {sitemap}: 3 URLs\n"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("status",), "there is no crawl in"),
        (("export", "-o", "-"), "there is no crawl in"),
        (("resume",), "there is no crawl in"),
        (("hosts",), "there is no crawl in"),
        (("wipe", "--yes"), "there is no crawl in"),
    ],
)
def test_directory_without_a_crawl_is_the_users_mistake(
    tmp_path: Path, arguments: tuple[str, ...], words: str
) -> None:
    """One sentence and exit code 2."""
    name, *rest = arguments

    outcome = invoke(name, tmp_path, *rest)

    assert outcome.exit_code == 2
    assert outcome.stderr.startswith("mannerly: ")
    assert words in outcome.stderr


def test_damaged_crawl_is_exit_code_four(crawl: Path) -> None:
    """It is not the command line that is wrong."""
    (crawl / "crawl.json").write_text("{}")

    assert invoke("status", crawl).exit_code == 4


def test_wipe_asks_first(crawl: Path) -> None:
    """Without a terminal to ask on, --yes is needed."""
    outcome = invoke("wipe", crawl)

    assert outcome.exit_code == 2
    assert "add --yes" in outcome.stderr
    assert crawl.exists()


def test_wipe_removes_a_crawl_and_nothing_else(crawl: Path) -> None:
    """With a foreign file in the directory nothing is removed."""
    (crawl / "thesis.txt").write_text("mine")
    refused = invoke("wipe", crawl, "--yes")
    (crawl / "thesis.txt").unlink()

    removed = invoke("wipe", crawl, "--yes")

    assert (refused.exit_code, removed.exit_code) == (4, 0)
    assert "thesis.txt, which mannerly did not write: nothing was removed" in refused.stderr
    assert not crawl.exists()


def test_crawled_text_reaches_no_terminal_raw(tmp_path: Path) -> None:
    """A parent URL or an error code is crawled text, too."""
    nasty = page("https://a.example/n", parent="https://a.example/\x1b[2J[/red]", error="\x1b]0;x")
    crawl = make_crawl(tmp_path / "nasty", [page(SEED), nasty])

    outcome = invoke("explain", crawl, nasty.url)

    assert outcome.exit_code == 0
    assert "\x1b" not in outcome.stdout
    assert "\\x1b[2J[/red]" in outcome.stdout
