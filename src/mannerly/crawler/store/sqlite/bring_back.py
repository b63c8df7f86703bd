"""Orders to bring URLs back: failed, given-up, skipped, missing ones, or all for a recrawl.

An order is a row of `retries` and is done a slice at a time, each slice in one transaction with the
place that it has come to. So it goes on after a crash where it was, and what fails again in the
meantime is not brought back a second time.

    retry      failed pages, then given-up URLs, then skipped ones: they leave their tables. Then
               pages whose answer is missing: their records stay
    recrawl    lists first; when all of them were read, pages. Records stay (see `base`). A page
               whose sitemap is believed and says "unchanged" is checked off without a request
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from mannerly.crawler.control import Recrawl
from mannerly.crawler.kinds import KINDS
from mannerly.crawler.store.base import BroughtBack
from mannerly.crawler.store.lastmod import spares_request

from .reader import checked_entries
from .schema import (
    FAILED,
    IDENTITY,
    LISTS_ONLY,
    MAY_HAVE_FAILED,
    PAGES_ONLY,
    REPEATABLE,
    RETRY,
    insert,
)

if TYPE_CHECKING:
    from mannerly.crawler.control import RetryUrls
    from mannerly.crawler.model import Entry
    from mannerly.database.sqlite import Row

    from .change import Change

_ORDER = insert("retries", *RETRY)
_OLDEST = f"SELECT number, {', '.join(RETRY)} FROM retries ORDER BY number LIMIT 1"  # noqa: S608
_AT = """
    UPDATE retries SET failed = ?, given_up = ?, skipped = ?, missing = ?, at_host = ?, at_row = ?
    WHERE number = ?
"""
_AT_ROW = "UPDATE retries SET at_host = ?, at_row = ? WHERE number = ?"
_DONE = "DELETE FROM retries WHERE number = ?"
_PRIORITY = """
    coalesce((SELECT priority FROM seen WHERE seen.url = pages.url),
             (SELECT priority FROM arrivals WHERE arrivals.seq = pages.seq), 0)
"""
# A page that a recrawl has not come to yet is tried again anyway.
_FAILED = f"""
    SELECT seq, pages.url, hosts.host, depth, {_PRIORITY}, parent, hops, kind, pages.host, position
    FROM pages JOIN hosts ON hosts.id = pages.host
    WHERE {MAY_HAVE_FAILED} AND {FAILED}
      AND (pages.host, position) > (?1, ?2) AND pages.host <= ?3
      AND position <= ?4 AND pages.round >= (SELECT round FROM totals)
      AND (parent IS NULL OR NOT ?6)
    ORDER BY pages.host, position LIMIT ?5
"""  # noqa: S608
_GIVEN_UP = """
    SELECT seq, url, hosts.host, depth, priority, parent, hops, kind, given_up.host, seq
    FROM given_up JOIN hosts ON hosts.id = given_up.host
    WHERE (given_up.host, seq) > (?1, ?2) AND given_up.host <= ?3
      AND (parent IS NULL OR NOT ?6)
    ORDER BY given_up.host, seq LIMIT ?5
"""
# Text after a colon is a detail of the reason.
_SKIPPED = f"""
    SELECT skipped.seq, skipped.url, hosts.host, depth, coalesce(seen.priority, arrivals.priority),
           parent, hops, kind, ?1, skipped.seq
    FROM skipped LEFT JOIN seen ON seen.url = {IDENTITY.format("skipped")}
                 LEFT JOIN arrivals ON arrivals.seq = skipped.seq
                 JOIN hosts ON hosts.id = coalesce(seen.host, arrivals.host)
    WHERE skipped.seq > ?2 AND hosts.id BETWEEN ?1 AND ?3
      AND substr(reason, 1, instr(reason || ':', ':') - 1) = ?7
      AND (parent IS NULL OR NOT ?6)
    ORDER BY skipped.seq LIMIT ?5
"""  # noqa: S608
_OF_HANDLERS = f"""
    SELECT seq, pages.url, hosts.host, depth, {_PRIORITY}, parent, hops, kind,
           {FAILED}, pages.host, position
    FROM pages JOIN hosts ON hosts.id = pages.host
    WHERE {MAY_HAVE_FAILED} AND (pages.host, position) > (?1, ?2) AND pages.host <= ?3
      AND position <= ?4 AND NOT ?6
      AND EXISTS (SELECT 1 FROM items WHERE items.seq = pages.seq AND items.error IS NOT NULL)
      AND NOT EXISTS (SELECT 1 FROM kept WHERE kept.seq = pages.seq)
    ORDER BY pages.host, position LIMIT ?5
