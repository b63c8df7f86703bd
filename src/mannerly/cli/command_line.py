"""The command-line options of `crawl` and `resume`, made from the table in `crawler.options`.

All values are text here: `config` converts and checks them, as those of all other places. The
options are made when the command is used: there are a hundred, and `mannerly --help` needs none.
"""

from __future__ import annotations

import inspect
import re
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, ClassVar

from typer.core import TyperOption

from mannerly.crawler.options.option import ValueKind
from mannerly.crawler.options.table import GROUPS

from .help import GroupedCommand, show_all

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mannerly.crawler.options.option import Option
    from mannerly.crawler.options.values import Value

_HELP_ALL = "help_all"
ANYWHERE = "auto"  # the value of --dashboard: on loopback, at the first free port
_PLACE = re.compile(r"((\[[0-9a-fA-F:.]+\]|[A-Za-z0-9.-]*):)?[0-9]{1,5}")
_LISTS = (ValueKind.LIST, ValueKind.HOSTS)


class CrawlCommand(GroupedCommand):
    """A command that has the options of the table, too."""

    left_out: tuple[str, ...] = ()
    helps: ClassVar[Mapping[str, str]] = {}  # where an option means something else
    _options: list[Any] | None = None

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the command's own parameters, the options of the table, and --help."""
        if self._options is None:
            self._options = [
                _parameter(option, group, self.helps.get(option.name, option.help))
                for group, options in GROUPS.items()
                for option in options
                if option.name not in self.left_out
            ]
            self._options.append(_help_all())
        own = super().get_params(ctx)
        return [*own[:-1], *self._options, own[-1]]

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the command line; --dashboard may stand without its value."""
        return super().parse_args(ctx, _with_place(args))


def _with_place(args: list[str]) -> list[str]:
    """Give --dashboard a value where what follows is not [HOST:]PORT, but a URL for instance."""
    return [
        f"{word}={ANYWHERE}" if word == "--dashboard" and not _PLACE.fullmatch(after) else word
        for word, after in zip_longest(args, args[1:], fillvalue="")
    ]


def takes_options(function: Callable[..., None]) -> Callable[..., None]:
    """Hide the `**options` of a function from typer: `CrawlCommand` makes them."""
    del function.__annotations__["options"]
    signature = inspect.signature(function, eval_str=True)
    named = [each for each in signature.parameters.values() if each.kind is not each.VAR_KEYWORD]
    function.__signature__ = signature.replace(parameters=named)  # type: ignore[attr-defined]
    return function


def given_options(options: Mapping[str, Any]) -> dict[str, Value]:
    """Return the options that were given on the command line."""
    return {
        name: list(value) if isinstance(value, tuple) else value
        for name, value in options.items()
        if value not in (None, ()) and name != _HELP_ALL
    }


def _parameter(option: Option, group: str, words: str) -> TyperOption:
    names = option.flags
    is_flag = option.kind is ValueKind.FLAG
    if is_flag and option.target is not None:
        # A flag that a configuration file can turn on needs a form that turns it off.
        names[0] += "/--no-" + option.flag.removeprefix("--")
    choices = list(option.choices)
    return TyperOption(
        param_decls=[option.name, *names],
        type=bool if is_flag else str,
        default=None,
        is_flag=is_flag,
        multiple=option.kind in _LISTS,
        metavar=option.metavar,
        help=words,
        rich_help_panel=group,
        autocompletion=(lambda *_: choices) if choices else None,
    )


def _help_all() -> TyperOption:
    return TyperOption(
        param_decls=[_HELP_ALL, "--help-all"],
        type=bool,
        default=False,
        is_flag=True,
        is_eager=True,
        callback=lambda ctx, _param, wanted: show_all(ctx, wanted),
        help="Show all options and exit.",
    )
