"""`mannerly retry` and what is left of a host that could not be reached: on real sockets."""

from __future__ import annotations

import json
import threading
from collections import Counter
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest
from tests.harness.commands import invoke
from tests.harness.sites import HTML, Request, free_port, serving
from tests.harness.waiting import eventually

import mannerly
from mannerly.politeness import Settings

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from click.testing import Result

PAGES = ("/", "/a", "/b", "/c")
# A connection that was used before may be closed at any time: that would be no failure of the page.
ONCE = {**HTML, "Connection": "close"}
LINKS = "".join(f'<a href="{path}">x</a>' for path in PAGES)
# A page fails at the first try, its host is given up then, and an unreachable robots.txt at once.
PACE = Settings(strategy="fixed", delay_s=0.01, max_rate="unlimited", max_attempts=1)


class Site:
    """A site of four pages on a port of its own, which can break, end and come back."""

    def __init__(self) -> None:
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}/"
        self.broken: set[str] = set()  # paths that get no answer
        self.statuses: dict[str, int] = {}  # of paths that are not answered with 200
        self.login = ""  # the Authorization header that every page asks for
        self.slow: dict[str, threading.Event] = {}  # paths that are answered after the event
        self.requests: Counter[str] = Counter()
        self._open = ExitStack()

    def start(self) -> None:
        self._open.enter_context(serving(self._respond, ("127.0.0.1", self.port)))

    def stop(self) -> None:
        self._open.close()

    def _respond(self, request: Request) -> None:
        path = request.path
        self.requests[path] += 1
        if path in self.slow:
            self.slow[path].wait(60)
        if path in self.broken:
            request.hang_up()
        elif path == "/robots.txt":
            request.answer(404, headers=ONCE)
        elif self.login and request.headers.get("Authorization") != self.login:
            request.answer(401, LINKS, ONCE)
        else:
            request.answer(self.statuses.get(path, 200), LINKS, ONCE)


@pytest.fixture
def site() -> Iterator[Site]:
    made = Site()
    with ExitStack() as stack:
        stack.callback(made.stop)
        yield made


def total(directory: Path) -> dict[str, int]:
    return json.loads(invoke("status", directory, "--json").stdout)["total"]


def exported(directory: Path, *flags: str) -> list[dict[str, object]]:
    outcome = invoke("export", directory, "-o", "-", *flags)
    return [json.loads(line) for line in outcome.stdout.splitlines()]


def crawled(site: Site, directory: Path) -> str:
    """Crawl the site; return how that ended."""
    with mannerly.Crawl(
        site.url,
        data_dir=directory,
        politeness=PACE,
        seeding_strategy="none",
        robots_patience=0,
        host_failure_limit=1,
        per_host=1,
    ) as crawl:
        return crawl.run().ending.value


def state_of(directory: Path, url: str) -> str:
    return json.loads(invoke("explain", directory, url, "--json").stdout)["state"]


def test_a_seed_that_cannot_be_reached_is_tried_at_every_run(site: Site, tmp_path: Path) -> None:
    """Every run exits 3 until a seed could be fetched, and then the crawl is as if never cut."""
    ending = crawled(site, tmp_path / "c")
    codes = [invoke("resume", tmp_path / "c", "-q").exit_code for _ in range(2)]
    given_up = state_of(tmp_path / "c", site.url)
    site.start()

    codes += [invoke("resume", tmp_path / "c", "-q").exit_code for _ in range(2)]

    assert ending == "no_seed"
    assert codes == [3, 3, 0, 0]
    assert given_up == "given up"
    assert sorted(str(each["url"]) for each in exported(tmp_path / "c")) == [
        site.url.rstrip("/") + path for path in PAGES
    ]


def test_failed_pages_are_tried_again_when_asked(site: Site, tmp_path: Path) -> None:
    """They are failed everywhere until then; afterwards every URL has one record, with a status."""
    site.start()
    site.broken = {"/c"}
    crawled(site, tmp_path / "c")
    before, state = total(tmp_path / "c"), state_of(tmp_path / "c", site.url + "c")
    errors = [each["error"] for each in exported(tmp_path / "c") if each["status"] is None]
    site.broken = set()
    asked = Counter(site.requests)

    resumed = invoke("resume", tmp_path / "c", "-q").exit_code
    untouched = Counter(site.requests)
    outcome = invoke("retry", tmp_path / "c", "--failed", "-q")

    assert (before["fetched"], before["failed"], state, len(errors)) == (3, 1, "failed", 1)
    assert (resumed, untouched) == (0, asked)
    assert outcome.exit_code == 0
    assert site.requests - asked == Counter({"/c": 1})
    assert total(tmp_path / "c")["failed"] == 0
    assert [each["status"] for each in exported(tmp_path / "c")] == [200] * 4


