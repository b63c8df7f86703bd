"""The memory that bodies take in one process, and its limit.

    receiving   bytes of transfers that are under way, in steps of 64 KB
    held        bytes of answers that wait to be read by a helper, or for the program

An answer that is read at once is in neither: it is decoded when it is looked at, and gone before
the next one is. At half of the limit no request is started, and a large body pauses until all of it
fits; at the limit every body does, and none is decoded. One may always go on, so the limit is
exceeded by one body at most.
"""

from __future__ import annotations

from math import inf


class BodyMemory:
    """Counts the bytes of bodies. What was added has to be taken away again."""

    __slots__ = ("held", "limit", "receiving")

    def __init__(self, limit: float = inf) -> None:
        self.limit = limit
        self.receiving = 0
        self.held = 0

    def __repr__(self) -> str:
        return f"<BodyMemory {self.receiving} receiving, {self.held} held of {self.limit}>"

    @property
    def used(self) -> int:
        """Return the bytes that bodies take now."""
        return self.receiving + self.held

    @property
    def is_scarce(self) -> bool:
        """Return whether to start nothing new: the rest is for what is under way."""
        return self.receiving + self.held >= self.limit / 2
