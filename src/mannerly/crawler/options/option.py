"""An option: its name in all places, the values that it takes, and where it may be set.

Options are declared as fields of a class (`declared`), as settings of the politeness core, or as
parameters of a command; the name, the type and the default of an option are those of the field.
This module imports nothing of the crawler: `mannerly --help` must stay fast.
"""

from __future__ import annotations

import re
from dataclasses import field
from enum import Enum
from typing import TYPE_CHECKING, Any, NamedTuple

from mannerly.politeness.settings import Range

if TYPE_CHECKING:
    from collections.abc import Mapping
    from dataclasses import Field


class ValueKind(Enum):
    """The type of an option's value; the text is shown in errors."""

    INTEGER = "a whole number"
    NUMBER = "a number"
    BYTES = "a number of bytes, also as 64KB, 256MB or 1GB"
    RATE = 'a number, or "unlimited"'
    TEXT = "text of visible characters"
    CONTACT = "an e-mail address, or the URL of a page"
    FLAG = "true or false"
    LIST = "a list of texts"
    FILE = "the path of a file"
    STATUSES = "HTTP statuses such as 429, 503"
    HOSTS = "options of single hosts"


class ProjectUse(Enum):
    """The values of an option that a project file may set.

    A project file may come with a directory that was downloaded or is shared. So it must not open
    the network, weaken checks, delete a crawl, or write outside its directory.
    """

    ANY = "any"
    PATHS_INSIDE = "paths inside its directory"
    NONE = "none"


class Option(NamedTuple):
    """One option. `doc` says what it does; `help` adds its default."""

    doc: str
    default: Any = None
    default_words: str = ""  # in place of the default
    name: str = ""
    kind: ValueKind = ValueKind.TEXT
    allowed: Range = Range()
    target: str | None = None  # the field of the settings; None: it is for one run of a command
    group: str = ""  # its title in --help; an empty one is that of the option before
    metavar: str | None = None
    short: str | None = None
    aliases: tuple[str, ...] = ()  # other names
    variables: tuple[str, ...] = ()  # of the environment, beside those of its names
    variable_prefix: str = ""  # of its variables, behind MANNERLY_: that of its command
    is_order: bool = False  # on the command line only: said each time, no preference
    has_secret: bool = False  # never printed or stored: see `secrets`
    project_use: ProjectUse = ProjectUse.ANY
    is_inverse: bool = False  # a rate whose setting is the delay between two requests
    is_advanced: bool = False  # listed by --help-all only
    for_one_host: bool = False  # a single host may have its own value
    host_kind: ValueKind | None = None  # of its value there, if a host joins a list
    for_jobs: bool = False  # a request for a job of the service may set it
    is_fixed: bool = False  # it decides which URLs are fetched: a resumed crawl keeps it
    is_changeable: bool = False  # `mannerly set` changes it while the crawl runs
    of_machine: bool = False  # each machine that shares a crawl has its own value

    @property
    def flag(self) -> str:
        """Return its name on the command line."""
        return _flag(self.name)

    @property
    def variable(self) -> str:
        """Return its environment variable."""
        return self._variable(self.name)

    @property
    def flags(self) -> list[str]:
        """Return all its names on the command line, the most important first."""
        return [self.flag, *([self.short] if self.short else []), *map(_flag, self.aliases)]

    @property
    def all_variables(self) -> list[str]:
        """Return all its environment variables, the weakest first."""
        return [*self.variables, *map(self._variable, self.aliases), self.variable]

    def _variable(self, name: str) -> str:
        return f"MANNERLY_{self.variable_prefix}{name.upper()}"

    @property
    def choices(self) -> tuple[str, ...]:
        """Return the words that it takes; empty: any."""
        return self.allowed.choices

    @property
    def help(self) -> str:
        """Return what it does, its unit and its default: the text in `--help`."""
        words = _FORMULA.sub("", self.doc.replace("`", ""))
        words = words if words.startswith("fsync") else words[0].upper() + words[1:]
        described = self.default_words.replace("`", "")
        default = f": {described}" if described else self._shown_default()
        return f"{words.removesuffix('.')} (default{default})." if default else words

    def _shown_default(self) -> str:
        """Return the default with its unit, after a space; empty: it goes without saying."""
        default = self.default
        if default in (None, "", ()) or isinstance(default, dict):
            return ": none" if self.target and self.kind in _SAY_NONE else ""
        if isinstance(default, bool):
            return (" on" if default else " off") if self.target else ""
        if isinstance(default, frozenset):
            return " " + " ".join(map(str, sorted(default)))
        if self.kind is ValueKind.BYTES:
            return f" {_size(default)}"
        number = 1.0 / default if self.is_inverse else default
        unit = " s" if self.metavar == SECONDS else ""
        if isinstance(number, float):
            return f" {number:.10g}{unit}"
        return f" {number:,}{unit}" if isinstance(number, int) else f" {number}"


