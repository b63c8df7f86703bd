"""A location leads to its store, and importing the package loads none."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from virtual.store.memory_crawl import MemoryCrawl

from mannerly.crawler.store import SCHEMES, create_crawl, exists, name_of, open_crawl, wipe
from mannerly.crawler.store.base import StoreError, StoreMissing
from mannerly.crawler.store.contract import new_manifest
from mannerly.crawler.store.sqlite.crawl import SqliteCrawl
from mannerly.service import beside


def run(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.mark.processes
def test_importing_the_package_loads_no_database() -> None:
    """Neither SQLite, nor a filter, nor pytest with the shipped suite."""
    loaded = "[name for name in ('apsw', 'rbloom', 'pytest') if name in sys.modules]"

    assert run(f"import sys, mannerly.crawler.store; print({loaded})") == "[]"
    assert run(f"import sys, mannerly.crawler.store.contract; print({loaded})") == "[]"


def test_a_path_is_a_directory_of_files(tmp_path: Path) -> None:
    """As text or as a Path, with whatever name."""
    for location in (tmp_path / "one", str(tmp_path / "two")):
        with_scheme = create_crawl(location, new_manifest())
        with_scheme.close()

        assert isinstance(with_scheme, SqliteCrawl)
        assert with_scheme.location == str(location)
        assert Path(location).is_dir()


def test_a_scheme_names_another_store() -> None:
    """`memory:` is one; its location is shown as it was given."""
    crawl = create_crawl("memory:named", new_manifest())

    assert isinstance(crawl, MemoryCrawl)
    assert open_crawl("memory:named").location == "memory:named"
    assert exists("memory:named")
    assert not exists("memory:other")
    wipe("memory:named")


@pytest.mark.parametrize("location", [r"C:\crawls\one", "C:/crawls", "c:crawl", "crawl-a:8080"])
def test_a_colon_alone_makes_no_scheme(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, location: str
) -> None:
    """A drive of Windows, or a name with a port in it, is a path."""
    monkeypatch.chdir(tmp_path)

    with pytest.raises(StoreMissing, match="there is no crawl in"):
        open_crawl(location)


def test_a_path_object_is_never_a_scheme(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Even if it looks like one."""
    monkeypatch.chdir(tmp_path)

    create_crawl(Path("memory:x"), new_manifest()).close()

    assert (tmp_path / "memory:x" / "crawl.json").exists()
    assert not exists("memory:x")


def test_an_unknown_url_is_refused_with_what_there_is() -> None:
    """It is not taken for a directory."""
    with pytest.raises(
        StoreError, match=r"no store is known for gopher: use a directory, or .*memory:"
    ):
        open_crawl("gopher://example.com/crawl")


def test_a_store_is_imported_when_it_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """Naming one costs nothing until a location with its scheme is opened."""
    monkeypatch.setitem(SCHEMES, "later", "no_such_module_anywhere:Crawl")

    assert not exists("memory:nothing")
    with pytest.raises(ModuleNotFoundError):
        exists("later:x")


@pytest.mark.parametrize(
    ("location", "name", "on_its_page"),
    [
        ("crawls/example", "example", "example"),
        ("redis://h:1/0#example", "example", "example (this worker)"),
        ("rediss://u@h:1/0#n%C3%A4ws%2F2026:1", "näws/2026:1", "näws/2026:1 (this worker)"),
    ],
)
def test_a_crawl_is_shown_under_its_name(location: str, name: str, on_its_page: str) -> None:
    """That of its directory, or the one that --crawl gave it in a server."""
    assert name_of(location) == name
    assert beside.name_of(location) == on_its_page
