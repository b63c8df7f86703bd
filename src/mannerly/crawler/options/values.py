"""Values that were given for options: as keywords of the library, or as words of the command.

A name that is no option is refused with the closest one, a value of the wrong type with what
is allowed and where it was given. Ranges are checked by the settings; here only those of options
that set none.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from mannerly.politeness.bounds import LARGEST_SETTING

from .option import ValueKind
from .secrets import hidden
from .table import FIELDS, KEYWORDS, OPTIONS, main_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from .option import Option

Value: TypeAlias = "str | int | float | bool | list[str] | list[int]"

_WORDS = {
    **dict.fromkeys(("1", "true", "yes", "on"), True),
    **dict.fromkeys(("0", "false", "no", "off"), False),
}
_HOST_KEY = 'host."'  # the beginning of the keys that are for one host
_OTHER_KEYWORDS = ("data_dir", "fresh", "politeness")  # of the library, beside KEYWORDS
_CONTACT = re.compile(r"[^\s@/]+@[^\s@/]+|https?://[^\s/]+\S*", re.IGNORECASE)
_MOST_DIGITS = 20  # of a whole number: a longer text is none
_ALIKE = 0.6  # similarity (difflib) from which a name is suggested for an unknown one


class OptionError(ValueError):
    """An unknown option name, or a value that the option does not accept."""


class Given(NamedTuple):
    """A value that was set. `where` names the place, for error messages.

    Values that were set are kept by the name of their option, those for a single host by a key like
    host."example.org".delay: see `host_of` and `option_of`.

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
        raise OptionError(refusal(where, _printable(option, value), option.kind.value))
    if type(value) in (int, float) and not abs(value) <= LARGEST_SETTING:  # type: ignore[arg-type]
        raise OptionError(refusal(where, value, f"a number of at most {LARGEST_SETTING:g}"))
    if option.choices and value not in option.choices:
        raise OptionError(refusal(where, value, "one of " + ", ".join(option.choices)))
    if option.target is None and not option.allowed.allows(value):
        raise OptionError(refusal(where, value, f"{option.kind.value} {option.allowed.words}"))
    return Given(value, where)  # type: ignore[arg-type]


def from_keywords(keywords: Mapping[str, object]) -> dict[str, Given]:
    """Check the keyword arguments of the library's functions.

    Raises:
        OptionError: an unknown name (with the closest one), or a value of another type.
    """
    given: dict[str, Given] = {}
    for keyword, value in keywords.items():
        name = main_name(keyword)
        option = OPTIONS.get(name)
        if option is None or option.target is None:
            what = (
                "is an option of the command, not of the library" if option else "is not an option"
            )
            guess = nearest(name, (*KEYWORDS, *_OTHER_KEYWORDS))
            raise OptionError(f"{name} {what}{guess}")
        if option.kind is ValueKind.FILE and isinstance(value, os.PathLike):
            value = os.fspath(value)
        if option.kind is ValueKind.LIST and isinstance(value, (str, tuple)):
            value = [value] if isinstance(value, str) else list(value)
        if option.kind is ValueKind.STATUSES and isinstance(value, (frozenset, set, tuple)):
            value = sorted(value)
        if option.kind is ValueKind.HOSTS and value is not None:
            given |= from_tables(value, keyword)
        elif value is not None:
            given[name] = checked(option, value, keyword)
    return given


# ---------------------------------------------------------------------- options of single hosts


def from_tables(tables: object, place: str) -> dict[str, Given]:
    """Check tables of options, one for each host, such as {"example.org": {"delay": 5}}.

    Raises:
        OptionError: not such tables; no host; an unknown option, or one that holds for all hosts.
    """
    if not isinstance(tables, dict) or not all(isinstance(each, dict) for each in tables.values()):
        example = 'a table of options for each host, as in [host."example.org"]'
        raise OptionError(refusal(place, tables, example))
    given: dict[str, Given] = {}
    for host, table in tables.items():
        for name, value in table.items():
            where = f'{place}."{host}".{name}'
            found = _for_host(str(host), str(name), value, where)
            if not found.keys().isdisjoint(given):
                raise OptionError(f"{where} is set twice, in two spellings")
            given |= found
    return given


def from_entries(entries: Iterable[str], place: str) -> dict[str, Given]:
    """Check options of single hosts as texts such as example.org:delay=5; the last one wins.

    Raises:
        OptionError: as `from_tables`.
    """
    given: dict[str, Given] = {}
    for entry in entries:
        left, equals, text = entry.partition("=")
        host, colon, name = left.rpartition(":")
        if not (equals and colon and host and name and text):
            raise OptionError(refusal(place, entry, "HOST:NAME=VALUE, as in example.org:delay=5"))
        option = OPTIONS.get(name.replace("-", "_"))
        value = text if option is None else from_text(_of_one_host(option), text)
        given |= _for_host(host, name, value, f"{place} {host}:{name}")
    return given


