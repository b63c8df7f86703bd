"""Jobs that look for broken links: a crawl, then one request for every other link of its pages.

They run in the job's process. One that was killed goes on where it was: once links were ordered,
the crawl visits no page any more.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from mannerly.crawler.control import CheckUrls
from mannerly.crawler.crawl import Crawl
from mannerly.report.check import order_checks, outcome
from mannerly.report.findings import find

from .crawling import end_of, opened
from .messages import COMPLETE, JobEnd, JobOrder

if TYPE_CHECKING:
    from .watch import JobWatch


def check(order: JobOrder, watch: JobWatch) -> JobEnd:
    """Crawl, check the other links, and count what is broken."""
    settings = replace(order.settings, links=True, anchors=True)
    order = order._replace(settings=settings)
    watch.allows_failures = True  # a link that fails is what is looked for
    with opened(order) as made:
        has_crawled = any(isinstance(each, CheckUrls) for _, each in made.store.orders())
        if not has_crawled:
            end = end_of(made, watch.run(made), watch)
            if end.error is not None or end.ending not in COMPLETE:
                return end
        order_checks(made)
    # One request at a time to a host that gets only a few of them.
    pace = replace(settings.politeness, max_concurrency=1)
    settings = replace(settings, politeness=pace, max_urls=None)
    with Crawl.of(settings, [], order.location) as made:
        end = end_of(made, watch.run(made), watch)
        if not end.is_complete:
            return end
        found = outcome(find(made))
        counts = {"broken": len(found.broken), "links": found.links}
        return end._replace(counts=counts)
