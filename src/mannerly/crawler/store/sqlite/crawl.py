"""A whole crawl in a directory of SQLite files: see `manifest` for what is in it.

The run holds the directory's lock (`hold`), and the owner of a shard holds that shard's (`claim`).
Both end with their process. `is_running` looks at these locks, so it is exact and needs no sign of
life; worker heartbeats say more about the workers.
"""

from __future__ import annotations

import time
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Self

from mannerly.crawler.store.base import StoreError
from mannerly.database.files import DIRECTORY_MODE
from mannerly.database.sqlite import START_OVER, Database, missing

from .control_file import CONTROL_FILE, ControlFile
from .inbox import inbox_path, unread, unread_links
from .lock import OwnerLock, is_held
from .manifest import (
    CONVERTIBLE,
    LOCK,
    MANIFEST,
    PICTURES,
    foreign_files,
    hold_everything,
    is_foreign,
    read_manifest,
    read_values,
    write_manifest,
)
from .notes import AcknowledgedLog, prune_acknowledged, read_acknowledged
from .reader import SqliteReader, shard_path
from .schema import CONTROL
from .shard import SqliteStore, create_shard

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from mannerly.crawler.control import Control
    from mannerly.crawler.model import Candidate
    from mannerly.crawler.store.base import Heartbeat, Manifest, ShardOptions

# A worker renews its heartbeat every few seconds; one that has not for so long is no longer shown.
HEARTBEAT_VALID_S = 15.0


class SqliteCrawl:
    """`CrawlStore` in a directory. `create` and `open` make one."""

    def __init__(self, path: Path, manifest: Manifest) -> None:
        self.path = path
        self.location = str(path)
        self.segment_folder: Path | None = path
        self.answer_folders: Sequence[Path] = (path,)
        self.fleet = None  # one run at a time
        self.manifest = manifest
        self._lock: OwnerLock | None = None
        self._control = ControlFile(path)
        self._claimed: list[SqliteStore] = []
        self._acknowledged: dict[int, AcknowledgedLog] = {}

    @classmethod
    def create(cls, location: str, manifest: Manifest) -> Self:
        """Create a crawl in an empty or missing directory; one that was cut short is made anew.

        Raises:
            StoreError: there is a crawl or something else in it, or another process is at it.
        """
        path = Path(location)
        if (path / MANIFEST).exists():
            raise StoreError(f"{path} holds a crawl already: resume it, or start over with --fresh")
        if foreign := foreign_files(path):
            raise StoreError(
                f"{path} holds {foreign[0]} and is not a data directory of mannerly: "
                "choose another --data-dir"
            )
        try:
            if not path.exists():
                path.mkdir(parents=True, mode=DIRECTORY_MODE)
        except OSError as error:
            raise StoreError(f"cannot create the directory {path}: {error.strerror}") from error
        lock = OwnerLock(path / LOCK, what=path)
        try:
            _remove_false_start(path)
            for shard in range(manifest.shards):
                create_shard(path, shard, shards=manifest.shards)
            Database.create(path / CONTROL_FILE, CONTROL).close()
            write_manifest(path, manifest)
        finally:
            lock.release()
        return cls(path, manifest)

    @classmethod
    def open(cls, location: str) -> Self:
        """Open a crawl that was created earlier; one of an earlier release is migrated first.

        Raises:
            StoreMissing: there is none.
            StoreInUse: an earlier release wrote it, and a process works on it.
            StoreError: it is incomplete, of another version, or damaged.
        """
        path = Path(location)
        manifest = _manifest(path)
        shards = range(manifest.shards)
        files = [path / CONTROL_FILE]
        files += [make(path, shard) for make in (shard_path, inbox_path) for shard in shards]
        for file in files:
            if not file.is_file():
                raise missing(file)
        return cls(path, manifest)

    @classmethod
    def exists(cls, location: str) -> bool:
        """Return whether the directory holds a crawl."""
        return (Path(location) / MANIFEST).exists()

    @classmethod
    def wipe(cls, location: str) -> None:
        """Remove exactly our files, and the directory if that leaves it empty.

        Raises:
            StoreError: a process is using it, or it holds files that are not ours.
        """
        path = Path(location)
        if path.is_symlink():
            raise StoreError(f"{path} is a link: remove it yourself, or give the directory")
        if not path.exists():
            return
        if foreign := foreign_files(path):
            raise StoreError(
                f"{path} also holds {foreign[0]}, which mannerly did not write: nothing was removed"
            )
        if not any(path.iterdir()):
            return
        if name := is_foreign(path):
            raise StoreError(
                f"{path / name} was not written by mannerly, in spite of its name: nothing was "
                "removed"
            )
        with ExitStack() as held:
            hold_everything(path, held)
            try:
                # The manifest goes first: what a crash leaves behind must not look like a crawl.
                files = sorted(path.iterdir(), key=lambda file: file.name != MANIFEST)
                locks = [file for file in files if _is_lock(file)]
                for file in files:
                    if file.name == PICTURES:
                        _remove_folder(file)
                    elif file not in locks:
                        file.unlink()
                _remove_locks(locks, held)
                path.rmdir()
            except OSError as error:
                raise StoreError(f"cannot remove {path}: {error.strerror}") from error

    @classmethod
    def examine(cls, location: str) -> list[str]:
        """Return what is wrong with a directory, one sentence each."""
        from .doctor import examine

        cls.open(location).close()
        return examine(Path(location))

    @classmethod
    def repair(cls, location: str) -> list[str]:
        """Repair what can be repaired of a directory; return what was done."""
        from .doctor import repair

        _manifest(Path(location))  # one of an earlier release is migrated first
        return repair(Path(location))

    def __repr__(self) -> str:
        return f"<SqliteCrawl {self.path} of {self.manifest.shards} shards>"

    def hold(self) -> None:
        """Become the one run of this crawl, until `close`."""
        if self._lock is None:
            self._lock = OwnerLock(self.path / LOCK, what=self.path)
            self._control.retire()
            for shard in range(self.manifest.shards):
                self._prune_acknowledged(shard)
            self._control.close()  # a caller may start processes now

    def claim(self, shard: int, options: ShardOptions) -> SqliteStore:
        """Become the owner of a shard, until its store is closed."""
        store = SqliteStore(self.path, shard, options, shards=self.manifest.shards)
        self._claimed.append(store)
        return store

    def renew(self, heartbeat: Heartbeat) -> None:
        """Show what a worker does. Claims need no renewing: they end with their process."""
        self._control.renew(heartbeat)

    def retire(self, worker: str) -> None:
        """Take a worker's heartbeat away: it has ended."""
        self._control.retire(worker)

    def workers(self) -> list[Heartbeat]:
        """Return the heartbeats that were renewed lately; none if the crawl does not run."""
        if not self.is_running():
            return []
        oldest = time.time() - HEARTBEAT_VALID_S
        return [
            heartbeat for heartbeat in self._control.heartbeats() if heartbeat.seen_at >= oldest
        ]

    def is_running(self) -> bool:
        """Return whether a process holds the crawl or one of its shards."""
        locks = [LOCK, *(_shard_lock(shard) for shard in range(self.manifest.shards))]
        return any(is_held(self.path / name) for name in locks)

    def last_activity(self) -> float:
        """Return when one of the shards' files was last written to."""
        files = [*self.path.glob("shard-*.db"), *self.path.glob("shard-*.db-wal")]
        return max(file.stat().st_mtime for file in files)

    def read(self, shard: int) -> SqliteReader:
        """Open a reader beside the shard's owner."""
        return SqliteReader.beside(self.path, shard)

    def unread(self, shard: int) -> int:
        """Return how many links wait in a shard's inbox."""
        return unread(self.path, shard)

    def unread_links(self, shard: int) -> Iterator[Candidate]:
        """Yield the links that wait in a shard's inbox."""
        return unread_links(self.path, shard)

    def acknowledge(self, shard: int, seq: int) -> None:
        """Note, without a commit, that the program is done with a page."""
        log = self._acknowledged.get(shard)
        if log is None:
            log = self._acknowledged[shard] = AcknowledgedLog(self.path, shard)
        log.add(seq)

    def _prune_acknowledged(self, shard: int) -> None:
        known = read_acknowledged(self.path, shard)
        if known:
            with self.read(shard) as reader:
                prune_acknowledged(self.path, shard, reader.left_queue(known))

    def order(self, control: Control) -> int:
        """Append a control record, durably; return its number."""
        return self._control.order(control)

    def orders(self, *, after: int = 0) -> list[tuple[int, Control]]:
        """Return the control records with larger numbers, in order."""
        return self._control.orders(after=after)

    def close(self) -> None:
        """Release the crawl and its claimed shards; closing twice is harmless."""
        for store in self._claimed:
            store.close()
        self._control.close()
        for log in self._acknowledged.values():
            log.close()
        self._acknowledged.clear()
        if self._lock is not None:
            self._lock.release()
            self._lock = None


