"""A byte of a kept answer that has changed: it is found, left out of exports, and said."""

from __future__ import annotations

import gzip
import io
import json
import shutil
import zipfile
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.exports.archive_site import archive_site
from tests.harness.commands import run

import mannerly
from mannerly.crawler.archive.records import DamagedRecord, checked_records, read_records
from mannerly.crawler.archive.warc import warcinfo

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.processes

FAST = {"delay": 0.001, "start_rate": 1000, "max_rate": 1000, "strategy": "fixed"}
MEMBERS = b"".join(warcinfo(f"{name}.warc.gz", {"n": name}, 0.0) for name in "abc")


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A crawl that has kept everything, in one segment."""
    folder = tmp_path_factory.mktemp("whole") / "crawl"
    with archive_site() as site:
        for _ in mannerly.crawl(site.url, data_dir=folder, keep_bodies=True, **FAST):
            pass
    return folder


def damaged(whole: Path, tmp_path: Path, kind: str) -> Path:
    """Return a copy in which a byte in the middle of a record of this kind is another one."""
    folder = tmp_path / "crawl"
    shutil.copytree(whole, folder)
    (segment,) = [file for file in folder.glob("*.warc.gz") if file.stat().st_size]
    data = bytearray(segment.read_bytes())
    (record, *_) = [
        each
        for each in read_records(io.BytesIO(data), len(data))
        if each.kind == kind and each.headers.get("warc-target-uri", "").endswith("/plain")
    ]
    data[record.offset + record.length // 2] ^= 0x10
    segment.write_bytes(data)
    return folder


@pytest.mark.parametrize("kind", ["response", "request"])
def test_doctor_finds_it(whole: Path, tmp_path: Path, kind: str) -> None:
    """With --deep in any record, and the sound crawl stays sound."""
    folder = damaged(whole, tmp_path, kind)

    found, sound = run("doctor", "--deep", folder), run("doctor", "--deep", whole)

    assert found.returncode == 4
    assert "the record at" in found.stdout
    assert (sound.returncode, sound.stdout) == (0, "")


@pytest.mark.parametrize("kind", ["response", "request"])
@pytest.mark.parametrize("name", ["site.warc.gz", "site.wacz"])
def test_archive_leaves_the_record_out(whole: Path, tmp_path: Path, kind: str, name: str) -> None:
    """The file can be read from end to end, lacks one record, and the command says so."""
    folder, file, other = damaged(whole, tmp_path, kind), tmp_path / name, tmp_path / f"all-{name}"

    ended, before = run("export", folder, "-o", file), run("export", whole, "-o", other)

    assert ended.returncode == 1
    assert f"{file} lacks 1 damaged record" in ended.stderr
    assert before.returncode == 0
    assert len(records(other)) - len(records(file)) == 1


def records(file: Path) -> list[object]:
    """Return the records of an archive; its index must lead to each answer."""
    data = file.read_bytes()
    if file.suffix == ".wacz":
        with zipfile.ZipFile(file) as archive:
            (name,) = [each for each in archive.namelist() if each.startswith("archive/")]
            data = archive.read(name)
            lines = archive.read("indexes/index.cdx").decode().splitlines()
        for line in lines:
            place = json.loads(line.split(" ", 2)[2])
            at = int(place["offset"])
            gzip.decompress(data[at : at + int(place["length"])])
    return list(read_records(io.BytesIO(data), len(data)))


@pytest.mark.parametrize("name", ["pages.jsonl", "pages.parquet", "pages/"])
def test_content_of_the_page_is_missing(whole: Path, tmp_path: Path, name: str) -> None:
    """Its record is there without content, the others have theirs, and the command says so."""
    folder = damaged(whole, tmp_path, "response")

    ended = run("export", folder, "-o", f"{tmp_path}/{name}", "--content", "text")

    assert ended.returncode == 1
    assert "lacks 1 damaged record" in ended.stderr


@given(st.data())
def test_damage_costs_the_record_that_it_is_in(data: st.DataObject) -> None:
    """Whatever byte changes, the records before and after it are read."""
    changed = bytearray(MEMBERS)
    changed[data.draw(st.integers(0, len(MEMBERS) - 1))] ^= data.draw(st.integers(1, 255))

    found = list(checked_records(io.BytesIO(changed), len(MEMBERS)))

    lost = [each for each in found if isinstance(each, DamagedRecord)]
    assert len(lost) <= 1
    assert len(found) - len(lost) == 3 - len(lost)
    assert sum(each.length for each in found) == len(MEMBERS)
