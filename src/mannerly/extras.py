"""Packages that only some features need, and how to install them.

mannerly is on no package index yet, so that an index may have another package of this name: extras
are installed from a clone.
"""

from __future__ import annotations

from importlib.util import find_spec

_OLD_REDIS = ("1", "2", "3", "4")


class MissingExtra(ValueError):  # noqa: N818 - a state of the installation
    """A package of an extra is not installed. The message says how to install it."""


def install_words(extra: str) -> str:
    """Return what to do to install the packages of an extra."""
    return f"in a clone of mannerly, pip install '.[{extra}]'"


def require_redis(what: str) -> None:
    """Check that crawls in a server can be used.

    Raises:
        MissingExtra: the client is not installed, or it is too old.
    """
    # Imported here: 5 ms that only crawls in a server need.
    from importlib.metadata import PackageNotFoundError, version

    if find_spec("redis") is None:
        raise MissingExtra(f"{what} needs the package redis: {install_words('redis')}")
    try:
        installed = version("redis")
    except PackageNotFoundError:
        return  # a copy without metadata: it has to know by itself
    if installed.partition(".")[0] in _OLD_REDIS:
        raise MissingExtra(
            f"{what} needs the package redis 5 or newer, and {installed} is installed: "
            f"{install_words('redis')}"
        )
