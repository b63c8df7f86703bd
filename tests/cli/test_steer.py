"""The words of `pause`, `unpause`, `stop`, `add`, `set` and `host …`: what each stores and says.

That a running crawl obeys is tested with real crawls in tests/crawler/control.
"""

from __future__ import annotations

import json
from contextlib import closing
from typing import TYPE_CHECKING

import pytest
from tests.exports.stored_example import SHARDING, make_crawl
from tests.harness.commands import invoke

from mannerly.crawler.control import (
    AddSeeds,
    Exclude,
    HostForget,
    HostPause,
    HostResume,
    HostSet,
    Pause,
    SetOption,
    Stop,
    Unpause,
)
from mannerly.crawler.model import Candidate
from mannerly.crawler.store import open_crawl
from mannerly.crawler.store.base import Batch, ShardOptions

if TYPE_CHECKING:
    from pathlib import Path

    from click.testing import Result

    from mannerly.crawler.control import Control

HOST = "a.example"  # has a record and a queue


@pytest.fixture
def crawl(tmp_path: Path) -> Path:
    return make_crawl(tmp_path / "crawl")


def orders(crawl: Path) -> list[Control]:
    with closing(open_crawl(crawl)) as store:
        return [order for _, order in store.orders()]


def command(words: str, crawl: Path) -> Result:
    """Run a command; the crawl goes behind its name."""
    name, *rest = words.split()
    names = [name, rest.pop(0)] if name == "host" else [name]
    return invoke(*names, crawl, *rest)


STORED: dict[str, list[Control]] = {
    "pause": [Pause()],
    "add https://b.example/x c.example": [AddSeeds(("https://b.example/x", "https://c.example/"))],
    "set max_rate=2": [SetOption("max_rate", 2.0)],
    "set max-rate=unlimited": [SetOption("max_rate", None)],
    "set max_urls=10 duration=3.5": [SetOption("max_urls", 10.0), SetOption("duration", 3.5)],
    "set concurrency=None": [SetOption("concurrency", None)],
    "set workers=20": [SetOption("concurrency", 20)],
    "set exclude=*/a=b/* exclude=*.pdf": [Exclude("*/a=b/*"), Exclude("*.pdf")],
    "host pause a.example": [HostPause(HOST)],
    "host resume http://a.example/page?x": [HostResume(HOST)],
    "host set A.Example --delay 0.5": [HostSet(HOST, delay_s=0.5)],
    "host set a.example --max-rate unlimited": [HostSet(HOST, max_rate="unlimited")],
    "host set a.example --max-rate 3 --per-host 2": [HostSet(HOST, None, 3.0, 2)],
    "host forget a.example": [HostForget(HOST)],
}


@pytest.mark.parametrize("words", STORED)
def test_command_stores_its_control_record(words: str, crawl: Path) -> None:
    """And says, of a crawl that does not run, when it is in force."""
    outcome = command(words, crawl)

    assert (outcome.exit_code, outcome.stdout) == (0, "")
    assert "(takes effect when the crawl is resumed)" in outcome.stderr
    assert outcome.stderr.count("\n") == 1
    assert orders(crawl) == STORED[words]


CHANGEABLE = "max_urls, duration, exclude, max_rate, concurrency"
MISTAKES = {
    "stop": "the crawl in {} is not running",
    "add no://where": "no://where cannot be crawled: only http and https URLs can",
    "add https://b.example/ https://": (
        "https:// is not a URL: write it like https://example.com/page"
    ),
    "add missing.txt": ("file not found: missing.txt; if it is a host, write https:// before it"),
    "set max_rate": "max_rate is not KEY=VALUE: write it like max_rate=2",
    "set max_rate=": "max_rate= is not KEY=VALUE: write it like max_rate=2",
    "set max_rat=2": (f"max_rat cannot be changed; allowed: {CHANGEABLE}; did you mean max_rate?"),
    "set scope=any": f"scope cannot be changed; allowed: {CHANGEABLE}",
    "set max_rate=fast": "max_rate is 'fast'; allowed: a number, or \"unlimited\"",
    "set concurrency=0": "concurrency is 0; allowed: at least 1",
    "set max_urls=1.5": "max_urls is '1.5'; allowed: a whole number",
    "set max_rate=2 concurrency=many": "concurrency is 'many'; allowed: a whole number",
    "set exclude=none": (
        "exclude cannot be none, because an excluded pattern stays excluded: give a glob"
    ),
    "set max_rate=2 exclude=private": (
        "glob 'private' can match no URL: it is compared with the whole URL, so start it with *, "
        "http:// or https:// (perhaps '*private')"
    ),
    "host pause http://": "http:// is not a host: write it like example.org",
    "host resume no.such.example": "no.such.example is not a host of the crawl in {}",
    "host forget no.such.example": "no.such.example is not a host of the crawl in {}",
    "host show no.such.example": "no.such.example is not a host of the crawl in {}",
    "host show a.example:8080": (
        "a.example:8080 is not a host of the crawl in {}; did you mean a.example?"
    ),
    "host forget a.exmaple": (
        "a.exmaple is not a host of the crawl in {}; did you mean a.example?"
    ),
    "host set a.example": "nothing to set: give --delay, --max-rate or --per-host",
    "host set a.example --delay=-1": "delay is -1.0; allowed: above 0",
    "host set a.example --max-rate=fast": (
        "max_rate is 'fast'; allowed: a number, or \"unlimited\""
    ),
    "host set a.example --per-host=0": "per_host is 0; allowed: at least 1",
}


