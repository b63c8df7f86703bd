"""The process of one job: it runs the crawl, reports its totals, and ends with the service.

Four times a second it looks whether the service wants it to end. When the service is gone, even by
kill -9, the channel ends, and the crawl is stopped at once; it goes on when the service is back.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mannerly.crawler.store.base import StoreError

from .kinds import KINDS
from .messages import JobEnd, JobOrder
from .watch import JobWatch

if TYPE_CHECKING:
    from mannerly.crawler.runtime.child import Channel


def main(channel: Channel) -> None:
    """Run one job until it ends, or until the service stops it or is gone."""
    order: JobOrder = channel.wait()
    watch = JobWatch(
        channel,
        failure_threshold=order.failure_threshold,
        throttle_threshold=order.throttle_threshold,
        throttle_delay_s=order.throttle_delay_s,
    )
    try:
        channel.send(KINDS[order.kind].load()(order, watch))
    except (StoreError, OSError, ValueError) as error:
        channel.send(JobEnd("error", error=str(error)))
