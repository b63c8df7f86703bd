"""Directories of release 0.1 and of revision 1971ab0, brought to the present format.

    format 1    release 0.1: shards and inboxes have version 2, and there is no `control.db`.
                Sitemaps and public indexes have negative depths and are counted as pages, failed
                pages are counted as fetched, and URLs that were given up as skipped
    format 6    revision 1971ab0: shards have version 7. Pages with a status of 500 or more, or a
                refusal, are counted as fetched; hosts do not say what they do (`HostRecord.doing`)
    format 10   the present one

Other formats were never released: `manifest` refuses them.

A migration is done by the first command that opens the directory, while it holds the crawl's lock
and those of all shards. Every database changes in one transaction, and those that are done are
passed over; the manifest is replaced last. So after a kill at any point every file is in the old
format or in the new one, the manifest still has the old number, and the next command goes on from
there.
"""

from __future__ import annotations

from contextlib import ExitStack, closing, suppress
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from mannerly.crawler.kinds import Kind
from mannerly.crawler.model import Candidate
from mannerly.crawler.store.base import StoreError
from mannerly.database.files import make_private
from mannerly.database.sqlite import ANY_VERSION, START_OVER, Database

from .control_file import CONTROL_FILE
from .inbox import encode_links, inbox_path
from .manifest import FORMAT, MANIFEST, hold_everything, manifest_of, read_values, write_manifest
from .reader import shard_path
from .schema import CONTROL, FAILED, INBOX, MAY_HAVE_FAILED, SHARD

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from mannerly.crawler.store.base import Json
    from mannerly.database.sqlite import FileKind

# Another command may be migrating at this moment: a queue of millions takes some seconds.
_PATIENCE_S = 60.0
_CACHE_BYTES = 16 << 20

