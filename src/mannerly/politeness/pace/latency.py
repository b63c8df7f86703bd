"""A host that slows down instead of refusing: notice the queue before it is full.

Compare like with like: the median of the newest 15 latencies with the lowest such median of the
last five to ten minutes. Averages of the same latency that is judged (document 002) protect
nothing, because they follow the queue up; a single slow page is no queue, so one sample decides
nothing.

    queueing  ⇔  median > 2·lowest + 20 ms

15 samples: the median's noise at a log-normal spread of 0.25 is 8 %, far from a factor of 2.
20 ms: below that, differences are the machine's own. Only answers that came after the last action
count, or one queue would be punished once per answer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..stats import decode_latency

if TYPE_CHECKING:
    from ..model import Instant
    from ..stats import HostStats

MEDIAN_OF = 15
FACTOR = 2.0
SLACK_S = 0.02
HORIZON_S = 300.0  # two of them are remembered


def queueing_s(stats: HostStats, acted_at: int, now: Instant) -> float:
    """The median latency if the host is queueing, else 0.

    `acted_at` is the number of samples there were when the pace was last changed. The lowest
    medians are kept in `stats`, as levels: small integers cost nothing.
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
    return median_s if median_s > FACTOR * decode_latency(lowest) + SLACK_S else 0.0
