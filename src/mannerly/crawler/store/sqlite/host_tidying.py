"""Remove from a memory of hosts what is useless: dead holders with their leases, old lessons."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mannerly.crawler.store.host_memory import PRIVATE_LESSON_S, STALE_S, is_private

if TYPE_CHECKING:
    from mannerly.crawler.model import Now

    from .database import Database, Row

KEPT_S = 90 * 86_400.0  # a lesson that was not used for so long is removed
MANY_HOSTS = 1_000_000  # beyond it the oldest lessons are removed
FORGOTTEN_S = 3600.0  # after which a dead holder's leases are removed

_OVER = "iif(boot = ?, mono + next_in_s <= ?, next_in_s <= 60.0)"  # the wait of a host
_EXPIRE = f"DELETE FROM hosts WHERE wall < ? AND {_OVER}"  # noqa: S608
_OLD = f"SELECT host FROM hosts WHERE wall < ? AND {_OVER}"  # noqa: S608
_SHRINK = f"""
DELETE FROM hosts WHERE host IN (SELECT host FROM hosts WHERE {_OVER} ORDER BY wall LIMIT ?)
"""  # noqa: S608


def tidy(file: Database, boot: str, now: Now) -> None:
    """Remove what is useless, inside a transaction."""
    over = (boot, now.mono)
    file.execute(
        "DELETE FROM holders WHERE boot <> ?1 OR typeof(mono) <> 'real' OR mono < ?2 - ?3 "
        "OR mono > ?2 + ?3 OR (?1 = '' AND mono > ?2 + ?4)",
        (boot, now.mono, FORGOTTEN_S, STALE_S),
    )
    if file.row("SELECT 1 FROM holders LIMIT 1") is None:
        file.execute("DELETE FROM leases")
        file.execute("DELETE FROM wishes")
    file.execute("DELETE FROM claimed WHERE holder NOT IN (SELECT number FROM holders)")
    # A wait that is not over stays, whatever the wall clock says.
    file.execute(_EXPIRE, (now.wall - KEPT_S, *over))
    row = file.row("SELECT count(*) FROM hosts")
    beyond = (0 if row is None else int(row[0])) - MANY_HOSTS
    if beyond > 0:
        file.execute(_SHRINK, (*over, beyond + MANY_HOSTS // 10))
    old: list[Row] = file.execute(_OLD, (now.wall - PRIVATE_LESSON_S, *over)).fetchall()
    file.executemany(
        "DELETE FROM hosts WHERE host = ?", [(host,) for (host,) in old if is_private(str(host))]
    )
