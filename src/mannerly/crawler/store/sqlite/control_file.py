"""A crawl's control records and worker heartbeats, in `control.db`.

Any number of processes write to it, each for one short transaction; readers are never in the way.
Every worker asks for new control records four times a second, so the connection stays open and the
question is one look at the end of a table (about 10 µs).
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

import msgspec

from mannerly.crawler import control
from mannerly.crawler.store.base import Heartbeat, StoreBusy, StoreError, StoreFull
from mannerly.database.sqlite import START_OVER, Database

from .schema import CONTROL

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    import apsw

    from mannerly.crawler.control import Control

CONTROL_FILE = "control.db"

_BUSY_MS = 5000  # a writer has it for some milliseconds: nothing but a stopped process takes longer
_HEARTBEAT_BUSY_MS = 50  # a worker does not wait longer with its heartbeat: the next one will do

# What only members of a shared crawl ask each other: whether they are quiet, and their code.
_FIELDS = tuple(name for name in Heartbeat._fields if name not in ("is_quiet", "code"))
_HEARTBEAT = ", ".join(_FIELDS)
_RENEW = f"INSERT OR REPLACE INTO workers ({_HEARTBEAT}) VALUES (?, ?, ?, ?, ?, ?, ?)"  # noqa: S608
_HEARTBEATS = f"SELECT {_HEARTBEAT} FROM workers ORDER BY id"  # noqa: S608


class ControlFile:
    """The file, opened when it is first needed: for reading, and for writing only if need be."""

    def __init__(self, directory: Path) -> None:
        self._path = directory / CONTROL_FILE
        self._reader: Database | None = None
        self._writer: Database | None = None

    def order(self, record: Control) -> int:
        """Append a control record; it is on disk when this returns."""
        writer = self._for_writing(_BUSY_MS)
        with writer.transaction(on_disk=True):
            row = writer.row(
                "INSERT INTO orders (record) VALUES (?) RETURNING number",
                (control.encode(record).decode(),),
            )
        assert row is not None
        return int(row[0])

    def orders(self, *, after: int) -> list[tuple[int, Control]]:
        """Return the control records with larger numbers, in order."""
        rows = self._for_reading().rows(
            "SELECT number, record FROM orders WHERE number > ? ORDER BY number", (after,)
        )
        try:
            return [(number, control.decode(record)) for number, record in rows]
        except (msgspec.MsgspecError, TypeError) as error:
            raise StoreError(
                f"{self._path} holds a control record that this version of mannerly cannot read "
                f"({error}): use the version that wrote it, or {START_OVER}"
            ) from error

    def renew(self, heartbeat: Heartbeat) -> None:
        """Show or replace a worker's heartbeat."""
        shards = msgspec.json.encode(heartbeat.shards).decode()
        shown = heartbeat._replace(shards=shards)  # type: ignore[arg-type]
        self._change_heartbeats(_RENEW, [getattr(shown, name) for name in _FIELDS])

    def retire(self, worker: str | None = None) -> None:
        """Take a worker's heartbeat away; without a name, all heartbeats: their run is over."""
        self._change_heartbeats("DELETE FROM workers WHERE ?1 IS NULL OR id = ?1", (worker,))

    def _change_heartbeats(self, statement: str, values: Sequence[apsw.Binding]) -> None:
        """Change the heartbeats, unless there is no room or the file is busy.

        No crawl may stop for a heartbeat, least of all one that waits for room on the disk. One
        that cannot be renewed or taken away is soon too old to be shown.
        """
        with suppress(StoreFull, StoreBusy):
            writer = self._for_writing(_HEARTBEAT_BUSY_MS)
            with writer.transaction():
                writer.execute(statement, values)

    def heartbeats(self) -> list[Heartbeat]:
        """Return all heartbeats, of the living and of those that ended without `retire`."""
        reader = self._for_reading()
        try:
            rows = [
                (*row[:3], msgspec.json.decode(str(row[3])), *row[4:])
                for row in reader.rows(_HEARTBEATS)
            ]
        except msgspec.MsgspecError as error:
            raise reader.damaged(error) from error
        return reader.checked(rows, list[Heartbeat])

    def close(self) -> None:
        """Close the file; closing twice is harmless."""
        for database in (self._reader, self._writer):
            if database is not None:
                database.close()
        self._reader = self._writer = None

    def _for_reading(self) -> Database:
        if self._writer is not None:
            return self._writer
        if self._reader is None:
            self._reader = Database.read(self._path, CONTROL)
        return self._reader

    def _for_writing(self, busy_ms: int) -> Database:
        if self._writer is None:
            self._writer = Database.open(self._path, CONTROL, busy_ms=busy_ms)
        self._writer.wait_for(busy_ms)
        return self._writer
