"""A directory whose counters, rows or pages are damaged: mended, or exit code 4 and what to do."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import apsw
import pytest
from tests.crawler.store.checkup import examine as wrong
from tests.exports.stored_example import SHARDING, make_crawl
from tests.harness.commands import invoke

from mannerly.crawler.store import examine, open_crawl, repair
from mannerly.crawler.store.base import Batch, ShardOptions, StoreError, StoreInUse
from mannerly.crawler.store.contract import candidate, offer
from mannerly.crawler.store.sqlite import shard as shard_module

if TYPE_CHECKING:
    from pathlib import Path


HERE = SHARDING.shard_of("a.example")
OPTIONS = ShardOptions(frontier_limit=1000)


@pytest.fixture
def crawl(tmp_path: Path) -> Path:
    return make_crawl(tmp_path / "crawl")


def change(crawl: Path, *statements: str) -> None:
    """Write to the file as another program would."""
    connection = apsw.Connection(str(crawl / f"shard-{HERE}.db"))
    for statement in statements:
        connection.execute(statement)
    connection.close()


COUNTERS = [
    "UPDATE totals SET ready = ready + 1",
    "UPDATE totals SET ready = -3",
    "UPDATE totals SET fetched = 'many', applied = 1e300",
    "UPDATE totals SET next_seq = 1, next_position = 1",
    "DELETE FROM totals",
    "UPDATE hosts SET ready = 7, given_up = 1e9",
]


@pytest.mark.parametrize("statement", COUNTERS)
def test_wrong_counters_are_mended_when_the_shard_is_opened(crawl: Path, statement: str) -> None:
    """The owner says so in one line, and goes on as if nothing had happened."""
    change(crawl, statement)

    with open_crawl(crawl).claim(HERE, OPTIONS) as store:
        mended = store.take_mended()
        new = store.commit(offer([candidate("/new"), candidate("/")])).new

        assert len(mended) == 1
        assert "\n" not in mended[0]
        assert [entry.url for entry in new] == ["https://a.example/new"]
    assert wrong(crawl, HERE) == []


def test_counters_of_a_large_shard_are_checked_after_an_unclean_end(
    crawl: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A shard that was closed is believed; one that was not is counted."""
    monkeypatch.setattr(shard_module, "CHECKED_ALWAYS", 0)
    change(crawl, "UPDATE totals SET hosts = hosts + 1")
    with open_crawl(crawl).claim(HERE, OPTIONS) as store:
        believed = store.take_mended()
    change(crawl, "UPDATE owner SET is_open = 1")  # as a killed process leaves it

    with open_crawl(crawl).claim(HERE, OPTIONS) as store:
        counted = store.take_mended()
    with open_crawl(crawl).claim(HERE, OPTIONS) as store:
        afterwards = store.take_mended()

    assert (believed, afterwards) == ([], [])
    assert len(counted) == 1


def test_a_shard_in_use_is_marked_as_open(crawl: Path) -> None:
    """And as closed when it was closed."""

    def mark() -> object:
        connection = apsw.Connection(str(crawl / f"shard-{HERE}.db"))
        return connection.execute("SELECT is_open FROM owner").fetchall()

    with open_crawl(crawl).claim(HERE, OPTIONS):
        meanwhile = mark()

    assert (meanwhile, mark()) == ([(1,)], [(0,)])


def test_a_crawl_with_wrong_counters_ends(crawl: Path) -> None:
    """A counter that promises more than there is does not keep it waiting."""
    change(crawl, "UPDATE totals SET ready = ready + 1", "DELETE FROM queue")

    outcome = invoke("resume", crawl)

    assert outcome.exit_code in (0, 1)
    assert "mended wrong counters (ready is 2 instead of 0" in outcome.stderr


ROWS = {
    "text that is not UTF-8": "UPDATE pages SET title = CAST(x'ff00' AS TEXT)",
    "a page without a URL": "UPDATE pages SET url = x'00' WHERE status = 404",
    "a queued URL that is none": "UPDATE queue SET url = 'nonsense'",
    "a number that is none": "UPDATE pages SET links = 'many' WHERE status = 404",
}


@pytest.mark.parametrize("statement", ROWS.values(), ids=ROWS)
def test_unreadable_rows_are_told_and_moved_aside(crawl: Path, statement: str) -> None:
    """Every command says exit 4 and what to do; a repair leaves a sound crawl without them."""
    change(crawl, statement)
    doctor = invoke("doctor", crawl)
    exported = invoke("export", crawl, "-o", "-")

    repaired = invoke("doctor", crawl, "--repair")

    assert (doctor.exit_code, "unreadable rows" in doctor.stdout) == (4, True)
    assert exported.exit_code == 4 or "queue" in statement
    assert exported.exit_code == 0 or "doctor --repair" in exported.stderr
    assert repaired.exit_code == 0, repaired.stdout
    assert examine(crawl) == []
    assert wrong(crawl, HERE) == []
    assert (crawl / f"shard-{HERE}.damaged").stat().st_size
    assert invoke("export", crawl, "-o", "-").exit_code == 0
    assert invoke("wipe", crawl, "--yes").exit_code == 0


