"""The owners of shards, as one process knows them, and how it becomes one.

A process may claim a shard whose owner gave its last beat one lease ago, at least (`ages`). It says
which beat of which owner that was, so a beat that it does not know of refuses the claim
(`claim.lua`).
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, NamedTuple

from mannerly.crawler.store.base import StoreInUse
from mannerly.database.runs import KnownRuns

from .shard import load_commands

if TYPE_CHECKING:
    from mannerly.database.client import Payload
    from mannerly.politeness.model import Instant

    from .crawl import ValkeyCrawl


class Won(NamedTuple):
    """A claim that was granted."""

    number: int  # of the claims of this shard
    began: Instant  # before it was sent
    clock_ms: int  # of the shard, at that instant
    is_takeover: bool  # its last owner was lost
    last_known: int  # the number of the last URL that was known in the shard


class Claims:
    """The owners of the shards of a crawl, as one process knows them."""

    def __init__(self, crawl: ValkeyCrawl) -> None:
        self.runs = KnownRuns()
        self._crawl = crawl
        self._owners: dict[int, tuple[str, str]] = {}  # token and beat of a shard, as last seen

    def learn(
        self, shard: int, token: bytes | None, beat: bytes | None, run: bytes | None, now: Instant
    ) -> None:
        """Note what is known of the owner of a shard and of its server."""
        self._owners[shard] = _text(token), _text(beat)
        self.runs.saw(shard, _text(run), now)

    def over(self, shard: int, lease_s: float, now: Instant) -> str:
        """Return the owner and the beat of a lease that is over, as `claim.lua` takes it, or ""."""
        token, beat = self._owners.get(shard, ("", ""))
        is_over = self._crawl.ages.age_s(beat, now) >= lease_s
        return f"{token} {beat}" if token and is_over else ""

    def win(
        self, number: int, token: str, *, member: str, parsing: int, lease_s: float
    ) -> tuple[Won, list[Any]]:
        """Claim a shard; return what the last owner left, too.

        A claim that is refused tells the beat of the owner. If that shows that its lease is over,
        the claim is tried again.

        Raises:
            StoreInUse: it has another owner, or may have one.
        """
        crawl, key = self._crawl, self._crawl.keys.shard(number)
        for is_last in (False, True):
            began, asked_at = crawl.mono(), crawl.wall()
            over = self.over(number, lease_s, began)
            payload: Payload = {
                "id": crawl.manifest.id,
                "token": token,
                "member": member or f"pid {os.getpid()}",
                "beat": crawl.ages.stamp(began),
                "over": over,
                "runs": self.runs.settled(lease_s, began),
                "parsing": parsing,
            }
            (word, *rest), left = crawl.server.call_and_ask(
                ("claim", [key], payload), load_commands(crawl.keys.of_shard(number, ""))
            )
            if word == b"yours":
                claim, server_ms, is_takeover, beat, clock_ms, seq = rest
                crawl.server.saw(server_ms, asked_at)
                seen_at = crawl.mono()  # the beat may be later than `began`
                idle_s = crawl.ages.age_s(_text(beat), seen_at) - (seen_at - began)
                clock_ms += max(0, int(idle_s * 1000))
                return Won(claim, began, clock_ms, bool(is_takeover), seq), left
            owner, held_by, beat, run = rest
            self.learn(number, held_by, beat, run, crawl.mono())
            is_news = self.over(number, lease_s, crawl.mono()) not in ("", over)
            if word == b"restarted" or is_last or not is_news:
                break
        left_s = None
        if word == b"restarted":
            left_s = self.runs.settled_at(_text(run), lease_s) - crawl.mono()
        raise _refusal(left_s, _text(owner), number, crawl.location)


def _text(value: bytes | None) -> str:
    return bytes(value or b"").decode("utf-8", "replace")


def _refusal(left_s: float | None, member: str, number: int, location: str) -> StoreInUse:
    """Return why a shard was not granted; `left_s`: claims are held back for so long."""
    if left_s is None:
        return StoreInUse(f"shard {number} of {location} is in use by {member}")
    refusal = StoreInUse(
        f"shard {number} of {location} may be in use: the server was restarted, and its last "
        f"owner has {left_s:.0f} s to be heard"
    )
    refusal.for_s = left_s
    return refusal