def host_option(host: str, name: str) -> str:
    """Return the key of an option that was set for one host."""
    return f'{_HOST_KEY}{host}".{name}'


def host_of(key: str) -> str | None:
    """Return the host that a key of `given` is for; None: for all hosts."""
    return key[len(_HOST_KEY) : key.rindex('"')] if key.startswith(_HOST_KEY) else None


def option_of(key: str) -> Option:
    """Return the option that a key of `given` sets, for all hosts or for one."""
    return OPTIONS[key.rpartition(".")[2]]


def _for_host(host: str, spelled: str, value: object, where: str) -> dict[str, Given]:
    """Check one option of one host; its key is that of a TOML file."""
    from mannerly.politeness.keys import host_key

    name = spelled.replace("-", "_")
    option = OPTIONS.get(name)
    if option is None:
        near = nearest(name, (each for each in OPTIONS if OPTIONS[each].for_one_host))
        raise OptionError(f"{where} is not an option of a host{near}")
    if not option.for_one_host:
        raise OptionError(f"{where} cannot be set for one host: {name} holds for the whole crawl")
    try:
        key = host_key(host)
    except ValueError:
        allowed = "a host name or address such as www.example.org or 127.0.0.1:8080, no pattern"
        raise OptionError(refusal(f"the host of {where}", host, allowed)) from None
    if option.host_kind is ValueKind.FLAG and value is False:
        raise OptionError(refusal(where, value, "true; leave it out for a host without it"))
    return {host_option(key, name): checked(_of_one_host(option), value, where)}


def _of_one_host(option: Option) -> Option:
    """Return an option as it is set for one host."""
    return option if option.host_kind is None else option._replace(kind=option.host_kind)


# ---------------------------------------------------------------------- values


def nearest(name: str, names: Iterable[str], *, alike: float = _ALIKE) -> str:
    """Return "; did you mean …?" if a name looks misspelled, else an empty text."""
    from difflib import get_close_matches  # slow to import, and rarely needed

    known = list(names)
    right = FIELDS.get(name)  # of a setting that the politeness core calls so
    close = [right] if right in known else get_close_matches(name, known, n=1, cutoff=alike)
    return f"; did you mean {close[0]}?" if close else ""


def from_text(option: Option, text: str) -> object:
    """Convert a text from the command line or the environment; the text itself if it is wrong."""
    match option.kind:
        case ValueKind.FLAG:
            return _WORDS.get(text.lower(), text)
        case ValueKind.LIST if option.has_secret:  # a password may have spaces
            return text.splitlines()
        case ValueKind.LIST | ValueKind.HOSTS:
            return text.split()
        case ValueKind.INTEGER:
            return _integer(text)
        case ValueKind.STATUSES:
            return [_integer(word) for word in re.split(r"[\s,]+", text.strip())]
        case ValueKind.NUMBER | ValueKind.RATE if text != "unlimited":
            try:
                return float(text)
            except ValueError:
                return text
    return text


def printable(name: str, value: object) -> Any:
    """Return the value of an option as it may be printed: without secrets."""
    return _printable(option_of(name), value)


def _printable(option: Option, value: object) -> Any:
    if not option.has_secret:
        return value
    if isinstance(value, list | tuple):
        return [hidden(option.name, str(text)) for text in value]
    return hidden(option.name, value) if isinstance(value, str) else value


def refusal(where: str, value: object, allowed: str) -> str:
    """Return the error message for a value that is not allowed."""
    return f"{where} is {value!r}; allowed: {allowed}"


def _integer(text: str) -> object:
    is_number = text.isascii() and text.lstrip("+-").isdigit() and len(text) <= _MOST_DIGITS
    return int(text) if is_number and text.count("-") + text.count("+") <= 1 else text


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
            return is_number and value == value  # NaN is not
        case ValueKind.RATE:
            return is_number or value == "unlimited"
        case ValueKind.LIST:
            return isinstance(value, list) and all(isinstance(item, str) for item in value)
        case ValueKind.STATUSES:
            return isinstance(value, list) and all(type(item) is int for item in value)
        case ValueKind.CONTACT:
            return isinstance(value, str) and _CONTACT.fullmatch(value) is not None
    # A line end in a user agent would begin another header.
    return isinstance(value, str) and value.isprintable() and bool(value.strip())
