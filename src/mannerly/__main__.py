"""`python -m mannerly` is the command `mannerly`.

The command line is imported in `main`, so that importing this module stays cheap.
"""

from __future__ import annotations

import gc
import os
import sys

# By default Python searches for reference cycles whenever 700 more objects are alive. A crawl has
# hardly any cycles, and the search would take 2 % of its time and 8 % of its start; whenever there
# are 10,000 more, it would still take 0.7 %.
RARELY = 100_000


def main() -> None:
    """Run the command."""
    gc.set_threshold(RARELY)
    _forget_working_directory()
    _replace_closed_streams()
    try:
        from .cli import main as command

        command()
    except KeyboardInterrupt:  # before the crawl handles signals
        sys.exit(130)
    finally:
        _drop_unheard()
        # Otherwise the interpreter searches all memory of the crawl at exit: 50 ms.
        gc.freeze()


def _forget_working_directory() -> None:
    """Import nothing from the working directory: `python -m` puts it first on the path."""
    if not sys.flags.safe_path and sys.path and sys.path[0] in ("", _working_directory()):
        del sys.path[0]


def _working_directory() -> str:
    try:
        return os.getcwd()  # noqa: PTH109 - importing pathlib takes 5 ms
    except FileNotFoundError:  # it was removed
        return ""


def _replace_closed_streams() -> None:
    """Replace streams that are closed (`2>&-`): the next opened file would become stderr."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            nowhere = open(os.devnull, mode)  # noqa: PTH123, SIM115 - for the life of the process
            os.set_inheritable(nowhere.fileno(), True)
            setattr(sys, name, nowhere)


def _drop_unheard() -> None:
    """Drop what stderr could not take: another try at exit would change the exit code to 120."""
    try:
        sys.stderr.flush()
    except OSError:  # a full disk, a closed pipe
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())


if __name__ == "__main__":
    main()
