"""What can go wrong, by whose fault it is.

    PolitenessError
    ├── SettingsError      the configuration: which field, which value, what is allowed
    ├── PermitError        the caller: a permit reported or cancelled twice
    └── HostUnavailable    the host: breaker open, parked, paused or retired (drivers only)
        └── CircuitOpen

Waiting is not an error: the core answers `Wait`. Only the drivers raise `HostUnavailable`, for
callers who chose not to wait; a deadline that passes is the driver's own `TimeoutError`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .model import Instant, Reason


class PolitenessError(Exception):
    """The root of everything this package raises on purpose."""


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
    """The host cannot be contacted now; `until` says when to ask again, None means not at all."""

    def __init__(self, host: str, until: Instant | None, reason: Reason) -> None:
        when = "for good" if until is None else f"until {until:.3f}"
        super().__init__(f"{host} is unavailable {when}: {reason}")
        self.host = host
        self.until = until
        self.reason = reason


class CircuitOpen(HostUnavailable):
    """The host's breaker is open: it failed too often, and gets time to recover."""
