"""The origin of a file of items: which version of which handlers made it, of which crawl.

It is a JSON document beside the items, `items.jsonl.about.json`. A version is the digest of the
file of the handlers; modules that it imports are not part of it. The document has the digest of the
items, too, so one that belongs to other items is recognised.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import msgspec

from .target import ExportError
from .whole import whole_file

if TYPE_CHECKING:
    from pathlib import Path

    from .handle import HandlerCounts

_SUFFIX = ".about.json"


class About(msgspec.Struct, frozen=True, kw_only=True):
    """The origin of a file of items."""

    handlers: str  # the name of the spider, or of the function
    file: str  # of the handlers
    version: str  # its digest
    crawl: str  # the location of the crawl
    mannerly: str  # the version of mannerly
    made_at: str  # ISO 8601
    pages: int  # that handlers ran on
    items: int
    failed: int  # pages whose handler failed
    items_digest: str | None = None  # of the file of items; None: it is a folder


def digest_of(file: Path) -> str:
    """Return the digest of a file.

    Raises:
        OSError: it cannot be read.
    """
    with file.open("rb") as opened:
        return f"sha256:{hashlib.file_digest(opened, 'sha256').hexdigest()}"


def counted(about: About, tally: HandlerCounts) -> About:
    """Return a copy with the counts of this run."""
    return msgspec.structs.replace(
        about, pages=tally.handled, items=tally.items, failed=tally.failed
    )


def write_about(items: Path, about: About) -> None:
    """Write the origin of a file of items beside it."""
    digest = digest_of(items) if items.is_file() else None
    whole = msgspec.structs.replace(about, items_digest=digest)
    with whole_file(_beside(items)) as file:
        file.write(msgspec.json.format(msgspec.json.encode(whole), indent=2) + b"\n")


def read_about(items: Path) -> About:
    """Return the origin of a file of items.

    Raises:
        ExportError: nothing is known of it.
        OSError: it cannot be read.
    """
    beside = _beside(items)
    if not beside.is_file():
        raise ExportError(f"there is no {beside}: `mannerly extract` writes one beside its items")
    try:
        return msgspec.json.decode(beside.read_bytes(), type=About)
    except msgspec.DecodeError as error:
        raise ExportError(f"{beside} is damaged: {error}") from None


def _beside(items: Path) -> Path:
    return items.with_name(items.name + _SUFFIX)