# A URL's kind was its depth below zero. The one statement about totals reads their old values.
_SHARD_2_TO_7 = """
    ALTER TABLE owner ADD COLUMN is_open INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE totals ADD COLUMN next_position INTEGER NOT NULL DEFAULT 1;
    ALTER TABLE totals ADD COLUMN lists INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE totals ADD COLUMN given_up INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE totals ADD COLUMN applied INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE totals ADD COLUMN next_elements INTEGER NOT NULL DEFAULT 1;
    ALTER TABLE totals ADD COLUMN round INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE totals ADD COLUMN rechecks INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE queue DROP COLUMN attempts;
    ALTER TABLE queue ADD COLUMN kind INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE waiting ADD COLUMN kind INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE outbox RENAME COLUMN links TO count;
    ALTER TABLE outbox RENAME COLUMN text TO links;
    ALTER TABLE skipped ADD COLUMN hops INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE skipped ADD COLUMN kind INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE pages ADD COLUMN kind INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE pages ADD COLUMN total_ms REAL NOT NULL DEFAULT 0;
    ALTER TABLE pages ADD COLUMN noindex INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE pages ADD COLUMN hops INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE pages ADD COLUMN description TEXT;
    ALTER TABLE pages ADD COLUMN h1 TEXT;
    ALTER TABLE pages ADD COLUMN lang TEXT;
    ALTER TABLE pages ADD COLUMN etag TEXT;
    ALTER TABLE pages ADD COLUMN last_modified TEXT;
    ALTER TABLE pages ADD COLUMN text_digest TEXT;
    ALTER TABLE pages ADD COLUMN change TEXT;
    ALTER TABLE pages ADD COLUMN previous_status INTEGER;
    ALTER TABLE pages ADD COLUMN previous_digest TEXT;
    ALTER TABLE pages ADD COLUMN previous_fetched_at REAL;
    ALTER TABLE pages ADD COLUMN round INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE pages ADD COLUMN elements INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE hosts ADD COLUMN given_up INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE hosts ADD COLUMN failing_since REAL NOT NULL DEFAULT 0;
    ALTER TABLE hosts ADD COLUMN failures_in_a_row INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE hosts ADD COLUMN breaker_failures INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE hosts ADD COLUMN breaker_opens INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE hosts ADD COLUMN breaker_until REAL NOT NULL DEFAULT 0;
    ALTER TABLE hosts ADD COLUMN boot TEXT NOT NULL DEFAULT '';
    ALTER TABLE hosts ADD COLUMN updated_mono REAL NOT NULL DEFAULT 0;
    ALTER TABLE hosts ADD COLUMN smallest_gap_seconds REAL NOT NULL DEFAULT 0;
    ALTER TABLE hosts ADD COLUMN required_gap_seconds REAL NOT NULL DEFAULT 0;
    ALTER TABLE hosts ADD COLUMN early INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE hosts ADD COLUMN lastmod_right INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE hosts ADD COLUMN lastmod_wrong INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE hosts ADD COLUMN smallest_gap_at REAL NOT NULL DEFAULT 0;
    ALTER TABLE hosts ADD COLUMN requests INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE hosts ADD COLUMN retry_afters INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE hosts ADD COLUMN retry_afters_broken INTEGER NOT NULL DEFAULT 0;
    CREATE TABLE given_up (
        host INTEGER NOT NULL, seq INTEGER NOT NULL, priority INTEGER NOT NULL,
        url TEXT NOT NULL, depth INTEGER NOT NULL, parent TEXT, hops INTEGER NOT NULL,
        kind INTEGER NOT NULL, reason TEXT NOT NULL,
        PRIMARY KEY (host, seq)
    ) WITHOUT ROWID;
    CREATE TABLE retries (
        number INTEGER PRIMARY KEY, failed INTEGER NOT NULL, given_up INTEGER NOT NULL,
        first_host INTEGER NOT NULL, last_host INTEGER NOT NULL, last_position INTEGER NOT NULL,
        at_host INTEGER NOT NULL, at_row INTEGER NOT NULL, skipped TEXT,
        round INTEGER NOT NULL DEFAULT 0, missing INTEGER NOT NULL DEFAULT 0
    );
    CREATE TABLE suspects (seq INTEGER PRIMARY KEY, deaths INTEGER NOT NULL);
    CREATE TABLE traffic (
        interval INTEGER PRIMARY KEY, requests INTEGER NOT NULL, refused INTEGER NOT NULL
    );
    CREATE TABLE elements (
        first INTEGER PRIMARY KEY, count INTEGER NOT NULL, data BLOB NOT NULL,
        begins INTEGER NOT NULL DEFAULT 0
    );
    CREATE TABLE listed (
        url TEXT PRIMARY KEY NOT NULL, lastmod TEXT, lastmod_before TEXT, round INTEGER NOT NULL
    ) WITHOUT ROWID;
    CREATE TABLE segments (
        number INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, length INTEGER NOT NULL
    );
    CREATE TABLE kept (
        seq INTEGER PRIMARY KEY, segment INTEGER NOT NULL, start INTEGER NOT NULL,
        length INTEGER NOT NULL
    );
    CREATE TABLE items (
        seq INTEGER PRIMARY KEY, count INTEGER NOT NULL, items BLOB NOT NULL, error TEXT
    );
    UPDATE queue SET kind = -depth, depth = 0 WHERE depth < 0;
    UPDATE waiting SET kind = -depth, depth = 0 WHERE depth < 0;
    UPDATE pages SET kind = -depth, depth = 0 WHERE depth < 0;
    UPDATE pages SET change = 'new';
    UPDATE skipped SET kind = -depth, depth = 0 WHERE depth < 0;
    INSERT INTO given_up (host, seq, priority, url, depth, parent, hops, kind, reason)
    SELECT coalesce(seen.host, arrivals.host), skipped.seq,
           coalesce(seen.priority, arrivals.priority), skipped.url, depth, parent, 0, kind, reason
    FROM skipped LEFT JOIN seen ON seen.url = skipped.url
                 LEFT JOIN arrivals ON arrivals.seq = skipped.seq
    WHERE reason = 'robots_unreachable' OR reason LIKE 'host#_retired%' ESCAPE '#';
    DELETE FROM skipped WHERE seq IN (SELECT seq FROM given_up);
    UPDATE hosts SET requests = fetched + failed + refused,
                     given_up = (SELECT count(*) FROM given_up WHERE host = hosts.id);
    UPDATE totals SET
        lists = of_lists.number,
        fetched = totals.fetched - of_lists.number - (totals.failed - of_lists.failed),
        failed = totals.failed - of_lists.failed,
        skipped = skipped - (SELECT count(*) FROM given_up),
        given_up = (SELECT count(*) FROM given_up),
        next_position = (SELECT coalesce(max(position), 0) + 1 FROM pages)
    FROM (
        SELECT count(*) AS number, coalesce(sum(status IS NULL), 0) AS failed
        FROM pages WHERE kind > 0
    ) AS of_lists;
"""
_SHARD_7_TO_11 = f"""
    DROP INDEX IF EXISTS failed_pages;
    CREATE INDEX failed_pages ON pages (host, position) WHERE {MAY_HAVE_FAILED};
    ALTER TABLE retries ADD COLUMN seeds INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE hosts ADD COLUMN doing BLOB NOT NULL DEFAULT x'';
    ALTER TABLE totals ADD COLUMN requisites INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE pages ADD COLUMN rendered INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE pages ADD COLUMN requests INTEGER;
    ALTER TABLE pages ADD COLUMN render_s REAL;
    ALTER TABLE pages ADD COLUMN render_error TEXT;
    ALTER TABLE pages ADD COLUMN render_refused INTEGER;
    CREATE TABLE payloads (
        seq INTEGER PRIMARY KEY, takes_place INTEGER NOT NULL, payload BLOB NOT NULL
    );
    CREATE TABLE sessions (name TEXT PRIMARY KEY NOT NULL, cookies TEXT NOT NULL) WITHOUT ROWID;
    UPDATE totals SET (fetched, failed) = (
        SELECT totals.fetched + totals.failed - count(*), count(*)
        FROM pages WHERE kind = 0 AND {MAY_HAVE_FAILED} AND {FAILED}
    );
    UPDATE hosts SET fetched = max(0, fetched - more), failed = failed + more
    FROM (
        SELECT host AS number, count(*) AS more FROM pages
        WHERE kind = 0 AND status IS NOT NULL AND {MAY_HAVE_FAILED} AND {FAILED} GROUP BY host
    )
    WHERE id = number;
"""  # noqa: S608
_INBOX_2_TO_3 = """
    ALTER TABLE letters RENAME TO link_batches;
    ALTER TABLE link_batches RENAME COLUMN links TO count;
    ALTER TABLE link_batches RENAME COLUMN text TO links;
"""
_SCRIPTS = {
    ("shard", 2): (_SHARD_2_TO_7, 7),
    ("shard", 7): (_SHARD_7_TO_11, 11),
    ("inbox", 2): (_INBOX_2_TO_3, 3),
}  # by the kind of a file and its version; with the version that it has then
_WITHOUT_KINDS = 2  # the version in which links have no kind


