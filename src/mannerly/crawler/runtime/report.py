"""What the processes of a crawl say to each other, over a pipe.

conductor → child     drain · stop · round k: are you idle?
child → conductor     stats · idle or not (round k) · what it cannot go on with
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

    from mannerly.crawler.stats import Stats


class Report(NamedTuple):
    """What a child tells its conductor."""

    stats: Stats
    round: int
    is_idle: bool
    in_flight: int
    received: int  # links that other shards sent, since the child was started


def tell(pipe: Connection, message: object) -> None:
    """Send, unless nobody listens any more: whoever waits for the other end will notice."""
    with suppress(OSError):
        pipe.send(message)
