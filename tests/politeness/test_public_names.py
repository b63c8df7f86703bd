"""The public surface: small, sorted, documented, and the one that the documents name."""

from __future__ import annotations

import inspect
import types
from importlib import import_module

import pytest
from tests.politeness.cases import case

import mannerly.politeness as package

PACKAGES = [
    "mannerly.politeness",
    "mannerly.politeness.pace",
    "mannerly.simulation",
]


CLASSES = [
    name
    for name in package.__all__
    if inspect.isclass(value := getattr(package, name)) and value.__module__.startswith("mannerly")
]


@pytest.mark.parametrize("name", PACKAGES)
def test_all_is_the_list_of_public_names(name: str) -> None:
    """`__all__` holds every public name that is no module, and nothing else."""
    module = import_module(name)
    public = {
        key
        for key, value in vars(module).items()
        if not key.startswith("_")
        and not isinstance(value, types.ModuleType)
        and key not in ("annotations", "TYPE_CHECKING")
    }

    assert set(module.__all__) == public
    assert len(module.__all__) == len(set(module.__all__))


def test_all_is_sorted() -> None:
    """A reader finds a name where the alphabet puts it."""
    assert package.__all__ == sorted(package.__all__)


def test_every_public_name_is_explained() -> None:
    """Every class carries a docstring of its own; type aliases have nothing to carry it."""
    for name in CLASSES:
        with case(name):
            value = getattr(package, name)

            assert value.__doc__
            assert not value.__doc__.startswith(f"{name}("), "that is the dataclass's own signature"


def test_only_aliases_are_no_classes_of_ours() -> None:
    """Nothing hides from the two tests above and below."""
    assert set(package.__all__) - set(CLASSES) == {"Decision", "Instant"}


def test_every_public_method_is_explained() -> None:
    """What can be called says what it does."""
    for name in CLASSES:
        with case(name):
            value = getattr(package, name)

            bare = [
                method
                for method, function in vars(value).items()
                if not method.startswith("_")
                and isinstance(function, types.FunctionType | property)
                and not inspect.getdoc(function)
            ]

            assert bare == []


def test_contract_of_the_document_can_be_imported() -> None:
    """The line that the design shows works as it stands."""
    from mannerly.politeness import Grant, Politeness, Refuse, Response, Settings, Wait

    assert all((Grant, Politeness, Refuse, Response, Settings, Wait))
