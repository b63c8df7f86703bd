"""The first file that a child process runs: see `child`.

It is run by its path and not by `-m`: if the parent found this package by a relative path or in the
working directory, `python -m` in the child would find no package, or another one. So the package is
loaded from the directory of this file, and nothing is put on the path that could hide a module.
"""

from __future__ import annotations

import signal

# First, so that a signal can end the child only in its first 10 ms.
for _name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGBREAK", "SIGTTOU"):
    if hasattr(signal, _name):
        signal.signal(getattr(signal, _name), signal.SIG_IGN)

import gc  # noqa: E402
import os  # noqa: E402
import socket  # noqa: E402
import sys  # noqa: E402
from importlib import import_module, util  # noqa: E402
from pathlib import Path  # noqa: E402

RARELY = 100_000  # as in `mannerly.__main__`
FLUSH_S = 1.0  # for the parent to read the last messages; if it is stuck they are lost


def main(module: str, descriptor: int | None = None) -> None:
    """Run a module's `main` with the channel to the parent, then end at once.

    Everything durable is closed by then. A normal exit would only take longer: the interpreter
    frees all its memory, and curl waits for name look-ups.
    """
    gc.set_threshold(RARELY)
    _load_package()
    from mannerly.crawler.runtime.child import Channel, Child

    Child.group = None
    channel = Channel(_socket(descriptor))
    status = 1
    try:
        path = channel.wait()
        sys.path += [entry for entry in path if entry not in sys.path]
        import_module(module).main(channel)
        status = 0
    except EOFError:  # the parent is gone, so there is nothing to do
        pass
    except MemoryError:  # the parent sees that it died, and says so
        pass
    except Exception:  # noqa: BLE001 - print it as the interpreter would, then end at once
        sys.excepthook(*sys.exc_info())
    finally:
        channel.flush(FLUSH_S)
        os._exit(status)


def _socket(descriptor: int | None) -> socket.socket:
    if descriptor is not None:
        os.set_inheritable(descriptor, False)
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
