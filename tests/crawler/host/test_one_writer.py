"""Each field of a host, its counts and its budget is written in one module."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from pathlib import Path

import pytest

import mannerly
from mannerly.crawler.host import host
from mannerly.crawler.host.budget import Budget
from mannerly.crawler.host.host import Host, HostCounts

SOURCE = Path(mannerly.__file__).parent
KNOW_HOSTS = ("crawler/host", "crawler/frontier", "crawler/shard", "crawler/plugins", "hosts")
# Variables that hold one of these objects; a write to `self` is the object's own.
HOLDERS = {"host", "known", "member", "each", "budget", "counts", "own_counts", "queue", "sitemaps"}


def written(module: Path) -> set[str]:
    """Return the fields that a module assigns to objects other than `self`."""
    found = set()
    for node in ast.walk(ast.parse(module.read_text())):
        is_store = isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)
        if is_store:
            assert isinstance(node, ast.Attribute)
            owner = node.value
            name = owner.attr if isinstance(owner, ast.Attribute) else getattr(owner, "id", "")
            if name in HOLDERS:
                found.add(node.attr)
    return found


@pytest.mark.parametrize("made", [Host, HostCounts, Budget], ids=lambda made: made.__name__)
def test_a_field_has_one_writer(made: type) -> None:
    """Whoever asks what a line may change needs to look at one module only."""
    fields = {slot for base in made.__mro__ for slot in getattr(base, "__slots__", ())}
    writers = defaultdict(set)
    for folder in KNOW_HOSTS:
        for module in (SOURCE / folder).rglob("*.py"):
            for field in written(module) & fields:
                writers[field].add(module.stem)

    several = {field: names for field, names in writers.items() if len(names) > 1}

    assert not several
    # Counts and the budget change by their own methods; the lease is of the module of turns.
    assert made is Host or set(writers) <= {"lease"} | set(Host.__slots__)


def test_the_writer_of_each_field_is_named() -> None:
    """The list in the docstring of the module has all fields of a host."""
    doc = host.__doc__ or ""

    unnamed = [field for field in Host.__slots__ if not re.search(rf"\b{field}\b", doc)]

    assert unnamed == []
