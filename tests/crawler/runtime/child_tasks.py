"""What children do in tests.

Children never see the working directory, and with it no package `tests`: this directory is put on
the path, and the module is known by its own name.
"""

from __future__ import annotations

import os
import signal
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from mannerly.crawler.runtime.child import Channel


def main(channel: Channel) -> None:
    """Answer questions until told to end."""
    import mannerly

    answers = {
        "package": mannerly.__file__,
        "path": sys.path,
        "group": os.getpgrp(),
        "argv": sys.argv,
        "main": getattr(sys.modules["__main__"], "__file__", None),
        "modules": sorted(sys.modules),
        "ignored": [
            signal.getsignal(number) is signal.SIG_IGN for number in (signal.SIGINT, signal.SIGTERM)
        ],
    }
    order = channel.wait()
    channel.send(("began", order))
    while True:
        question = channel.wait()
        if question == "end":
            return
        if question == "fail":
            raise ValueError("as ordered")
        channel.send(answers[question] if isinstance(question, str) else question)


def die_first(once: Path) -> str:
    """Kill the process that runs this, the first time."""
    if once.exists():
        return "survived"
    once.touch()
    os.kill(os.getpid(), signal.SIGKILL)
    return "dead"
