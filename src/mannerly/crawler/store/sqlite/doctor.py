"""Examine a data directory, and repair what can be repaired.

    counters          set to what the tables say
    numbers           those of hosts, pages and skipped URLs that are out of range are put into it
    unreadable rows   moved aside: to `shard-<n>.damaged`, one JSON line each with all columns
    missing rows      a URL that is known and has no place any more is queued again, a URL that has
                      a place becomes known, a host that URLs belong to is added
    lost answers      their pages keep their records and can be fetched again (`lost_answers`)
    corrupt pages     the file is built anew from all rows that can still be read; the old one is
                      kept as `shard-<n>.damaged.db`

A repair holds the crawl and all its shards. It can be repeated, also after a crash in the middle of
it: what is sound stays as it is.
"""

from __future__ import annotations

import json
import os
from contextlib import ExitStack, closing, suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from mannerly.crawler.kinds import Kind
from mannerly.crawler.model import Entry, HostRecord, PageRecord, RobotsRecord, Skipped
from mannerly.crawler.payload import decode
from mannerly.crawler.store.base import StoreError
from mannerly.crawler.web.urls import host_key_of
from mannerly.database.files import open_regular
from mannerly.database.ranges import mend
from mannerly.database.sqlite import REBUILT, Database, missing

from .control_file import CONTROL_FILE, ControlFile
from .counters import mend_counters, wrong_counters
from .inbox import inbox_path, unread_links
from .lost_answers import forget, losses
from .manifest import hold_everything, read_manifest
from .reader import checked_entries, shard_path
from .schema import CONTROL, ENTRY, HOST, INBOX, SHARD, insert, update

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from mannerly.database.sqlite import FileKind, Row


class _Table(NamedTuple):
    """The key of a table, and the columns that have to make a record of this shape."""

    key: tuple[str, ...]
    columns: tuple[str, ...]
    shape: Any


class _Unreadable(NamedTuple):
    """A row that makes no record: its table, its key, and what its columns hold."""

    table: str
    key: Row
    values: dict[str, object]
    mended: dict[str, object] | None = None  # the columns that make it one; None: nothing does


# The two fields that `listed` has are not the table's: any value of their types will do.
_PAGE = tuple({"in_sitemap": "0", "lastmod": "NULL"}.get(name, name) for name in PageRecord._fields)
_KNOWN = ("url", "seq", "host", "priority")
_NUMBERS = tuple[str, int, int, int]
_TABLES = {
    "queue": _Table(("host", "priority", "seq"), ENTRY, Entry),
    "waiting": _Table(("seq",), ENTRY, Entry),
    "given_up": _Table(("host", "seq"), ENTRY, Entry),
    "pages": _Table(("position",), _PAGE, PageRecord),
    "skipped": _Table(("seq",), Skipped._fields, Skipped),
    "seen": _Table(("url",), _KNOWN, _NUMBERS),
    "arrivals": _Table(("seq",), _KNOWN, _NUMBERS),
    "hosts": _Table(("id",), ("host", *HOST), HostRecord),
    "robots": _Table(("origin",), RobotsRecord._fields, RobotsRecord),
    "suspects": _Table(("seq",), ("seq", "deaths"), tuple[int, int]),
    "segments": _Table(("number",), ("name", "length"), tuple[str, int]),
    "kept": _Table(("seq",), ("segment", "start", "length"), tuple[int, int, int]),
    "items": _Table(("seq",), ("count", "items", "error"), tuple[int, bytes, str | None]),
    "payloads": _Table(("seq",), ("takes_place", "payload"), tuple[bool, bytes]),
    "sessions": _Table(("name",), ("name", "cookies"), tuple[str, str]),
}
_MENDED = ("hosts", "pages", "skipped")  # tables whose records a reader mends, too
_HOSTED = ("queue", "waiting", "given_up", "pages")  # tables in which a host is a number
_PLACES = " UNION ALL ".join(f"SELECT seq FROM {table}" for table in (*_HOSTED, "skipped"))  # noqa: S608
_LOST = f"""
    SELECT seq, url, host, priority FROM seen WHERE seq NOT IN ({_PLACES})
    UNION ALL SELECT seq, url, host, priority FROM arrivals WHERE seq NOT IN ({_PLACES})
"""  # noqa: S608
_UNKNOWN = " UNION ALL ".join(
    f"SELECT seq, url, host FROM {table} WHERE NOT EXISTS (SELECT 1 FROM seen "  # noqa: S608
    f"WHERE seen.url = {table}.url) AND seq NOT IN (SELECT seq FROM arrivals) "
    "AND seq NOT IN (SELECT seq FROM payloads)"  # it may be known by more than its URL
    for table in _HOSTED
)
_HOSTLESS = " UNION ALL ".join(
    f"SELECT host, min(url) FROM {table} WHERE host NOT IN (SELECT id FROM hosts) GROUP BY host"  # noqa: S608
    for table in _HOSTED
)


