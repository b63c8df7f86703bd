"""The `lastmod` of a sitemap is believed only where it has earned it.

Every page that is asked for again shows whether its sitemap told the truth: the lastmod is another
one than before exactly if the page is. A host whose sitemap was right in more than 95 % of at least
20 cases is believed: a page with the same lastmod as before counts as unchanged, without a request.
One page in twenty is asked for all the same, another one in every recrawl, so that a sitemap which
begins to lie is found out. Where a lie is found, requests decide again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from xxhash import xxh3_64_intdigest

from mannerly.crawler.model import PageChange

if TYPE_CHECKING:
    from mannerly.crawler.model import PageRecord

MIN_SHARE = 0.95
MIN_CASES = 20
AUDITED = 20  # one page in so many is asked for all the same


class SitemapSays(NamedTuple):
    """The lastmod of a page in its sitemap, in this round and in the round before."""

    lastmod: str | None
    before: str | None
    round: int

    def both(self, round_number: int) -> tuple[str, str] | None:
        """Return the lastmod of the round before and of this one, if both are stated."""
        if self.round != round_number or self.before is None or self.lastmod is None:
            return None
        return self.before, self.lastmod


def said_again(known: SitemapSays | None, lastmod: str | None, round_number: int) -> SitemapSays:
    """Return what is known of a page when a sitemap lists it, perhaps for the first time."""
    if known is None:
        return SitemapSays(lastmod, None, round_number)
    before = known.lastmod if known.round < round_number else known.before
    return SitemapSays(lastmod, before, round_number)


def as_read(
    record: PageRecord, says: SitemapSays | None, round_number: int, *, is_checked: bool
) -> PageRecord:
    """Return a record with what sitemaps say; what was not checked in this round has no change."""
    is_listed = says is not None and says.round >= round_number
    return record._replace(
        in_sitemap=is_listed,
        lastmod=says.lastmod if says is not None and is_listed else None,
        change=record.change if is_checked else None,
    )


def is_believed(right: int, wrong: int) -> bool:
    """Return whether a host's sitemap has been right often enough."""
    cases = right + wrong
    return cases >= MIN_CASES and right > MIN_SHARE * cases


def is_audited(url: str, round_number: int) -> bool:
    """Return whether a page is asked for in this round whatever its sitemap says."""
    return xxh3_64_intdigest(url.encode(), seed=round_number) % AUDITED == 0


def spares_request(
    url: str, round_number: int, before: str | None, now: str | None, right: int, wrong: int
) -> bool:
    """Return whether a page counts as unchanged because its sitemap says so."""
    return (
        now is not None
        and before == now
        and is_believed(right, wrong)
        and not is_audited(url, round_number)
    )


def unchanged(record: PageRecord) -> PageRecord:
    """Return the record of a page that counts as unchanged without a request."""
    return record._replace(
        change=PageChange.SAME,
        previous_status=record.status,
        previous_digest=record.digest,
        previous_fetched_at=record.fetched_at,
    )
