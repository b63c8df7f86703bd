"""Absurd numbers in everything else that is read: nothing raises, and what is kept is in range."""

from __future__ import annotations

import gzip
import io
from contextlib import suppress
from math import isfinite

import pytest
from tests.hostile.absurd import ABSURD

from mannerly.crawler.archive.records import ArchiveDamaged, read_record
from mannerly.crawler.fetch.cookies import CookieJar
from mannerly.crawler.options.option import ValueKind
from mannerly.crawler.options.table import OPTIONS
from mannerly.crawler.options.values import OptionError, checked, from_text
from mannerly.crawler.web.caches import cache_state
from mannerly.crawler.web.sitemaps import read_sitemap
from mannerly.politeness import Settings, SettingsError
from mannerly.politeness.bounds import LARGEST_SETTING

NUMERIC = frozenset(
    {ValueKind.INTEGER, ValueKind.NUMBER, ValueKind.RATE, ValueKind.BYTES, ValueKind.STATUSES}
)
OF_NUMBERS = [name for name, option in OPTIONS.items() if option.kind in NUMERIC]
ORIGIN = ("http", "a.example", 80)


@pytest.mark.parametrize("name", OF_NUMBERS)
def test_absurd_value_of_an_option_is_refused_or_finite(name: str) -> None:
    """A text from the command line, the environment or a file, and a number of a program."""
    option = OPTIONS[name]
    for text in (*ABSURD, 10**400, -(10**400), 1e308, float("inf"), float("nan"), True, None):
        value = from_text(option, text) if isinstance(text, str) else text
        with suppress(OptionError):
            taken = checked(option, value, name).value
            if isinstance(taken, int | float):
                assert abs(taken) <= LARGEST_SETTING, text


@pytest.mark.parametrize("name", [name for name in OF_NUMBERS if OPTIONS[name].target])
def test_absurd_setting_is_refused_by_name_or_usable(name: str) -> None:
    field = OPTIONS[name].target or ""
    if field not in Settings.__dataclass_fields__:
        return
    for number in (10**400, -(10**400), 1e308, 1e15, 5e-324, -0.0, float("inf"), float("nan")):
        with suppress(SettingsError):
            assert isfinite(getattr(Settings(**{field: number}), field))  # type: ignore[arg-type]


def test_absurd_numbers_of_a_sitemap_are_left_out() -> None:
    """Its URLs are read in any case; a priority is from 0 to 1."""
    for text in ABSURD:
        plain = text.replace("\x00", "")
        entry = (
            f"<loc>http://a.example/</loc><lastmod>{plain}</lastmod><priority>{plain}</priority>"
        )
        found = read_sitemap(f"<urlset><url>{entry}</url></urlset>".encode())

        assert [each.loc for each in found.urls] == ["http://a.example/"], text
        priority = found.urls[0].priority
        assert priority is None or 0.0 <= priority <= 1.0, text


@pytest.mark.parametrize("attribute", ["Max-Age", "Expires"])
def test_absurd_end_of_a_cookie_is_no_reason_to_fail(attribute: str) -> None:
    jar = CookieJar()
    for text in ABSURD:
        jar.take(ORIGIN, "/", [f"a=1; {attribute}={text}"], 1_795_000_000.0)
        jar.header(ORIGIN, "/", 1_795_000_000.0)


def test_absurd_age_tells_whether_it_came_from_a_cache() -> None:
    for text in ABSURD:
        cache_state({"age": text})


def test_absurd_length_of_an_archived_record_is_damage() -> None:
    """It is neither a crash nor another record; a length that fits is read."""
    for text in ABSURD:
        head = b"WARC/1.1\r\nContent-Length: " + text.encode() + b"\r\n\r\n"
        packed = gzip.compress(head + b"abc\r\n\r\n")
        try:
            content = read_record(io.BytesIO(packed), 0, len(packed)).block
        except ArchiveDamaged:
            continue
        assert text.strip().isdecimal()
        assert len(content) == int(text)
