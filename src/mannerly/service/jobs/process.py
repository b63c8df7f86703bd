"""The process of one job: it does the work of the job's kind, and ends with the service.

Four times a second it asks whether the service wants it to end. When the service is gone, even by
kill -9, the channel ends, and the crawl is stopped at once; it goes on when the service is back.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

from mannerly.crawler.control import CheckUrls, Recrawl
from mannerly.crawler.crawl import Crawl
from mannerly.crawler.options.declared import CHECKING
from mannerly.crawler.settings import checking_links
from mannerly.crawler.store.base import StoreError

from .kinds import KINDS
from .model import COMPLETE, JobEnd, JobOrder
from .watch import JobWatch

if TYPE_CHECKING:
    from mannerly.crawler.crawl import CrawlResult
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


def crawl(order: JobOrder, watch: JobWatch) -> JobEnd:
    """Crawl from the seeds."""
    with opened(order) as made:
        return end_of(made, watch.run(made), watch)


def recrawl(order: JobOrder, watch: JobWatch) -> JobEnd:
    """Crawl in the first run; in each later one ask for the same pages again."""
    with opened(order) as made:
        if order.run > 1:
            made.order(Recrawl(order.run - 1))  # a round that has begun already stays as it is
        end = end_of(made, watch.run(made), watch)
        changes = Counter(str(page.change) for page in made.pages() if page.change)
        return end._replace(counts=dict(changes))


def opened(order: JobOrder) -> Crawl:
    """Return the crawl of a job, with the orders of its request."""
    made = Crawl.of(order.settings, order.seeds, order.location)
    for host, count in order.host_concurrency.items():
        made.host(host).set(per_host=count)
    for each in order.retries:
        made.retry(host=each)
    return made


def end_of(made: Crawl, result: CrawlResult, watch: JobWatch) -> JobEnd:
    """Return the end of a job from the end of its crawl."""
    total = made.status().total
    failed = made.handler_failures() if made.settings.extract is not None else None
    problems = "; ".join(f"{each.url}: {each.cause}" for each in result.seed_problems[:5])
    return JobEnd(
        watch.ending or result.ending.value,
        total["fetched"],
        total["failed"],
        result.pending,
        result.given_up,
        watch.reason or problems or (None if failed is None else failed.words),
    )


def check(order: JobOrder, watch: JobWatch) -> JobEnd:
    """Crawl, ask once for every other link of the pages, and count broken links.

    A job that was killed goes on where it was: once links were ordered, the crawl visits no page
    any more.
    """
    from mannerly.report.check import order_checks, outcome
    from mannerly.report.findings import find

    settings = replace(order.settings, **CHECKING)
    order = order._replace(settings=settings)
    watch.allows_failures = True  # links that fail are its result
    with opened(order) as made:
        has_crawled = any(isinstance(each, CheckUrls) for _, each in made.store.orders())
        if not has_crawled:
            end = end_of(made, watch.run(made), watch)
            if end.error is not None or end.ending not in COMPLETE:
                return end
        order_checks(made)
    with Crawl.of(checking_links(settings), [], order.location) as made:
        end = end_of(made, watch.run(made), watch)
        if not end.is_complete:
            return end
        found = outcome(find(made))
        counts = {"broken": len(found.broken), "links": found.links}
        return end._replace(counts=counts)


def warm(order: JobOrder, watch: JobWatch) -> JobEnd:
    """Ask for all pages anew; count those that the cache had, and has."""
    from mannerly.report.warmth import total

    with opened(order) as made:
        result = watch.run(made)
        row = total(result.stats)
        before, after = row.hit_rate_before or 0.0, row.hit_rate_after or 0.0
        counts = {
            "pages": row.pages,
            "cacheable": row.cacheable,
            "hits_before": round(before * row.cacheable),
            "hits_after": round(after * row.cacheable),
            "failed": row.failed,
        }
        end = end_of(made, result, watch)
        if end.ending == "error_rate" and end.error is None:
            end = end._replace(error="too many requests failed (max_error_rate)")
        return end._replace(counts=counts)
