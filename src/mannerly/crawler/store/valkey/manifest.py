"""The manifest of a crawl in a server, as text with the number of the schema.

The number is that of everything which is kept in the server: a release reads no other.
"""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

from mannerly.crawler.store.base import Manifest, StoreError

from .packing import Poisoned, text_of

MAX_SHARDS = 16_384
# 2: leases and waits are counted by members; 3: all keys of a crawl have one hash tag; 4: payloads
SCHEMA = 5


class _Schema(msgspec.Struct, frozen=True):
    """The number of the schema, which every release can read."""

    schema: int


class _Kept(_Schema, frozen=True):
    """The manifest as it is kept."""

    id: str
    created_at: float
    shards: Annotated[int, msgspec.Meta(ge=1, le=MAX_SHARDS)]
    seeds: list[str]
    settings: dict[str, Any]


_decode_schema = msgspec.json.Decoder(_Schema).decode
_decode_manifest = msgspec.json.Decoder(_Kept).decode


def pack_manifest(manifest: Manifest) -> str:
    """Return a manifest as text, with the number of the schema."""
    return text_of(_Kept(SCHEMA, **_values(manifest)))


def unpack_manifest(data: bytes, key: str) -> Manifest:
    """Return the manifest that a key holds.

    Raises:
        StoreError: it has another schema, or is damaged.
    """
    try:
        schema = _decode_schema(data).schema  # alone: another schema may have other fields
        if schema != SCHEMA:
            age = "a newer" if schema > SCHEMA else "an older"
            raise StoreError(
                f"{key} was written by {age} release of mannerly (schema {schema}, and this one "
                f"knows {SCHEMA}): use that release, or another name for a new crawl (--crawl)"
            )
        return Manifest(**_values(_decode_manifest(data)))
    except msgspec.MsgspecError as error:
        raise Poisoned(f"the manifest in {key} is damaged ({error})") from None


def _values(of: Manifest | _Kept) -> dict[str, Any]:
    return {name: getattr(of, name) for name in ("id", "created_at", "shards", "seeds", "settings")}