def examine(path: Path) -> list[str]:
    """Return what is wrong with a data directory, one sentence each; nothing if it is sound."""
    found: list[str] = []
    manifest = read_manifest(path)
    for shard in range(manifest.shards):
        found += _examined(shard_path(path, shard), SHARD)
        found += _examined(inbox_path(path, shard), INBOX)
        found += _refusal(lambda shard=shard: list(unread_links(path, shard)))
    found += _examined(path / CONTROL_FILE, CONTROL)
    with closing(ControlFile(path)) as control:
        found += _refusal(lambda: control.orders(after=0))
        found += _refusal(control.heartbeats)
    return list(dict.fromkeys(found))


def repair(path: Path) -> list[str]:
    """Repair the shards of a crawl; return what was done, one sentence each.

    Raises:
        StoreInUse: a process works on the crawl.
        StoreError: something cannot be repaired.
    """
    done: list[str] = []
    with ExitStack() as held:
        hold_everything(path, held)
        manifest = read_manifest(path)
        for shard in range(manifest.shards):
            file = shard_path(path, shard)
            if _replaced(file):
                done.append(f"{file}: put the file in place that an earlier repair had built")
            if not file.exists():
                raise missing(file)
            if _is_corrupt(file):
                done.append(_rebuild(file, shard, manifest.shards))
            with closing(Database.open(file, SHARD)) as database:
                done += [f"{file}: {each}" for each in _repaired(database)]
                done += [forget(database, each) for each in list(losses(database, path))]
    return done


def _refusal(read: Any) -> list[str]:
    try:
        read()
    except StoreError as error:
        return [str(error)]
    return []


def _examined(path: Path, kind: FileKind) -> list[str]:
    try:
        with closing(Database.read(path, kind)) as database:
            found = _corruption(database)
            if not found and kind is SHARD:
                found = _problems(database)
                lost = [str(each) for each in losses(database, path.parent)]
                return [f"{path}: {each}" for each in found] + lost
            return [f"{path}: {each}" for each in found]
    except StoreError as error:
        return [str(error)]


def _corruption(database: Database) -> list[str]:
    rows = database.rows("PRAGMA integrity_check(10)")
    return [str(row[0]) for row in rows if row[0] != "ok"]


def _is_corrupt(path: Path) -> bool:
    try:
        with closing(Database.read(path, SHARD)) as database:
            return bool(_corruption(database))
    except StoreError:
        return True


def _problems(database: Database) -> list[str]:
    unreadable = list(_unreadable(database))
    counted = (
        (sum(each.mended is None for each in unreadable), "unreadable rows"),
        (sum(each.mended is not None for each in unreadable), "rows with numbers out of range"),
        (len(database.rows(_LOST)), "known URLs without a place"),
        (len(database.rows(_UNKNOWN)), "URLs that have a place and are not known"),
        (len(database.rows(_HOSTLESS)), "hosts are missing"),
    )
    found = [f"{count:,} {what}" for count, what in counted if count]
    return found + [f"the counter {each}" for each in wrong_counters(database)]


# ---------------------------------------------------------------------- repairing


def _repaired(database: Database) -> list[str]:
    done = []
    found = list(_unreadable(database))
    unreadable = [each for each in found if each.mended is None]
    if len(found) > len(unreadable):
        with database.transaction(on_disk=True):
            for each in found:
                _put_in_range(database, each)
        count = len(found) - len(unreadable)
        done.append(f"put the numbers of {count:,} rows into their range")
    if unreadable:
        aside = database.path.with_suffix(".damaged")
        _put_aside(aside, unreadable)
        with database.transaction(on_disk=True):
            for table, key, *_ in unreadable:
                database.execute(f"DELETE FROM {table} {_of_key(table)}", key)  # noqa: S608
        done.append(f"moved {len(unreadable):,} unreadable rows to {aside.name}")
    with database.transaction(on_disk=True):
        hostless = database.rows(_HOSTLESS)
        for number, url in hostless:
            database.execute(
                "INSERT OR IGNORE INTO hosts (id, host) VALUES (?, ?)", (number, host_key_of(url))
            )
        unknown = database.rows(_UNKNOWN)
        database.executemany(
            "INSERT OR IGNORE INTO seen (seq, url, host, priority) VALUES (?, ?, ?, 0)", unknown
        )
        lost = database.rows(_LOST)
        rows = [
            (seq, url.partition(" ")[0], host, 1, rank, None, 0, _kind_of(database, seq))
            for seq, url, host, rank in lost
        ]
        database.executemany(insert("queue", *ENTRY), rows)
    counted = (
        (len(hostless), "added {:,} missing hosts"),
        (len(unknown), "made {:,} URLs known again"),
        (len(lost), "queued {:,} URLs again that had lost their place"),
    )
    done += [what.format(count) for count, what in counted if count]
    return done + [f"mended the counter {each}" for each in mend_counters(database)]


