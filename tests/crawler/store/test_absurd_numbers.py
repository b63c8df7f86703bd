"""Directories and memories with absurd numbers, as revision 1971ab0 wrote them, open again."""

from __future__ import annotations

import json
import tarfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.crawler.store.absurd_web import HOSTS, PLAIN, every_page, served
from tests.harness.commands import invoke

if TYPE_CHECKING:
    from collections.abc import Iterator


FIXTURE = Path(__file__).parent / "fixtures" / "absurd-6.tar.gz"
ABSURD = HOSTS[1:]
FETCHED = 7  # pages of the plain host that each crawl of the fixture has


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A crawl for each absurd host, and the memory of hosts that they share."""
    with tarfile.open(FIXTURE) as archive:
        archive.extractall(tmp_path, filter="data")
    monkeypatch.setenv("MANNERLY_MEMORY", str(tmp_path / "hosts.sqlite"))
    return tmp_path


@pytest.fixture(scope="module")
def _web() -> Iterator[None]:
    with served():
        yield


def fetched(crawl: Path) -> set[str]:
    outcome = invoke("export", crawl, "-o", "-")
    assert outcome.exit_code == 0, outcome.stderr
    records = map(json.loads, outcome.stdout.splitlines())
    return {record["url"] for record in records if record["status"] == 200}


@pytest.mark.parametrize("number", range(len(ABSURD)))
@pytest.mark.usefixtures("_web")
def test_crawl_with_an_absurd_number_is_resumed_to_its_end(place: Path, number: int) -> None:
    """Every page of the other host is fetched, the absurd host is given up, and it is said."""
    crawl = place / f"crawl-{number}"
    before = fetched(crawl)

    resumed = invoke("resume", crawl, "--max-urls", "100")

    assert len(before) == FETCHED
    assert resumed.exit_code == 1, resumed.output
    assert fetched(crawl) - every_page() <= {f"http://{ABSURD[number]}/"}
    assert fetched(crawl) >= every_page()
    assert "Mended" in resumed.output
    assert ABSURD[number] in resumed.output


@pytest.mark.usefixtures("_web")
def test_crawl_with_an_absurd_number_is_retried_and_crawled_again(place: Path) -> None:
    """Neither command is refused, and every page of the other host is there afterwards."""
    retried, again = place / "crawl-1", place / "crawl-2"

    codes = [
        invoke("retry", retried).exit_code,
        invoke("recrawl", again, "--max-urls", "100").exit_code,
    ]

    assert codes == [1, 1]  # the absurd host is given up
    assert fetched(retried) == fetched(again) == every_page()


@pytest.mark.parametrize("number", range(len(ABSURD)))
def test_commands_work_on_a_crawl_with_an_absurd_number(place: Path, number: int) -> None:
    """What looks at it works, and the doctor says what is wrong and mends it."""
    crawl, host = place / f"crawl-{number}", ABSURD[number]
    looks = [
        invoke("status", crawl, "--json"),
        invoke("hosts", crawl),
        invoke("host", "show", crawl, host),
        invoke("explain", crawl, f"http://{host}/"),
        invoke("host", "forget", crawl, host),
    ]
    examined = invoke("doctor", crawl)
    repaired = invoke("doctor", "--repair", crawl)
    again = invoke("doctor", crawl)

    assert [look.exit_code for look in looks] == [0] * len(looks), [look.output for look in looks]
    assert (examined.exit_code, repaired.exit_code, again.exit_code) == (4, 0, 0)
    assert "rows with numbers out of range" in examined.stdout
    assert "put the numbers of" in repaired.output
    assert fetched(crawl) <= every_page()


@pytest.mark.usefixtures("_web")
def test_new_crawl_with_a_memory_of_absurd_numbers(place: Path) -> None:
    """What the memory knows of the absurd hosts holds, and everything else is crawled."""
    seeds = [f"http://{host}/" for host in HOSTS]
    fast = ("--strategy", "fixed", "--delay", "0.05", "--seeding-strategy", "none", "--quiet")

    crawled = invoke("crawl", *seeds, *fast, "--data-dir", place / "new")

    assert crawled.exit_code == 1, crawled.output
    assert fetched(place / "new") == every_page()
    hosts = {
        each["host"]: each for each in json.loads(invoke("hosts", place / "new", "--json").stdout)
    }
    assert hosts[PLAIN]["fetched"] == len(every_page())
