"""A `Value` behaves as a frozen, slotted dataclass does."""

from __future__ import annotations

import copy
import pickle
from dataclasses import FrozenInstanceError, asdict, fields, is_dataclass, replace

import pytest

from mannerly.politeness.value import Described, Value


class Point(Value):
    """Where."""

    x: float
    y: float = 2.0


class Place(Value):
    """Somewhere else, with the same fields."""

    x: float
    y: float = 2.0


class Knobs(Value, kw_only=True):
    """Named, checked, and with something to say."""

    volume: int = Described(5, {"doc": "How loud."})  # type: ignore[assignment]
    name: str

    def __post_init__(self) -> None:
        if self.volume > 11:
            raise ValueError("too loud")


@pytest.mark.parametrize(
    "point", [Point(1.0), Point(1.0, 2.0), Point(1.0, y=2.0), Point(y=2.0, x=1.0), Point(x=1.0)]
)
def test_value_is_made_by_place_by_name_and_by_default(point: Point) -> None:
    """Each way of saying the same gives the same value."""
    assert (point.x, point.y) == (1.0, 2.0)


@pytest.mark.parametrize(
    ("places", "names"),
    [
        ((), {}),
        ((1.0, 2.0, 3.0), {}),
        ((1.0,), {"x": 1.0}),
        ((1.0,), {"z": 1.0}),
        ((1.0, 2.0), {"z": 1.0}),
    ],
)
def test_value_refuses_what_it_has_no_field_for(
    places: tuple[float, ...], names: dict[str, float]
) -> None:
    """Too few, too many, twice or unknown: the error names the fields."""
    with pytest.raises(TypeError, match="Point is made of x, y"):
        Point(*places, **names)


def test_value_that_wants_names_takes_no_places() -> None:
    """A number without a name is how two settings get swapped."""
    with pytest.raises(TypeError, match="Knobs is made of volume, name"):
        Knobs(5, "radio")  # type: ignore[misc]


def test_value_checks_itself() -> None:
    """`__post_init__` sees the fields and may refuse them."""
    with pytest.raises(ValueError, match="too loud"):
        Knobs(volume=12, name="amplifier")


def test_values_are_equal_by_type_and_fields() -> None:
    """The same numbers in another type are another value; equal ones are one key."""
    assert Point(1.0) == Point(1.0, 2.0)
    assert Point(1.0) != Point(1.5)
    assert Point(1.0) != Place(1.0)
    assert len({Point(1.0), Point(1.0, 2.0), Place(1.0)}) == 2


def test_value_cannot_change() -> None:
    """Neither a field nor a new attribute can be set, and no field deleted."""
    point = Point(1.0)

    with pytest.raises(FrozenInstanceError, match="cannot assign to 'x': a Point is frozen"):
        point.x = 3.0  # type: ignore[misc]
    with pytest.raises(FrozenInstanceError):
        point.z = 3.0  # type: ignore[attr-defined]
    with pytest.raises(FrozenInstanceError, match="cannot delete 'x'"):
        del point.x  # type: ignore[misc]

    assert point == Point(1.0)
    assert not hasattr(point, "__dict__")


def test_value_is_matched_by_place_and_by_name() -> None:
    """`match` sees the fields in order."""
    match Point(1.0, 3.0):
        case Point(x, y=y):
            found = (x, y)

    assert found == (1.0, 3.0)


def test_repr_is_what_one_would_write() -> None:
    """The fields by name, good enough to compare with."""
    assert repr(Point(1.0)) == "Point(x=1.0, y=2.0)"


@pytest.mark.parametrize("value", [Point(1.0), Knobs(name="radio")])
def test_value_survives_copy_and_pickle(value: Value) -> None:
    """It can be sent to another process."""
    assert copy.deepcopy(value) == value
    assert pickle.loads(pickle.dumps(value)) == value


def test_dataclasses_take_a_value_for_one_of_theirs() -> None:
    """Whoever used `replace`, `asdict` or `fields` goes on."""
    knobs = Knobs(name="radio")

    assert is_dataclass(knobs)
    assert replace(knobs, volume=7) == Knobs(volume=7, name="radio")
    assert asdict(knobs) == {"volume": 5, "name": "radio"}
    assert [(f.name, f.type, f.metadata.get("doc")) for f in fields(Knobs)] == [
        ("volume", "int", "How loud."),
        ("name", "str", None),
    ]
