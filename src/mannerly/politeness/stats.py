"""Statistics of one host: recent latency and error rate, in about 200 bytes.

- a latency EWMA (λ = 0.2);
- a ring of the last 64 latencies, for p95 and for medians of the newest ones. Each is one byte, a
  level on a logarithmic scale with 16 steps per octave above 1 ms, so a value is at most 2.2 % off:
  too little to matter for queue detection (factor 2) or for a reader of p95;
- a sliding window of responses and failures, 30 s in 15 slots of 2 s. A slot counts up to 255
  responses; further ones in its 2 seconds are ignored, failures included.

Nothing is allocated per update. This module knows no host, breaker or strategy.
"""

from __future__ import annotations

from math import log2
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .model import Instant

EWMA_WEIGHT = 0.2
RING = 64
SLOT_S = 2.0
SLOTS = 15

_STEPS = 16.0  # per octave; 255 steps above 1 ms reach 62 s
_DECODED: tuple[float, ...] = tuple(0.001 * (2.0 ** (level / _STEPS) - 1.0) for level in range(256))
_LONGEST_S = _DECODED[255]

_EMPTY_WINDOW = bytes(2 * SLOTS)
_LONG_AGO = -(10**12)  # a slot number before that of any instant


def encode_latency(latency_s: float) -> int:
    """Return the level (0 to 255) nearest to a latency."""
    if latency_s <= 0.0:
        return 0
    if latency_s > _LONGEST_S:
        return 255
    return int(_STEPS * log2(1000.0 * latency_s + 1.0) + 0.5)


def decode_latency(level: int) -> float:
    """Return the latency of a level, in seconds."""
    return _DECODED[level]


class HostStats:
    """Latency and error statistics of one host."""

    __slots__ = ("_bytes", "_slot", "ewma_s", "lowest", "lowest_before", "samples", "turn")

    def __init__(self) -> None:
        self.samples = 0
        self.ewma_s = 0.0
        self.lowest = self.lowest_before = self.turn = 0  # kept by `pace.latency`
        self._slot = _LONG_AGO
        # One buffer for the latency ring, the totals and the failures: a second object would
        # need more memory than its content.
        self._bytes = bytearray(RING + 2 * SLOTS)

    def add_success(self, latency_s: float, now: Instant) -> None:
        """Count a success and its latency. Latencies of other responses are not recorded."""
        samples = self.samples
        self.samples = samples + 1
        if samples:
            self.ewma_s += EWMA_WEIGHT * (latency_s - self.ewma_s)
        else:
            self.ewma_s = latency_s
        data = self._bytes
        data[samples % RING] = encode_latency(latency_s)
        # A copy of `add_answer`, for speed: this runs for every page.
        slot = int(now // SLOT_S)
        if slot != self._slot:
            self._advance(slot)
        place = RING + slot % SLOTS
        if data[place] < 255:
            data[place] += 1

    def add_answer(self, now: Instant, *, failed: bool) -> None:
        """Count a response in the sliding error window."""
        slot = int(now // SLOT_S)
        if slot != self._slot:
            self._advance(slot)
        data = self._bytes
        place = RING + slot % SLOTS
        if data[place] < 255:
            data[place] += 1
            if failed:
                data[place + SLOTS] += 1

    def _advance(self, slot: int) -> None:
        """Clear the slots between the current one and `slot`."""
        passed = slot - self._slot
        if passed >= SLOTS:
            self.clear_errors()
        else:
            data = self._bytes
            for old in range(self._slot + 1, slot + 1):
                place = RING + old % SLOTS
                data[place] = data[place + SLOTS] = 0
        if passed > 0:
            self._slot = slot

    def errors(self, now: Instant) -> tuple[int, int]:
        """Return (failures, responses) of the last 30 seconds."""
        self._advance(int(now // SLOT_S))
        return self.error_counts()

    def error_counts(self) -> tuple[int, int]:
        """Return (failures, responses) of the 30 seconds before the latest response."""
        data = self._bytes
        return sum(data[RING + SLOTS :]), sum(data[RING : RING + SLOTS])

    def clear_errors(self) -> None:
        """Clear the error window, when the breaker has closed."""
        self._bytes[RING:] = _EMPTY_WINDOW

    def median_level(self, newest: int) -> int:
        """Return the median of the `newest` latencies as a level; 0 if there are fewer."""
        count = self.samples
        if count < newest:
            return 0
        end = count % RING
        data = self._bytes
        recent = data[end - newest : end] if end >= newest else data[RING + end - newest : RING]
        if end < newest:
            recent += data[:end]
        return sorted(recent)[newest // 2]

    def p95_s(self) -> float:
        """Return the 95th percentile of the last 64 latencies (nearest rank), in seconds."""
        filled = min(self.samples, RING)
        if not filled:
            return 0.0
        rank = -(-filled * 95 // 100)
        return _DECODED[sorted(self._bytes[:filled])[rank - 1]]
