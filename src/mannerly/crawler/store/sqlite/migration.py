"""Directories that an earlier release wrote, brought to the present format.

    format 1    release 0.1: shards and inboxes have version 2, and there is no `control.db`.
                Sitemaps and public indexes have negative depths and are counted as pages
    format 2    the present one: they have a `kind` and are counted as lists

A migration is done by the first command that opens the directory, while it holds the crawl's lock
and those of all shards. Every database changes in one transaction, and those that are done are
passed over; the manifest is replaced last. So after a kill at any point every file is in the old
format or in the new one, the manifest still says 1, and the next command goes on from there.
"""

from __future__ import annotations

from contextlib import ExitStack, closing, suppress
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from mannerly.crawler.model import Candidate, Kind
from mannerly.crawler.store.base import StoreError

from .control_file import CONTROL_FILE
from .database import ANY_VERSION, START_OVER, Database
from .inbox import encode_links, inbox_path
from .manifest import FORMAT, MANIFEST, hold_everything, manifest_of, read_values, write_manifest
from .reader import shard_path
from .schema import CONTROL, INBOX, SHARD

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from mannerly.crawler.store.base import Json

    from .schema import FileKind

# Another command may be migrating at this moment: a queue of millions takes some seconds.
_PATIENCE_S = 60.0
_CACHE_BYTES = 16 << 20

_SHARD_2_TO_3 = """
    ALTER TABLE totals ADD COLUMN lists INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE totals ADD COLUMN applied INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE queue DROP COLUMN attempts;
    ALTER TABLE queue ADD COLUMN kind INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE waiting ADD COLUMN kind INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE pages ADD COLUMN kind INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE outbox RENAME COLUMN links TO count;
    ALTER TABLE outbox RENAME COLUMN text TO links;
    CREATE TABLE suspects (seq INTEGER PRIMARY KEY, deaths INTEGER NOT NULL);
    UPDATE totals SET (lists, fetched, failed) = (
        SELECT count(*), fetched - count(*), failed - coalesce(sum(status IS NULL), 0)
        FROM pages WHERE depth < 0
    );
    UPDATE queue SET kind = -depth, depth = 0 WHERE depth < 0;
    UPDATE waiting SET kind = -depth, depth = 0 WHERE depth < 0;
    UPDATE pages SET kind = -depth, depth = 0 WHERE depth < 0;
    UPDATE skipped SET depth = 0 WHERE depth < 0;
"""
_INBOX_2_TO_3 = """
    ALTER TABLE letters RENAME TO link_batches;
    ALTER TABLE link_batches RENAME COLUMN links TO count;
    ALTER TABLE link_batches RENAME COLUMN text TO links;
"""


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
    for shard in range(shards):
        yield partial(_migrate, shard_path(path, shard), SHARD, _SHARD_2_TO_3, "outbox")
        yield partial(_migrate, inbox_path(path, shard), INBOX, _INBOX_2_TO_3, "link_batches")
    yield partial(_create_control, path)
    kept = {name: value for name, value in values.items() if name != "fingerprint_seed"}
    yield partial(write_manifest, path, manifest_of(path, kept))


def _migrate(path: Path, kind: FileKind, script: str, links_table: str) -> None:
    """Change one database from version 2 to version 3, in one transaction."""
    any_version = kind._replace(version=ANY_VERSION)
    with closing(Database.open(path, any_version, cache_bytes=_CACHE_BYTES)) as database:
        if database.version != kind.version:
            with database.transaction(on_disk=True):
                database.execute(script)
                _encode_again(database, links_table)
                database.execute(f"PRAGMA user_version = {kind.version}")


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
