"""The directory of a crawl: what is in it, who may use it, and what must not change on resume.

    crawl.json                       the manifest, written last and in one piece: with it the
                                     directory is a crawl, without it nothing has begun
    lock                             held by the parent process for as long as it runs
    shard-<n>.db, .lock              a shard's state, and its owner's lock
    inbox-<n>.db                     links that other shards found for it
    …-wal, …-shm                     SQLite's own, beside each of the databases

Nothing else is ever made, removed or written here, and a directory with anything else in it and no
manifest is somebody's: it is refused. The manifest's `settings` are plain JSON to this module; what
they mean, and which of them must match, is for the caller to say.
"""

from __future__ import annotations

import json
import os
import re
from contextlib import ExitStack
from dataclasses import asdict, dataclass, fields
from random import SystemRandom
from typing import TYPE_CHECKING, Self
from uuid import uuid4

from mannerly.crawler.store.base import StoreError

from .database import START_OVER
from .inbox import inbox_path, unread
from .lock import OwnerLock
from .reader import SqliteReader, shard_path
from .shard import create_shard

if TYPE_CHECKING:
    from pathlib import Path
    from types import TracebackType

MANIFEST = "crawl.json"
LOCK = "lock"
FORMAT = 1

Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]

_OURS = re.compile(
    r"crawl\.json(\.new)?|lock|shard-[0-9]+\.lock|(shard|inbox)-[0-9]+\.db(-wal|-shm|-journal)?"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """What a crawl is, fixed when it was created."""

    id: str
    created_at: float  # wall time
    shards: int
    fingerprint_seed: int
    seeds: list[str]
    settings: dict[str, Json]
    format: int = FORMAT

    @classmethod
    def new(
        cls, *, seeds: list[str], settings: dict[str, Json], shards: int, created_at: float
    ) -> Self:
        """A manifest for a crawl that begins now, with an identity and a secret of its own."""
        return cls(
            id=uuid4().hex,
            created_at=created_at,
            shards=shards,
            fingerprint_seed=SystemRandom().getrandbits(63),
            seeds=seeds,
            settings=settings,
        )


class CrawlDirectory:
    """A crawl's directory, held by this process until `close`."""

    def __init__(self, path: Path, manifest: Manifest, lock: OwnerLock) -> None:
        self.path = path
        self.manifest = manifest
        self._lock = lock

    @classmethod
    def create(cls, path: Path, manifest: Manifest) -> Self:
        """Make a crawl in an empty or missing directory; one that was cut short is made anew.

        Raises:
            StoreError: there is a crawl or something else in it, or another process is at it.
        """
        if (path / MANIFEST).exists():
            raise StoreError(f"{path} holds a crawl already: resume it, or start over with --fresh")
        _refuse_foreign(path)
        try:
            path.mkdir(parents=True, exist_ok=True)
            lock = OwnerLock(path / LOCK, what=path)
        except OSError as error:
            raise StoreError(f"cannot make {path}: {error.strerror}") from error
        try:
            _remove_false_start(path)
            for shard in range(manifest.shards):
                create_shard(path, shard, shards=manifest.shards)
            _write_whole(path / MANIFEST, json.dumps(asdict(manifest), indent=2) + "\n")
        except BaseException:
            lock.release()
            raise
        return cls(path, manifest, lock)

    @classmethod
    def open(cls, path: Path) -> Self:
        """Take over a crawl that was created earlier.

        Raises:
            StoreError: it is in use, incomplete, of another version, damaged, or no crawl.
        """
        manifest = read_manifest(path)
        lock = OwnerLock(path / LOCK, what=path)
        for shard in range(manifest.shards):
            for file in (shard_path(path, shard), inbox_path(path, shard)):
                if not file.exists():
                    lock.release()
                    raise StoreError(f"{file} is missing: {START_OVER}")
        return cls(path, manifest, lock)

    def __repr__(self) -> str:
        return f"<CrawlDirectory {self.path} of {self.manifest.shards} shards>"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let others in; twice is harmless."""
        self._lock.release()


def is_crawl(path: Path) -> bool:
    """Whether there is a crawl to resume."""
    return (path / MANIFEST).exists()


def read_manifest(path: Path) -> Manifest:
    """The manifest alone, without taking the crawl over: for status, export and report.

    Raises:
        StoreError: there is none, it is of another version, or it cannot be read.
    """
    file = path / MANIFEST
    try:
        values = json.loads(file.read_bytes())
    except FileNotFoundError as error:
        _refuse_foreign(path)
        raise StoreError(f"there is no crawl in {path}") from error
    except (OSError, ValueError) as error:
        raise StoreError(f"{file} cannot be read ({error}): {START_OVER}") from error
    if not isinstance(values, dict) or not isinstance(values.get("format"), int):
        raise StoreError(f"{file} is not a manifest of mannerly: choose another --data-dir")
    if values["format"] != FORMAT:
        raise StoreError(
            f"{file} has format {values['format']}, and this version of mannerly knows format "
            f"{FORMAT}: use the version that wrote it, or start over with --fresh"
        )
    return _manifest(file, values)


def wipe(path: Path) -> None:
    """Remove exactly our files, and the directory if that leaves it empty.

    Raises:
        StoreError: a process is using it, or it holds files that are not ours.
    """
    if not path.exists():
        return
    if foreign := _foreign(path):
        raise StoreError(f"{path} also holds {foreign[0]}, which is not ours: nothing was removed")
    if not any(path.iterdir()):
        return
    with ExitStack() as held:
        held.callback(OwnerLock(path / LOCK, what=path).release)
        for file in sorted(path.glob("shard-*.lock")):
            held.callback(OwnerLock(file, what=file.with_suffix(".db")).release)
        try:
            # The manifest goes first: what a crash leaves behind must not look like a crawl.
            for file in sorted(path.iterdir(), key=lambda file: file.name != MANIFEST):
                file.unlink()
            path.rmdir()
        except OSError as error:
            raise StoreError(f"cannot remove {path}: {error.strerror}") from error


def _foreign(path: Path) -> list[str]:
    try:
        return sorted(file.name for file in path.iterdir() if not _OURS.fullmatch(file.name))
    except FileNotFoundError:
        return []
    except OSError as error:
        raise StoreError(f"cannot use {path}: {error.strerror}") from error


def _refuse_foreign(path: Path) -> None:
    if foreign := _foreign(path):
        raise StoreError(
            f"{path} holds {foreign[0]} and is not a mannerly crawl directory; "
            "choose another --data-dir"
        )


def _remove_false_start(path: Path) -> None:
    """Shards without a manifest: left by a start that was cut short, and then they are empty.

    If they are not, the manifest was lost, and with it everything would be lost here.
    """
    databases = [file for file in path.iterdir() if file.suffix == ".db"]
    for file in databases:
        if file.stat().st_size and not _is_untouched(file):
            raise StoreError(f"{path} holds a crawl without its {MANIFEST}: {START_OVER}")
    for file in path.iterdir():
        if file.name != LOCK:
            file.unlink()


def _is_untouched(file: Path) -> bool:
    name, _, number = file.stem.partition("-")
    if name == "inbox":
        return unread(file.parent, int(number)) == 0
    with SqliteReader.beside(file.parent, int(number)) as reader:
        return next(reader.urls(), None) is None


def _manifest(file: Path, values: dict[str, Json]) -> Manifest:
    """Check the types by hand: they are few, and the message says which one is wrong."""
    expected: dict[str, type | tuple[type, ...]] = {
        "id": str,
        "created_at": (int, float),
        "shards": int,
        "fingerprint_seed": int,
        "seeds": list,
        "settings": dict,
        "format": int,
    }
    wrong = [name for name, kind in expected.items() if not isinstance(values.get(name), kind)]
    if wrong or values.keys() - {field.name for field in fields(Manifest)}:
        name = wrong[0] if wrong else "an unknown key"
        raise StoreError(f"{file} is damaged ({name}): {START_OVER}")
    return Manifest(**values)  # type: ignore[arg-type]


def _write_whole(path: Path, text: str) -> None:
    """The old content or the new, whatever is cut: write beside, flush, rename, flush the name."""
    new = path.with_name(path.name + ".new")
    try:
        with new.open("w") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        new.replace(path)
        directory = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)
    except OSError as error:
        raise StoreError(f"cannot write {path}: {error.strerror}") from error
