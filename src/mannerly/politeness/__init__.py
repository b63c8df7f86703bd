"""Per-host politeness: decide when a host may be contacted, and learn from its responses.

A sans-IO library: no sockets, asyncio, threads, clock or logging outside `drivers`. The time is
an argument, decisions are values, and only the standard library is imported.
"""

from __future__ import annotations

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
