"""Options made from the fields of the politeness core's settings: one for each, in their groups.

The name of an option is that of its field without `_s`; fields whose name would mislead beside the
other options of a crawl have another one (`RENAMED`).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from mannerly.politeness.settings import groups

from .option import Option, ValueKind

if TYPE_CHECKING:
    from collections.abc import Collection
    from dataclasses import Field

POLITENESS = "politeness."

RENAMED = {
    "enabled": "pacing",
    "seed": "random_seed",  # seeds are start URLs
    "max_hosts": "max_host_states",  # it does not limit what is crawled
}
_SET_BY_OTHERS = ("request_timeout_s",)  # --timeout sets both
_NOT_IN_A_CRAWL = ("ip",)  # of group_by: addresses of hosts change while it runs

_SYMBOL = re.compile(r"\A\w: ")  # of a formula, before some sentences

# The first words of a field's type, and what its values are.
_KINDS = {
    "bool": (ValueKind.FLAG, None),
    "int": (ValueKind.INTEGER, "N"),
    "float": (ValueKind.NUMBER, "X"),
    "str": (ValueKind.TEXT, "WORD"),
    "frozenset": (ValueKind.STATUSES, "LIST"),
}


def pace_options(named: Collection[str]) -> dict[str, tuple[Option, ...]]:
    """Return an option for each field that is not among the `named` ones, by group."""
    found = {
        f"Politeness: {title[0].lower()}{title[1:]}": tuple(
            _option(field)
            for field in fields
            if field.name not in named and field.name not in _SET_BY_OTHERS
        )
        for title, fields in groups().items()
    }
    return {title: options for title, options in found.items() if options}


def option_name(field: str) -> str:
    """Return the name of the option that is made from a field."""
    return RENAMED.get(field) or field.removesuffix("_s")


def _option(field: Field[Any]) -> Option:
    kind, metavar = _KINDS[str(field.type).partition(" ")[0].partition("[")[0]]
    choices = field.metadata["rule"]["choices"] or ()
    return Option(
        option_name(field.name),
        kind,
        _help(field),
        POLITENESS + field.name,
        "S" if field.name.endswith("_s") else metavar,
        choices=tuple(each for each in choices if each not in _NOT_IN_A_CRAWL),
        is_advanced=True,
        for_one_host=field.metadata["for_one_host"],
        # Without pacing a job would ignore what its hosts ask for: that is the operator's.
        for_jobs=field.metadata["for_one_host"] and field.name != "enabled",
    )


def _help(field: Field[Any]) -> str:
    """Return the sentence of a field with its default and its unit."""
    doc = _SYMBOL.sub("", field.metadata["doc"].replace("`", "")).removesuffix(".")
    words, _, described = doc.partition(". Default: ")
    unit = " s" if field.name.endswith("_s") and field.default is not None else ""
    default = f": {described}" if described else f" {_shown(field.default)}{unit}"
    return f"{words[0].upper()}{words[1:]} (default{default})."


def _shown(default: object) -> str:
    if default is None:
        return "not set"
    if isinstance(default, bool):
        return "on" if default else "off"
    if isinstance(default, frozenset):
        return " ".join(map(str, sorted(default)))
    if isinstance(default, float):
        return f"{default:.10g}"
    return f"{default:,}" if isinstance(default, int) else str(default)
