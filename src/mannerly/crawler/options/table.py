"""All options of a crawl, in their groups, made from their declarations.

The declarations are the fields in `declared` and the settings of the politeness core
(`mannerly.politeness.settings`). Of these every field is an option; its name is that of the field
without `_s`, unless the field says how else it is offered.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from mannerly.politeness.settings import groups

from .declared import CrawlFields, RunFields
from .option import Option, completed, declared_options

if TYPE_CHECKING:
    from dataclasses import Field

POLITENESS = "politeness."
_COMMON = "Politeness"
_SET_BY_OTHERS = ("request_timeout_s",)  # --timeout sets both
_NOT_IN_A_CRAWL = ("ip",)  # of group_by: addresses of hosts change while it runs


def _of_core() -> dict[str, tuple[Option, ...]]:
    """Return the settings of the politeness core: the most used ones, then the others by group."""
    found: dict[str, tuple[Option, ...]] = {_COMMON: ()}
    for title, fields in groups().items():
        made = [_of_field(each) for each in fields if each.name not in _SET_BY_OTHERS]
        found[_COMMON] += tuple(option for option in made if not option.is_advanced)
        others = tuple(option for option in made if option.is_advanced)
        if others:
            found[f"{_COMMON}: {title[0].lower()}{title[1:]}"] = others
    return found


def _of_field(field: Field[Any]) -> Option:
    facts = field.metadata
    allowed = facts["range"]
    choices = tuple(each for each in allowed.choices if each not in _NOT_IN_A_CRAWL)
    option = Option(
        facts["doc"],
        field.default,
        facts["default_words"] or ("not set" if field.default is None else ""),
        target=POLITENESS + field.name,
        allowed=allowed._replace(choices=choices),
        is_advanced=True,
        for_one_host=facts["for_one_host"],
        for_jobs=facts["for_one_host"],
    )
    return completed(option._replace(**facts["offer"]), field.name, str(field.type))


def _groups() -> dict[str, tuple[Option, ...]]:
    core = _of_core()
    found: dict[str, tuple[Option, ...]] = {}
    for title, options in declared_options(
        CrawlFields.__dataclass_fields__, are_settings=True
    ).items():
        found[title] = (*core.pop(title, ()), *options)
        if title == _COMMON:
            found |= core
    return found | declared_options(RunFields.__dataclass_fields__, are_settings=False)


GROUPS = _groups()
OPTIONS = {option.name: option for group in GROUPS.values() for option in group}

# Other names of options, which are accepted wherever a name is.
ALIASES = {alias: option.name for option in OPTIONS.values() for alias in option.aliases}

# The options that are keywords of the library: all but those of one run of the command.
KEYWORDS = tuple(name for name, option in OPTIONS.items() if option.target is not None)

# The options that `mannerly set` and its like change while a crawl runs.
CHANGEABLE = tuple(name for name, option in OPTIONS.items() if option.is_changeable)

# The options that set fields of the politeness core, by the names of those fields.
FIELDS = {
    option.target.removeprefix(POLITENESS): name
    for name, option in OPTIONS.items()
    if option.target is not None and option.target.startswith(POLITENESS)
}


def main_name(name: str) -> str:
    """Return the name of an option from one of its names; any other text as it is."""
    return ALIASES.get(name, name)


def cores() -> int:
    """Return how many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