def test_a_row_that_is_moved_aside_is_kept_whole(crawl: Path) -> None:
    """All its columns, so that nothing is lost that could still be read."""
    change(crawl, "UPDATE pages SET links = 'many' WHERE status = 404")

    invoke("doctor", crawl, "--repair")

    (line,) = (crawl / f"shard-{HERE}.damaged").read_text().splitlines()
    moved = json.loads(line)
    assert moved["table"] == "pages"
    assert moved["row"]["url"] == repr("https://a.example/gone")
    assert (moved["row"]["status"], moved["row"]["links"]) == ("404", repr("many"))


def test_a_shard_that_is_gone_cannot_be_repaired(crawl: Path) -> None:
    """It says so instead of building an empty one."""
    (crawl / f"shard-{HERE}.db").unlink()

    repaired = invoke("doctor", crawl, "--repair")

    assert repaired.exit_code == 4
    assert "is missing: restore the directory from a copy" in repaired.stderr


@pytest.mark.parametrize("renames", [0, 1])
def test_a_repair_that_was_killed_between_its_renames_can_be_repeated(
    crawl: Path, monkeypatch: pytest.MonkeyPatch, renames: int
) -> None:
    """Every command says what to do, and the next repair leaves what the first would have left."""
    _corrupt(crawl)
    done: list[Path] = []
    rename = type(crawl).replace

    def killed(path: Path, target: Path) -> Path:
        if len(done) == renames:
            raise KeyboardInterrupt
        done.append(path)
        return rename(path, target)

    with monkeypatch.context() as patch:
        patch.setattr(type(crawl), "replace", killed)
        with pytest.raises(KeyboardInterrupt):
            repair(crawl)
    found = invoke("doctor", crawl)
    repaired = invoke("doctor", crawl, "--repair")

    assert (found.exit_code, "doctor --repair" in found.stderr) == (4, True)
    assert repaired.exit_code == 0, repaired.output
    assert wrong(crawl, HERE) == []
    assert examine(crawl) == []
    assert (crawl / f"shard-{HERE}.damaged.db").exists()
    with open_crawl(crawl).claim(HERE, OPTIONS) as store:
        assert store.counts().queued > 1000


def test_a_sound_crawl_is_said_to_be_sound(crawl: Path) -> None:
    """And a repair changes nothing in it."""
    before = (crawl / f"shard-{HERE}.db").read_bytes()

    outcome = invoke("doctor", crawl)

    assert (outcome.exit_code, outcome.stdout) == (0, "")
    assert repair(crawl) == []
    assert (crawl / f"shard-{HERE}.db").read_bytes() == before


def test_urls_that_lost_their_place_are_queued_again(crawl: Path) -> None:
    """A URL that is known, and nowhere else, would never be fetched."""
    change(crawl, "DELETE FROM pages WHERE status = 404", "DELETE FROM skipped")

    outcome = invoke("doctor", crawl, "--repair")

    assert outcome.exit_code == 0, outcome.stdout
    state = json.loads(invoke("explain", crawl, "https://a.example/gone", "--json").stdout)
    assert state["state"] == "queued"
    assert wrong(crawl, HERE) == []


def _corrupt(crawl: Path) -> None:
    """Overwrite two pages in the middle of a file with 3,000 URLs."""
    with open_crawl(crawl).claim(HERE, OPTIONS) as store:
        store.commit(Batch(found=[candidate(f"/{n}") for n in range(3000)]))
    file = crawl / f"shard-{HERE}.db"
    with file.open("r+b") as stream:
        stream.seek(file.stat().st_size // 2)
        stream.write(b"\xff" * 8192)


def test_a_file_with_corrupt_pages_is_built_anew(tmp_path: Path) -> None:
    """What can be read is kept, the damaged file too."""
    crawl = make_crawl(tmp_path / "crawl")
    _corrupt(crawl)
    found = examine(crawl)

    outcome = invoke("doctor", crawl, "--repair")

    assert found != []
    assert outcome.exit_code == 0, outcome.stdout
    assert wrong(crawl, HERE) == []
    assert (crawl / f"shard-{HERE}.damaged.db").exists()
    with open_crawl(crawl).claim(HERE, OPTIONS) as store:
        assert store.counts().queued > 1000


def test_a_crawl_at_work_is_not_repaired(crawl: Path) -> None:
    """Its owner would not notice."""
    with open_crawl(crawl).claim(HERE, OPTIONS), pytest.raises(StoreInUse):
        repair(crawl)


def test_a_hidden_table_is_refused(crawl: Path) -> None:
    """Exit code 4: no file with other tables, views or triggers than ours is used."""
    change(crawl, "CREATE TRIGGER t AFTER INSERT ON queue BEGIN DELETE FROM pages; END")

    with pytest.raises(StoreError, match="tables are not ours"):
        open_crawl(crawl).claim(HERE, OPTIONS)

    assert invoke("status", crawl).exit_code == 4