@pytest.mark.parametrize("words", MISTAKES)
def test_mistake_is_one_sentence_and_stores_nothing(words: str, crawl: Path) -> None:
    """Exit 2; of several orders at once, none is stored if one is wrong."""
    outcome = command(words, crawl)

    assert (outcome.exit_code, outcome.stdout) == (2, "")
    assert outcome.stderr == f"mannerly: {MISTAKES[words].format(crawl)}\n"
    assert orders(crawl) == []


@pytest.mark.parametrize(
    "words",
    [
        "pause",
        "unpause",
        "stop",
        "add https://a.example/",
        "set max_rate=2",
        "host pause a.example",
    ],
)
def test_directory_without_a_crawl_is_a_mistake(words: str, tmp_path: Path) -> None:
    """Whatever is ordered."""
    outcome = command(words, tmp_path)

    assert outcome.exit_code == 2
    assert outcome.stderr.endswith(": give the data directory of a crawl\n")


def test_running_crawl_is_told_at_once(crawl: Path) -> None:
    """No word about resuming; and `stop` says how to go on later."""
    with closing(open_crawl(crawl)) as owner:
        owner.hold()
        paused = invoke("pause", crawl)
        stopped = invoke("stop", crawl)

    assert paused.stderr == f"Paused {crawl}. To continue: mannerly unpause {crawl}\n"
    assert stopped.stderr == f"Stopping {crawl}. To resume it: mannerly resume {crawl}\n"
    assert orders(crawl) == [Pause(), Stop()]


def test_unpause_ends_a_pause_and_is_nothing_otherwise(crawl: Path) -> None:
    """A second one stores nothing."""
    for word in ("pause", "unpause", "unpause"):
        last = invoke(word, crawl)

    assert (last.exit_code, last.stderr) == (0, f"{crawl} is not paused\n")
    assert orders(crawl) == [Pause(), Unpause()]


def test_seeds_are_read_from_files_and_standard_input(crawl: Path, tmp_path: Path) -> None:
    """As `crawl` does; a file without a URL is a mistake."""
    (tmp_path / "more.txt").write_text("# more\nhttps://b.example/\n\nhttps://c.example/\n")
    (tmp_path / "none.txt").write_text("# nothing\n")

    added = invoke("add", crawl, tmp_path / "more.txt")
    piped = invoke("add", str(crawl), "-", stdin="https://d.example/\n")
    nothing = invoke("add", crawl, tmp_path / "none.txt")

    assert added.stderr.startswith(f"Added 2 seeds to {crawl}")
    assert piped.exit_code == 0
    assert nothing.stderr == "mannerly: nothing to add: give a URL or a file of URLs\n"
    assert orders(crawl) == [
        AddSeeds(("https://b.example/", "https://c.example/")),
        AddSeeds(("https://d.example/",)),
    ]


def test_host_may_be_steered_before_it_is_met(crawl: Path) -> None:
    """Its first URL may be on its way; then it can be resumed, too."""
    paused = invoke("host", "pause", crawl, "new.example")
    paced = invoke("host", "set", crawl, "new.example", "--delay", "2")
    resumed = invoke("host", "resume", crawl, "new.example")

    assert "new.example (not a host of the crawl yet)" in paused.stderr
    assert "new.example (not a host of the crawl yet) to --delay 2 " in paced.stderr
    assert resumed.exit_code == 0


