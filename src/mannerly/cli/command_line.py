"""Commands from functions: what the annotation of a parameter declares is read from the terminal.

    def watch(
        location: Location,                       # an `Argument`
        *,
        interval: Annotated[float, declaration("Seconds between …", low=0.2)] = 1.0,   # an option
        options: Annotated[GivenOptions, OptionsOfCrawl()],       # all options of a crawl
    ) -> None:
        "The text of --help."

Values of options are text here: `config` converts and checks them, as those of all other places. An
option of a command has a variable (MANNERLY_WATCH_INTERVAL) and a key in the command's table of a
file, too, unless it is an order, such as --yes, and not a preference. What a command takes is found
out when it is used: `mannerly --help` needs none of it.
"""

from __future__ import annotations

import inspect
import os
import re
from enum import Enum
from functools import cached_property
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, get_args, get_origin, get_type_hints

import click

from mannerly.crawler.options.option import Option, ValueKind

from .help import GroupedCommand, show_all
from .terminal import fail, failing_clearly

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from mannerly.crawler.options.values import Value

GivenOptions: TypeAlias = dict[str, Any]  # values as they were given, by option

ANYWHERE = "auto"  # the value of --dashboard: on loopback, at the first free port
_PLACE = re.compile(r"((\[[0-9a-fA-F:.]+\]|[A-Za-z0-9.-]*):)?[0-9]{1,5}")
_HELP_ALL = "help_all"
_LISTS = (ValueKind.LIST, ValueKind.HOSTS)
_SHORT_VARIABLES = ("serve", "simulate")  # commands whose variables have no name of a command
_KINDS = {
    bool: ValueKind.FLAG,
    int: ValueKind.INTEGER,
    float: ValueKind.NUMBER,
    Path: ValueKind.FILE,
    list: ValueKind.LIST,
}


class Argument(NamedTuple):
    """The declaration of an argument."""

    metavar: str
    help: str
    words: Callable[[], Sequence[str]] = tuple  # that a shell completes
    is_crawl: bool = False  # the location of a crawl, perhaps in a server


class OptionsOfCrawl(NamedTuple):
    """The declaration of a parameter that gets options of a crawl, as they were given."""

    left_out: tuple[str, ...] = ()
    only: tuple[str, ...] = ()  # empty: all others
    helps: Mapping[str, str] = {}  # where an option means something else
    defaults: Mapping[str, Any] = {}  # where they are others

    @property
    def groups(self) -> dict[str, list[Option]]:
        """Return the options in their groups."""
        from mannerly.crawler.options.table import GROUPS

        return {
            title: [
                self._here(each)
                for each in options
                if each.name not in self.left_out and (not self.only or each.name in self.only)
            ]
            for title, options in GROUPS.items()
        }

    def _here(self, option: Option) -> Option:
        if option.name not in self.defaults:
            return option
        return option._replace(default=self.defaults[option.name], default_words="")


class _Parameter(NamedTuple):
    """A parameter of the function of a command."""

    declared: Argument | Option | OptionsOfCrawl
    type: Any  # without None
    default: Any  # `inspect.Parameter.empty`: it has to be given

    @property
    def is_required(self) -> bool:
        """Return whether it has to be given on the command line."""
        return self.default is inspect.Parameter.empty