def test_a_host_that_was_given_up_gets_its_queue_back(site: Site, tmp_path: Path) -> None:
    """Its URLs are given up, not skipped; a retry revives the host and fetches all of them."""
    site.start()
    site.broken = {"/a", "/b", "/c"}
    crawled(site, tmp_path / "c")
    before = total(tmp_path / "c")
    (host,) = json.loads(invoke("hosts", tmp_path / "c", "--json").stdout)
    rows = exported(tmp_path / "c", "--include-skipped")
    site.broken = set()

    outcome = invoke("retry", tmp_path / "c", "--host", site.url, "-q")

    assert (before["failed"], before["given_up"], before["skipped"]) == (1, 2, 0)
    assert (host["failed"], host["given_up"]) == (1, 2)
    assert [row["given_up"] for row in rows if row.get("given_up")] == [
        "host_retired: 1 failures in a row"
    ] * 2
    assert outcome.exit_code == 0, outcome.stderr
    after = total(tmp_path / "c")
    assert (after["fetched"], after["failed"], after["given_up"]) == (4, 0, 0)
    (host,) = json.loads(invoke("hosts", tmp_path / "c", "--json").stdout)
    assert (host["fetched"], host["failed"], host["retired"]) == (4, 0, None)


@pytest.mark.parametrize("word", ["forget", "resume"])
def test_a_host_is_revived_by_other_words_too(site: Site, tmp_path: Path, word: str) -> None:
    """`host forget` and `host resume` bring back what was given up, when the crawl goes on."""
    site.start()
    site.broken = {"/a", "/b", "/c"}
    crawled(site, tmp_path / "c")
    site.broken = set()
    invoke("host", word, tmp_path / "c", site.url)

    invoke("resume", tmp_path / "c", "-q")

    after = total(tmp_path / "c")
    assert (after["fetched"], after["failed"], after["given_up"]) == (3, 1, 0)


def test_a_running_crawl_tries_again_at_once(site: Site, tmp_path: Path) -> None:
    """The order is acted on while another page is still being answered."""
    site.start()
    site.broken = {"/b"}
    site.slow["/c"] = threading.Event()
    options = {"strategy": "fixed", "delay": 0.01, "max_rate": "unlimited", "per_host": 2}
    with mannerly.Crawl(
        site.url, data_dir=tmp_path / "c", seeding_strategy="none", **options
    ) as it:
        it.start()
        try:
            eventually(lambda: it.status().total["failed"] == 1)
            site.broken = set()
            tried = site.requests["/b"]
            it.retry(failed=True)
            eventually(lambda: site.requests["/b"] > tried)
        finally:
            site.slow["/c"].set()
        it.wait(60)
        after = it.status().total

    assert (after["fetched"], after["failed"]) == (4, 0)


def test_a_retry_needs_a_crawl(tmp_path: Path) -> None:
    """A wrong directory is a usage error."""
    assert invoke("retry", tmp_path).exit_code == 2


def test_the_numbers_agree_wherever_they_are_shown(site: Site, tmp_path: Path) -> None:
    """The result of a run, status, hosts and the export count the same things alike."""
    site.start()
    site.broken = {"/b"}
    crawled(site, tmp_path / "c")
    result = json.loads(invoke("retry", tmp_path / "c", "--given-up", "--json").stdout)
    after = total(tmp_path / "c")
    (host,) = json.loads(invoke("hosts", tmp_path / "c", "--json").stdout)
    records = exported(tmp_path / "c")

    assert (after["fetched"], after["failed"], after["given_up"]) == (3, 1, 0)
    assert [each["status"] is None for each in records].count(True) == after["failed"]
    assert len(records) == after["fetched"] + after["failed"]
    assert (host["fetched"], host["failed"], host["queued"]) == (3, 1, 0)
    assert (result["fetched"], result["queued"], result["pending"]) == (1, 0, 0)


