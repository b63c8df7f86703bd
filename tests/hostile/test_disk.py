"""Disks that fill up, lose power, or hold something else than they did."""

from __future__ import annotations

import random
import resource
import shutil
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.crawler.runtime.harness import real_pages
from tests.crawler.store import test_store_faults as faults
from tests.crawler.store.store_disk import FailingDisk
from tests.exports.archive_site import Answer, archive_site
from tests.harness.waiting import eventually
from tests.hostile.commands import PLAIN, pages, run, watched
from torture.command import Command
from warcio.archiveiterator import ArchiveIterator

from mannerly.crawler.store.base import StoreError
from mannerly.demo import DemoWeb, plain_sites

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.hostile.conftest import Figure

pytestmark = pytest.mark.processes

FULL_BYTES = 300_000
SEGMENT_BYTES = 2_000_000  # a segment has as many before any file of the store has


def test_full_disk_pauses_and_goes_on(tmp_path: Path, figure: Figure) -> None:
    """No file may grow: the crawl says so, ends no page, and goes on when there is room."""
    data_dir = tmp_path / "crawl"
    output = tmp_path / "output.txt"
    with DemoWeb(plain_sites(4, pages=40, size=2000)) as web:
        words = ["crawl", *web.seeds(), "--data-dir", str(data_dir), *PLAIN, "--scope", "any"]
        command = Command([*words, "--allow-net", "127.0.0.0/8"], output)
        limit = (FULL_BYTES, resource.RLIM_INFINITY)
        resource.prlimit(command.process.pid, resource.RLIMIT_FSIZE, limit)
        eventually(lambda: "disk" in output.read_text() or command.code is not None)
        while_full = command.code
        requests = len(web.log())
        resource.prlimit(command.process.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY,) * 2)
        code, _ = watched(command)
        urls = [row["url"] for row in pages(data_dir)]
        everything = set(real_pages(web))

    figure(
        "F3",
        f"full after {requests} requests: paused, then {len(everything - set(urls))} pages lost, "
        f"{len(urls) - len(set(urls))} twice",
    )
    assert while_full is None, output.read_text()
    assert code == 0, output.read_text()
    assert (set(urls), len(urls)) == (everything, len(everything))


