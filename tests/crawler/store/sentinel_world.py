"""A primary, its replica and sentinels, as real processes; a failover is theirs alone."""

from __future__ import annotations

import subprocess
import tempfile
from contextlib import ExitStack
from pathlib import Path
from shutil import rmtree
from typing import TYPE_CHECKING, NamedTuple, Self

import redis
from tests.crawler.store.valkey_server import LocalServer
from tests.harness.sites import free_port
from tests.harness.waiting import eventually

if TYPE_CHECKING:
    from tests.crawler.fetch.certificates import Certificate

SERVICE = "crawls"
DOWN_AFTER_MS = 500
AT_ONCE = ("--repl-diskless-sync-delay", "0")  # a replica need not wait for others
PATIENCE_S = 30.0


class TlsServer(NamedTuple):
    """A port that speaks TLS, with a certificate that is its own authority."""

    port: int
    certificate: Certificate

    @property
    def settings(self) -> list[str]:
        """As lines of a configuration file; with TLS to other servers, too."""
        file, key = self.certificate
        return [
            f"tls-cert-file {file}",
            f"tls-key-file {key}",
            f"tls-ca-cert-file {file}",
            "tls-auth-clients no",
            "tls-replication yes",
        ]

    @property
    def options(self) -> list[str]:
        """As words of a command."""
        lines = [f"tls-port {self.port}", *self.settings]
        return [word for line in lines for word in f"--{line}".split(" ", 1)]


class Sentinel:
    """One sentinel, which watches a primary."""

    def __init__(
        self,
        primary: LocalServer,
        quorum: int,
        password: str = "",
        *,
        tls: TlsServer | None = None,
    ) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="mannerly-sentinel-"))
        self.port = free_port()
        self._scheme = "redis" if tls is None else "rediss"
        watched = primary.port if tls is None else tls.port
        settings = (
            f"port {self.port}" if tls is None else f"port 0\ntls-port {self.port}",
            *([] if tls is None else tls.settings),
            "bind 127.0.0.1",
            f"dir {self.folder}",
            "logfile sentinel.log",
            f"sentinel monitor {SERVICE} 127.0.0.1 {watched} {quorum}",
            f"sentinel down-after-milliseconds {SERVICE} {DOWN_AFTER_MS}",
            f"sentinel failover-timeout {SERVICE} 3000",
            *([f"requirepass {password}"] if password else []),
        )
        config = self.folder / "sentinel.conf"
        config.write_text("\n".join(settings) + "\n")
        self._process = subprocess.Popen(
            [primary.binary, str(config), "--sentinel"], stdout=subprocess.DEVNULL
        )

    @property
    def url(self) -> str:
        return f"{self._scheme}+sentinel://127.0.0.1:{self.port}/{SERVICE}/0"

    def facts(self) -> str:
        try:
            with redis.Redis(port=self.port) as client:
                return str(client.info("sentinel"))
        except redis.ConnectionError:
            return ""

    def stop(self) -> None:
        self._process.kill()
        self._process.wait()
        rmtree(self.folder, ignore_errors=True)


class SentinelWorld:
    """Two servers and some sentinels, while it is entered."""

    def __init__(self, sentinels: int = 3) -> None:
        self._stack = ExitStack()
        self._number = sentinels

    def __enter__(self) -> Self:
        self.primary = self._stack.enter_context(LocalServer("--appendonly", "yes", *AT_ONCE))
        follow = ("--replicaof", f"127.0.0.1 {self.primary.port}")
        self.replica = self._stack.enter_context(LocalServer("--appendonly", "yes", *follow))
        self.sentinels = []
        for _ in range(self._number):
            sentinel = Sentinel(self.primary, self._number // 2 + 1)
            self._stack.callback(sentinel.stop)
            self.sentinels.append(sentinel)
        others = f"slaves=1,sentinels={self._number}"
        eventually(lambda: all(others in _plain(each.facts()) for each in self.sentinels))
        with self.replica.client() as client:
            eventually(lambda: client.info("replication")["master_link_status"] == "up")
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    @property
    def url(self) -> str:
        places = ",".join(f"127.0.0.1:{each.port}" for each in self.sentinels)
        return f"redis+sentinel://{places}/{SERVICE}/0"

    def fail_over(self) -> None:
        """Kill the primary, and wait until the replica has its place."""
        self.primary.kill()
        with self.replica.client() as client:
            eventually(lambda: client.info("replication")["role"] == "master")


def _plain(facts: str) -> str:
    for mark in ("'", " ", ":"):
        facts = facts.replace(mark, {":": "="}.get(mark, ""))
    return facts