def test_what_is_left_is_the_same_everywhere(site: Site, tmp_path: Path) -> None:
    """A run that ends early says as many queued URLs as `status` does."""
    site.start()
    outcome = invoke(
        *("crawl", site.url, "--data-dir", tmp_path / "c", "--max-urls", 2, "--json", "-q"),
        *("--seeding-strategy", "none", "--max-rate", "unlimited"),
    )
    result, after = json.loads(outcome.stdout), total(tmp_path / "c")

    assert (result["queued"], result["pending"]) == (2, 2)
    assert (after["queued"], after["pending"]) == (2, 2)
    assert result["fetched"] == after["fetched"] == len(exported(tmp_path / "c"))


@pytest.mark.parametrize("status", [500, 503])
def test_a_page_that_ended_in_an_error_or_a_refusal_is_tried_again(
    site: Site, tmp_path: Path, status: int
) -> None:
    """It has failed for status, explain and retry, and its record is in the export until then."""
    site.statuses["/a"] = status
    site.start()
    directory = tmp_path / "crawl"
    with mannerly.Crawl(
        site.url, data_dir=directory, politeness=PACE, seeding_strategy="none"
    ) as crawl:
        crawl.run()
    before, state = total(directory), state_of(directory, f"{site.url}a")
    records = {record["url"]: record["status"] for record in exported(directory)}
    site.statuses.clear()

    done = invoke("retry", directory, "--failed")

    assert (before["fetched"], before["failed"]) == (3, 1)
    assert state == "failed"
    assert records[f"{site.url}a"] == status
    assert "Trying 1 failed URLs again" in done.stderr
    assert (total(directory)["fetched"], total(directory)["failed"]) == (4, 0)


def command(site: Site, directory: Path, *more: str) -> Result:
    fast = ("--strategy", "fixed", "--delay", "0.01", "--max-rate", "unlimited", "--memory", "none")
    options = ("--data-dir", directory, "--seeding-strategy", "none", *fast, *more)
    return invoke("crawl", site.url, *options)


def test_a_seed_that_was_not_found_is_asked_for_again(site: Site, tmp_path: Path) -> None:
    """The same command finds it when it is there, and asks for nothing twice afterwards."""
    site.statuses["/"] = 404
    site.start()
    first = command(site, tmp_path / "crawl")
    site.statuses.clear()

    again = [command(site, tmp_path / "crawl") for _ in range(2)]

    assert first.exit_code == 3
    assert "run the same command again" in first.stderr
    assert [each.exit_code for each in again] == [0, 0]
    assert [site.requests[path] for path in PAGES] == [2, 1, 1, 1]


@pytest.mark.parametrize("name", ["crawl", "retry"])
def test_a_seed_that_asks_for_a_login_gets_it(site: Site, tmp_path: Path, name: str) -> None:
    """With --auth, as the message advises: in the same command, or with retry."""
    site.login = "Basic bWU6c2VjcmV0"
    site.start()
    directory = tmp_path / "crawl"
    first = command(site, directory)
    login = f"http://127.0.0.1:{site.port}=me:secret"

    done = (
        command(site, directory, "--auth", login)
        if name == "crawl"
        else invoke("retry", directory, "--auth", login)
    )

    assert first.exit_code == 3
    assert "--auth" in first.stderr
    assert done.exit_code == 0, done.stderr
    assert total(directory)["fetched"] == len(PAGES)


def test_one_of_several_seeds_that_gave_no_page_is_asked_for_again(
    site: Site, tmp_path: Path
) -> None:
    """Other pages that are not there are not."""
    site.statuses |= {"/a": 410, "/b": 404}
    site.start()
    seeds = (site.url, f"{site.url}a")
    fast = ("--strategy", "fixed", "--delay", "0.01", "--max-rate", "unlimited", "--memory", "none")

    for _ in range(2):
        invoke(
            "crawl", *seeds, "--data-dir", tmp_path / "crawl", "--seeding-strategy", "none", *fast
        )

    assert [site.requests[path] for path in PAGES] == [1, 2, 1, 1]


def test_a_login_cannot_be_given_to_a_crawl_that_runs(site: Site, tmp_path: Path) -> None:
    """The command says so and changes nothing."""
    site.slow["/"] = threading.Event()
    site.start()
    with mannerly.Crawl(
        site.url, data_dir=tmp_path / "crawl", politeness=PACE, seeding_strategy="none"
    ) as crawl:
        crawl.start()
        eventually(lambda: site.requests["/"] > 0)

        done = invoke("retry", tmp_path / "crawl", "--auth", "a.example=me:secret")
        site.slow["/"].set()
        crawl.wait()

    assert done.exit_code == 2
    assert "--auth cannot be changed while the crawl runs" in done.stderr