"""  # noqa: S608
# In the order of positions: there is no index of what is missing.
_MISSING = f"""
    SELECT seq, url, name, depth, rank, parent, hops, kind, ?1, position FROM (
        SELECT pages.*, hosts.host AS name, {_PRIORITY} AS rank
        FROM pages JOIN hosts ON hosts.id = pages.host
        WHERE {PAGES_ONLY} AND NOT {FAILED} AND position > ?2 AND position <= ?4
          AND pages.host BETWEEN ?1 AND ?3 AND pages.round >= (SELECT round FROM totals)
          AND NOT EXISTS (SELECT 1 FROM kept WHERE kept.seq = pages.seq)
          AND NOT EXISTS (SELECT 1 FROM waiting WHERE waiting.seq = pages.seq)
    ) AS found
    WHERE NOT EXISTS (
        SELECT 1 FROM queue
        WHERE queue.host = found.host AND priority = found.rank AND queue.seq = found.seq
    )
    ORDER BY position LIMIT ?5
"""  # noqa: S608
_LISTS = f"""
    SELECT seq, pages.url, hosts.host, depth, {_PRIORITY}, parent, hops, kind, position
    FROM pages JOIN hosts ON hosts.id = pages.host
    WHERE {LISTS_ONLY} AND position > ?1 AND position <= ?2 ORDER BY position LIMIT ?3
"""  # noqa: S608
_PAGES = f"""
    SELECT seq, pages.url, hosts.host, depth, {_PRIORITY}, parent, hops, kind, position,
           lastmod_before, iif(listed.round >= ?4, lastmod, NULL), lastmod_right, lastmod_wrong
    FROM pages JOIN hosts ON hosts.id = pages.host LEFT JOIN listed ON listed.url = pages.url
    WHERE {REPEATABLE} AND position > ?1 AND position <= ?2 AND pages.round < ?4
    ORDER BY position LIMIT ?3
"""  # noqa: S608
_CHECKED = """
    UPDATE pages SET round = ?1, change = 'same', previous_status = status,
        previous_digest = digest, previous_fetched_at = fetched_at
    WHERE seq = ?2
