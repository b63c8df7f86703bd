"""Scripts and Python agree on where the values of a URL are: both read one definition."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from mannerly.crawler.store.valkey import client
from mannerly.crawler.store.valkey.client import script
from mannerly.crawler.store.valkey.keys import OF_SHARD, OF_SHARD_BEFORE
from mannerly.crawler.store.valkey.layout import BackUrl, FoundUrl, LeavingUrl, leaving_urls

SCRIPTS = Path(client.__file__).parent / "scripts"
TAKE_URLS = ("commit", "bring_back")


@pytest.mark.parametrize(
    ("name", "layout"), [("LEAVING", LeavingUrl), ("FOUND", FoundUrl), ("BACK", BackUrl)]
)
def test_every_value_has_its_place_in_lua(name: str, layout: type[tuple[object, ...]]) -> None:
    """By the name that it has in Python, counted from the first value of its URL."""
    text = script("commit").text
    (line,) = [each for each in text.splitlines() if each.startswith(f"local {name}_")]

    names, _, places = line.removeprefix("local ").partition(" = ")

    fields = [f"{name}_{field.upper()}" for field in layout._fields]
    assert dict(zip(names.split(", "), map(int, places.split(", ")), strict=True)) == {
        field: place for place, field in enumerate([*fields, f"{name}_SIZE"])
    }


@pytest.mark.parametrize("name", TAKE_URLS)
def test_no_script_counts_places_itself(name: str) -> None:
    """Neither `#A.pages, 5` nor `A.pages[i + 4]`."""
    text = script(name).text

    assert not re.findall(r"#(?:A\.)?(?:pages|dropped|found|back|values), \d", text)
    assert not re.findall(r"(?:pages|dropped|found|back|values)\[i(?: \+ \d)?\]", text)


@pytest.mark.parametrize("file", sorted(SCRIPTS.glob("*.lua")), ids=lambda file: file.stem)
def test_scripts_use_keys_that_are_listed(file: Path) -> None:
    """Else nobody knows of them, and a wipe leaves them behind."""
    names = set(re.findall(r"P \.\. '(\w+:?)", file.read_text("utf-8")))

    assert names <= {*OF_SHARD, *(f"{name}:" for name in OF_SHARD_BEFORE)}


def test_a_wipe_removes_every_key_of_a_shard() -> None:
    """Those with a host or a bucket in their name are found by others."""
    text = (SCRIPTS / "wipe.lua").read_text("utf-8")

    names = {
        name for part in re.findall(r"\{('[^}]*')\}", text) for name in re.findall(r"'(\w+)'", part)
    }

    assert names == set(OF_SHARD) - {"s"}


def test_urls_are_read_as_they_were_written() -> None:
    """One after the other."""
    urls = [LeavingUrl(1, 0, 7, "a", "p"), LeavingUrl(2, 5, 8, "b", "")]

    assert list(leaving_urls([value for url in urls for value in url])) == urls
