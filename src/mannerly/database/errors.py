"""Errors about the files and servers in which state is kept."""

from __future__ import annotations

import shlex


class StoreError(Exception):
    """The state cannot be used: locked, damaged, foreign or too new."""

    exit_code = 4


class StoreFull(StoreError):  # noqa: N818 - a state of the disk
    """The disk is full or the file cannot grow: pause until there is room."""


class StoreBusy(StoreError):  # noqa: N818 - a state of the file
    """Another process is writing at this moment. Nothing was changed: try again later."""


class StoreAway(StoreError):  # noqa: N818 - a state of the server
    """The server cannot be reached, or does not answer in time: try the same again."""

    exit_code = 5


def repair_command(folder: object) -> str:
    """Return the command that repairs the crawl in a directory."""
    return f"mannerly doctor --repair {shlex.quote(str(folder))}"
