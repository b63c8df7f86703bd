"""What holds for every test."""

from __future__ import annotations

import signal


def pytest_configure() -> None:
    """Whoever is started in the background of a shell hands "ignore Ctrl-C" on to every command."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
