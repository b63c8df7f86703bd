"""Frozen values that cost almost nothing to define.

    class Slowed(Value):
        host: str
        delay_s: float = 1.0

A frozen, slotted `@dataclass` compiles six functions from text when it is defined, which takes
1.2 ms, and `dataclasses` itself takes 10 ms because it imports `inspect`. With thirty values that
was more than half of what `import mannerly.politeness` took. A `Value` looks the same from
outside, to type checkers, too: the annotated names are its fields and its slots, it is equal by
type and fields, can be hashed, printed, pickled and matched, and assigning raises. But its
functions are written once, here, and find the fields by their names.

`dataclasses.fields`, `replace` and `asdict` work on it; that module is imported when they are
used. Fields are not inherited. The price: making a value by place takes a quarter longer than
making a dataclass, by name or with defaults three times as long. So what is made for every
request is something plainer (see `model`). This file knows nothing of politeness.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, NoReturn, dataclass_transform

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from dataclasses import Field


class Described(NamedTuple):
    """A default that comes with more to say about its field: `dataclasses.Field.metadata`."""

    default: object
    metadata: Mapping[str, Any]


@dataclass_transform(frozen_default=True)
class _Shape(type):
    """Makes the fields of a value its slots, which must be known before the class is made."""

    def __new__(
        cls, name: str, bases: tuple[type, ...], body: dict[str, Any], *, kw_only: bool = False
    ) -> _Shape:
        fields = tuple(body.get("__annotations__", ())) if bases else ()
        given = {field: body.pop(field) for field in fields if field in body}
        described = {field: more for field, more in given.items() if isinstance(more, Described)}
        plain = {field: more.default for field, more in described.items()}
        body |= {
            "__slots__": fields,
            "__match_args__": () if kw_only else fields,
            "_defaults": given | plain,
            "_described": described,
        }
        return super().__new__(cls, name, bases, body)


class _Fields:
    """What `dataclasses` looks for, made when it looks."""

    def __get__(self, value: object, kind: type[Value]) -> dict[str, Field[Any]]:
        return _fields_of(kind)


class Value(metaclass=_Shape):
    """A frozen value: its annotated names are its fields."""

    if TYPE_CHECKING:
        __slots__: ClassVar[tuple[str, ...]]
        __match_args__: ClassVar[tuple[str, ...]]
        __dataclass_fields__: ClassVar[dict[str, Field[Any]]]
        _defaults: ClassVar[dict[str, Any]]
        _described: ClassVar[dict[str, Described]]
        _setters: ClassVar[tuple[Callable[[Value, object], None], ...]]
    else:
        __dataclass_fields__ = _Fields()

    def __init_subclass__(cls) -> None:
        # The slots' own setters: the way around `__setattr__`, and the fastest one.
        cls._setters = tuple([cls.__dict__[field].__set__ for field in cls.__slots__])

    def __init__(self, *values: Any, **named: Any) -> None:
        if named or not values or len(values) != len(self.__match_args__):
            values = self._completed(values, named)
        for put, value in zip(self._setters, values):  # noqa: B905 - as many, as seen above
            put(self, value)
        self.__post_init__()

    def _completed(self, values: tuple[Any, ...], named: dict[str, Any]) -> tuple[Any, ...]:
        """One value for each field, in order: by place, by name, or by default."""
        placed = dict(zip(self.__match_args__, values, strict=False))
        bound = self._defaults | placed | named
        is_clear = len(placed) == len(values) and placed.keys().isdisjoint(named)
        if not is_clear or bound.keys() != set(self.__slots__):
            fields = ", ".join(self.__slots__)
            given = ", ".join([*map(repr, values), *(f"{name}=" for name in named)])
            raise TypeError(f"{type(self).__name__} is made of {fields}; given: {given}")
        return tuple([bound[field] for field in self.__slots__])

    def __post_init__(self) -> None:
        """Checks what was given, in values that have something to check."""

    def _values(self) -> tuple[Any, ...]:
        return tuple([getattr(self, field) for field in self.__slots__])

    def __eq__(self, other: object) -> bool:
        if other.__class__ is not self.__class__:
            return NotImplemented
        return self._values() == other._values()

    def __hash__(self) -> int:
        return hash(self._values())

    def __repr__(self) -> str:
        fields = zip(self.__slots__, self._values(), strict=True)
        shown = ", ".join(f"{field}={value!r}" for field, value in fields)
        return f"{type(self).__qualname__}({shown})"

    def __setattr__(self, name: str, value: object) -> NoReturn:
        self._refuse("assign to", name)

    def __delattr__(self, name: str) -> NoReturn:
        self._refuse("delete", name)

    def _refuse(self, deed: str, name: str) -> NoReturn:
        from dataclasses import FrozenInstanceError

        raise FrozenInstanceError(f"cannot {deed} {name!r}: a {type(self).__name__} is frozen")

    def __getstate__(self) -> tuple[Any, ...]:
        return self._values()

    def __setstate__(self, values: tuple[Any, ...]) -> None:
        for put, value in zip(self._setters, values, strict=True):
            put(self, value)


@cache
def _fields_of(kind: type[Value]) -> dict[str, Field[Any]]:
    """The fields of a dataclass with the same names, types and defaults."""
    from dataclasses import make_dataclass

    fields = [(name, kind.__annotations__[name], _field(kind, name)) for name in kind.__slots__]
    twin = make_dataclass(kind.__name__, fields, init=False, repr=False, eq=False)
    found: dict[str, Field[Any]] = vars(twin)["__dataclass_fields__"]
    return found


def _field(kind: type[Value], name: str) -> Any:
    from dataclasses import MISSING, field

    described = kind._described.get(name)
    default = kind._defaults.get(name, MISSING)
    return field(default=default, metadata=described.metadata if described else None)
