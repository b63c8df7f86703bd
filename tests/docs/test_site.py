"""The documents as a site: built without a warning, and crawled by mannerly itself."""

from __future__ import annotations

import re
import subprocess
import sys
from http.server import SimpleHTTPRequestHandler
from typing import TYPE_CHECKING, Any

import pytest
from tests.docs.console import ROOT
from tests.harness.sites import serving

import mannerly
from docs import inventory
from mannerly import Settings

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

# Sphinx makes them for its own search and index.
OWN = {"search.html", "genindex.html", "index.html"}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built pages; a warning is an error, as with `make docs`."""
    built = tmp_path_factory.mktemp("site")
    subprocess.run(
        [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-c", "docs", ".", built],
        cwd=ROOT,
        check=True,
        timeout=600,
    )
    return built


@pytest.fixture
def address(site: Path) -> Iterator[str]:
    class Files(SimpleHTTPRequestHandler):
        def __init__(self, *connection: Any) -> None:
            super().__init__(*connection, directory=str(site))

        def log_message(self, *_: object) -> None:
            """Print nothing."""

    with serving(Files) as origin:
        yield f"{origin}/"


@pytest.mark.processes
def test_every_page_of_the_site_is_reached_and_no_link_is_dead(site: Path, address: str) -> None:
    """A crawl from the first page finds each page that was built, and nothing that is not there."""
    fast = Settings(strategy="fixed", max_rate="unlimited")
    start = f"{address}docs/index.html"

    pages = {page.url: page.status for page in mannerly.crawl(start, politeness=fast)}

    built = {str(page.relative_to(site)) for page in site.rglob("*.html")}
    reached = {url.removeprefix(address) for url in pages}
    assert {url: status for url, status in pages.items() if status != 200} == {}
    assert built - OWN <= reached
    assert len(built) > 40


@pytest.mark.processes
def test_built_pages_load_nothing_from_other_hosts(site: Path) -> None:
    """No font, script, style or image of somebody else: readers are not reported to anybody."""
    for page in site.rglob("*.html"):
        text = page.read_text("utf-8")
        loaded = re.findall(r'<(?:script|img|iframe|source)[^>]+src="([^"]+)"', text)
        loaded += re.findall(
            r'<link[^>]+rel="(?:stylesheet|preload|icon)"[^>]+href="([^"]+)"', text
        )
        assert not [url for url in loaded if re.match(r"(https?:)?//", url)], page.name
    for style in (*site.rglob("*.css"),):
        assert not re.findall(r"url\(['\"]?(?:https?:)?//", style.read_text("utf-8")), style.name


@pytest.mark.processes
@pytest.mark.parametrize("module", inventory.MODULES)
def test_every_public_name_is_on_the_site(site: Path, module: str) -> None:
    """The reference of the library prints each name with what it does."""
    text = (site / "docs" / "reference" / "api.html").read_text("utf-8")

    for name in inventory.public_names(module):
        assert f'id="{module}.{name}"' in text or f'id="mannerly.{name}"' in text, name


@pytest.mark.parametrize("page", ["library.md", "politeness.md"])
def test_names_that_the_guides_import_are_public(page: str) -> None:
    """Whatever a reader is told to import is on the page of the library's names."""
    text = (ROOT / "docs" / "how-to" / page).read_text("utf-8")

    imports = re.compile(r"^(?:>>> )?from (mannerly[\w.]*) import (.+)$", re.MULTILINE)
    for module, names in imports.findall(text):
        for name in names.split(", "):
            assert name in inventory.public_names(module), f"{module}.{name}"
