from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest
from tests.exports.stored_example import PAGES, make_crawl
from tests.harness.commands import invoke

from mannerly.crawler.crawl import CrawlResult
from mannerly.crawler.runtime.ending import Ending
from mannerly.crawler.stats import Stats
from mannerly.crawler.store.base import StoreError
from mannerly.crawler.web.choices import ScopeMode

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mannerly.crawler.settings import CrawlSettings


class Call(NamedTuple):
    settings: CrawlSettings
    seeds: list[str]
    data_dir: Path
    fresh: bool


class FakeEngine:
    """Crawls nothing: it leaves a directory behind, and ends the way it was told to."""

    def __init__(self) -> None:
        self.calls: list[Call] = []
        self.ending = Ending.FINISHED
        self.pending = 0
        self.error: Exception | None = None

    def crawl(
        self,
        settings: CrawlSettings,
        seeds: Sequence[str],
        location: str,
        given: object = None,
        *,
        fresh: bool = False,
        watcher: Callable[[Stats, float], None] | None = None,
        member: object = None,
    ) -> CrawlResult:
        data_dir = Path(location)
        self.calls.append(Call(settings, list(seeds), data_dir, fresh))
        if self.error is not None:
            raise self.error
        if not data_dir.exists():
            make_crawl(data_dir)
        stats = Stats(fetched=8, statuses=Counter({200: 8}))
        if watcher is not None:
            watcher(stats, 1.0)
        return CrawlResult(self.ending, stats, 2.0, self.pending)


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> FakeEngine:
    fake = FakeEngine()
    monkeypatch.setattr("mannerly.crawler.crawl.run_crawl", fake.crawl)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    return fake


@pytest.mark.parametrize(
    ("ending", "pending", "code"),
    [
        (Ending.FINISHED, 0, 0),
        (Ending.MAX_URLS, 9, 0),
        (Ending.DURATION, 9, 0),
        (Ending.NO_SEED, 0, 3),
        (Ending.STOPPED, 9, 130),
        (Ending.TERMINATED, 9, 143),
        (Ending.FINISHED, 9, 1),
    ],
)
def test_ending_has_its_exit_code(
    engine: FakeEngine, ending: Ending, pending: int, code: int
) -> None:
    """The shell can tell; and nothing that calls itself finished leaves work behind."""
    engine.ending, engine.pending = ending, pending

    assert invoke("crawl", "a.example").exit_code == code


@pytest.mark.parametrize(
    ("error", "code"), [(StoreError("in use by pid 7"), 4), (ValueError("bad glob"), 2)]
)
def test_error_has_its_exit_code_and_sentence(
    engine: FakeEngine, error: Exception, code: int
) -> None:
    """Damage is 4, a mistake is 2."""
    engine.error = error

    outcome = invoke("crawl", "a.example", "--contact", "me@a.example")

    assert (outcome.exit_code, outcome.stderr) == (code, f"mannerly: {error}\n")


def test_crawl_hands_over_what_was_asked_for(engine: FakeEngine) -> None:
    """Seeds, settings, and a directory named after the hosts."""
    Path("seeds.txt").write_text("b.example\n")

    invoke("crawl", "a.example:8443/x", "seeds.txt", "-", "--max-urls", "5", stdin="c.example\n")

    call = engine.calls[0]
    assert call.seeds == [
        "https://a.example:8443/x",
        "https://b.example/",
        "https://c.example/",
    ]
    assert (call.data_dir, call.fresh) == (Path("crawl-a.example-8443-and-2-more"), False)
    assert call.settings.max_urls == 5


def test_start_urls_can_be_given_as_options(engine: FakeEngine) -> None:
    """--start-url takes a URL or a file of URLs, several times, beside arguments."""
    Path("seeds.txt").write_text("b.example\nc.example/x\n")

    outcome = invoke(
        *("crawl", "a.example", "--start-url", "seeds.txt", "--start-url", "https://d.example/")
    )

    hosts = [
        "https://a.example/",
        "https://b.example/",
        "https://c.example/x",
        "https://d.example/",
    ]
    assert outcome.exit_code == 0
    assert engine.calls[0].seeds == hosts


