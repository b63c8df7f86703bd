"""How a host has been answering lately: latency and error rate, in about 200 bytes a host.

- a latency EWMA (λ = 0.2, document 002);
- a ring of the last 64 latencies for p95 and for medians of the newest ones. Each is one byte on
  a logarithmic scale, 16 steps an octave above 1 ms, so a value is at most 2.2 % off: far below
  what the latency guard (factor 2) or a reader of p95 could notice;
- a sliding window of answers and failures, 30 s in 15 slots of 2 s (document 002). A slot counts
  to 255 and then stands still, total and failures alike.

Nothing is allocated per update. This file knows numbers only: no host, no breaker, no strategy.
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

_STEPS = 16.0  # an octave; 255 steps above 1 ms reach 62 s
_DECODED: tuple[float, ...] = tuple(0.001 * (2.0 ** (level / _STEPS) - 1.0) for level in range(256))
_LONGEST_S = _DECODED[255]

_EMPTY_WINDOW = bytes(2 * SLOTS)
_LONG_AGO = -(10**12)  # a slot before any that a clock may begin with


def encode_latency(latency_s: float) -> int:
    """The level (one byte) nearest to a latency."""
    if latency_s <= 0.0:
        return 0
    if latency_s > _LONGEST_S:
        return 255
    return int(_STEPS * log2(1000.0 * latency_s + 1.0) + 0.5)


def decode_latency(level: int) -> float:
    """The latency that a level stands for."""
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
        # cost more than its content.
        self._bytes = bytearray(RING + 2 * SLOTS)

    def add_success(self, latency_s: float, now: Instant) -> None:
        """Count a good answer and its latency. A fast refusal is no speed, so it has none."""
        samples = self.samples
        self.samples = samples + 1
        if samples:
            self.ewma_s += EWMA_WEIGHT * (latency_s - self.ewma_s)
        else:
            self.ewma_s = latency_s
        data = self._bytes
        data[samples % RING] = encode_latency(latency_s)
        # The same as add_answer, written out: this runs for every page.
        slot = int(now // SLOT_S)
        if slot != self._slot:
            self._advance(slot)
        place = RING + slot % SLOTS
        if data[place] < 255:
            data[place] += 1

    def add_answer(self, now: Instant, *, failed: bool) -> None:
        """Count an answer in the sliding error window."""
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
        """Empty the slots that time has passed over."""
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
        """(failures, answers) of the last 30 seconds."""
        self._advance(int(now // SLOT_S))
        return self.error_counts()

    def error_counts(self) -> tuple[int, int]:
        """(failures, answers) of the 30 seconds up to the latest answer."""
        data = self._bytes
        return sum(data[RING + SLOTS :]), sum(data[RING : RING + SLOTS])

    def clear_errors(self) -> None:
        """Forget the error window: what happened before a breaker closed says nothing new."""
        self._bytes[RING:] = _EMPTY_WINDOW

    def median_level(self, newest: int) -> int:
        """The median of the newest latencies, as a level; 0 when there are fewer than that."""
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
        """The 95th percentile of the last 64 latencies (nearest rank)."""
        filled = min(self.samples, RING)
        if not filled:
            return 0.0
        rank = -(-filled * 95 // 100)
        return _DECODED[sorted(self._bytes[:filled])[rank - 1]]
