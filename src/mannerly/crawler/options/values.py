"""Values that were given for options: as keywords of the library, or as words of the command.

A name that is no option is refused with the nearest right one, a value of the wrong type with what
is allowed and where it was given. Ranges are checked by the settings.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Sequence  # noqa: TC003 - read by typing.get_type_hints
from difflib import get_close_matches
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias, TypedDict

from mannerly.crawler.web.words import without_password

from .table import KEYWORDS, OPTIONS, Option, ValueKind

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

Value: TypeAlias = "str | int | float | bool | list[str]"

_WORDS = {
    **dict.fromkeys(("1", "true", "yes", "on"), True),
    **dict.fromkeys(("0", "false", "no", "off"), False),
}
_OTHER_KEYWORDS = ("data_dir", "fresh", "politeness")  # of the library, beside KEYWORDS
_ALIKE = 0.85  # similarity (difflib) from which a name counts as misspelled


class CrawlOptions(TypedDict, total=False):
    """The options of a crawl as keywords of the library, for type checkers."""

    max_urls: int | None
    max_depth: int | None
    max_per_host: int | None
    duration: float | None
    grace: float | None
    scope: str | None
    include: str | Sequence[str] | None
    exclude: str | Sequence[str] | None
    drop_tracking: bool | None
    links: bool | None
    text_digest: str | None
    seeding_strategy: str | None
    max_sitemaps: int | None
    ct_url: str | None
    commoncrawl_url: str | None
    strategy: str | None
    delay: float | None
    max_rate: float | Literal["unlimited"] | None
    start_rate: float | None
    address_max_rate: float | None
    per_host: int | None
    ignore_robots: bool | None
    robots_unreachable: str | None
    robots_timeout: float | None
    robots_limit: int | None
    robots_patience: float | None
    user_agent: str | None
    contact: str | None
    host_failure_limit: int | None
    give_up_after: float | None
    workers: int | None
    processes: int | None
    timeout: float | None
    max_bytes: int | str | None
    memory_limit: int | str | None
    max_redirects: int | None
    allow_net: str | Sequence[str] | None
    proxy: str | None
    ca_file: str | os.PathLike[str] | None
    insecure_host: str | Sequence[str] | None
    frontier_limit: int | None
    heap_limit: int | None
    parse_limit: int | None
    parse_processes: int | None
    check_limit: int | None
    governor: bool | None
    durable: bool | None


class OptionError(ValueError):
    """An unknown option name, or a value that the option does not accept."""


class Given(NamedTuple):
    """A value that was set. `where` names the place, for error messages.

    `file` is the name of the project file that it comes from, if it comes from one.
    """

    value: Value
    where: str
    file: str | None = None


def checked(option: Option, value: object, where: str) -> Given:
    """Check the type of an option's value.

    Raises:
        OptionError: it is of another type.
    """
    if option.kind is ValueKind.BYTES and isinstance(value, str):
        value = _bytes(value)
    if not _fits(option.kind, value):
        raise OptionError(refusal(where, printable(option.name, value), option.kind.value))
    if option.choices and value not in option.choices:
        raise OptionError(refusal(where, value, "one of " + ", ".join(option.choices)))
    if option.name == "log_interval" and not 0 < value < math.inf:  # type: ignore[operator]
        raise OptionError(refusal(where, value, "a number above 0"))
    return Given(value, where)  # type: ignore[arg-type]


def from_keywords(keywords: Mapping[str, object]) -> dict[str, Given]:
    """Check the keyword arguments of the library's functions.

    Raises:
        OptionError: an unknown name (with the nearest right one), or a value of another type.
    """
    given: dict[str, Given] = {}
    for name, value in keywords.items():
        option = OPTIONS.get(name)
        if option is None or option.target is None:
            what = (
                "is an option of the command, not of the library" if option else "is not an option"
            )
            raise OptionError(f"{name} {what}{nearest(name, (*KEYWORDS, *_OTHER_KEYWORDS))}")
        if option.kind is ValueKind.FILE and isinstance(value, os.PathLike):
            value = os.fspath(value)
        if option.kind is ValueKind.LIST and isinstance(value, (str, tuple)):
            value = [value] if isinstance(value, str) else list(value)
        if value is not None:
            given[name] = checked(option, value, name)
    return given


def nearest(name: str, names: Iterable[str]) -> str:
    """Return "; did you mean …?" if a name looks misspelled, else an empty text."""
    close = get_close_matches(name, list(names), n=1, cutoff=_ALIKE)
    return f"; did you mean {close[0]}?" if close else ""


def from_text(option: Option, text: str) -> object:
    """Convert a text from the command line or the environment; the text itself if it is wrong."""
    match option.kind:
        case ValueKind.FLAG:
            return _WORDS.get(text.lower(), text)
        case ValueKind.LIST:
            return text.split()
        case ValueKind.INTEGER:
            return int(text) if text.isascii() and text.lstrip("+-").isdigit() else text
        case ValueKind.NUMBER | ValueKind.RATE if text != "unlimited":
            try:
                return float(text)
            except ValueError:
                return text
    return text


def printable(name: str, value: object) -> object:
    """Return the value of an option as it may be printed: without the password of a URL."""
    if not OPTIONS[name].has_password or not isinstance(value, str):
        return value
    return without_password(value)


def refusal(where: str, value: object, allowed: str) -> str:
    """Return the error message for a value that is not allowed."""
    return f"{where} is {value!r}; allowed: {allowed}"


def _bytes(text: str) -> object:
    """Return the number of bytes that a text such as "256MB" means; the text if it is none."""
    match = re.fullmatch(r"([0-9]{1,15})\s*([kmg]?)i?b?", text.strip(), re.ASCII | re.IGNORECASE)
    if match is None:
        return text
    return int(match[1]) << {"": 0, "k": 10, "m": 20, "g": 30}[match[2].lower()]


def _fits(kind: ValueKind, value: object) -> bool:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    match kind:
        case ValueKind.FLAG:
            return isinstance(value, bool)
        case ValueKind.INTEGER | ValueKind.BYTES:
            return is_number and isinstance(value, int)
        case ValueKind.NUMBER:
            return is_number and not math.isnan(value)  # type: ignore[arg-type]
        case ValueKind.RATE:
            return is_number or value == "unlimited"
        case ValueKind.LIST:
            return isinstance(value, list) and all(isinstance(item, str) for item in value)
    # A line end in a user agent would begin another header.
    return isinstance(value, str) and value.isprintable() and bool(value.strip())
