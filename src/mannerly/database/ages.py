"""The least time that has passed since another process did something: no clock of a server is used.

The clock of a server may be set by an hour while a crawl runs, and a replica has another one. So
leases and waits are counted on monotonic clocks of members. What a member writes carries a *stamp*:
the name of its machine's boot, and an instant of the monotonic clock of that boot.

    same boot     the age of a stamp is the difference of two instants of one clock
    another boot  a stamp that is seen was made before. So its clock is ahead of ours by at least
                  the difference between the stamp and the instant at which it is seen; the largest
                  such difference is kept. The age of a stamp follows from it, and is 0 at first

An age is never larger than the time that has really passed: what rests on it (the end of a lease,
the rest of a wait) comes late, never early. Two monotonic clocks may run at different speeds, by
SLACK at most, so what is known of another clock gets worse by SLACK with time.

This module reads no clock.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

if TYPE_CHECKING:
    from mannerly.politeness.model import Instant


_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


def boot_id() -> str:
    """Return the name of this machine's present boot; "" where the system gives it none."""
    try:
        return _BOOT_ID.read_text(encoding="ascii").strip()
    except (OSError, ValueError):
        return ""


SLACK = 0.001  # seconds a second: NTP adjusts the speed of a clock by half of that, at most
MANY = 4096  # boots that are known; those that were not seen for longest are forgotten


class Ages:
    """The least ages of stamps, as one process knows them.

    `origin_s` is added to the instants of its own stamps, for processes in virtual time.
    """

    def __init__(self, boot: str = "", origin_s: float = 0.0) -> None:
        # Where the system has no name for a boot, every process has a clock of its own.
        self._boot = boot or boot_id() or uuid4().hex
        self._origin_s = origin_s
        # By boot: how far its clock is ahead of ours at least, and when that was known.
        self._ahead: dict[str, tuple[float, Instant]] = {}

    def stamp(self, now: Instant) -> str:
        """Return the stamp of an instant of this process."""
        return f"{self._boot}:{int((now + self._origin_s) * 1000)}"

    def age_s(self, stamp: str, now: Instant) -> float:
        """Return how long ago a stamp was made, at least; 0 for one that cannot be read."""
        boot, _, made = stamp.rpartition(":")
        try:
            made_at = int(made) / 1000.0
        except ValueError:
            return 0.0
        if boot == self._boot:
            return max(0.0, now + self._origin_s - made_at)
        ahead_s = made_at - now
        if (known := self._ahead.get(boot)) is not None:
            ahead_s = max(ahead_s, known[0] - SLACK * (now - known[1]))
        elif len(self._ahead) >= MANY:
            del self._ahead[min(self._ahead, key=lambda each: self._ahead[each][1])]
        self._ahead[boot] = ahead_s, now
        return max(0.0, now + ahead_s - made_at)
