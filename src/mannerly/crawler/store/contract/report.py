"""The promises about what a report reads: checked links, and answers over time."""

from __future__ import annotations

from mannerly.crawler.kinds import Kind
from mannerly.crawler.model import Traffic
from mannerly.crawler.store.base import Batch

from .values import Opening, candidate, counts, enter, page


class ReportContract(Opening):
    """Checked links and traffic of one shard."""

    def test_checked_links_are_apart_from_pages(self, location: str) -> None:
        """By the kind that the entry had in the end; one that failed is one of them."""
        store = self.store(location)
        links = [candidate(path)._replace(kind=Kind.CHECK) for path in ("/a", "/b", "/c")]
        seen, first, second, third = enter(store, candidate(), *links)
        second = second._replace(kind=Kind.CHECK_GET)
        records = [page(first), page(second, status=404), page(third, status=None, error="dns")]

        store.commit(
            Batch(
                pages=[
                    (seen, page(seen)),
                    *zip((first, second, third), records, strict=True),
                ]
            )
        )

        assert [(each.url, each.status, each.error) for each in store.checked()] == [
            (each.url, each.status, each.error) for each in records
        ]
        assert [each.url for _, each in store.pages()] == [seen.url]

    def test_checked_links_are_not_counted(self, location: str) -> None:
        """They are neither pages nor lists in the totals, whatever became of them."""
        store = self.store(location)
        kinds = (Kind.PAGE, Kind.SITEMAP, Kind.CHECK, Kind.CHECK_GET)
        entries = enter(store, *(candidate(f"/{kind}")._replace(kind=kind) for kind in kinds))
        statuses = (200, 200, 200, None)
        store.commit(
            Batch(
                pages=[
                    (each, page(each, status=status))
                    for each, status in zip(entries, statuses, strict=True)
                ]
            )
        )

        assert store.counts() == counts(fetched=1, lists=1, hosts=1)

    def test_traffic_of_several_commits_is_added_up(self, location: str) -> None:
        """An interval has one line, and intervals come in order."""
        store = self.store(location)
        store.commit(Batch(found=[candidate("/1")], traffic={180: [5, 1], 179: [2, 0]}))
        store.commit(Batch(found=[candidate("/2")], traffic={180: [3, 2], 200: [1, 0]}))

        assert list(store.traffic()) == [
            Traffic(179, 2, 0), Traffic(180, 8, 3), Traffic(200, 1, 0)
        ]  # fmt: skip
