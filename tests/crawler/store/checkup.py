"""Check whether a shard's file holds together: for every test that breaks something.

SQLite's own check covers the file. Ours covers what a commit promises: every number has its row in
exactly one table, and what is counted along the way equals what there is. It reads everything, so
it is for the asking, never for opening.
"""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

from mannerly.crawler.store.sqlite.reader import shard_path
from mannerly.crawler.store.sqlite.schema import FAILED, SHARD
from mannerly.database.sqlite import Database

if TYPE_CHECKING:
    from pathlib import Path

# Each query gives the number of rows that break the claim.
_CLAIMS = {
    "every URL is known once": """
        SELECT count(*) FROM arrivals WHERE url IN (SELECT url FROM seen)
            AND seq NOT IN (SELECT seq FROM payloads WHERE takes_place)
    """,
    "no URL is in two places": """
        SELECT count(*) - count(DISTINCT seq) - (SELECT rechecks FROM totals) FROM (
            SELECT seq FROM queue UNION ALL SELECT seq FROM waiting UNION ALL SELECT seq FROM pages
            UNION ALL SELECT seq FROM skipped UNION ALL SELECT seq FROM given_up)
    """,
    "every URL that has a place is known": """
        SELECT count(*) FROM (
            SELECT seq, url FROM queue UNION ALL SELECT seq, url FROM waiting
            UNION ALL SELECT seq, url FROM pages UNION ALL SELECT seq, url FROM skipped
            UNION ALL SELECT seq, url FROM given_up)
        WHERE seq NOT IN (SELECT seq FROM seen UNION ALL SELECT seq FROM arrivals)
          AND url NOT IN (
            SELECT url FROM seen JOIN payloads USING (seq) WHERE takes_place
            UNION ALL SELECT url FROM arrivals JOIN payloads USING (seq) WHERE takes_place)
    """,
    "every URL that is known has a place": """
        SELECT count(*) FROM (SELECT seq FROM seen UNION ALL SELECT seq FROM arrivals)
        WHERE seq NOT IN (
            SELECT seq FROM queue UNION ALL SELECT seq FROM waiting UNION ALL SELECT seq FROM pages
            UNION ALL SELECT seq FROM skipped UNION ALL SELECT seq FROM given_up)
    """,
    "no number was given twice": """
        SELECT count(*) FROM (SELECT seq FROM seen UNION ALL SELECT seq FROM arrivals)
        WHERE seq >= (SELECT next_seq FROM totals)
    """,
    "the totals are exact": f"""
        SELECT (ready != (SELECT count(*) FROM queue))
             + (waiting != (SELECT count(*) FROM waiting))
             + (fetched != (SELECT count(*) FROM pages WHERE kind IN (0, 7, 8) AND NOT {FAILED}))
             + (lists != (SELECT count(*) FROM pages WHERE kind IN (1, 2, 3)))
             + (failed != (SELECT count(*) FROM pages WHERE kind IN (0, 7, 8) AND {FAILED}))
             + (skipped != (SELECT count(*) FROM skipped))
             + (given_up != (SELECT count(*) FROM given_up))
             + (next_position <= (SELECT coalesce(max(position), 0) FROM pages))
             + (outgoing != (SELECT coalesce(sum(count), 0) FROM outbox))
             + (hosts != (SELECT count(*) FROM hosts)) FROM totals
    """,
    "every host's queue is as long as it says": """
        SELECT count(*) FROM hosts WHERE ready != (SELECT count(*) FROM queue WHERE host = hosts.id)
            OR given_up != (SELECT count(*) FROM given_up WHERE host = hosts.id)
    """,
}


def examine(directory: Path, shard: int) -> list[str]:
    """Return what is wrong with a shard's file; nothing, if it holds together.

    Raises:
        StoreError: it cannot even be opened or read.
    """
    with closing(Database.read(shard_path(directory, shard), SHARD)) as database:
        rows = database.rows("PRAGMA integrity_check")
        found = [str(row[0]) for row in rows if row[0] != "ok"]
        for claim, query in _CLAIMS.items():
            row = database.row(query)
            if row is None or row[0]:
                found.append(f"not so: {claim}")
        return found
