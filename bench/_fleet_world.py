"""A web, a server and workers as real processes, for benchmarks of fleets."""

from __future__ import annotations

import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Self

from tests.crawler.fleet.fleet_world import Fleet
from tests.crawler.store.valkey_server import LocalServer

from mannerly.demo import DemoWeb, plain_sites

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mannerly.demo import Site


class World:
    """A web, a server and a folder, while it is entered."""

    def __init__(self, sites: Sequence[Site], server: LocalServer | None = None) -> None:
        self._stack = ExitStack()
        self.web = self._stack.enter_context(DemoWeb(sites))
        self.server = self._stack.enter_context(server or LocalServer("--appendonly", "yes"))
        folder = self._stack.enter_context(tempfile.TemporaryDirectory(prefix="bench-fleet-"))
        self.folder = Path(folder)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    @classmethod
    def plain(cls, hosts: int, pages: int, *, latency_s: float = 0.0) -> Self:
        """Return a world of fast hosts without limits, with links between them."""
        return cls(plain_sites(hosts, pages=pages, neighbours=2, latency_s=latency_s))

    def fleet(self, *options: str) -> Fleet:
        folder = self.folder / f"{time.monotonic_ns()}"
        folder.mkdir()
        return Fleet(self.server.url, self.web, folder, *options)