@pytest.mark.parametrize(
    ("arguments", "processes"),
    [
        (("https://a.example/", "https://a.example/b"), 1),
        (("https://a.example/", "https://b.example/"), 2),
        (("https://a.example/", "--scope", "site"), 1),
        (("https://a.example/", "--scope", "any"), 8),
        (("https://a.example/", "--processes", 3), 3),
    ],
)
def test_there_are_no_more_processes_than_hosts_unless_asked_for(
    engine: FakeEngine,
    monkeypatch: pytest.MonkeyPatch,
    arguments: tuple[object, ...],
    processes: int,
) -> None:
    """On eight cores: a host belongs to one process, so more processes would be idle."""
    monkeypatch.setattr("mannerly.cli.config.cores", lambda: 8)

    invoke("crawl", *arguments)

    assert engine.calls[0].settings.processes == processes


def test_stopped_crawl_prints_how_to_go_on(engine: FakeEngine) -> None:
    """On stderr: stdout is for data."""
    engine.ending, engine.pending = Ending.STOPPED, 3

    outcome = invoke("crawl", "a.example")

    assert "  mannerly resume crawl-a.example\n" in outcome.stderr
    assert outcome.stdout == ""


def test_missing_scanner_is_said_at_the_start(
    engine: FakeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One sentence, unless --quiet; the crawl runs all the same."""
    with_it = invoke("crawl", "a.example")
    monkeypatch.setattr("importlib.util.find_spec", lambda _name: None)

    without, quiet = invoke("crawl", "a.example"), invoke("crawl", "a.example", "--quiet")

    assert "pcre2" not in with_it.stderr + quiet.stderr
    assert (
        "\npcre2 is not installed: pages are read by the tree parser" in without.stderr
    )  # not installed: pages are read by the tree parser")
    assert {with_it.exit_code, without.exit_code, quiet.exit_code} == {0}


def test_private_seed_is_said_at_the_start(engine: FakeEngine) -> None:
    """Whoever crawls a list learns which of its lines lead into the own network."""
    seeds = Path("seeds.txt")
    seeds.write_text("https://a.example/\nhttp://127.0.0.1:8000/\nhttp://wiki.internal/\n")

    said = invoke("crawl", seeds).output
    quiet = invoke("crawl", seeds, "--quiet", "--data-dir", "other").output
    public = invoke("crawl", "https://a.example/").output

    assert "because they are seeds: 127.0.0.1:8000, wiki.internal:80 (others: --allow-net)" in said
    assert "private" not in quiet + public


def test_outputs_are_written_even_after_a_stop(engine: FakeEngine) -> None:
    """What was fetched until then is worth having."""
    engine.ending = Ending.STOPPED

    outcome = invoke("crawl", "a.example", "-o", "pages.jsonl", "-o", "-")

    assert len(Path("pages.jsonl").read_bytes().splitlines()) == len(PAGES)
    assert len(outcome.stdout.splitlines()) == len(PAGES)


def test_json_is_the_result_on_stdout(engine: FakeEngine) -> None:
    """One document for programs; with --quiet nothing else is said."""
    outcome = invoke("crawl", "a.example", "--json", "--quiet")

    result = json.loads(outcome.stdout)
    assert (result["ending"], result["fetched"], result["statuses"]) == ("finished", 8, {"200": 8})
    assert outcome.stderr == ""


def test_json_log_ends_with_the_result(engine: FakeEngine) -> None:
    """Every line on stderr is JSON then."""
    outcome = invoke("crawl", "a.example", "--log-format", "json")

    last = json.loads(outcome.stderr.splitlines()[-1])
    assert (last["event"], last["ending"], last["fetched"]) == ("Ended", "finished", 8)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "nothing to crawl: give a URL"),
        (("",), "an empty argument is not a URL"),
        (("--data-dir", "empty"), "there is no crawl to resume in empty"),
        (("a.example", "--fresh", "--include", "x"), "glob 'x' can match no URL"),
        (("a.example", "--allow-net", "intranet"), "--allow-net takes a network"),
        (("ftp://a.example/",), "only http and https"),
        (("a.example", "--max-urls", "0"), "--max-urls is 0; allowed: at least 1"),
        (("a.example", "--max-rate", "fast"), "--max-rate is 'fast'; allowed: a number"),
        (("a.example", "-o", "x.db"), 'unknown export format ".db": use .jsonl'),
        (("a.example", "-o", "-", "--json"), "both write to standard output"),
        (("a.example", "-o", "no/x.csv"), "there is no directory no"),
    ],
)
def test_mistake_is_one_sentence_before_the_first_request(
    engine: FakeEngine, arguments: tuple[str, ...], words: str
) -> None:
    """Exit code 2, stderr only, and the engine is not started."""
    outcome = invoke("crawl", *arguments)

    assert outcome.exit_code == 2
    assert outcome.stderr.startswith("mannerly: ")
    assert words in outcome.stderr
    assert len(outcome.stderr.splitlines()) == 1
    assert (outcome.stdout, engine.calls) == ("", [])


@pytest.mark.parametrize("command", ["check", "warm"])
def test_command_without_a_url_says_so(engine: FakeEngine, command: str) -> None:
    """No directory is named that the user has never seen."""
    outcome = invoke(command)

    assert outcome.stderr == f"mannerly: nothing to {command}: give a URL or a file of URLs\n"
    assert (outcome.exit_code, engine.calls) == (2, [])


def test_resumed_crawl_keeps_its_settings(engine: FakeEngine) -> None:
    """What it was told when it began holds, but for what this command says."""
    crawl = make_crawl(Path("mine"), scope=ScopeMode.SITE, concurrency=7, robots_limit=3)

    again = invoke("crawl", "--data-dir", crawl, "--concurrency", "9")
    resumed = invoke("resume", crawl)

    assert (again.exit_code, resumed.exit_code) == (0, 0)
    first, second = (call.settings for call in engine.calls)
    assert (first.scope, first.concurrency, first.robots_limit) == (ScopeMode.SITE, 9, 3)
    assert (second.scope, second.concurrency, second.processes) == (ScopeMode.SITE, 7, 2)


def test_resume_reads_no_configuration_file(engine: FakeEngine) -> None:
    """A crawl means the same from whichever directory it is resumed."""
    crawl = make_crawl(Path("mine"), concurrency=7)
    Path("mannerly.toml").write_text("workers = 1\n")

    invoke("resume", crawl)

    assert engine.calls[0].settings.concurrency == 7


def test_other_seed_is_not_ignored(engine: FakeEngine) -> None:
    """A crawl that has begun has its seeds: the same one is fine, another one is refused."""
    crawl = make_crawl(Path("mine"))

    same = invoke("crawl", "a.example", "--data-dir", crawl)
    other = invoke("crawl", "z.example", "--data-dir", crawl)

    assert (same.exit_code, other.exit_code) == (0, 2)
    assert "https://z.example/ is not a seed of the crawl in mine" in other.stderr


def test_scope_of_a_crawl_that_has_begun_cannot_change(engine: FakeEngine) -> None:
    """It is refused rather than ignored; the same value is no change."""
    crawl = make_crawl(Path("mine"), scope=ScopeMode.SITE)

    changed = invoke("crawl", "--data-dir", crawl, "--scope", "any")
    same = invoke("crawl", "--data-dir", crawl, "--scope", "site")
    fresh = invoke("crawl", "a.example", "--data-dir", crawl, "--scope", "any", "--fresh")

    assert (changed.exit_code, same.exit_code, fresh.exit_code) == (2, 0, 0)
    assert "--scope cannot be changed when the crawl in mine is resumed" in changed.stderr
    assert engine.calls[-1].fresh
