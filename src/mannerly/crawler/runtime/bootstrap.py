"""The first file that a child process runs: see `child`.

It is run by its path and not by `-m`: a parent that found this package by a relative path or by the
working directory would else start children that find none, or another one. So the package is loaded
from where this file is, without putting anything on the path that could hide another module.
"""

from __future__ import annotations

import signal

# First of all, so that the time in which a signal could end the child is short: 10 ms.
for _name in ("SIGINT", "SIGTERM", "SIGBREAK", "SIGTTOU"):
    if hasattr(signal, _name):
        signal.signal(getattr(signal, _name), signal.SIG_IGN)

import gc  # noqa: E402
import os  # noqa: E402
import socket  # noqa: E402
import sys  # noqa: E402
from importlib import import_module, util  # noqa: E402
from pathlib import Path  # noqa: E402

RARELY = 10_000  # as in `mannerly.__main__`
FLUSH_S = 1.0  # for the last words to be read; a parent that is stuck gets none


def main(module: str, descriptor: int | None = None) -> None:
    """Run a module's `main` with the channel to the parent, then end at once.

    Everything durable has been closed by then; the interpreter would only look through all that is
    in memory, and curl wait for names that are still being looked up.
    """
    gc.set_threshold(RARELY)
    _load_package()
    from mannerly.crawler.runtime.child import Channel

    channel = Channel(_socket(descriptor))
    status = 1
    try:
        path = channel.wait()
        sys.path += [entry for entry in path if entry not in sys.path]
        import_module(module).main(channel)
        status = 0
    except EOFError:  # the parent is gone, and with it whatever there was to do
        pass
    except Exception:  # noqa: BLE001 - as the interpreter would, had it not to end at once
        sys.excepthook(*sys.exc_info())
    finally:
        channel.flush(FLUSH_S)
        os._exit(status)


def _socket(descriptor: int | None) -> socket.socket:
    if descriptor is not None:
        return socket.socket(fileno=descriptor)
    share = sys.stdin.buffer.read()
    return socket.fromshare(share)  # type: ignore[attr-defined,no-any-return,unused-ignore]


def _load_package() -> None:
    root = Path(__file__).parents[2]
    spec = util.spec_from_file_location(
        "mannerly", root / "__init__.py", submodule_search_locations=[str(root)]
    )
    assert spec is not None, "it ends in .py"
    assert spec.loader is not None, "it ends in .py"
    package = util.module_from_spec(spec)
    sys.modules["mannerly"] = package
    spec.loader.exec_module(package)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else None)
