"""The names of letters between shards: who wrote one, in which claim, and its number.

A number alone does not tell a letter. An owner that has lost its shard may still post a letter, and
if the server has forgotten the commit of it, the next owner gives its number to another letter. The
inbox would take the second one for the first, and its links would be lost. So the letters of each
claim are a *stream* of their own, numbered from 1. A server that lost its last second may grant the
same claim number twice; the token of the claim tells the two apart.
"""

from __future__ import annotations

from typing import NamedTuple

_TOKEN = 8  # characters of a token: they matter only if a claim number was granted twice


class Letter(NamedTuple):
    """Some links for one shard."""

    number: int
    links: int
    packed: str


class LetterStream(NamedTuple):
    """The letters to one shard that were written in one claim; sorted by claims."""

    shard: int
    claim: int
    token: str

    @property
    def stamp(self) -> str:
        """Return the claim as it is written in names."""
        return f"{self.claim}-{self.token}"

    @property
    def name(self) -> str:
        """Return the name of the stream in the shard that it comes from."""
        return f"{self.shard}:{self.stamp}"

    def name_at_receiver(self, sender: int) -> str:
        """Return its name in the shard that it goes to."""
        return f"{sender}:{self.stamp}"


def stream_of(shard: int, claim: int, token: str) -> LetterStream:
    """Return the stream to a shard of the claim with this token."""
    return LetterStream(shard, claim, token[:_TOKEN])


def split_name(name: bytes) -> tuple[LetterStream, str]:
    """Return the stream of `SHARD:CLAIM-TOKEN:REST`, and the rest.

    Raises:
        ValueError: it is no such name.
    """
    shard, stamp, rest = name.decode("ascii").split(":")
    claim, _, token = stamp.partition("-")
    return LetterStream(int(shard), int(claim), token), rest
