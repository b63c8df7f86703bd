"""Per-host politeness: decide when a host may be contacted, and learn from its responses.

A sans-IO library: no sockets, asyncio, threads, clock or logging outside `drivers`. The time is
an argument, decisions are values, and only the standard library is imported. Modules are imported
when a name of theirs is used, so that the settings can be read without the rest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .core import Politeness
    from .errors import CircuitOpen, HostUnavailable, PermitError, PolitenessError, SettingsError
    from .model import (
        Decision,
        ErrorKind,
        Grant,
        Instant,
        Outcome,
        Permit,
        Reason,
        Refuse,
        Response,
        Wait,
    )
    from .pace.kinds import KnownLimit, LimitKind
    from .retry import GiveUp, Retry
    from .settings import Settings
    from .snapshot import HostSnapshot, Snapshot

__all__ = [
    "CircuitOpen",
    "Decision",
    "ErrorKind",
    "GiveUp",
    "Grant",
    "HostSnapshot",
    "HostUnavailable",
    "Instant",
    "KnownLimit",
    "LimitKind",
    "Outcome",
    "Permit",
    "PermitError",
    "Politeness",
    "PolitenessError",
    "Reason",
    "Refuse",
    "Response",
    "Retry",
    "Settings",
    "SettingsError",
    "Snapshot",
    "Wait",
]

_HOMES = {
    "core": ("Politeness",),
    "errors": ("CircuitOpen", "HostUnavailable", "PermitError", "PolitenessError", "SettingsError"),
    "model": (
        *("Decision", "ErrorKind", "Grant", "Instant", "Outcome"),
        *("Permit", "Reason", "Refuse", "Response", "Wait"),
    ),
    "pace.kinds": ("KnownLimit", "LimitKind"),
    "retry": ("GiveUp", "Retry"),
    "settings": ("Settings",),
    "snapshot": ("HostSnapshot", "Snapshot"),
}


def __getattr__(name: str) -> object:
    from importlib import import_module

    for home, names in _HOMES.items():
        if name in names:
            value = globals()[name] = getattr(import_module(f"{__name__}.{home}"), name)
            return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
