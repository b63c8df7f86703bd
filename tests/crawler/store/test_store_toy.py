"""A store from outside passes the suite, and the commands work on it without knowing it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from tests.crawler.runtime.harness import page_requests
from tests.crawler.store import toy_store
from tests.exports.stored_example import PAGES, PRIVATE, QUEUED, SEED, make_crawl
from tests.harness.commands import invoke
from tests.library.loops import FAST

import mannerly
from mannerly.crawler.control import HostForget
from mannerly.crawler.store import SCHEMES, exists, open_crawl
from mannerly.crawler.store.contract import StoreContract
from mannerly.demo import DemoWeb, plain_sites

if TYPE_CHECKING:
    from pathlib import Path

    from click.testing import Result


@pytest.fixture
def location(monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setitem(SCHEMES, toy_store.SCHEME, toy_store.IMPLEMENTATION)
    monkeypatch.setattr(toy_store, "CRAWLS", {})
    return "toy:example"


class TestToyStore(StoreContract):
    """The fixture `location` is the module's."""


@pytest.fixture
def crawl(location: str) -> str:
    return make_crawl(location)


def done(*arguments: object) -> Result:
    outcome = invoke(*arguments)
    assert outcome.exit_code == 0, outcome.stderr
    return outcome


def test_status_works_on_any_store(crawl: str) -> None:
    """The counts and the state are the store's, and the location is shown."""
    facts = json.loads(done("status", crawl, "--json").stdout)

    assert (facts["crawl"], facts["state"]) == (crawl, "stopped")
    assert facts["total"]["fetched"] + facts["total"]["failed"] == len(PAGES)
    assert done("status", crawl).stdout.startswith(f"{crawl}: stopped")


def test_hosts_and_explain_work_on_any_store(crawl: str) -> None:
    """They show what the readers say."""
    hosts = json.loads(done("hosts", crawl, "--json").stdout)
    shown = done("host", "show", crawl, "a.example").stdout
    facts = json.loads(done("explain", crawl, PRIVATE, "--json").stdout)

    assert [host["host"] for host in hosts] == ["a.example", "b.example"]
    assert QUEUED in shown
    assert (facts["state"], facts["found_by"]) == ("skipped", [SEED])
    assert facts["because"].startswith("forbidden by robots.txt")


def test_export_and_wipe_work_on_any_store(crawl: str, tmp_path: Path) -> None:
    """Every record is written, and then the crawl is gone."""
    target = tmp_path / "pages.jsonl"

    done("export", crawl, "-o", target)
    done("host", "forget", crawl, "a.example")
    orders = [order for _, order in open_crawl(crawl).orders()]
    done("wipe", crawl, "--yes")

    assert len(target.read_bytes().splitlines()) == len(PAGES)
    assert orders == [HostForget("a.example")]
    assert not exists(crawl)


@pytest.mark.processes
def test_a_whole_crawl_runs_in_any_store(location: str) -> None:
    """The runtime and the library know no store by name: pages, records and status agree."""
    with DemoWeb(plain_sites(2, pages=12)) as web:
        pages = [page.url for page in mannerly.crawl(web.seeds(), data_dir=location, **FAST)]
        asked = len(page_requests(web.log()))

    with mannerly.open(location) as crawl:
        status, records = crawl.status(), [record.url for record in crawl.pages()]
    assert len(pages) == len(set(pages)) == asked == 24
    assert sorted(records) == sorted(pages)
    assert status.state == "finished"
    assert status.total["fetched"] == 24
