"""Inspect the installation, for `mannerly doctor` without a directory.

Each line is a part, its version or ability, and whether it is what a crawl needs: a floor that is
not reached is a problem, a missing ability only a loss, and says what is lost.
"""

from __future__ import annotations

import re
from importlib.metadata import PackageNotFoundError, requires, version
from typing import NamedTuple

from mannerly.extras import install_words

PARTS = ("apsw", "pycurl", "msgspec", "pcre2", "turbohtml", "url-py", "xxhash", "click")
_OF_EXTRA = re.compile(r"([A-Za-z0-9._-]+).*;.*\bextra == ['\"]([a-z-]+)['\"]")


class Finding(NamedTuple):
    """One part of the installation. `lack` says what is missing, if something is."""

    name: str
    value: str
    lack: str = ""
    is_problem: bool = False  # a crawl may fail or be unsafe


def findings() -> list[Finding]:
    """Return what was found, the most important first."""
    return [*_base(), *_curl(), *_machine(), *_packages()]


def _base() -> list[Finding]:
    import platform

    from mannerly.crawler.store import OLDEST_SQLITE, sqlite_version
    from mannerly.version import VERSION

    sqlite = sqlite_version()
    oldest = ".".join(map(str, OLDEST_SQLITE))
    is_old = sqlite < OLDEST_SQLITE
    return [
        Finding("mannerly", VERSION),
        Finding("Python", f"{platform.python_version()} on {platform.system()}"),
        Finding(
            "SQLite",
            ".".join(map(str, sqlite)),
            f"older than {oldest}, with known faults: pip install --upgrade apsw" if is_old else "",
            is_old,
        ),
    ]


def _curl() -> list[Finding]:
    from mannerly.crawler.fetch.libcurl import abilities, curl_version

    lacks = {
        "HTTP/2": "hosts are asked over HTTP/1.1",
        "HTTP/3": "",  # not used by crawls yet
    }
    found = [Finding("curl", curl_version())]
    for name, is_there in abilities().items():
        found.append(Finding(name, "yes" if is_there else "no", "" if is_there else lacks[name]))
    return found


def _machine() -> list[Finding]:
    from mannerly.crawler.fetch.trust import find_trust
    from mannerly.crawler.options.table import cores
    from mannerly.crawler.runtime.machine import too_few
    from mannerly.crawler.settings import CrawlSettings

    try:
        trust = find_trust()
        authorities = Finding("certificates", trust.file or trust.directory or "of the system")
    except ValueError as error:
        authorities = Finding("certificates", "none", str(error), is_problem=True)
    few = too_few(CrawlSettings().concurrency, 1)
    return [
        authorities,
        _host_memory(),
        Finding("processors", str(cores())),
        Finding("open files", "few" if few else "enough", few or ""),
    ]


def _host_memory() -> Finding:
    """Inspect the memory of hosts that crawls use if they name no other; it is not created."""
    import os
    from contextlib import closing
    from pathlib import Path

    from mannerly.crawler.store.base import StoreError
    from mannerly.hosts import examine_host_memory, host_memory_location, open_host_memory

    name, location = "memory of hosts", host_memory_location(None, os.environ)
    if location is None:
        return Finding(name, "none", "crawls neither share a pace nor learn from each other")
    if not Path(location).exists():
        return Finding(name, f"{location} (made by the first crawl)")
    try:
        with closing(open_host_memory(location)):
            odd = examine_host_memory(Path(location))
        return Finding(name, location, f"mended when it is used: {'; '.join(odd)}" if odd else "")
    except StoreError as error:
        return Finding(name, location, str(error), is_problem=True)


def _packages() -> list[Finding]:
    found = []
    for name in PARTS:
        try:
            found.append(Finding(name, version(name)))
        except PackageNotFoundError:
            why = "pages are read by the tree parser, which takes more CPU"
            is_needed = name != "pcre2"
            lack = "it is needed: install mannerly again" if is_needed else why
            found.append(Finding(name, "missing", lack, is_needed))
    for extra, names in _extras().items():
        missing = [name for name in names if not _is_installed(name)]
        lack = f"without {', '.join(missing)}: {install_words(extra)}" if missing else ""
        found.append(Finding(f"extra {extra}", "no" if missing else "yes", lack))
    return found


def _extras() -> dict[str, list[str]]:
    """Return the packages of each extra of this package."""
    extras: dict[str, list[str]] = {}
    for requirement in requires("mannerly") or ():
        if match := _OF_EXTRA.match(requirement):
            extras.setdefault(match[2], []).append(match[1])
    return extras


def _is_installed(name: str) -> bool:
    try:
        version(name)
    except PackageNotFoundError:
        return False
    return True
