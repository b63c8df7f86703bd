"""Jobs that crawl, and those that crawl the same pages again. They run in the job's process."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from mannerly.crawler.control import Recrawl
from mannerly.crawler.crawl import Crawl

from .messages import JobEnd, JobOrder

if TYPE_CHECKING:
    from mannerly.crawler.crawl import CrawlResult

    from .watch import JobWatch


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
    problems = "; ".join(f"{each.url}: {each.cause}" for each in result.seed_problems[:5])
    return JobEnd(
        watch.ending or result.ending.value,
        total["fetched"],
        total["failed"],
        result.pending,
        result.given_up,
        watch.reason or problems or None,
    )
