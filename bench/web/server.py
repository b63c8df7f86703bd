"""Serve a generated web while a block runs: with nginx if installed, else with `plain`.

    with served(spec, core=1, keep_alive=False) as serving: ...

With `core` the server runs on that core only, so that it does not use the crawler's. Otherwise
nginx has a worker on each core and loads all of them equally: a single worker would stay on one
core and slow down the crawler process that runs there. It listens on all addresses because there
are many hosts, and answers loopback only. Nothing of the system's nginx is touched: configuration,
pid and logs are in a temporary directory.
"""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
import sys
import time
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from bench._cores import on_cores

from .certificate import Authority
from .tree import ensure

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .spec import WebSpec

START_S = 30.0  # five thousand certificates are read
KEEP_ALIVE_S = 75

NGINX = """
{user}
daemon off;
pid {directory}/pid;
error_log stderr crit;
worker_processes {workers};
worker_cpu_affinity {cores};
worker_rlimit_nofile 16384;
events {{ worker_connections 16384; multi_accept on; }}
http {{
  types {{ text/html html; text/plain txt; }}
  charset utf-8;
  gzip {gzip};
  gzip_comp_level 1;
  access_log off;
  sendfile on;
  tcp_nopush on;
  keepalive_timeout {keep_alive_s};
  keepalive_requests 1000000;
  client_body_temp_path {directory}/body;
  proxy_temp_path {directory}/proxy;
  fastcgi_temp_path {directory}/fastcgi;
  uwsgi_temp_path {directory}/uwsgi;
  scgi_temp_path {directory}/scgi;
  allow 127.0.0.0/8;
  deny all;
  root {tree}/hosts/$host;
  index index.html;
  {servers}
}}
"""
OPEN = "server {{ listen {port} backlog=4096 reuseport; }}"
TLS = "ssl_session_cache shared:tls:10m;"
SECURE = """server {{
    listen {address}:{port} ssl {http2};
    ssl_certificate {chain};
    ssl_certificate_key {key};
  }}"""


class ServerFailed(Exception):  # noqa: N818 - what happened
    """The server did not start."""


@dataclass(frozen=True, slots=True)
class Serving:
    """A web that is being served."""

    spec: WebSpec
    tree: Path
    server: str
    authority: Path | None  # certificate file that crawlers must trust; None for http

    @property
    def environment(self) -> dict[str, str]:
        """Environment variables that a crawler needs in addition."""
        return {} if self.authority is None else {"SSL_CERT_FILE": str(self.authority)}


def is_nginx_here() -> bool:
    return shutil.which("nginx") is not None


@contextmanager
def served(
    spec: WebSpec,
    *,
    core: int | None = None,
    keep_alive: bool = True,
    http2: bool = False,
    compressed: bool = False,
) -> Iterator[Serving]:
    """Serve a web, which is generated first if need be.

    Raises:
        ServerFailed: the port is taken, or HTTP/2 was asked for without nginx.
    """
    tree = ensure(spec)
    cores = os.sched_getaffinity(0) if core is None else {core}
    with TemporaryDirectory(prefix="mannerly-web-") as name:
        directory = Path(name)
        authority = Authority(directory) if spec.scheme == "https" else None
        if is_nginx_here():
            server = "nginx"
            config = directory / "nginx.conf"
            config.write_text(
                nginx_config(
                    spec,
                    tree,
                    directory,
                    authority,
                    cores=cores,
                    keep_alive=keep_alive,
                    http2=http2,
                    compressed=compressed,
                )
            )
            command = ["nginx", "-p", name, "-c", str(config), "-e", "stderr"]
        else:
            if http2:
                raise ServerFailed("HTTP/2 needs nginx (Debian: apt install nginx-light)")
            server = "plain"
            command = [sys.executable, "-m", "bench.web.plain", str(tree / "hosts"), str(spec.port)]
            command += [] if keep_alive else ["--cold"]
            command += [] if authority is None else ["--tls", *map(str, authority.of_all(spec))]
        with running(command, (spec.address(0), spec.port), cores):
            yield Serving(spec, tree, server, authority.file if authority else None)


def nginx_config(
    spec: WebSpec,
    tree: Path,
    directory: Path,
    authority: Authority | None,
    *,
    cores: set[int],
    keep_alive: bool,
    http2: bool,
    compressed: bool,
) -> str:
    # Started as root, nginx would hand over to a user who may not read a home directory.
    user = f"user {pwd.getpwuid(0).pw_name};" if os.geteuid() == 0 else ""
    servers = [OPEN.format(port=spec.port)]
    if authority is not None:
        words = {"port": spec.port, "http2": "http2" * http2}
        each = authority.of_each(spec).items()
        servers = [SECURE.format(address=at, **words, **own._asdict()) for at, own in each]
        servers.insert(0, TLS)
    return NGINX.format(
        user=user,
        directory=directory,
        workers=len(cores),
        cores=" ".join(f"{1 << core:b}" for core in sorted(cores)),
        keep_alive_s=KEEP_ALIVE_S if keep_alive else 0,
        gzip="on" if compressed else "off",
        tree=tree,
        servers="\n  ".join(servers),
    )


@contextmanager
def running(command: list[str], at: tuple[str, int], cores: set[int]) -> Iterator[None]:
    """Run the server: the block starts when it answers, and its end stops it."""
    if answers(at):
        raise ServerFailed(f"port {at[1]} is taken: is another benchmark running?")
    with on_cores(cores):
        process = subprocess.Popen(command, stderr=subprocess.PIPE)
    try:
        deadline = time.monotonic() + START_S
        while not answers(at):
            if process.poll() is not None or time.monotonic() > deadline:
                process.kill()
                raise ServerFailed(process.communicate()[1].decode(errors="replace").strip())
            time.sleep(0.02)
        yield
    finally:
        process.terminate()
        process.communicate()


def answers(at: tuple[str, int]) -> bool:
    """Return whether something listens at an address and port."""
    try:
        socket.create_connection(at, timeout=1).close()
    except OSError:
        return False
    return True
