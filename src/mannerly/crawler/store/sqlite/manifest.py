"""The files of a crawl's directory, and the one that makes it a crawl.

    crawl.json                       the manifest, written last and in one piece: with it the
                                     directory is a crawl, without it nothing has begun
    lock                             held by the run for as long as it lasts
    control.db                       control records and worker heartbeats
    items.given                      how far a program has taken the items of a spider
    shard-<n>.db, .lock, .parsing    a shard's state, its owner's lock, the page that it parses
    shard-<n>.sent                   requests that are sent once, and were
    shard-<n>.done                   pages that the program which reads the crawl is done with
    shard-<n>.damaged, .damaged.db   what a repair could not read
    shard-<n>-<m>.warc.gz            its m-th segment: answers as they were received
    shard-<n>-<m>.lost               URLs whose answers a repair found lost, one a line
    inbox-<n>.db                     links that other shards found for it
    screenshots                      pictures of rendered pages, a PNG each
    …-wal, …-shm, …-journal          SQLite's own, beside each of the databases
    lock.db, shard-<n>.lock.db       the locks themselves, where there is no flock

Nothing else is ever made, removed or written here, and a directory with anything else in it and no
manifest belongs to something else: it is refused. The manifest's `settings` are plain JSON to this
module; what they mean, and which of them must match, is for the caller to say.
"""

from __future__ import annotations

import json
import os
import re
import stat
from contextlib import suppress
from dataclasses import asdict, fields
from typing import TYPE_CHECKING

from mannerly.crawler.store.base import Manifest, StoreError, StoreMissing
from mannerly.database.files import read_file, write_file
from mannerly.database.ranges import MAX_NUMBER
from mannerly.database.sqlite import START_OVER

from .lock import PATIENCE_S, OwnerLock
from .schema import CONTROL, INBOX, SHARD

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import ExitStack
    from pathlib import Path

    from mannerly.crawler.store.base import Json

MANIFEST = "crawl.json"
LOCK = "lock"
FORMAT = 10
CONVERTIBLE = (1, 6)  # those of release 0.1 and of revision 1971ab0: see `migration`

_OURS = re.compile(
    r"crawl\.json(\.new)?|lock|items\.given|shard-[0-9]+\.(lock|damaged|(parsing|done|sent)(\.new)?)"
    r"|shard-[0-9]+-[0-9]+\.(warc\.gz|lost)"
    r"|(control|lock|shard-[0-9]+\.(lock|new|damaged)|(shard|inbox)-[0-9]+)\.db(-wal|-shm|-journal)?"
)
PICTURES = "screenshots"
_PICTURE = re.compile(r"[0-9a-f]{32}\.png")
_EMPTY_OR_LOCK = re.compile(r"crawl\.json\.new|lock(\.db.*)?|shard-[0-9]+\.(lock(\.db.*)?|parsing)")
# SQLite keeps the mark of the program in bytes 68 to 71 of the file's head.
_HEAD_BYTES, _ID_AT = 100, 68
_IDS = [kind.application_id.to_bytes(4) for kind in (SHARD, INBOX, CONTROL)]
MAX_SHARDS = 4096  # a crawl has as many as it began with processes

_RIGHT: dict[str, Callable[[Json], bool]] = {
    "id": lambda value: isinstance(value, str),
    "created_at": lambda value: type(value) in (int, float) and 0 <= value < MAX_NUMBER,  # type: ignore[operator]
    "shards": lambda value: type(value) is int and 0 < value <= MAX_SHARDS,
    "seeds": lambda value: isinstance(value, list) and all(isinstance(each, str) for each in value),
    "settings": lambda value: isinstance(value, dict),
}


def read_manifest(path: Path) -> Manifest:
    """Return the manifest of the crawl in a directory.

    Raises:
        StoreMissing: there is none.
        StoreError: it is of another version, or it cannot be read.
    """
    number, values = read_values(path)
    if min(CONVERTIBLE) < number < max(CONVERTIBLE):  # what is later, it does not know
        raise StoreError(
            f"{path / MANIFEST} has format {number}, which was never released: mannerly at "
            "revision 1971ab0 can read and convert it (`mannerly status`), then this version can; "
            "or start over with --fresh"
        )
    if number != FORMAT:
        raise StoreError(
            f"{path / MANIFEST} has format {number}, and this version of mannerly knows "
            f"format {FORMAT}: use the version that wrote it, or start over with --fresh"
        )
    return manifest_of(path, values)


