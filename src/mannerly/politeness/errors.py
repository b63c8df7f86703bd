"""The exceptions of this package.

    PolitenessError
    ├── SettingsError      a setting has a value that is not allowed
    ├── PermitError        a permit was reported or cancelled twice
    ├── HostUnavailable    the host is parked, paused or retired (raised by the drivers only)
    │   └── CircuitOpen    the host's breaker is open
    └── RobotsDisallowed   robots.txt forbids the URL (raised by adapters with `robots="obey"`)

Waiting is not an error: the core returns `Wait`. The drivers raise `HostUnavailable` for callers
that do not want to wait, and `TimeoutError` when `deadline_s` has passed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .model import Instant, Reason


class PolitenessError(Exception):
    """Base class of this package's exceptions."""


class SettingsError(PolitenessError, ValueError):
    """A setting has a value that is not allowed."""

    def __init__(self, field: str, value: object, allowed: str) -> None:
        super().__init__(f"setting {field!r} is {value!r}; allowed: {allowed}")
        self.field = field
        self.value = value
        self.allowed = allowed


class PermitError(PolitenessError):
    """A permit was reported or cancelled more than once."""


class HostUnavailable(PolitenessError):  # noqa: N818 - a state of the host, not a fault
    """The host cannot be contacted before `until`; None: not before `revive`."""

    def __init__(self, host: str, until: Instant | None, reason: Reason) -> None:
        when = "until revived" if until is None else f"until {until:.3f}"
        super().__init__(f"{host} is unavailable {when}: {reason}")
        self.host = host
        self.until = until
        self.reason = reason


class CircuitOpen(HostUnavailable):
    """The host's breaker is open: it failed too often and gets time to recover."""


class RobotsDisallowed(PolitenessError):  # noqa: N818 - a rule of the site, not a fault
    """The site's robots.txt forbids the URL, or cannot be reached. Nothing was sent."""
