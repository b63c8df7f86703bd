"""A segment that a power cut has shortened: `doctor --repair`, then `retry --missing`."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.exports.archive_site import ANSWERS, Answer, archive_site
from tests.harness.commands import invoke

if TYPE_CHECKING:
    from collections.abc import Callable


PACE = ("--strategy", "fixed", "--delay", "0.001", "--max-rate", "unlimited", "--processes", "1")
TEXT = b"<p>A page that is long enough to be worth a revisit when it comes again.</p>" * 30


def site(pages: int) -> dict[str, Answer]:
    links = "".join(f'<a href="/{n}">{n}</a>' for n in range(pages)).encode()
    return {"/": Answer(links)} | {
        f"/{n}": Answer(b"<title>%d</title>" % n + TEXT) for n in range(pages)
    }


def crawl(url: str, data_dir: Path) -> None:
    words = [url, "--data-dir", data_dir, "--keep-bodies", *PACE, "--segment-size", "20000", "-q"]
    ended = invoke("crawl", *words)
    assert ended.exit_code == 0, ended.output


def exported(data_dir: Path, tmp_path: Path) -> list[dict[str, object]]:
    target = tmp_path / "pages.jsonl"
    assert invoke("export", data_dir, "-o", target).exit_code == 0
    return [json.loads(line) for line in target.read_text("utf-8").splitlines()]


def archived(data_dir: Path, tmp_path: Path) -> Counter[str]:
    """How often each URL has an answer in the exported archive, which must be clean."""
    target = tmp_path / "site.warc.gz"
    assert invoke("export", data_dir, "-o", target).exit_code == 0
    bin_dir = Path(sys.executable).parent
    checked = subprocess.run([bin_dir / "warcio", "check", target], check=False, timeout=60)
    assert checked.returncode == 0
    index = subprocess.run(
        [bin_dir / "cdxj-indexer", target], capture_output=True, text=True, check=True, timeout=60
    ).stdout
    return Counter(json.loads(line.split(" ", 2)[2])["url"] for line in index.splitlines())


def _shorten(by: int) -> Callable[[Path], None]:
    def shorten(segment: Path) -> None:
        with segment.open("r+b") as file:
            file.truncate(segment.stat().st_size - by)

    return shorten


def _end_with_zeros(segment: Path) -> None:
    size = segment.stat().st_size
    with segment.open("r+b") as file:
        file.truncate(size - 2000)
        file.truncate(size)


@pytest.mark.processes
@pytest.mark.parametrize(
    "damage",
    [_shorten(1), _shorten(5000), _end_with_zeros, Path.unlink],
    ids=["one byte", "many records", "zeros", "the whole file"],
)
def test_answers_that_a_power_cut_took_are_fetched_again(
    tmp_path: Path, damage: Callable[[Path], None]
) -> None:
    """Refused with what to do; repaired with every record; fetched again, and nothing else."""
    data_dir = tmp_path / "crawl"
    with archive_site(site(60)) as served:
        crawl(served.url, data_dir)
        before = exported(data_dir, tmp_path)
        segment = max(data_dir.glob("*.warc.gz"), key=lambda file: file.stat().st_mtime_ns)
        damage(segment)
        refused = invoke("resume", data_dir)
        examined = invoke("doctor", data_dir)
        repaired = invoke("doctor", "--repair", data_dir)
        kept = exported(data_dir, tmp_path)
        listed = segment.with_name(segment.name.replace(".warc.gz", ".lost"))
        lost = set(listed.read_text().splitlines())
        resumed = invoke("resume", data_dir)
        asked = len(served.requests)
        tried = invoke("retry", data_dir, "--missing")
        again = {request.split(b" ", 2)[1].decode() for request in served.requests[asked:]}

        assert examined.exit_code == 4
        if damage is not _end_with_zeros:
            assert refused.exit_code == 4
            assert "doctor --repair" in refused.output
        assert repaired.exit_code == 0, repaired.output
        assert f"{len(lost):,} pages have lost their answers" in repaired.output
        assert kept == before
        assert resumed.exit_code == 0, resumed.output
        assert tried.exit_code == 0, tried.output
        assert {served.url + path[1:] for path in again - {"/robots.txt"}} == lost
        after = archived(data_dir, tmp_path)
        del after[served.url + "robots.txt"], after[served.url + "sitemap.xml"]
        assert after == dict.fromkeys([row["url"] for row in before], 1)
        pages = exported(data_dir, tmp_path)
        assert [row["url"] for row in pages] == [row["url"] for row in before]
        assert invoke("doctor", data_dir).exit_code == 0
        assert "nothing to fetch again" in invoke("retry", data_dir, "--missing").output


def test_damage_in_the_middle_costs_its_own_page(tmp_path: Path) -> None:
    """The answers behind it stay where they are."""
    data_dir = tmp_path / "crawl"
    with archive_site(site(10)) as served:
        crawl(served.url, data_dir)
        (segment,) = data_dir.glob("*.warc.gz")
        middle = segment.stat().st_size // 2
        with segment.open("r+b") as file:
            file.seek(middle)
            file.write(b"\xff" * 20)

        examined = invoke("doctor", data_dir)
        repaired = invoke("doctor", "--repair", data_dir)
        lost = segment.with_name("shard-0-1.lost").read_text().splitlines()
        asked = len(served.requests)
        tried = invoke("retry", data_dir, "--missing")

        assert (examined.exit_code, repaired.exit_code, tried.exit_code) == (4, 0, 0)
        assert len(lost) == 1
        assert len(served.requests) - asked == 1


def test_nothing_can_be_missing_where_nothing_is_kept(tmp_path: Path) -> None:
    """The message names the option."""
    data_dir = tmp_path / "crawl"
    with archive_site(ANSWERS) as served:
        invoke("crawl", served.url, "--data-dir", data_dir, *PACE, "-q")

        tried = invoke("retry", data_dir, "--missing")

    assert tried.exit_code == 2
    assert "--keep-bodies" in tried.output
