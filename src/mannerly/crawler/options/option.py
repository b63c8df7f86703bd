"""An option: its name in all places, the type of its value, and who may set it.

This module imports nothing of the crawler: `mannerly --help` must stay fast.
"""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple


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
    """One option. `help` is its text in `--help`."""

    name: str
    kind: ValueKind
    help: str
    target: str | None = None
    metavar: str | None = None
    short: str | None = None
    choices: tuple[str, ...] = ()
    has_secret: bool = False  # never printed or stored: see `secrets`
    project_use: ProjectUse = ProjectUse.ANY
    is_inverse: bool = False  # a rate whose setting is the delay between two requests
    is_advanced: bool = False  # listed by --help-all only
    for_one_host: bool = False  # a single host may have its own value
    for_jobs: bool = False  # a request for a job of the service may set it

    @property
    def flag(self) -> str:
        """Return its name on the command line."""
        return "--" + self.name.replace("_", "-")

    @property
    def variable(self) -> str:
        """Return its environment variable."""
        return "MANNERLY_" + self.name.upper()