def read_values(path: Path) -> tuple[int, dict[str, Json]]:
    """Return the format of the manifest's file, and everything in it, unchecked."""
    file = path / MANIFEST
    try:
        values = json.loads(read_file(file))
    except (FileNotFoundError, NotADirectoryError) as error:
        name = next(iter(foreign_files(path)), None)
        also = f" (it holds {name}, which is not a crawl's)" if name else ""
        raise StoreMissing(f"there is no crawl in {path}{also}") from error
    except (OSError, ValueError, RecursionError) as error:
        raise StoreError(f"{file} cannot be read ({error}): {START_OVER}") from error
    number = values.get("format") if isinstance(values, dict) else None
    if type(number) is not int:
        raise StoreError(f"{file} is not a manifest of mannerly: choose another --data-dir")
    return number, values


def manifest_of(path: Path, values: dict[str, Json]) -> Manifest:
    """Check the values by hand: they are few, and the message says which one is wrong."""
    wrong = [name for name, is_right in _RIGHT.items() if not is_right(values.get(name))]
    if wrong or values.keys() - {"format", *(field.name for field in fields(Manifest))}:
        name = wrong[0] if wrong else "an unknown key"
        raise StoreError(f"{path / MANIFEST} is damaged ({name}): {START_OVER}")
    return Manifest(**{name: values[name] for name in _RIGHT})  # type: ignore[arg-type]


def write_manifest(path: Path, manifest: Manifest) -> None:
    """Replace the manifest in one step: a crash leaves the old content or the new."""
    text = json.dumps({"format": FORMAT, **asdict(manifest)}, indent=2) + "\n"
    try:
        write_file(path / MANIFEST, text.encode())
    except OSError as error:
        raise StoreError(f"cannot write {path / MANIFEST}: {error.strerror}") from error
    with suppress(OSError):  # the name, too; not every system can open a directory
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def hold_everything(path: Path, held: ExitStack, *, patience_s: float = PATIENCE_S) -> None:
    """Take the locks of a crawl and of all its shards, until `held` is closed.

    Raises:
        StoreInUse: a process has one of them; a worker may outlive its parent for a moment.
    """
    held.callback(OwnerLock(path / LOCK, what=path, patience_s=patience_s).release)
    for file in sorted(path.glob("shard-*.lock")):
        held.callback(OwnerLock(file, what=file.with_suffix(".db")).release)


def foreign_files(path: Path) -> list[str]:
    """Return the names in a directory that are not a crawl's: files of other names, and links."""
    try:
        foreign = _others(path, _OURS)
        if PICTURES in foreign and stat.S_ISDIR((path / PICTURES).lstat().st_mode):
            foreign.remove(PICTURES)
            foreign += [f"{PICTURES}/{name}" for name in _others(path / PICTURES, _PICTURE)]
        return sorted(foreign)
    except FileNotFoundError:
        return []
    except OSError as error:
        raise StoreError(f"cannot use {path}: {error.strerror}") from error


def _others(path: Path, ours: re.Pattern[str]) -> list[str]:
    return [
        file.name
        for file in path.iterdir()
        if not ours.fullmatch(file.name) or not stat.S_ISREG(file.lstat().st_mode)
    ]


def is_foreign(path: Path) -> str | None:
    """Return the first file that only has a name like ours; None if the files are a crawl's.

    A manifest proves all of them, also where they are damaged. Without one, every database has to
    be marked as ours, or empty.
    """
    with suppress(StoreError):
        number, values = read_values(path)
        if number > 0 and isinstance(values.get("id"), str) and "seeds" in values:
            return None
    files = sorted(path.iterdir())
    databases = [
        file for file in files if file.suffix == ".db" and not file.name.endswith("lock.db")
    ]
    for file in databases:
        with file.open("rb") as stream:
            head = stream.read(_HEAD_BYTES)
        if head and head[_ID_AT : _ID_AT + 4] not in _IDS:
            return file.name
    others = [file for file in files if not databases and not _EMPTY_OR_LOCK.fullmatch(file.name)]
    return others[0].name if others else None
