"""Settings say what they mean: every field documented, every bad value refused by name."""

from __future__ import annotations

import re
from copy import copy, deepcopy
from dataclasses import FrozenInstanceError, fields, replace
from itertools import product
from math import inf, nan
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.politeness.cases import case

from mannerly.politeness import Politeness, PolitenessError, Settings, SettingsError
from mannerly.politeness.settings import STRATEGIES

NUMBERS = [
    spec.name
    for spec in fields(Settings)
    if any(getattr(spec.metadata["range"], bound) is not None for bound in ("low", "high", "above"))
]
WHOLE = [name for name in NUMBERS if isinstance(getattr(Settings(), name), int)] + ["seed"]
POSITIVE = [spec.name for spec in fields(Settings) if spec.metadata["range"].above is not None]
CHOICES = [spec.name for spec in fields(Settings) if spec.metadata["range"].choices]


def test_every_field_says_what_it_is_and_where_it_comes_from() -> None:
    """A sentence and a source stand beside every field, for the reference page."""
    for spec in fields(Settings):
        with case(spec):
            assert spec.metadata["doc"].endswith(".")
            assert spec.metadata["source"]


def test_defaults_are_valid_and_frozen() -> None:
    """The defaults pass their own checks, and cannot be changed."""
    settings = Settings()

    with pytest.raises(FrozenInstanceError):
        settings.delay_s = 3.0  # type: ignore[misc]
    assert replace(settings) == settings


def refused(name: str, value: object) -> SettingsError:
    with pytest.raises(SettingsError) as caught:
        Settings(**{name: value})  # type: ignore[arg-type]
    return caught.value


def test_number_that_is_none_is_refused_by_name() -> None:
    """The error names the field, the value and what is allowed."""
    for value, name in product([nan, inf, -inf, -1, "fast", True, [], 1 + 2j], NUMBERS):
        with case(value, name):
            error = refused(name, value)

            assert isinstance(error, PolitenessError | ValueError)
            assert (error.field, error.value) == (name, value)
            assert f"setting {name!r} is {value!r}; allowed: " in str(error)
            assert any(word in error.allowed for word in ("above", "at least"))


@pytest.mark.parametrize(
    ("wrong", "hint"),
    [("max_rates", "did you mean 'max_rate'?"), ("start_delay", "did you mean 'start_delay_s'?")],
)
def test_misspelled_name_gets_a_suggestion(wrong: str, hint: str) -> None:
    """A wrong name is named, with the setting that was probably meant; `replace` does the same."""
    with pytest.raises(TypeError, match=re.escape(f"no setting '{wrong}'; {hint}")):
        Settings(**{wrong: 2.0})  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=re.escape(hint)):
        replace(Settings(), **{wrong: 2.0})  # type: ignore[arg-type]


def test_unknown_name_is_named_without_a_guess() -> None:
    """A name that resembles no setting gets no suggestion."""
    with pytest.raises(TypeError, match=r"there is no setting 'colour'$"):
        Settings(colour="red")  # type: ignore[call-arg]


def test_settings_can_be_copied() -> None:
    """The check of names does not stand in the way of copies."""
    settings = Settings(max_rate=3.0)

    assert deepcopy(settings) == copy(settings) == settings


def test_zero_never_means_unlimited() -> None:
    """Where a number must be above something, that something itself is refused."""
    for name in POSITIVE:
        with case(name):
            bound = next(
                spec.metadata["range"].above for spec in fields(Settings) if spec.name == name
            )

            assert refused(name, float(bound)).allowed.startswith(f"above {bound:g}")


def test_whole_numbers_have_no_fraction() -> None:
    """Two and a half requests, tries or hosts make no sense."""
    for name in WHOLE:
        with case(name):
            assert "whole number" in refused(name, 2.5).allowed


def test_unlimited_is_a_word_for_the_rate_alone() -> None:
    """No other limit can be switched off by that word."""
    for name in [name for name in NUMBERS if name != "max_rate"]:
        with case(name):
            refused(name, "unlimited")


def test_choice_names_the_choices() -> None:
    """An unknown word is answered with the known ones."""
    for value, name in product(["LEARNED", "", None, 3], CHOICES):
        with case(value, name):
            assert refused(name, value).allowed.startswith("one of ")


@pytest.mark.parametrize("name", ["enabled", "rate_limit_headers"])
@pytest.mark.parametrize("value", [1, 0, "yes", None])
def test_switch_is_true_or_false(name: str, value: object) -> None:
    """Nothing is taken for true or false that is neither."""
    assert refused(name, value).allowed == "true or false"