def test_full_disk_under_a_segment_pauses_and_goes_on(tmp_path: Path, figure: Figure) -> None:
    """Answers are kept: the crawl names the segment, waits, and has each of them once."""
    data_dir, output = tmp_path / "crawl", tmp_path / "output.txt"
    pages_of_site = {
        f"/{n}": Answer(random.Random(n).randbytes(SEGMENT_BYTES // 5), "image/png")
        for n in range(12)
    }
    links = "".join(f'<a href="{path}">x</a>' for path in pages_of_site)
    with archive_site({"/": Answer(links.encode()), **pages_of_site}) as site:
        words = ["crawl", site.url, "--data-dir", str(data_dir), *PLAIN, "--keep-bodies"]
        command = Command(words, output)
        limit = (SEGMENT_BYTES, resource.RLIM_INFINITY)
        resource.prlimit(command.process.pid, resource.RLIMIT_FSIZE, limit)
        eventually(lambda: "warc.gz" in output.read_text() or command.code is not None)
        while_full, told = command.code, output.read_text()
        requests = len(site.requests)
        resource.prlimit(command.process.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY,) * 2)
        code, _ = watched(command)
        asked = Counter(each.split(b" ", 2)[1] for each in site.requests)
    urls = Counter(row["url"] for row in pages(data_dir))
    wanted = Counter([site.url, *(site.url + path[1:] for path in pages_of_site)])
    exported = run("export", str(data_dir), "-o", str(tmp_path / "site.warc.gz"))
    kept: Counter[str] = Counter()
    with (tmp_path / "site.warc.gz").open("rb") as file:
        for record in ArchiveIterator(file, check_digests="raise"):
            if record.rec_type == "response":
                url = record.rec_headers.get_header("WARC-Target-URI")
                body = record.content_stream().read()
                if url in wanted and url != site.url:
                    assert body == pages_of_site[url.removeprefix(site.url[:-1])].body
                kept[url] += url in wanted

    figure(
        "F3",
        f"full under a segment after {requests} requests: paused, then "
        f"{len(wanted - urls)} pages lost, {len(wanted - kept)} answers lost",
    )
    assert while_full is None, told
    assert "no room to write" in told, told
    assert code == 0, output.read_text()
    assert exported.code == 0, exported.said
    assert (urls, +kept) == (wanted, wanted)
    assert max(asked.values()) == 1


def _overwrite(file: Path, offset: int, content: bytes) -> None:
    with file.open("r+b") as opened:
        opened.seek(offset)
        opened.write(content)


def _cut(file: Path) -> None:
    with file.open("r+b") as opened:
        opened.truncate(file.stat().st_size // 2)


DAMAGES: dict[str, Callable[[Path], object]] = {
    "header overwritten": lambda file: _overwrite(file, 0, b"\xff" * 100),
    "cut in half": _cut,
    "pages overwritten": lambda file: _overwrite(file, 4096, b"\xa5" * 4096 * 6),
    "emptied": lambda file: file.write_bytes(b""),
    "replaced by text": lambda file: file.write_text("not a database\n" * 1000),
    "deleted": Path.unlink,
}


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A crawl that has ended at --max-urls, so that there is work left."""
    data_dir = tmp_path_factory.mktemp("damaged") / "crawl"
    with DemoWeb(plain_sites(1, pages=80, size=1500)) as web:
        ended = run("crawl", *web.seeds(), "--data-dir", str(data_dir), *PLAIN, "--max-urls", "40")
    assert ended.code == 0, ended.said
    return data_dir


def test_damaged_file_is_refused(finished: Path, tmp_path: Path, figure: Figure) -> None:
    """Exit code 4, the file and what to do; no traceback, and never a new, empty crawl."""
    wrong = []
    for name, damage in DAMAGES.items():
        data_dir = tmp_path / name.replace(" ", "-")
        shutil.copytree(finished, data_dir)
        (shard,) = data_dir.glob("shard-*.db")
        damage(shard)
        ended = run("resume", str(data_dir))
        if ended.code != 4 or "Traceback" in ended.said or shard.name not in ended.err:
            wrong.append((name, ended.code, ended.err[-200:]))

    figure("F4", f"{len(DAMAGES)} kinds of damage: {len(wrong)} not refused with exit code 4")
    assert wrong == []


@pytest.mark.long
def test_power_cuts_of_a_thousand_seeds(tmp_path: Path, figure: Figure) -> None:
    """Torn, dropped and reordered writes: the store opens, and every page is recorded once."""
    template = tmp_path / "template"
    template.mkdir()
    faults.create_stores(template)
    operations = faults.operations_of_a_crawl(template)
    wrong = []
    for seed in range(1000, 2000):
        rng = random.Random(seed)
        before, after = tmp_path / "before", tmp_path / "after"
        for directory in (before, after):
            shutil.rmtree(directory, ignore_errors=True)
            shutil.copytree(template, directory)
        disk = FailingDisk(power=True)
        disk.arm(rng.randrange(operations))
        with suppress(StoreError):
            faults.crawl_files(before, disk, durable=seed % 2 == 0)
        disk.lose_power(rng, after)
        faults.crawl_files(after, FailingDisk())
        if faults.fetched(after) != faults.EVERY_PAGE:
            wrong.append(seed)

    figure("F2", f"1,000 power cuts: {len(wrong)} lost or repeated a page")
    assert wrong == []


@pytest.mark.long
def test_deleted_directory_is_noticed(tmp_path: Path, figure: Figure) -> None:
    """The data directory deleted under a running crawl: it ends with an error, not with 0."""
    data_dir = tmp_path / "crawl"
    with DemoWeb(plain_sites(2, pages=60)) as web:
        command = Command(
            ["crawl", *web.seeds(), "--data-dir", str(data_dir), *PLAIN, "--delay", "0.5"],
            tmp_path / "output.txt",
        )
        eventually(lambda: len(web.log()) > 6)
        shutil.rmtree(data_dir)
        began = time.monotonic()
        code, _ = watched(command)
        seconds = time.monotonic() - began

    figure("F4", f"data directory deleted: exit code {code} after {seconds:.0f} s")
    assert code not in (None, 0)
    assert "Traceback" not in (tmp_path / "output.txt").read_text()