SECONDS = "S"
_FORMULA = re.compile(r"\A\w: ")  # the symbol before some sentences
_SAY_NONE = (ValueKind.TEXT, ValueKind.CONTACT)

# The first word of a type, and the kind of its values.
_KINDS = {
    "bool": ValueKind.FLAG,
    "int": ValueKind.INTEGER,
    "float": ValueKind.NUMBER,
    "str": ValueKind.TEXT,
    "tuple": ValueKind.LIST,
    "list": ValueKind.LIST,
    "frozenset": ValueKind.STATUSES,
    "dict": ValueKind.HOSTS,
}
_METAVARS = {
    ValueKind.INTEGER: "N",
    ValueKind.NUMBER: "X",
    ValueKind.BYTES: "BYTES",
    ValueKind.RATE: "R",
    ValueKind.FILE: "FILE",
    ValueKind.TEXT: "TEXT",
    ValueKind.STATUSES: "LIST",
}


def declaration(doc: str, **facts: Any) -> Option:
    """Return an option without what follows from its field or parameter.

    `facts` are fields of `Option`, and those of its `Range`.
    """
    allowed = Range(**{name: facts.pop(name) for name in Range._fields if name in facts})
    return Option(doc, allowed=allowed, **facts)


def option(default: Any, doc: str, **facts: Any) -> Any:
    """Return the field of a class that declares an option; `facts` as for a `declaration`."""
    declared = declaration(doc, **facts)._replace(default=default)
    metadata = {"option": declared, "range": declared.allowed}
    is_shown = not facts.get("has_secret")
    if isinstance(default, dict):
        return field(default_factory=dict, repr=is_shown, metadata=metadata)
    return field(default=default, repr=is_shown, metadata=metadata)


def completed(declared: Option, name: str, kind: str) -> Option:
    """Return an option with what follows from the name and the type of its field."""
    found = declared.kind
    if found is ValueKind.TEXT:
        found = _KINDS.get(re.split(r"\W", kind)[0], ValueKind.TEXT)
    if declared.allowed.word is not None:
        found = ValueKind.RATE
    metavar = declared.metavar or _METAVARS.get(found)
    if name.endswith("_s") and not declared.is_inverse:
        metavar = SECONDS
    elif declared.choices and declared.metavar is None:
        metavar = "WORD"
    return declared._replace(
        name=declared.name or name.removesuffix("_s"), kind=found, metavar=metavar
    )


def declared_options(
    fields: Mapping[str, Field[Any]], *, are_settings: bool
) -> dict[str, tuple[Option, ...]]:
    """Return the options that fields declare, in their groups."""
    groups: dict[str, list[Option]] = {}
    title = ""
    for name, each in fields.items():
        declared: Option | None = each.metadata.get("option")
        if declared is None:
            continue
        title = declared.group or title
        made = completed(declared, name, str(each.type))
        groups.setdefault(title, []).append(made._replace(target=name if are_settings else None))
    return {title: tuple(options) for title, options in groups.items()}


def _flag(name: str) -> str:
    return "--" + name.replace("_", "-")


def _size(number: int) -> str:
    """Return a number of bytes with the largest unit that divides it."""
    for power, unit in ((30, "GB"), (20, "MB"), (10, "KB")):
        if number % (1 << power) == 0:
            return f"{number >> power}{unit}"
    return f"{number:,}"
