"""Let a command that takes the directory of a crawl take a crawl in a server, too.

    mannerly status redis://HOST:PORT/DB --crawl NAME

The options are the same for all of these commands, so they are added in one place: the argument
becomes the location of the crawl before the command sees it (`command_line`).
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from mannerly.crawler.options.option import Option, ValueKind
from mannerly.crawler.options.table import OPTIONS
from mannerly.crawler.options.values import OptionError

from .terminal import note

if TYPE_CHECKING:
    from collections.abc import Mapping

_HELPS = {
    "crawl": "With a server's URL in place of DIR: the name of the crawl.",
    "data_dir": "With a server's URL: a worker's data directory, or the one of --segments, in "
    "which records are; repeatable.",
}


def server_options() -> list[Option]:
    """Return the options that name a crawl in a server."""
    found = [OPTIONS[name] for name in ("crawl", "data_dir", "redis_password_file")]
    found.append(OPTIONS["insecure_redis"])
    return [
        each._replace(
            doc=_HELPS.get(each.name, each.doc),
            default_words="" if each.name in _HELPS else each.default_words,
            kind=ValueKind.LIST if each.name == "data_dir" else each.kind,
            is_advanced=False,
        )
        for each in found
    ]


def located(location: str, kept: Mapping[str, Any]) -> str:
    """Return the location of a crawl in a server; any other is left as it is."""
    from mannerly.crawler.store import is_in_server

    if not is_in_server(location):
        for name in kept:
            raise OptionError(
                f"{OPTIONS[name].flag} is for a crawl in a server: give redis://HOST:PORT/DB"
            )
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
