"""Real caches in front of a slow site: Debian's nginx and Varnish, started for a test."""

from __future__ import annotations

import socket
import subprocess
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

from tests.harness.programs import program
from tests.harness.sites import free_port

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

NGINX = """
daemon off; master_process off; pid {place}/pid; error_log {place}/error.log;
events {{ worker_connections 256; }}
http {{
  access_log off;
  client_body_temp_path {place}/body; proxy_temp_path {place}/proxy; fastcgi_temp_path {place}/f;
  uwsgi_temp_path {place}/u; scgi_temp_path {place}/s;
  proxy_cache_path {place}/cache keys_zone=pages:1m;
  server {{
    listen 127.0.0.1:{port};
    location / {{
      proxy_pass http://127.0.0.1:{origin};
      proxy_set_header Host $http_host;
      proxy_http_version 1.1;
      proxy_cache pages;
      proxy_cache_key $uri$http_accept_language$http_user_agent;
      proxy_ignore_headers Vary;
      add_header X-Cache-Status $upstream_cache_status;
    }}
  }}
}}
"""


@contextmanager
def cache(kind: str, origin: int, place: Path) -> Iterator[str]:
    """Yield the URL of a cache in front of a port: kind is nginx or varnish."""
    port = free_port()
    if kind == "nginx":
        file = place / "nginx.conf"
        file.write_text(NGINX.format(place=place, port=port, origin=origin))
        words = [program("nginx", "nginx-light"), "-p", str(place), "-c", str(file)]
        words += ["-e", str(place / "error.log")]
    else:
        words = [program("varnishd", "varnish"), "-F", "-a", f"127.0.0.1:{port}"]
        words += ["-b", f"127.0.0.1:{origin}", "-n", str(place / "varnish"), "-s", "malloc,16m"]
        words += ["-j", "none"]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        _wait_for(port, process)
        yield f"http://127.0.0.1:{port}/"
    finally:
        process.terminate()
        process.communicate(timeout=60)


def _wait_for(port: int, process: subprocess.Popen[str]) -> None:
    for _ in range(600):
        with socket.socket() as tried:
            if tried.connect_ex(("127.0.0.1", port)) == 0:
                return
        assert process.poll() is None, process.communicate()[0]
        time.sleep(0.05)
    raise AssertionError("the cache does not listen")
