"""`python -m mannerly.demo --port 8080`: serve the demonstration web until Ctrl-C, then judge.

For pointing any crawler at it: the hosts are printed at the start, and at the end the table of what
their log says of the visitor.
"""

from __future__ import annotations

import argparse
import signal
import sys
import time

from . import DemoError, DemoWeb, demo_sites, plain_sites, table


def main(arguments: list[str] | None = None) -> int:
    """Serve and judge; 2 if the web cannot be served, 130 if stopped before it was."""
    parser = argparse.ArgumentParser(prog="python -m mannerly.demo", description=__doc__)
    parser.add_argument("--port", type=int, default=8080, help="of all hosts; 0 picks a free one")
    parser.add_argument("--log", help="append every request to this file, as JSON lines")
    parser.add_argument("--plain", type=int, metavar="N", help="serve N hosts without limits")
    parser.add_argument("--pages", type=int, default=100, help="of each host of --plain")
    options = parser.parse_args(arguments)
    plain = options.plain and plain_sites(options.plain, pages=options.pages, neighbours=1)
    # Both ways of being stopped end the block, and so the servers.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        with DemoWeb(plain or demo_sites(), port=options.port, log_path=options.log) as web:
            _serve(web)
    except DemoError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    except KeyboardInterrupt:
        return 130
    return 0


def _serve(web: DemoWeb) -> None:
    try:
        for url, site in zip(web.seeds(), web.sites.values(), strict=True):
            sys.stdout.write(f"{url:<28} {site.name:<14} {site.about}\n")
        sys.stdout.flush()
        sys.stderr.write("Serving; Ctrl-C ends it and prints what the log says.\n")
        while True:
            time.sleep(3_600)  # Ctrl-C interrupts it on every system; Windows has no `pause`
    except KeyboardInterrupt:
        sys.stdout.write(f"\n{table(web.verdicts())}\n")


if __name__ == "__main__":
    sys.exit(main())
