"""The data directory of one member: its name, its crawl, and the files with its records.

`member.json` tells which crawl it belongs to and under which name; `member.lock` is held by the one
process that uses it. The password of the server is in neither.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import uuid4

import msgspec

from mannerly.crawler.store.base import StoreError
from mannerly.crawler.store.fleet import CrawlGone
from mannerly.crawler.store.sqlite.lock import OwnerLock
from mannerly.crawler.store.sqlite.manifest import MANIFEST
from mannerly.database.files import DIRECTORY_MODE, read_file, write_file

if TYPE_CHECKING:
    from pathlib import Path

MEMBER_FILE = "member.json"
LOCK = "member.lock"


class MemberFile(msgspec.Struct, frozen=True):
    """The content of `member.json`."""

    crawl: str  # the id of the crawl
    member: str
    location: str


_decode = msgspec.json.Decoder(MemberFile).decode


class Home:
    """A data directory that is held by this process.

    Raises:
        StoreInUse: another process has it.
        CrawlGone: it belongs to a crawl that is not in the store any more.
        StoreError: it belongs to another crawl, or cannot be used.
    """

    def __init__(self, path: Path, crawl: str, location: str) -> None:
        try:
            path.mkdir(parents=True, exist_ok=True, mode=DIRECTORY_MODE)
        except OSError as error:
            raise StoreError(f"cannot create the directory {path}: {error.strerror}") from error
        if (path / MANIFEST).exists():
            raise StoreError(
                f"{path} holds a crawl of its own: choose another --data-dir for this worker"
            )
        self.path = path
        self._lock = OwnerLock(path / LOCK, what=path)
        try:
            member = read_member(path)
            if member is None:
                name = f"w{uuid4().hex[:12]}"
                member = MemberFile(crawl, name, location)
                write_file(path / MEMBER_FILE, msgspec.json.encode(member))
            _check(member, path, crawl, location)
        except BaseException:
            self._lock.release()
            raise
        self.member = member.member

    def close(self) -> None:
        """Let another process have it; closing twice is harmless."""
        self._lock.release()


def read_member(path: Path) -> MemberFile | None:
    """Return whose data directory it is; None if it is no member's.

    Raises:
        StoreError: it cannot be read.
    """
    try:
        return _decode(read_file(path / MEMBER_FILE))
    except FileNotFoundError:
        return None
    except (OSError, msgspec.MsgspecError) as error:
        raise StoreError(f"cannot read {path / MEMBER_FILE}: {error}") from None


def check_home(path: Path, crawl: str | None, location: str) -> None:
    """Check that a data directory is new, or belongs to this crawl; None: there is no crawl.

    Raises:
        CrawlGone: it belongs to a crawl that is not in the store any more.
        StoreError: it belongs to another crawl.
    """
    member = read_member(path)
    if member is not None:
        _check(member, path, crawl or "", location)


def clear_home(path: Path) -> None:
    """Remove what a member has written to its data directory; nothing else is touched.

    Raises:
        StoreInUse: another process has it.
    """
    member = read_member(path)
    if member is None:
        return
    lock = OwnerLock(path / LOCK, what=path)
    try:
        for file in [
            *path.glob(f"{member.member}-*"),
            *path.glob("shard-*.parsing"),
            path / MEMBER_FILE,
        ]:
            file.unlink(missing_ok=True)
    finally:
        lock.release()


def _check(member: MemberFile, path: Path, crawl: str, location: str) -> None:
    if member.crawl == crawl:
        return
    if member.location == location:
        raise CrawlGone(
            f"{path} belongs to a crawl that is not in {location} any more: it was wiped, or the "
            "server lost its data. --fresh begins a new one"
        )
    raise StoreError(
        f"{path} belongs to the crawl {member.location}: choose another --data-dir for {location}"
    )