"""

_ORDERED_FAILED, _ORDERED_HANDLERS = 1, 2  # in the column `failed` of an order
_ALL_HOSTS = 2**62  # more than any host's number
_NONE = BroughtBack([], 0, {})


class _Order(NamedTuple):
    """A row of `retries`: what is left of it, and the place that it has come to."""

    number: int
    failed: int  # which are left: `_ORDERED_FAILED`, `_ORDERED_HANDLERS`
    given_up: int
    first_host: int
    last_host: int
    last_position: int
    at_host: int  # of a recrawl: 0 while it brings lists back, 1 for pages
    at_row: int
    skipped: str | None
    round: int
    missing: int
    seeds: int  # only URLs that no page has led to


def keep_order(change: Change, order: RetryUrls | Recrawl) -> None:
    """Write an order down; a recrawl begins its round with it."""
    position = change.totals["next_position"] - 1
    if isinstance(order, Recrawl):
        if order.round > change.totals["round"]:
            change.totals["round"] = order.round
            row = (0, 0, 0, _ALL_HOSTS, position, 0, 0, None, order.round, 0, 0)
            change.database.execute(_ORDER, row)
        return
    first, last = 0, _ALL_HOSTS
    if order.host is not None:
        found = change.database.row("SELECT id FROM hosts WHERE host = ?", (order.host,))
        if found is None:
            return  # there is no URL of it
        first = last = found[0]
    kinds = (
        _ORDERED_FAILED * order.failed + _ORDERED_HANDLERS * order.handlers,
        order.given_up,
    )
    values = (*kinds, first, last, position, first, 0, order.skipped, 0, order.missing, order.seeds)
    change.database.execute(_ORDER, values)


def bring_back(change: Change, limit: int) -> BroughtBack:
    """Do a slice of the oldest order."""
    row = change.database.row(_OLDEST)
    if row is None:
        return _NONE
    order = _Order(*row)
    return _check_again(change, order, limit) if order.round else _try_again(change, order, limit)


def _try_again(change: Change, order: _Order, limit: int) -> BroughtBack:
    query = _first_query(order)
    rows: list[Row] = []
    if query:
        extra: list[int | str | None] = [] if query is _MISSING else [order.seeds]
        extra += [order.skipped] if query is _SKIPPED else []
        place = (order.at_host, order.at_row, order.last_host, order.last_position, limit)
        rows = change.database.rows(query, (*place, *extra))
    left = order
    if len(rows) < limit:  # that is all of them
        left = _without_first(order)._replace(at_host=order.first_host, at_row=0)
    else:
        left = order._replace(at_host=rows[-1][-2], at_row=rows[-1][-1])
    if _first_query(left):
        kinds = (left.failed, left.given_up, left.skipped, left.missing)
        change.database.execute(_AT, (*kinds, left.at_host, left.at_row, left.number))
    else:
        change.database.execute(_DONE, (left.number,))
    entries = checked_entries(change.database, [row[:8] for row in rows])
    hosts = dict.fromkeys([entry.host for entry in entries], 0)
    lost: dict[str, int] = {}
    if query is _OF_HANDLERS:
        lost = _remove_handled(change, entries, rows, hosts)
    elif query is _FAILED:
        _remove_failed(change, entries, [row[-1] for row in rows])
        for entry in entries:
            hosts[entry.host] += KINDS[entry.kind].is_page
    elif query is _GIVEN_UP:
        _remove_given_up(change, [row[-2:] for row in rows])
    elif query is _SKIPPED:
        change.database.executemany("DELETE FROM skipped WHERE seq = ?", [row[:1] for row in rows])
        change.add(skipped=-len(rows))
    else:
        change.add(rechecks=len(rows))
    committed = change.place(entries)
    return BroughtBack(committed.new, committed.waiting, hosts, lost)


def _first_query(order: _Order) -> str:
    """Return the query for the first kind that is left of an order; nothing if none is."""
    if order.failed & _ORDERED_FAILED:
        return _FAILED
    if order.failed:
        return _OF_HANDLERS
    if order.given_up:
        return _GIVEN_UP
    if order.skipped:
        return _SKIPPED
    return _MISSING if order.missing else ""


def _without_first(order: _Order) -> _Order:
    """Return what is left of an order after its first kind."""
    if order.failed == _ORDERED_FAILED + _ORDERED_HANDLERS:
        return order._replace(failed=_ORDERED_HANDLERS)
    if order.failed:
        return order._replace(failed=0)
    if order.given_up:
        return order._replace(given_up=0)
    return order._replace(skipped=None) if order.skipped else order._replace(missing=0)


def _remove_failed(change: Change, entries: list[Entry], positions: list[int]) -> None:
    change.database.executemany(
        "DELETE FROM pages WHERE position = ?", [(position,) for position in positions]
    )
    change.database.executemany("DELETE FROM kept WHERE seq = ?", [(each.seq,) for each in entries])
    pages = sum(KINDS[entry.kind].is_page for entry in entries)
    change.add(
        failed=-pages,
        lists=-sum(KINDS[entry.kind].is_listing for entry in entries),
        requisites=-sum(KINDS[entry.kind].is_requisite for entry in entries),
    )


def _remove_handled(
    change: Change, entries: list[Entry], rows: list[Row], hosts: dict[str, int]
) -> dict[str, int]:
    """Remove records on whose pages the user's code has failed; `hosts` counts failed ones.

    Return how many others there were, by host.
    """
    lost: Counter[str] = Counter()
    for entry, row in zip(entries, rows, strict=True):
        if row[-3]:
            hosts[entry.host] += 1
        else:
            lost[entry.host] += 1
    change.database.executemany("DELETE FROM pages WHERE position = ?", [row[-1:] for row in rows])
    change.database.executemany("DELETE FROM items WHERE seq = ?", [row[:1] for row in rows])
    change.add(failed=-sum(hosts.values()), fetched=-sum(lost.values()))
    return lost


def _remove_given_up(change: Change, keys: list[Row]) -> None:
    change.database.executemany("DELETE FROM given_up WHERE host = ? AND seq = ?", keys)
    for host, _ in keys:
        change.given_up[host] -= 1
    change.add(given_up=-len(keys))


def _check_again(change: Change, order: _Order, limit: int) -> BroughtBack:
    """Queue lists, then pages, that have a record of an earlier round."""
    database, is_lists = change.database, order.at_host == 0
    if not is_lists and order.at_row == 0 and change.totals["rechecks"]:
        return _NONE  # what the lists say must be known first
    place = (order.at_row, order.last_position, limit)
    if is_lists:
        rows = database.rows(_LISTS, place)
    else:
        rows = database.rows(_PAGES, (*place, order.round))
    if len(rows) == limit:
        database.execute(_AT_ROW, (order.at_host, rows[-1][8], order.number))
    elif is_lists:
        database.execute(_AT_ROW, (1, 0, order.number))
    else:
        database.execute(_DONE, (order.number,))
    wanted = [
        row[:8] for row in rows if is_lists or not spares_request(row[1], order.round, *row[9:])
    ]
    if len(wanted) < len(rows):
        asked = {row[0] for row in wanted}
        spared = [(order.round, row[0]) for row in rows if row[0] not in asked]
        database.executemany(_CHECKED, spared)
    entries = checked_entries(database, wanted)
    change.add(rechecks=len(entries))
    committed = change.place(entries)
    return BroughtBack(
        committed.new, committed.waiting, dict.fromkeys([e.host for e in entries], 0)
    )