def _manifest(path: Path) -> Manifest:
    number, _ = read_values(path)
    if number in CONVERTIBLE:
        from .migration import migrate

        migrate(path)
    return read_manifest(path)


def _shard_lock(shard: int) -> str:
    return f"shard-{shard}.lock"


def _is_lock(file: Path) -> bool:
    return file.name.startswith(LOCK) or ".lock" in file.name


def _remove_folder(folder: Path) -> None:
    for file in folder.iterdir():
        file.unlink()
    folder.rmdir()


def _remove_locks(files: list[Path], held: ExitStack) -> None:
    """Remove lock files while they are held; where the system refuses that, just after."""
    for attempt in range(2):
        try:
            for file in files:
                file.unlink(missing_ok=True)
        except PermissionError:
            if attempt:
                raise
            held.close()


def _remove_false_start(path: Path) -> None:
    """Remove shards without a manifest: left by a start that was cut short, and then empty.

    If they are not, the manifest was lost, and with it everything would be lost here.
    """
    databases = [file for file in path.iterdir() if file.suffix == ".db" and not _is_lock(file)]
    for file in databases:
        Database.roll_back(file)
        if file.stat().st_size and not _is_untouched(file):
            raise StoreError(f"{path} holds a crawl without its {MANIFEST}: {START_OVER}")
    for file in path.iterdir():
        if not _is_lock(file):
            file.unlink()


def _is_untouched(file: Path) -> bool:
    name, _, number = file.stem.partition("-")
    if name == "control":
        return True
    if name == "inbox":
        return unread(file.parent, int(number)) == 0
    with SqliteReader.beside(file.parent, int(number)) as reader:
        return next(reader.urls(), None) is None