def test_host_with_another_port_is_suggested(crawl: Path) -> None:
    """It is steered as it was named all the same."""
    paused = invoke("host", "pause", crawl, "a.example:8443")

    assert "a.example:8443 (not a host of the crawl yet; did you mean a.example?)" in paused.stderr
    assert orders(crawl) == [HostPause("a.example:8443")]


def test_what_was_set_for_a_host_adds_up(crawl: Path) -> None:
    """The answer names all of it; `host show` tells it, too. A given-up host stays given up."""
    invoke("host", "set", crawl, HOST, "--delay", "5", "--per-host", "2")
    said = invoke("host", "set", crawl, HOST, "--delay", "0.5").stderr
    invoke("host", "pause", crawl, HOST)
    shown = invoke("host", "show", crawl, HOST)
    listed = invoke("hosts", crawl)
    facts = json.loads(invoke("host", "show", crawl, HOST, "--json").stdout)

    assert said.startswith(f"Set the pace of {HOST} to --delay 0.5 --per-host 2 ")
    assert "pace set        --delay 0.5 --per-host 2\n" in shown.stdout
    assert "state           given up: stalled\n" in shown.stdout
    assert f"×  {HOST} " in listed.stdout
    assert facts["is_paused"] is True
    assert facts["set"] == {"delay_s": 0.5, "max_rate": None, "per_host": 2}


def test_status_of_a_paused_crawl_says_how_to_go_on(crawl: Path) -> None:
    """Also while it does not run."""
    invoke("pause", crawl)

    said = invoke("status", crawl).stdout
    facts = json.loads(invoke("status", crawl, "--json").stdout)

    assert f"{crawl}: paused (to continue: mannerly unpause {crawl}), " in said
    assert facts["state"] == "paused"


def test_explain_knows_added_seeds_and_excluded_patterns(crawl: Path) -> None:
    """The scope of a crawl is what it began with and what was ordered since."""
    before = json.loads(invoke("explain", crawl, "https://new.example/x", "--json").stdout)
    invoke("add", crawl, "https://new.example/")
    invoke("set", crawl, "exclude=*/private/*")
    after = json.loads(invoke("explain", crawl, "https://new.example/x", "--json").stdout)
    private = json.loads(invoke("explain", crawl, "https://new.example/private/x", "--json").stdout)

    assert before["scope"] == "outside: off_host"
    assert after["scope"] == "inside"
    assert private["scope"] == "outside: excluded"


def test_seed_that_was_added_may_be_named_again(crawl: Path) -> None:
    """`crawl` refuses other seeds for a crawl that has begun, not those that were added."""
    refused = invoke("crawl", "https://new.example/", "--data-dir", crawl, "--duration", "0.1")
    invoke("add", crawl, "https://new.example/")
    invoke("pause", crawl)
    taken = invoke(
        "crawl", "https://new.example/", "--data-dir", crawl, "--duration", "0.1", "--processes", 1
    )

    assert refused.exit_code == 2
    assert "add it with `mannerly add`" in refused.stderr
    assert taken.exit_code == 0
    assert "This crawl is paused" in taken.stderr


@pytest.mark.parametrize(
    "words", ["pause", "unpause", "stop", "add", "set", "host set", "host resume"]
)
def test_help_is_plain(words: str) -> None:
    """Each command says what it does and names its arguments."""
    outcome = invoke(*words.split(), "--help")

    assert outcome.exit_code == 0
    assert "DIR" in outcome.stdout
    told = " ".join(outcome.stdout.split())
    assert "Data directory of the crawl, or the URL of a server." in told


def test_queued_host_without_a_record_is_a_host_of_the_crawl(crawl: Path) -> None:
    """It has not been contacted yet."""
    shard = SHARDING.shard_of("queued.example")
    link = Candidate("https://queued.example/", "queued.example", 0, 5, None)
    with closing(open_crawl(crawl)) as store, store.claim(shard, ShardOptions(1000)) as owner:
        owner.commit(Batch(found=[link]))

    shown = invoke("host", "show", crawl, "queued.example")

    assert shown.exit_code == 0
    assert "queued          1\n  https://queued.example/\n" in shown.stdout
