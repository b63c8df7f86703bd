"""Threads: a pool of workers and the standard library's client, at the pace of the host.

    python examples/threads.py

The counters and the log are two listeners on one stream of events.
"""

from __future__ import annotations

import logging
from concurrent.futures import ThreadPoolExecutor
from urllib.error import HTTPError
from urllib.request import urlopen

from local_server import limited_server

from mannerly.politeness import Settings
from mannerly.politeness.drivers.observe import Counters, log_events, tee
from mannerly.politeness.drivers.threads import ThreadedPoliteness


def visit(politeness: ThreadedPoliteness, url: str) -> int:
    """The status of one page."""
    with politeness.slot(url, deadline_s=30.0) as slot:
        try:
            with urlopen(url, timeout=5.0) as response:
                slot.report(status=response.status, nbytes=len(response.read()))
                return int(response.status)
        except HTTPError as error:
            with error:
                slot.report(status=error.code, headers=dict(error.headers))
            return error.code


def main() -> None:
    """Twelve pages by six threads from a server that allows ten a second."""
    logging.basicConfig(level=logging.DEBUG, format="%(message)s")
    counters = Counters()
    listener = tee(counters, log_events(logging.getLogger("politeness")))
    settings = Settings(strategy="fixed", delay_s=0.15)
    with (
        limited_server(gap_s=0.1) as server,
        ThreadedPoliteness(settings, on_event=listener) as politeness,
        ThreadPoolExecutor(max_workers=6) as pool,
    ):
        statuses = list(pool.map(lambda _: visit(politeness, server.url), range(12)))
        print(f"statuses {statuses}")
        print(f"served {server.served}, refused {server.refused}, {counters!r}")


main()
