"""The examples of docs/how-to/library.md run as printed, against servers on this machine."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest
from tests.crawler.runtime.harness import real_pages
from tests.harness.commands import ROOT

import mannerly
from mannerly import Settings
from mannerly.demo import DemoWeb, plain_sites

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.processes

GUIDE = (ROOT / "docs" / "how-to" / "library.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```python\n(.*?)^```$", GUIDE, re.DOTALL | re.MULTILINE)
UNPACED = Settings(strategy="fixed", max_rate="unlimited")


def local(text: str, web: DemoWeb) -> str:
    """Return an example with hosts of ours in place of those that it names."""
    for name, url, host in zip(
        ("example.org", "example.com"), web.seeds(), web.hosts, strict=False
    ):
        text = text.replace(f"https://{name}/", url).replace(f'"{name}"', f'"{host}"')
    return text


def test_examples_of_the_guide_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All blocks, one after the other, in one namespace; then they have done what they say."""
    monkeypatch.chdir(tmp_path)
    # The pace of a polite crawl would make this test last a minute.
    monkeypatch.setattr("mannerly.crawler.crawl.Settings", lambda: UNPACED)
    space: dict[str, Any] = {"__name__": "guide"}

    with (
        DemoWeb(plain_sites(2, pages=8)) as web,
        # A crawl that is steered must not have ended before the orders are given.
        DemoWeb(plain_sites(2, pages=8, latency_s=1.0)) as slow,
    ):
        for number, block in enumerate(BLOCKS, 1):
            text = local(block, slow if "crawl-steered" in block else web)
            exec(compile(text, f"library.md, block {number}", "exec"), space)
        first = [url for url in real_pages(slow) if url.startswith(slow.seeds()[0])]

    assert len(BLOCKS) == 8
    assert space["failed"] == {}
    assert sorted(space["found"]) == [f"plain-0: page {number}" for number in range(8)]
    assert space["result"].pending == 0
    assert sorted(space["records"]) == sorted([*first, f"{first[0]}new"])
    assert space["skipped"] == {}
    assert min(space["depths"]) == 0
    assert space["message"].endswith("; did you mean max_urls?")


def test_loops_of_the_guide_resume(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`islice` asks for a fourth page never, so the third comes again in the second run."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("mannerly.crawler.crawl.Settings", lambda: UNPACED)
    (block,) = (block for block in BLOCKS if "islice" in block)
    said: list[tuple[str, str]] = []

    with DemoWeb(plain_sites(2, pages=8)) as web:
        space = {"mannerly": mannerly, "print": lambda *words: said.append(words)}
        exec(local(block, web), space)

    first = [url for when, url in said if when == "first run:"]
    second = [url for when, url in said if when == "second run:"]
    assert len(first) == 3
    assert len(set(first + second)) == 8
    assert set(first) & set(second) == {first[2]}


@pytest.mark.parametrize("name", mannerly.__all__)
def test_every_public_name_is_in_the_guide(name: str) -> None:
    """What the package exports is explained; the politeness core has a guide of its own."""
    assert (
        f"mannerly.{name}" in GUIDE
        or name in ("CrawlResult", "Politeness", "StoredCrawl")
        or (f"`{name}`" in GUIDE)
    )


def test_every_attribute_of_a_page_is_in_the_guide() -> None:
    """The table is complete."""
    names = [name for name in dir(mannerly.Page) if not name.startswith("_")]

    assert len(names) > 10
    for name in names:
        assert f"`{name}`" in GUIDE or f"page.{name}(" in GUIDE


def test_the_guide_is_one_page() -> None:
    """Longer ones are not read."""
    assert len(GUIDE.splitlines()) <= 200
