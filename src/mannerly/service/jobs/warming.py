"""Jobs that fill the cache in front of a site: each run looks at all pages anew."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mannerly.report.warmth import total

from .crawling import end_of, opened

if TYPE_CHECKING:
    from .messages import JobEnd, JobOrder
    from .watch import JobWatch


def warm(order: JobOrder, watch: JobWatch) -> JobEnd:
    """Look at all pages; count those that the cache had, and has."""
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
