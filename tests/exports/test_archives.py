"""Web archives that a crawl writes are read by the tools that archivists use."""

from __future__ import annotations

import gzip
import hashlib
import json
import subprocess
import sys
import zipfile
import zlib
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from bench._replay import asked, is_pywb_here, replaying
from tests.exports.archive_site import ANSWERS, ROBOTS, archive_site

from mannerly.crawler.crawl import Crawl
from mannerly.exports import ExportError, export
from mannerly.exports.archive import ValidSegment, index_lines

if TYPE_CHECKING:
    from collections.abc import Iterator

FAST = {"delay": 0.001, "start_rate": 1000, "max_rate": 1000, "strategy": "fixed"}


class Kept:
    """A crawl that has kept its bodies, and the site that it crawled."""

    def __init__(self, directory: Path, url: str) -> None:
        self.directory = directory
        self.url = url


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kept]:
    directory = tmp_path_factory.mktemp("kept") / "crawl"
    with archive_site() as site:
        with Crawl(
            site.url, data_dir=directory, keep_bodies=True, segment_size=8000, **FAST
        ) as crawl:
            crawl.run()
        yield Kept(directory, site.url)


def tool(name: str, *arguments: object) -> str:
    words = [str(Path(sys.executable).with_name(name)), *map(str, arguments)]
    ended = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout


@pytest.mark.processes
def test_warc_is_all_segments_in_one_file(kept: Kept, tmp_path: Path) -> None:
    """`warcio check` is clean, and every page of the crawl is in it."""
    outcome = export(kept.directory, str(tmp_path / "site.warc.gz"))

    tool("warcio", "check", tmp_path / "site.warc.gz")
    lines = tool("cdxj-indexer", tmp_path / "site.warc.gz").splitlines()
    urls = {json.loads(line.split(" ", 2)[2])["url"] for line in lines}
    assert outcome.records == (tmp_path / "site.warc.gz").stat().st_size
    assert urls >= {kept.url + path[1:] for path in ANSWERS}


@pytest.mark.processes
def test_index_is_that_of_the_archivists_tool(kept: Kept) -> None:
    """Line for line: key, time, type, status, digest and place of every answer."""
    files = sorted(kept.directory.glob("*.warc.gz"))

    ours = list(index_lines([ValidSegment(file, file.stat().st_size) for file in files], piece=5))
    theirs = tool("cdxj-indexer", "--sort", *files).encode().splitlines(keepends=True)

    assert [line.decode() for line in ours] == [line.decode() for line in theirs]


def test_wacz_describes_its_files(kept: Kept, tmp_path: Path) -> None:
    """Every file has its size and digest, the description too, and the list has every page."""
    export(kept.directory, str(tmp_path / "site.wacz"))

    with zipfile.ZipFile(tmp_path / "site.wacz") as archive:
        described = archive.read("datapackage.json")
        resources = json.loads(described)["resources"]
        found = {each["path"]: archive.read(each["path"]) for each in resources}
        digest = json.loads(archive.read("datapackage-digest.json"))["hash"]
        names = set(archive.namelist())
        assert all(info.compress_type == zipfile.ZIP_STORED for info in archive.infolist())
    assert digest == f"sha256:{hashlib.sha256(described).hexdigest()}"
    for each in resources:
        content = found[each["path"]]
        assert each["bytes"] == len(content)
        assert each["hash"] == f"sha256:{hashlib.sha256(content).hexdigest()}"
    assert names == {*found, "datapackage.json", "datapackage-digest.json"}
    head, *pages = map(json.loads, found["pages/pages.jsonl"].splitlines())
    assert head["format"] == "json-pages-1.0"
    assert {page["title"] for page in pages} >= {"gzip", "plain", "café"}


def test_archive_of_a_crawl_without_bodies_is_refused(tmp_path: Path) -> None:
    """With the option that keeps them."""
    with (
        archive_site() as site,
        Crawl(site.url, data_dir=tmp_path / "crawl", max_urls=1, **FAST) as crawl,
    ):
        crawl.run()

    with pytest.raises(ExportError, match="--keep-bodies"):
        export(tmp_path / "crawl", str(tmp_path / "site.warc.gz"))


def test_what_is_not_committed_is_not_exported(kept: Kept, tmp_path: Path) -> None:
    """A crawl may be running: what is behind the committed length is left out."""
    export(kept.directory, str(tmp_path / "before.warc.gz"))
    last = max(kept.directory.glob("*.warc.gz"), key=lambda file: int(file.name.split("-")[2][:-8]))
    with last.open("ab") as file:
        file.write(b"half a record")

    export(kept.directory, str(tmp_path / "after.warc.gz"))

    before, after = (tmp_path / f"{name}.warc.gz" for name in ("before", "after"))
    assert before.read_bytes() == after.read_bytes()


# ---------------------------------------------------------------------- replay


@pytest.fixture
def replayed(kept: Kept, tmp_path: Path) -> Iterator[str]:
    """Pywb with the exported WACZ; yields the URL in front of the archived ones."""
    if not is_pywb_here():
        pytest.skip("pywb is not installed: `make .venv/replay/.installed`")
    export(kept.directory, str(tmp_path / "site.wacz"))
    with replaying(tmp_path / "site.wacz", tmp_path) as prefix:
        yield prefix


DECODE = {"gzip": gzip.decompress, "deflate": zlib.decompress, None: bytes}


def test_every_kind_of_page_is_replayed_byte_for_byte(kept: Kept, replayed: str) -> None:
    """HTML in every encoding, images, text, JSON, redirects, errors, revisits and robots.txt."""
    wanted = {"/robots.txt": ROBOTS, **ANSWERS}

    seen = {path: asked(f"{replayed}{kept.url}{path[1:]}") for path in wanted}

    expected = {
        path: (answer.status, DECODE[answer.encoding](answer.body))
        for path, answer in wanted.items()
    }
    assert seen == expected