def _kind_of(database: Database, seq: int) -> Kind:
    """Return the kind of an entry that has lost its place."""
    row = database.row("SELECT payload FROM payloads WHERE seq = ?", (seq,))
    if row is not None:
        with suppress(ValueError):
            return decode(row[0]).kind
    return Kind.PAGE


def _unreadable(database: Database) -> Iterator[_Unreadable]:
    """Yield the rows that make no record."""
    for table, (key, columns, shape) in _TABLES.items():
        for row in _rows(database, table, (*key, *columns)):
            values = list(row[len(key) :])
            if table in _HOSTED:
                values[columns.index("host")] = "host"  # a number there, a name in the record
            try:
                if shape is Entry:
                    checked_entries(database, [tuple(values)])
                else:
                    database.checked(values, shape)
            except StoreError:
                columns_and_values = zip(columns, row[len(key) :], strict=True)
                mended = _in_range(values, _TABLES[table]) if table in _MENDED else None
                yield _Unreadable(table, row[: len(key)], dict(columns_and_values), mended)


def _in_range(values: list[object], table: _Table) -> dict[str, object] | None:
    """Return the columns that make a row a record; None: there are none."""
    try:
        record, _ = mend(values, table.shape)
    except ValueError:
        return None
    fields = zip(table.columns, record, values, strict=True)
    return {name: value for name, value, before in fields if value != before}


def _put_in_range(database: Database, row: _Unreadable) -> None:
    if row.mended:
        statement = update(row.table, *row.mended) + " " + _of_key(row.table)
        database.execute(statement, (*row.mended.values(), *row.key))


def _of_key(table: str) -> str:
    names = [f"CAST({name} AS BLOB) IS CAST(? AS BLOB)" for name in _TABLES[table].key]
    return f"WHERE {' AND '.join(names)}"


def _rows(
    database: Database, table: str, columns: tuple[str, ...], order: str = ""
) -> Iterator[Row]:
    """Yield all rows of a table; text that is not UTF-8 comes as bytes."""
    asked = ", ".join(
        f"iif(typeof({c}) = 'text', CAST({c} AS BLOB), {c}), typeof({c})" for c in columns
    )
    with database.translated():
        for row in database.execute(f"SELECT {asked} FROM {table} {order}"):  # noqa: S608
            yield tuple(
                _decoded(value) if kind == "text" else value
                for value, kind in zip(row[::2], row[1::2], strict=True)
            )


def _decoded(value: Any) -> str | bytes:
    try:
        return bytes(value).decode()
    except UnicodeDecodeError:
        return bytes(value)


def _put_aside(path: Path, rows: list[_Unreadable]) -> None:
    """Write rows to a file, and wait until they are on disk: they leave their table next."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
    with os.fdopen(open_regular(path, flags), "w") as file:
        for table, key, values, _ in rows:
            row = {name: repr(value) for name, value in values.items()}
            line = {"table": table, "key": [repr(each) for each in key], "row": row}
            file.write(json.dumps(line) + "\n")
        file.flush()
        os.fsync(file.fileno())


def _rebuild(path: Path, shard: int, shards: int) -> str:
    """Copy every row that can be read into a new file, and put that in the place of the old."""
    new, kept = path.with_suffix(REBUILT), path.with_suffix(".damaged.db")
    for suffix in ("", "-wal", "-shm", "-journal"):
        new.with_name(new.name + suffix).unlink(missing_ok=True)
    copied = 0
    with closing(Database.create(new, SHARD)) as target:
        with target.transaction(on_disk=True):
            target.execute("INSERT INTO owner (shard, shards) VALUES (?, ?)", (shard, shards))
        with closing(Database.unchecked(path)) as source:
            for table in [*_TABLES, "outbox", "retries", "elements", "listed"]:
                copied += _copy(source, target, table)
        mend_counters(target)
    path.replace(kept)  # from here on the new file is whole, and `_replaced` can go on
    _replaced(path)
    return f"{path}: built anew from {copied:,} rows; the damaged file is {kept.name}"


def _replaced(path: Path) -> bool:
    """Put a rebuilt file in its place if the old one was moved away; return whether it was."""
    new = path.with_suffix(REBUILT)
    if path.exists() or not new.exists():
        return False
    for suffix in ("-wal", "-shm"):  # they belong to the old file
        path.with_name(path.name + suffix).unlink(missing_ok=True)
    new.replace(path)
    return True


def _copy(source: Database, target: Database, table: str) -> int:
    """Copy a table from its beginning and from its end, as far as it can be read."""
    columns = tuple(str(row[1]) for row in target.rows(f"PRAGMA table_info({table})"))
    key = ", ".join(_TABLES[table].key) if table in _TABLES else "1"
    statement = insert(table, *columns, verb="INSERT OR IGNORE")
    copied = 0
    with target.transaction():
        for order in (f"ORDER BY {key}", f"ORDER BY {key} DESC"):
            try:
                for row in _rows(source, table, columns, order):
                    target.execute(statement, row)
                    copied += 1
            except StoreError:
                continue  # damaged here: go on from the other end
            break
    return copied
