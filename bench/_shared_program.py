"""A program with httpx that asks one site for its pages, one after the other, without an end.

python -m bench._shared_program NAME SEED MEMORY DELAY_S
"""

from __future__ import annotations

import sys
from contextlib import suppress
from itertools import count

import httpx

from mannerly.adapters.httpx import PoliteTransport
from mannerly.politeness import Settings
from mannerly.politeness.drivers.threads import ThreadedPoliteness


def main(name: str, seed: str, memory: str, delay_s: str) -> None:
    """Ask for pages until it is killed."""
    pace = Settings(strategy="fixed", delay_s=float(delay_s))
    transport = PoliteTransport(politeness=ThreadedPoliteness(pace, memory=memory))
    with httpx.Client(transport=transport, headers={"User-Agent": name}) as client:
        for number in count():
            with suppress(httpx.TransportError):
                client.get(f"{seed}?program={number}")


if __name__ == "__main__":
    main(*sys.argv[1:])
