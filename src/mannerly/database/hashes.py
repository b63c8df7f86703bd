"""Hashes of the server: as pairs, and in pieces, so that no answer is long."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .client import ServerConnection

_PIECE = 1000  # fields of one exchange


def hash_pieces(server: ServerConnection, key: str) -> Iterator[list[tuple[bytes, bytes]]]:
    """Yield the fields of a hash, in pieces; one that is changed meanwhile may come twice."""
    cursor = b"0"
    while True:
        cursor, found = server.ask("HSCAN", key, cursor, "COUNT", _PIECE)
        yield list(pairs(found))
        if int(cursor) == 0:
            return


def pairs(answer: Any) -> Iterator[tuple[bytes, Any]]:
    """Yield the pairs of an answer, whatever the client library has made of it."""
    if isinstance(answer, dict):
        yield from answer.items()
    elif answer and isinstance(answer[0], tuple | list):
        yield from answer
    else:
        yield from zip(answer[::2], answer[1::2], strict=True)
