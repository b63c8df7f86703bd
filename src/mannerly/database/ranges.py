"""The range of numbers in a store, and records as far as they make sense.

Numbers from outside are bounded where they enter (`politeness.bounds`), so what a store writes is
in range. What it reads may not be: an earlier revision kept any number, and others can write to a
file or a server. Such a value is replaced by the nearest one in range, or by the field's default if
it has another type, and the store says so (`take_mended`). Values that a record cannot do without,
such as its URL, are not invented: without them it is damaged.
"""

from __future__ import annotations

import json
from contextlib import suppress
from functools import cache
from operator import itemgetter
from typing import TYPE_CHECKING, Any, TypeVar, get_args, get_type_hints

import msgspec

from mannerly.politeness.bounds import LAST_INSTANT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

MAX_NUMBER = LAST_INSTANT  # no count, size or time is larger
MOST_NOTES = 20  # that are kept of one store until they are taken; more are left out
_NUMBERS = (int, float)

R = TypeVar("R", bound=tuple[Any, ...])


def out_of_range(values: Iterable[object]) -> float | None:
    """Return the first number that is out of range; None if there is none."""
    for value in _may_be_numbers(type(values))(values):
        if isinstance(value, _NUMBERS) and not 0 <= value < MAX_NUMBER:
            return value
    return None


@cache
def _may_be_numbers(shape: type) -> Callable[[Any], Iterable[object]]:
    """Return what takes the values out of a record that can be numbers: a third of a page's."""
    if not hasattr(shape, "_fields"):
        return iter
    hints = get_type_hints(shape)
    types = (get_args(hints[name]) or (hints[name],) for name in shape._fields)
    is_number = [
        any(isinstance(t, type) and issubclass(t, _NUMBERS) for t in each) for each in types
    ]
    places = [place for place, is_one in enumerate(is_number) if is_one]
    return itemgetter(*places) if len(places) > 1 else iter


class Notes:
    """The repairs of a store, in words, until they are said."""

    def __init__(self) -> None:
        self._new: list[str] = []
        self._said: set[str] = set()

    def add(self, words: str) -> None:
        """Note something, unless it was noted before."""
        if words not in self._said and len(self._said) < MOST_NOTES:
            self._said.add(words)
            self._new.append(words)

    def take(self) -> list[str]:
        """Return what was noted since the last call."""
        new, self._new = self._new, []
        return new


def mend(values: Sequence[object], shape: type[R]) -> tuple[R, str]:
    """Return a record with every field in range, and in words the fields that were not.

    Raises:
        ValueError: a value without which there is no record has the wrong type.
    """
    types, defaults = _fields(shape)
    least = len(types) - len(defaults)
    if not isinstance(values, list | tuple) or not least <= len(values) <= len(types):
        raise ValueError("not a record")
    found: dict[str, Any] = {}
    wrong: list[str] = []
    for (name, kind), value in zip(types.items(), values, strict=False):
        try:
            found[name] = msgspec.convert(_in_range(value), kind, strict=False)
        except msgspec.ValidationError:
            if name not in defaults:
                raise
            found[name] = defaults[name]
        if found[name] != value:
            shown = f"{value:g}" if isinstance(value, float) else repr(value)
            wrong.append(f"{name} was {shown[:40]}")
    return shape(**found), ", ".join(wrong)


def decoded(data: bytes, decode: Callable[[bytes], R], shape: type[R]) -> tuple[R, str]:
    """Return a record of JSON with every field in range, and in words the fields that were not.

    Raises:
        ValueError: it is no JSON, or a value without which there is no record has the wrong type.
    """
    with suppress(msgspec.MsgspecError):
        record = decode(data)
        if out_of_range(record) is None:
            return record, ""
    return mend(json.loads(data), shape)  # which also takes numbers that are infinite or too large


def _in_range(value: object) -> object:
    if not isinstance(value, _NUMBERS) or isinstance(value, bool) or 0 <= value < MAX_NUMBER:
        return value
    if not value > 0:  # NaN is not, either
        return type(value)(0)
    return type(value)(MAX_NUMBER - 1)


@cache
def _fields(shape: type[tuple[Any, ...]]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the types of the fields of a named tuple, and their defaults."""
    hints = get_type_hints(shape)
    names: tuple[str, ...] = shape._fields  # type: ignore[attr-defined]
    return {name: hints[name] for name in names}, shape._field_defaults  # type: ignore[attr-defined]
