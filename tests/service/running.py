"""The command `mannerly serve` as a real process, and a client of it."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Self

from tests.harness.commands import SOURCE_PATH
from tests.harness.sites import free_port
from tests.harness.waiting import eventually

if TYPE_CHECKING:
    from pathlib import Path


class ServiceProcess:
    """One service; it can be killed and started again on the same directory and port."""

    def __init__(self, root: Path, *options: str, descriptors: int | None = None) -> None:
        self.port = free_port()
        self._descriptors = descriptors
        self._command = [
            *(sys.executable, "-m", "mannerly", "serve", "--data-root", str(root)),
            *("--listen", f"127.0.0.1:{self.port}", "--allow-net", "127.0.0.0/8", *options),
        ]
        self._process: subprocess.Popen[bytes] | None = None
        self.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}/"

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def start(self) -> None:
        """Start it, and wait until it answers."""
        self._process = subprocess.Popen(
            self._command,
            start_new_session=True,
            env=os.environ | {"PYTHONPATH": SOURCE_PATH},
        )
        if self._descriptors is not None:
            limits = (self._descriptors, self._descriptors)
            resource.prlimit(self._process.pid, resource.RLIMIT_NOFILE, limits)
        eventually(self._is_up)

    def kill(self) -> None:
        """Kill the service alone, with SIGKILL: its children have to notice."""
        assert self._process is not None
        with suppress(ProcessLookupError):
            self._process.send_signal(signal.SIGKILL)
        self._process.wait()

    def stop(self) -> int:
        """Stop it as systemd does; return the exit code."""
        assert self._process is not None
        self._process.send_signal(signal.SIGTERM)
        return self._process.wait(30)

    def call(self, method: str, path: str, body: object = None) -> tuple[int, Any]:
        """Return the status and the JSON of an answer."""
        data = None if body is None else json.dumps(body).encode()
        headers = {} if body is None else {"Content-Type": "application/json"}
        url = f"http://127.0.0.1:{self.port}{path}"
        request = urllib.request.Request(url, data, headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=20) as answer:
                return answer.status, _decoded(answer)
        except urllib.error.HTTPError as error:
            with error:
                return error.code, _decoded(error)

    def create(self, *seeds: str, **more: Any) -> str:
        """Create a job; return its id."""
        status, job = self.call("POST", "/api/jobs", {"seeds": list(seeds), **more})
        assert status == 201, job
        return str(job["id"])

    def state(self, job_id: str) -> str:
        return str(self.call("GET", f"/api/jobs/{job_id}")[1]["state"])

    def _is_up(self) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, "the service has ended"
        try:
            return self.call("GET", "/readyz")[0] == 200
        except OSError:
            return False


def _decoded(answer: Any) -> Any:
    """Return the JSON of an answer; its bytes if it is something else."""
    data, kind = answer.read(), answer.headers.get_content_type()
    return json.loads(data) if kind.endswith(("/json", "+json")) else data
