"""Statistics of one host: recent latency and error rate, in about 200 bytes.

- a latency EWMA (λ = 0.2);
- a ring of the last 64 latencies (`latency_samples`), for p95 and for medians of the newest ones.
  Each is one byte, a level on a logarithmic scale with 16 steps per octave above 1 ms, so a value
  is at most 2.2 % off: too little to matter for queue detection (factor 2) or a reader of p95;
- a sliding window of responses and failures, 30 s in 15 slots of 2 s (`error_window_s`,
  `error_slots`). A slot counts up to 255 responses; further ones in its time are ignored, failures
  included.

Nothing is allocated per update. This module knows no host, breaker or strategy.
"""

from __future__ import annotations

from math import log2
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from .model import Instant
    from .settings import Settings

EWMA_WEIGHT = 0.2
VARIED = 5  # pages in a row with different bodies: the host does not answer the same to all
IN_A_ROW = 8  # pages with one body after that: they are doubted

_STEPS = 16.0  # per octave; 255 steps above 1 ms reach 62 s
_DECODED: tuple[float, ...] = tuple(0.001 * (2.0 ** (level / _STEPS) - 1.0) for level in range(256))
_LONGEST_S = _DECODED[255]

_LONG_AGO = -(10**12)  # a slot number before that of any instant


class StatsShape(NamedTuple):
    """The sizes of the ring and the window; one object for all hosts with the same settings."""

    ring: int = 64
    slots: int = 15
    slot_s: float = 2.0

    @classmethod
    def of(cls, settings: Settings) -> StatsShape:
        """Return the shape that the settings ask for."""
        slots = settings.error_slots
        return cls(settings.latency_samples, slots, settings.error_window_s / slots)


DEFAULT_SHAPE = StatsShape()


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

    __slots__ = (
        "_body",
        "_bytes",
        "_in_a_row",
        "_page",
        "_shape",
        "_slot",
        "_varied",
        "ewma_s",
        "lowest",
        "lowest_before",
        "samples",
        "turn",
    )

    def __init__(self, shape: StatsShape = DEFAULT_SHAPE) -> None:
        self._shape = shape
        self.samples = 0
        self.ewma_s = 0.0
        self.lowest = self.lowest_before = self.turn = 0  # kept by `pace.latency`
        self._slot = _LONG_AGO
        self._page: object = None  # the latest page, and its body
        self._body: object = None
        self._varied = -1  # how many bodies differed from the one before; -1: there was none
        self._in_a_row = 0  # how many pages had the latest body
        # One buffer for the latency ring, the totals and the failures: a second object would
        # need more memory than its content.
        self._bytes = bytearray(shape.ring + 2 * shape.slots)

    def add_success(self, latency_s: float, now: Instant) -> None:
        """Count a success and its latency. Latencies of other responses are not recorded."""
        ring, slots, slot_s = self._shape
        samples = self.samples
        self.samples = samples + 1
        if samples:
            self.ewma_s += EWMA_WEIGHT * (latency_s - self.ewma_s)
        else:
            self.ewma_s = latency_s
        data = self._bytes
        data[samples % ring] = encode_latency(latency_s)
        # A copy of `add_answer`, for speed: this runs for every page.
        slot = int(now // slot_s)
        if slot != self._slot:
            self._advance(slot)
        place = ring + slot % slots
        if data[place] < 255:
            data[place] += 1

    def add_answer(self, now: Instant, *, failed: bool) -> None:
        """Count a response in the sliding error window."""
        ring, slots, slot_s = self._shape
        slot = int(now // slot_s)
        if slot != self._slot:
            self._advance(slot)
        data = self._bytes
        place = ring + slot % slots
        if data[place] < 255:
            data[place] += 1
            if failed:
                data[place + slots] += 1

    def _advance(self, slot: int) -> None:
        """Clear the slots between the current one and `slot`."""
        ring, slots, _ = self._shape
        passed = slot - self._slot
        if passed >= slots:
            self.clear_errors()
        else:
            data = self._bytes
            for old in range(self._slot + 1, slot + 1):
                place = ring + old % slots
                data[place] = data[place + slots] = 0
        if passed > 0:
            self._slot = slot

    def repeats(self, page: object, body: object) -> bool:
        """Return whether a page has the body of those before, on a host where bodies differ.

        Pages of a site are often the same, its versions for printers for instance: only a long row
        counts.
        """
        latest_page, self._page = self._page, page
        if body != self._body:  # as nearly always
            self._body, self._in_a_row = body, 1
            self._varied += self._varied < VARIED
            return False
        is_other_page = page is None or page != latest_page
        self._in_a_row += is_other_page
        return is_other_page and self._in_a_row >= IN_A_ROW and self._varied >= VARIED

    def errors(self, now: Instant) -> tuple[int, int]:
        """Return (failures, responses) of the window that ends now."""
        self._advance(int(now // self._shape.slot_s))
        return self.error_counts()

    def error_counts(self) -> tuple[int, int]:
        """Return (failures, responses) of the window that ends with the latest response."""
        ring, slots, _ = self._shape
        data = self._bytes
        return sum(data[ring + slots :]), sum(data[ring : ring + slots])

    def clear_errors(self) -> None:
        """Clear the error window, when the breaker has closed."""
        ring, slots, _ = self._shape
        self._bytes[ring:] = bytes(2 * slots)

    def median_level(self, newest: int) -> int:
        """Return the median of the `newest` latencies as a level; 0 if there are fewer."""
        count = self.samples
        if count < newest:
            return 0
        ring = self._shape.ring
        end = count % ring
        data = self._bytes
        recent = data[end - newest : end] if end >= newest else data[ring + end - newest : ring]
        if end < newest:
            recent += data[:end]
        return sorted(recent)[newest // 2]

    def p95_s(self) -> float:
        """Return the 95th percentile of the latencies in the ring (nearest rank), in seconds."""
        filled = min(self.samples, self._shape.ring)
        if not filled:
            return 0.0
        rank = -(-filled * 95 // 100)
        return _DECODED[sorted(self._bytes[:filled])[rank - 1]]