class _Candidate1(NamedTuple):
    """A link between two shards in format 1."""

    url: str
    host: str
    depth: int  # below zero: a sitemap or a public index
    priority: int
    parent: str | None
    hops: int = 0


_decode_1 = msgspec.msgpack.Decoder(list[_Candidate1]).decode


def migrate(path: Path) -> None:
    """Bring a directory to the present format; one that has it already is left alone.

    Raises:
        StoreInUse: a process works on it.
        StoreError: it is damaged, or cannot be written to.
    """
    with ExitStack() as held:
        try:
            hold_everything(path, held, patience_s=_PATIENCE_S)
        except StoreError as error:
            raise type(error)(
                f"{error}: an earlier release of mannerly wrote this crawl, and it must be "
                "converted first; end that process, or use an account that may write here"
            ) from error
        number, values = read_values(path)
        if number != FORMAT:  # another command may have done it meanwhile
            for step in steps(path, values):
                step()


def steps(path: Path, values: dict[str, Json]) -> Iterator[Callable[[], None]]:
    """Yield the steps of a migration. Each may be repeated; a crash between two does no harm."""
    shards = values.get("shards")
    if not isinstance(shards, int):
        raise StoreError(f"{path / MANIFEST} is damaged (shards): {START_OVER}")
    yield partial(make_private, path)  # earlier releases followed the umask
    for shard in range(shards):
        yield partial(_migrate, shard_path(path, shard), SHARD, "outbox")
        yield partial(_migrate, inbox_path(path, shard), INBOX, "link_batches")
    if values["format"] == 1:
        yield partial(_create_control, path)
    kept = {name: value for name, value in values.items() if name != "fingerprint_seed"}
    yield partial(write_manifest, path, manifest_of(path, kept))


def _migrate(path: Path, kind: FileKind, links_table: str) -> None:
    """Bring one database to its present version, each step in one transaction."""
    any_version = kind._replace(version=ANY_VERSION)
    with closing(Database.open(path, any_version, cache_bytes=_CACHE_BYTES)) as database:
        while (version := database.version) != kind.version:
            if (kind.name, version) not in _SCRIPTS:
                raise StoreError(f"{path} has format {version}, which cannot be converted")
            script, following = _SCRIPTS[kind.name, version]
            with database.transaction(on_disk=True):
                database.execute(script)
                if version == _WITHOUT_KINDS:
                    _encode_again(database, links_table)
                database.execute(f"PRAGMA user_version = {following}")


def _encode_again(database: Database, table: str) -> None:
    """Give the links of every stored batch a kind. `table` is a constant of this module."""
    ids = [row[0] for row in database.execute(f"SELECT id FROM {table} ORDER BY id")]  # noqa: S608
    for number in ids:
        row = database.execute(f"SELECT links FROM {table} WHERE id = ?", (number,)).fetchone()  # noqa: S608
        assert row is not None
        try:
            candidates = [_with_kind(link) for link in _decode_1(row[0])]
        except msgspec.MsgspecError as error:
            raise StoreError(
                f"a batch of links between two shards is damaged ({error}): {START_OVER}"
            ) from error
        (batch,) = encode_links(candidates)
        database.execute(f"UPDATE {table} SET links = ? WHERE id = ?", (batch.links, number))  # noqa: S608


def _with_kind(link: _Candidate1) -> Candidate:
    kind = Kind(max(0, -link.depth))
    return Candidate(*link._replace(depth=max(0, link.depth)), kind)


def _create_control(path: Path) -> None:
    """Make `control.db`; one that was cut short is made anew: it cannot hold a record yet."""
    for suffix in ("", "-wal", "-shm", "-journal"):
        with suppress(FileNotFoundError):
            (path / (CONTROL_FILE + suffix)).unlink()
    Database.create(path / CONTROL_FILE, CONTROL).close()
