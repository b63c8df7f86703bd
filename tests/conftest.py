"""What holds for every test."""

from __future__ import annotations

import os
import signal

from hypothesis import settings

# An example takes long on a busy machine, too: no clock decides whether a test passes.
settings.register_profile("patient", deadline=None)
settings.load_profile("patient")

# No test learns from another one, or from the crawls of whoever runs them: a test that is about the
# memory of hosts names a file of its own.
os.environ["MANNERLY_MEMORY"] = "none"


def pytest_configure() -> None:
    """Whoever is started in the background of a shell hands "ignore Ctrl-C" on to every command."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
