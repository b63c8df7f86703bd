"""Make the benchmark's web, print its size, and serve it until Ctrl-C: `python -m bench.web`."""

from __future__ import annotations

import signal
import sys
from argparse import ArgumentParser

from . import WebSpec, served

ENDS = (signal.SIGINT, signal.SIGTERM)


def main(arguments: list[str]) -> int:
    usual = WebSpec()
    parser = ArgumentParser(prog="python -m bench.web")
    parser.add_argument("--hosts", type=int, default=usual.hosts)
    parser.add_argument("--pages", type=int, default=usual.pages, help="of one host")
    parser.add_argument("--https", action="store_true")
    parser.add_argument("--http2", action="store_true", help="over https; needs nginx")
    parser.add_argument("--cold", action="store_true", help="one request a connection")
    parser.add_argument("--core", type=int, help="pin the server to this core")
    given = parser.parse_args(arguments)
    is_https = given.https or given.http2
    spec = WebSpec(
        hosts=given.hosts,
        pages=given.pages,
        scheme="https" if is_https else "http",
        port=18443 if is_https else usual.port,
    )
    with served(spec, core=given.core, keep_alive=not given.cold, http2=given.http2) as web:
        files = [path.stat().st_size for path in (web.tree / "hosts").rglob("*.html")]
        print(f"{spec.hosts} hosts of {spec.pages} pages, {len(files):,} files in {web.tree}")
        print(f"{min(files):,} to {max(files):,} bytes, {sum(files) / len(files):,.0f} in the mean")
        print(f"{web.server} serves {spec.homes()[0]} to {spec.homes()[-1]}; Ctrl-C ends it")
        for name, value in web.environment.items():
            print(f"crawlers need {name}={value}")
        # Wait for the signals instead of catching them, so that SIGTERM stops the server, too.
        signal.pthread_sigmask(signal.SIG_BLOCK, ENDS)
        signal.sigwait(ENDS)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
