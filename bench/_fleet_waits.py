"""The command line, for a worker that notes at its end how long it has waited for the server.

    python -m bench._fleet_waits crawl … --redis-url …

The file that $FLEET_WAITS names gets two numbers: seconds of waiting, and seconds since the worker
first asked the server.
"""

from __future__ import annotations

import atexit
import os
import time
from pathlib import Path
from typing import Any

from mannerly.__main__ import main
from mannerly.crawler.store.valkey.client import ValkeyServer

_servers: list[ValkeyServer] = []
_began: list[float] = []
_begin = ValkeyServer.__init__


def _noted(self: ValkeyServer, *arguments: Any, **options: Any) -> None:
    _begin(self, *arguments, **options)
    _servers.append(self)
    _began.append(time.monotonic())


def _write() -> None:
    waited_s = sum(server.busy_s for server in _servers)
    took_s = time.monotonic() - _began[0] if _began else 0.0
    Path(os.environ["FLEET_WAITS"]).write_text(f"{waited_s} {took_s}")


if __name__ == "__main__":
    ValkeyServer.__init__ = _noted  # type: ignore[method-assign]
    atexit.register(_write)
    raise SystemExit(main())
