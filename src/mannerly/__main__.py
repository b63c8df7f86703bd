"""`python -m mannerly` is the command `mannerly`.

A process that a crawl spawns imports this file too; it needs no command line, so that is imported
by whoever runs it.
"""

from __future__ import annotations

import gc
import os
import sys

# Python looks for circles of garbage whenever 700 more objects are alive. Hardly any are here: it
# would take 1 % of a crawl, and 6 % of its start.
RARELY = 10_000


def main() -> None:
    """Run the command."""
    gc.set_threshold(RARELY)
    _replace_closed_streams()
    try:
        from .cli import main as command

        command()
    except KeyboardInterrupt:  # before anybody listens to signals
        sys.exit(130)
    finally:
        # The interpreter would look through all that a crawl has in memory before it ends: 50 ms.
        gc.freeze()


def _replace_closed_streams() -> None:
    """After `2>&-` the next file that is opened would be taken for stderr, in children too."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            nowhere = open(os.devnull, mode)  # noqa: PTH123, SIM115 - for the life of the process
            os.set_inheritable(nowhere.fileno(), True)
            setattr(sys, name, nowhere)


if __name__ == "__main__":
    main()
