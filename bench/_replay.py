"""Replay a web archive with pywb, in an environment of its own (`make .venv/replay/.installed`)."""

from __future__ import annotations

import os
import socket
import subprocess
import time
import urllib.error
import urllib.request
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[1]
PYWB = Path(os.environ.get("MANNERLY_REPLAY", ROOT / ".venv" / "replay")) / "bin"
PATIENCE_S = 120.0


def is_pywb_here() -> bool:
    """Return whether pywb is installed."""
    return (PYWB / "wayback").exists()


@contextmanager
def replaying(wacz: Path, directory: Path) -> Iterator[str]:
    """Serve an archive while a block runs; yields the URL in front of the archived ones."""
    add = ["add", "--unpack-wacz", "site", str(wacz)]
    for words in (["init", "site"], add):
        subprocess.run(
            [PYWB / "wb-manager", *words],
            cwd=directory,
            check=True,
            capture_output=True,
            timeout=PATIENCE_S,
        )
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    words = [PYWB / "wayback", "-p", str(port), "-b", "127.0.0.1"]
    with (directory / "pywb.log").open("wb") as log:
        process = subprocess.Popen(words, cwd=directory, stdout=log, stderr=log)
    try:
        _wait_for(port)
        yield f"http://127.0.0.1:{port}/site/2020id_/"
    finally:
        process.terminate()
        process.wait(PATIENCE_S)


def asked(url: str) -> tuple[int, bytes]:
    """Return status and body of a URL; no redirect is followed, and no encoding asked for."""
    opener = urllib.request.build_opener(_NoRedirects)
    try:
        with opener.open(url, timeout=PATIENCE_S) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read()


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: object) -> None:
        return None


def _wait_for(port: int) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)
        else:
            return
