"""Detect requests queueing at a host that becomes slow instead of refusing.

The median of the newest 15 latencies is compared with the lowest such median of the last five to
ten minutes. A running average would be no use as a reference, because it rises with the queue; a
single slow page is not a queue, so one sample is not enough.

    queueing  ⇔  median > factor·lowest + 20 ms        factor 2 (latency_factor)

15 samples: the noise of the median at a log-normal spread of 0.25 is 8 %, far from a factor of 2.
20 ms: smaller differences come from our own machine. Only responses after the last reaction
count, or one queue would cause one reaction per response.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..stats import decode_latency

if TYPE_CHECKING:
    from ..model import Instant
    from ..stats import HostStats

MEDIAN_OF = 15
SLACK_S = 0.02
HORIZON_S = 300.0  # the lowest medians of the present and the previous period count


def queueing_s(stats: HostStats, acted_at: int, now: Instant, factor: float) -> float:
    """Return the median latency in seconds if the host is queueing, else 0.

    `acted_at` is the number of samples at the last reaction. The lowest medians are stored in
    `stats` as levels: small integers need no memory of their own.
    """
    if stats.samples - acted_at < MEDIAN_OF:
        return 0.0
    turn = int(now / HORIZON_S)
    if turn != stats.turn:
        stats.lowest_before, stats.lowest, stats.turn = stats.lowest, 0, turn
    median = stats.median_level(MEDIAN_OF)
    if not stats.lowest or median < stats.lowest:
        stats.lowest = median
    lowest = min(stats.lowest, stats.lowest_before or stats.lowest)
    median_s = decode_latency(median)
    return median_s if median_s > factor * decode_latency(lowest) + SLACK_S else 0.0