class Command(GroupedCommand):
    """A command that calls a function."""

    def __init__(
        self, function: Callable[..., None], path: str = "", title: str = "", epilog: str = ""
    ) -> None:
        """Make the command of a function; `path` is its name behind that of the program."""
        self.function = function
        self.path = path or function.__name__
        super().__init__(
            self.path.rpartition(" ")[2], help=inspect.getdoc(function), epilog=epilog, title=title
        )

    # ------------------------------------------------------------------ what it takes

    @cached_property
    def own_options(self) -> dict[str, Option]:
        """Return the options that are declared by the function, by their names."""
        return {
            each.declared.name: each.declared
            for each in self._parameters.values()
            if isinstance(each.declared, Option)
        }

    @property
    def named_options(self) -> set[str]:
        """Return the names of the options that it declares, or chooses of those of a crawl."""
        chosen = (name for each in self._crawl_options for name in each.only)
        return {*self.own_options, *chosen}

    @property
    def section(self) -> str:
        """Return the name of its table in a file."""
        return self.path.replace(" ", "_").replace("-", "_")

    @property
    def has_crawl_options(self) -> bool:
        """Return whether it takes all options of a crawl."""
        return any(not each.only for each in self._crawl_options)

    @cached_property
    def _parameters(self) -> dict[str, _Parameter]:
        hints = get_type_hints(self.function, include_extras=True)
        found = {}
        for name, parameter in inspect.signature(self.function).parameters.items():
            kind, declared = get_args(hints[name])[:2]
            kinds = [each for each in get_args(kind) if each is not type(None)]
            if type(None) in get_args(kind):
                kind = kinds[0]
            if isinstance(declared, Option):
                declared = self._completed(declared, name, kind, parameter.default)
            found[name] = _Parameter(declared, kind, parameter.default)
        return found

    def _completed(self, declared: Option, name: str, kind: Any, default: Any) -> Option:
        from mannerly.crawler.options.option import completed

        plain = get_origin(kind) or kind
        is_choice = issubclass(plain, Enum)
        allowed = declared.allowed
        if is_choice:
            allowed = allowed._replace(choices=tuple(each.value for each in plain))
        prefix = "" if self.section in _SHORT_VARIABLES else f"{self.section}_"
        return completed(
            declared._replace(
                default=None if default is inspect.Parameter.empty else default,
                kind=_KINDS.get(plain, declared.kind),
                allowed=allowed,
                variable_prefix=prefix.upper(),
            ),
            name,
            "",
        )

    @property
    def _crawl_options(self) -> list[OptionsOfCrawl]:
        declared = (each.declared for each in self._parameters.values())
        return [each for each in declared if isinstance(each, OptionsOfCrawl)]

    @property
    def _names_crawl(self) -> bool:
        """Return whether it takes a crawl that may be in a server, and does nothing else of it."""
        arguments = (each.declared for each in self._parameters.values())
        is_crawl = any(isinstance(each, Argument) and each.is_crawl for each in arguments)
        return is_crawl and not self.has_crawl_options

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """Return its arguments and options, and --help."""
        if not self.params:
            self.params = self._made()
        return super().get_params(ctx)

    def _made(self) -> list[click.Parameter]:
        made: list[click.Parameter] = []
        for name, each in self._parameters.items():
            if isinstance(each.declared, Argument):
                made.append(_argument(name, each))
            elif isinstance(each.declared, Option):
                title = each.declared.group or "Options"
                made.append(CommandOption(each.declared, title, is_required=each.is_required))
        for crawl in self._crawl_options:
            made += [
                CommandOption(option, title, crawl.helps.get(option.name))
                for title, options in crawl.groups.items()
                for option in options
            ]
        if self._names_crawl:
            from .shared import server_options

            taken = {each.name for each in made}
            made += [
                CommandOption(option, "Crawl in a server")
                for option in server_options()
                if option.name not in taken
            ]
        if self.has_crawl_options:
            made.append(_help_all())
        return made

    # ------------------------------------------------------------------ a use

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the command line; --dashboard may stand without its value."""
        return super().parse_args(ctx, _with_place(args))

    def invoke(self, ctx: click.Context) -> None:
        """Call the function with what was given, here and in the other places."""
        from mannerly.crawler.options.values import OptionError

        given = {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in ctx.params.items()
            if value not in (None, ())
        }
        mine = {name: given.pop(name) for name in self.own_options if name in given}
        try:
            found = self._own_values(mine)
        except (OptionError, OSError) as error:
            fail(str(error))
        arguments: dict[str, Any] = {}
        for name, each in self._parameters.items():
            default = None if each.is_required else each.default
            if isinstance(each.declared, Argument):
                arguments[name] = _converted(given.pop(name, default), each.type)
            elif isinstance(each.declared, Option):
                arguments[name] = _converted(found.get(each.declared.name, default), each.type)
        crawl = [name for name in self._parameters if name not in arguments]
        if self._names_crawl and arguments["location"] is not None:
            from .shared import located, server_options

            names = [option.name for option in server_options()]
            of_server = {name: given.pop(name) for name in names if name in given}
            with failing_clearly():
                arguments["location"] = located(arguments["location"], of_server)
        self.function(**arguments, **dict.fromkeys(crawl, given))

    def _own_values(self, given: dict[str, Value]) -> dict[str, Value]:
        """Return the values of its own options, from all places."""
        from .config import resolve_own

        found = resolve_own(
            self.section, self.own_options, given, environment=os.environ, directory=Path.cwd()
        )
        return {name: each.value for name, each in found.items()}


class CommandOption(click.Option):
    """An option as click has it, with its declaration and the title of its group."""

    def __init__(
        self, option: Option, title: str, words: str | None = None, *, is_required: bool = False
    ) -> None:
        """Make the option of a declaration; `words` say what it does in this command."""
        self.option, self.title = option, title
        flags = option.flags
        is_flag = option.kind is ValueKind.FLAG
        if is_flag and option.target is not None:
            # A flag that a configuration file can turn on needs a form that turns it off.
            flags[0] += "/--no-" + option.flag.removeprefix("--")
        super().__init__(
            [option.name, *flags],
            type=bool if is_flag else str,
            default=None,
            is_flag=is_flag,
            multiple=option.kind in _LISTS,
            metavar=option.metavar,
            help=words or option.help,
            required=is_required,
            shell_complete=_completing(option.choices) if option.choices else None,
        )


def _with_place(args: list[str]) -> list[str]:
    """Give --dashboard a value where what follows is not [HOST:]PORT, but a URL for instance."""
    return [
        f"{word}={ANYWHERE}" if word == "--dashboard" and not _PLACE.fullmatch(after) else word
        for word, after in zip_longest(args, args[1:], fillvalue="")
    ]


def _argument(name: str, parameter: _Parameter) -> click.Argument:
    declared = parameter.declared
    assert isinstance(declared, Argument)
    is_list = (get_origin(parameter.type) or parameter.type) is list
    words = [str(each) for each in parameter.type] if _is_choice(parameter.type) else ()
    return click.Argument(
        [name],
        type=click.Choice(words) if words else str,
        nargs=-1 if is_list else 1,
        required=parameter.is_required,
        metavar=declared.metavar,
        help=declared.help,
        shell_complete=_completing(words or declared.words()),
    )


def _is_choice(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, Enum)


def _completing(words: Sequence[str]) -> Callable[..., list[str]]:
    return lambda _ctx, _param, begun: [each for each in words if each.startswith(begun)]


def _converted(value: Any, kind: Any) -> Any:
    """Return a value in the type of its parameter."""
    if value is None or not isinstance(kind, type) or isinstance(value, kind):
        return value
    return kind(value)


def _help_all() -> click.Option:
    return click.Option(
        [_HELP_ALL, "--help-all"],
        is_flag=True,
        is_eager=True,
        expose_value=False,
        callback=show_all,
        help="Show all options and exit.",
    )