@pytest.mark.parametrize(
    ("name", "value"),
    [("probe_budget", 0.21), ("cruise", 1.01), ("aimd_decrease", 1.0), ("retry_budget", 1.1)],
)
def test_upper_bounds_hold(name: str, value: float) -> None:
    """A share is at most one, a cut cuts."""
    assert "at most" in refused(name, value).allowed


@pytest.mark.parametrize(
    "value",
    [None, 429, "429", frozenset({99}), frozenset({600}), frozenset({"429"}), frozenset({4.5})],
    ids=repr,
)
def test_retry_statuses_are_a_set_of_statuses(value: object) -> None:
    """Anything else is refused by name, not by a stray TypeError."""
    assert "HTTP statuses from 100 to 599" in refused("retry_statuses", value).allowed


def test_first_backoff_is_not_above_the_longest() -> None:
    """Two fields that contradict each other are refused together, when they are made."""
    error = refused("retry_base_s", 61.0)

    assert error.allowed == "above 0, at most the longest backoff (60)"


@pytest.mark.parametrize("name", ["seed", "delay_s", "min_delay_s", "max_bandwidth"])
def test_none_is_allowed_where_it_is_the_default(name: str) -> None:
    """None means "not told" there, and is refused everywhere else."""
    assert getattr(Settings(**{name: None}), name) is None  # type: ignore[arg-type]
    refused("start_delay_s", None)


def test_leaky_bucket_is_the_fixed_delay() -> None:
    """`leaky` starts five requests a second from the first one on, as `fixed` does."""
    starts = {}
    for strategy in ("fixed", "leaky"):
        core = Politeness(Settings(strategy=strategy, max_rate=5.0))
        for _ in range(2):
            core.reserve("example.com", now=core.ready_at("example.com", now=0.0))
        starts[strategy] = core.ready_at("example.com", now=0.0)

    assert starts == {"fixed": 0.4, "leaky": 0.4}


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_every_strategy_can_be_chosen(strategy: str) -> None:
    """Each name in the list gives a working core."""
    core = Politeness(Settings(strategy=strategy))

    assert strategy in repr(core)


def test_floor_follows_the_operators_word() -> None:
    """An explicit delay wins, then an explicit minimum, else 0.1 s or 1/max_rate if shorter."""
    cases: list[tuple[dict[str, Any], float]] = [
        ({}, 0.1),
        ({"max_rate": 50.0}, 0.02),
        ({"max_rate": 2.0}, 0.1),
        ({"max_rate": "unlimited"}, 0.0),
        ({"min_delay_s": 0.0}, 0.0),
        ({"min_delay_s": 3.0}, 3.0),
        ({"delay_s": 0.01}, 0.01),
        ({"delay_s": 0.01, "min_delay_s": 3.0}, 0.01),
        ({"delay_s": 5.0, "max_rate": "unlimited"}, 5.0),
    ]
    for options, floor_s in cases:
        with case(options, floor_s):
            assert Settings(**options).floor_s == floor_s


def test_ceiling_is_infinite_only_by_its_word() -> None:
    """8/s unless told; "unlimited" has to be spelled out."""
    assert Settings().rate_ceiling == 8.0
    assert Settings(max_rate="unlimited").rate_ceiling == inf
    with pytest.raises(SettingsError, match='or "unlimited"'):
        Settings(max_rate=0)


@given(st.sampled_from(NUMBERS), st.floats() | st.integers(-10, 10**6))
def test_whatever_is_accepted_is_usable(name: str, value: float) -> None:
    """A number is either refused by name or gives a core that grants its first request."""
    try:
        core = Politeness(Settings(**{name: value}))  # type: ignore[arg-type]
    except SettingsError as error:
        ready_at, message = 0.0, str(error)
    else:
        ready_at, message = core.ready_at("example.com", now=0.0), name

    assert name in message or (name == "retry_max_s" and "retry_base_s" in message)
    assert ready_at == 0.0


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("strategy", "one of learned, linear, aimd, gradient, fixed, leaky"),
        ("max_rate", 'above 0, or "unlimited"'),
        ("cruise", "above 0, at most 1"),
        ("retry_budget", "at least 0, at most 1"),
        ("max_hosts", "at least 1"),
        ("enabled", ""),
    ],
)
def test_range_in_words(name: str, words: str) -> None:
    """The reference page and the errors use the same words."""
    (spec,) = (spec for spec in fields(Settings) if spec.name == name)

    assert spec.metadata["range"].words == words
