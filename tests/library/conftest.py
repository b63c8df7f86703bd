"""Every test of the library leaves nothing behind: no thread, process, descriptor or directory."""

from __future__ import annotations

import gc
import tempfile
import threading
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.harness.waiting import eventually
from tests.library.loops import FAST

import mannerly
from mannerly.demo import DemoWeb, plain_sites

if TYPE_CHECKING:
    from collections.abc import Iterator


def threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "mannerly"]


def children() -> list[str]:
    """Return the processes that threads of this one have started."""
    tasks = Path("/proc/self/task").iterdir()
    found: list[str] = []
    for task in tasks:
        with suppress(OSError):  # the thread has just ended
            found += (task / "children").read_text().split()
    return found


def descriptors() -> Counter[str]:
    """Return what this process has open, by name."""
    found: Counter[str] = Counter()
    for entry in Path("/proc/self/fd").iterdir():
        with suppress(OSError):
            found[str(entry.readlink()).partition(":[")[0]] += 1
    return found


@pytest.fixture(scope="session", autouse=True)
def _warm() -> None:
    """Load what stays open for good, such as the curl library's random source."""
    with DemoWeb(plain_sites(1, pages=1)) as web:
        list(mannerly.crawl(web.seeds(), **FAST))


@pytest.fixture(autouse=True)
def tidy(_warm: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Give temporary directories a place of their own, and look what is left there."""
    place = tmp_path / "temporary"
    place.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(place))
    before, processes = descriptors(), set(children())

    yield place

    if descriptors() - before:
        gc.collect()  # garbage may hold them; it takes longer than most tests, so not always
    assert not threads()
    assert set(children()) <= processes
    assert not list(place.iterdir())
    eventually(lambda: not descriptors() - before, within_s=5.0)
