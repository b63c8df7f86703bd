"""Memory: what one run learned, the next one knows before its first request.

python examples/remember.py
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from mannerly.politeness import Settings
from mannerly.politeness.drivers.slots import Slot
from mannerly.politeness.drivers.threads import ThreadedPoliteness
from mannerly.politeness.memory.sqlite import SqliteMemory
from mannerly.politeness.testing import FakeClock, ScriptedServer

URL = "https://example.com/"


def run(path: Path, server: ScriptedServer, requests: int) -> None:
    """A run of its own: a new politeness, a new clock, the same file."""
    clock = FakeClock()
    settings = Settings(strategy="linear", start_delay_s=0.5)
    with ThreadedPoliteness(settings, memory=SqliteMemory(path), clock=clock) as politeness:
        for _ in range(requests):
            clock.advance(politeness.ready_at(URL) - clock.now())
            slot = politeness.try_slot(URL)
            assert isinstance(slot, Slot)
            with slot:
                slot.report(server.answer(clock.now()))
        host = politeness.host(URL)
        assert host is not None
        print(f"{host.requests} requests in {clock.now():.1f} s, delay now {host.delay_s:.2f} s")


with tempfile.TemporaryDirectory() as directory:
    file = Path(directory) / "memory.db"
    run(file, ScriptedServer(200, 429, 429, 200), requests=4)
    run(file, ScriptedServer(200), requests=4)
