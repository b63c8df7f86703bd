"""Let a command that takes the directory of a crawl take a crawl in a server, too.

    mannerly status redis://HOST:PORT/DB --crawl NAME

The options are the same for all of these commands, so they are added in one place: the argument
becomes the location of the crawl before the command sees it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from typer.core import TyperCommand, TyperOption

from mannerly.crawler.options.table import OPTIONS

from .terminal import fail, failing_clearly, note

_KEPT = "mannerly.in_server"  # the options' values, in a context
_NAMED = ("crawl", "data_dir", "redis_password_file", "insecure_redis")


class StoredCommand(TyperCommand):
    """A command with a `location`, which may be the URL of a server."""

    _options: list[Any] | None = None

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the command's own parameters, and those of a crawl in a server."""
        own = super().get_params(ctx)
        if self._options is None:
            taken = {name for param in own for name in (param.name, *param.opts)}
            self._options = [each for each in _options() if each.name not in taken]
        return [*own[:-1], *self._options, own[-1]]

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the command line, and put URL and name together."""
        rest = super().parse_args(ctx, args)
        location = ctx.params.get("location")
        if location is not None and not ctx.resilient_parsing:
            with failing_clearly():
                ctx.params["location"] = _located(str(location), ctx.meta.get(_KEPT, {}))
        return rest


def _located(location: str, kept: dict[str, Any]) -> str:
    """Return the location of a crawl in a server; any other is left as it is."""
    from mannerly.crawler.store import is_in_server

    if not is_in_server(location):
        for name in kept:
            fail(f"{OPTIONS[name].flag} is for a crawl in a server: give redis://HOST:PORT/DB")
        return location
    from mannerly.crawler.store import in_server, read_records_from
    from mannerly.extras import require_redis

    from .shared import export_secrets

    require_redis("a crawl in a server")
    export_secrets(
        password_file=kept.get("redis_password_file"),
        is_insecure=bool(kept.get("insecure_redis")),
    )
    folders = [Path(each).absolute() for each in kept.get("data_dir", ())]
    for folder in folders:
        if not folder.is_dir():
            note(f"There is no directory {folder} (--data-dir): its records count as missing")
    read_records_from(folders)
    return in_server(location, kept.get("crawl", ""))


def _options() -> list[TyperOption]:
    helps = {
        "crawl": "With a server's URL in place of DIR: the name of the crawl.",
        "data_dir": "With a server's URL: a worker's data directory, or the one of --segments, in "
        "which records are; repeatable.",
    }
    return [
        TyperOption(
            param_decls=[name, OPTIONS[name].flag],
            type=bool if name == "insecure_redis" else str,
            is_flag=name == "insecure_redis",
            default=None,
            multiple=name == "data_dir",
            metavar=OPTIONS[name].metavar,
            help=helps.get(name, OPTIONS[name].help),
            expose_value=False,
            callback=_keep,
        )
        for name in _NAMED
    ]


def _keep(ctx: Any, param: Any, value: Any) -> Any:
    if value:
        ctx.meta.setdefault(_KEPT, {})[param.name] = value
    return value
