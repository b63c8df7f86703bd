"""Serve the demonstration web for any crawler: `python -m mannerly.demo --port 8080`.

It prints its hosts, serves until Ctrl-C, and then prints how polite the visitor was to each host,
judged by the servers' log.
"""

from __future__ import annotations

import argparse
import signal
import sys
import time

from . import DemoError, DemoWeb, demo_sites, plain_sites, table

PORT_HELP = (
    "port of all hosts (8080); where only 127.0.0.1 exists, of the first host, and the others "
    "have the next ports; 0 picks free ports"
)


def main(arguments: list[str] | None = None) -> int:
    """Serve until stopped; return 0, 2 if the web cannot be served, 130 if stopped before that."""
    parser = argparse.ArgumentParser(prog="python -m mannerly.demo", description=__doc__)
    parser.add_argument("--port", type=int, default=8080, help=PORT_HELP)
    parser.add_argument("--log", help="append every request to this file (JSON lines)")
    parser.add_argument(
        "--plain", type=int, metavar="N", help="serve N hosts without limits instead"
    )
    parser.add_argument(
        "--pages", type=int, default=100, help="pages of each host of --plain (100)"
    )
    options = parser.parse_args(arguments)
    plain = options.plain and plain_sites(options.plain, pages=options.pages, neighbours=1)
    # SIGTERM ends the block below as Ctrl-C does, and with it the servers.
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
        sys.stderr.write("Serving; Ctrl-C stops the servers and prints the verdict of their log.\n")
        while True:
            time.sleep(3_600)  # Ctrl-C interrupts it on every system; Windows has no `pause`
    except KeyboardInterrupt:
        sys.stdout.write(f"\n{table(web.verdicts())}\n")


if __name__ == "__main__":
    sys.exit(main())
