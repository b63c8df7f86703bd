"""`learned`: find the host's hidden limit and hold just under it.

        refused                         first accepted trial: identify the limit
 CLIMB ─────────► RECOVER ───────────────────────────────► CRUISE ◄────────────────┐
   │ ×1.3 per      ▲  one trial at a time;                    │ ρ·limit            │ refused: limit stays,
   │ 10 OK, 4 s    │  first wait by what was learned,         │ after `hold` s     │ hold doubles
   └─► CRUISE      │  then the elapsed pause doubles          ▼                    │
     at a ceiling  └────────────── refused ─────────────── PROBE p > limit ────────┘
                                                              └─ overspent more than any
                                                                 allowance seen: limit = p

What a server lets through between two recoveries is its limit times the time (see `ledger`), so
every episode of refusals is also a measurement. Four kinds of host need telling apart:

- **bucket**: the pause is short. The average since the last recovery is exact after 20 accepts.
- **quota** (n per window): the pause is long, but what was sent too early before it makes up for
  it. The average must span a whole cycle, or it measures a corner of one. Until the first burst
  has left the server's window it is replayed at us; refusals in that time say nothing (`grace`).
- **penalty** (a ban): the pause is long and nothing makes up for it. It shows when a probe
  overspends by a whole quota and is not refused, or is refused with next to no overspending. Such
  hosts are probed gently (+10 %) and rarely, so that pauses cost at most a tenth of the time.
- **queue** (slow instead of refusing): `latency` notices; drain, then cruise below what flowed.

And **concurrency**: `blame` decides whether the rate was at fault at all.

A probe is proved when Σ(1 − limit·dt) over its accepts exceeds the allowance by 3: it has spent
more above the limit than any burst or window ever let through. Without that test a probe against
"300 per minute" looks fine for half a minute and then burns the window. On a quota host two whole
cycles without a refusal prove it as well.

Error budget: a failed probe costs `refusals` requests, so `hold` grows to 0.95·refusals/(ε·limit),
ε = 0.5 %; that generalises document 001's "20 successes", which at 5/s is a probe every 4 s. A host
that once allowed more is probed twice as often: limits that fell tend to rise again.

Evidence counts once: an answer to a request sent before the last decision says nothing new. 5xx
and timeouts are weak evidence: 3 in a row, or 5 in 20. A rate that was not used is never raised.

Constants without a source of their own were chosen on the 14 tuning servers (`make bench`), and
judged on others; ADR 4 tells what was tried.
"""

from __future__ import annotations

from enum import Enum
from math import inf
from typing import TYPE_CHECKING

from ..model import Outcome
from .base import Effect, Lesson, Note
from .blame import PAUSE_S, ConcurrencyBlame
from .latency import LatencyGuard
from .ledger import Ledger

if TYPE_CHECKING:
    from ..model import Instant, Sample
    from ..settings import Settings
    from ..vitals import Vitals

GROWTH = 1.3  # reaches 30/s from 2/s in 46 s (pace §2.4 asks for 60)
STEP_OK = 10
STEP_S = 4.0
USED = 0.7  # share of a rate that must have flowed before it is raised
HOLD_S = 15.0
HOLD_FULL_S = 75.0  # at 5/s and more the budget would allow more probes than anybody needs
HOLD_MAX_S = 1800.0
GAIN = 1.25
GAIN_MAX = 2.0
GAIN_PENALTY = 1.1
PROVE_WITHIN_S = 15.0  # the gain is chosen so that a proof takes about this long
PROVE_MARGIN = 3.0
ABANDON_S = 120.0
ALLOWANCE = 8.0
ALLOWANCE_MAX = 2000.0
EXACT = 20  # accepts that make an average trustworthy: ±1 is 5 %
CLOSE = 1.08  # a refused rate this near to the limit leaves nothing to search
LONG_S, LONG_REQUESTS = 5.0, 10.0  # a pause longer than both is more than a token's wait
WEAK_IN_A_ROW, WEAK_OF_20 = 3, 5.0
KEEP_QUEUEING = 0.94  # of what flowed while a queue formed


class Phase(Enum):
    """What the strategy is doing."""

    CLIMB = "climb"
    CRUISE = "cruise"
    PROBE = "probe"
    RECOVER = "recover"


class _Probe:
    """A rate above the limit, on trial."""

    __slots__ = ("count", "excess", "last_at", "rate", "since")

    def __init__(self, rate: float, count: int, now: Instant) -> None:
        self.rate = rate
        self.since = self.last_at = now
        self.count = count
        self.excess = 0.0  # requests spent above the limit so far


class _Episode:
    """A run of refusals, from the first to the accepted trial that ends it."""

    __slots__ = ("cause", "count", "delivery", "first_wait_s", "is_told", "rate", "refusals", "since")

    def __init__(
        self, cause: Phase, rate: float, count: int, delivery: float, sample: Sample
    ) -> None:
        self.cause = cause
        self.rate = rate
        self.count = count
        self.delivery = delivery
        self.since = sample.done_at
        self.is_told = sample.retry_after_s is not None  # the server named the pause
        self.refusals = 1
        self.first_wait_s = 0.0


class Learned:
    """The default strategy: estimate, cruise, probe, recover."""

    __slots__ = (
        "_allowance",
        "_blame",
        "_burst_limit",
        "_ceiling",
        "_cruising",
        "_cycle_s",
        "_decided_at",
        "_drain_until",
        "_episode",
        "_gain",
        "_grace_until",
        "_guard",
        "_hold_s",
        "_is_penalty",
        "_is_proven",
        "_is_searching",
        "_known",
        "_last_count",
        "_last_recovery",
        "_ledger",
        "_limit",
        "_pause_s",
        "_peak",
        "_phase",
        "_probe",
        "_quiet_since",
        "_refused",
        "_settings",
        "_weak_in_a_row",
        "_weak_recent",
        "concurrency",
        "rate",
        "trial_only",
    )
    burst = 1
