"""`DemoWeb`: a web of real servers, running while its `with` block runs.

The servers run in a process of their own, so that a busy crawler does not delay them and they do
not slow down the crawler. They stop at the end of the block, and also when this process is killed.
This module starts that process, reads its log and stops it; `server` is what runs in it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .log import Record, judge_all
from .sites import CANARY, ServerConfig

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Self

    from .log import HostVerdict
    from .sites import Site

FIRST_ADDRESS = "127.0.0.2"
STOP_S = 5.0  # seconds to stop in; then the server process is killed


class DemoError(RuntimeError):
    """The web could not be started, or its server process has died."""


class DemoWeb:
    """A running web. These attributes exist inside the `with` block:

    hosts: the netlocs (`127.0.0.2:41234`) in the order of the sites. All have the same port, or,
        where the system has no loopback address but 127.0.0.1, each is a port of that.
    sites: the site of each netloc.
    canary: netloc of a host that a crawler must never contact; requests to it are in the log.
    pid: process id of the servers.
    """

    hosts: tuple[str, ...]
    sites: dict[str, Site]
    canary: str
    pid: int

    def __init__(
        self,
        sites: Iterable[Site],
        *,
        port: int = 0,
        log_path: str | Path | None = None,
        first_address: str = FIRST_ADDRESS,
    ) -> None:
        """Describe a web; the servers start when the `with` block is entered.

        Args:
            sites: one per host, from `demo_sites()`, `plain_sites()` or your own.
            port: of all hosts; where only 127.0.0.1 exists, of the first host, and the others have
                the next ports. 0 picks free ports.
            log_path: a file to which every record is appended as a JSON line (`read_log`).
            first_address: of the first site; the next site has the next address of 127.0.0.0/8.
        """
        path = None if log_path is None else str(Path(log_path).absolute())
        self._config = ServerConfig(tuple(sites), port, first_address, path)
        self._process: subprocess.Popen[str] | None = None
        names = [site.name for site in self._config.sites]
        if not names or len(set(names)) < len(names):
            raise ValueError("a web needs at least one site, and every site a name of its own")

    def __enter__(self) -> Self:
        root = str(Path(__file__).parents[2])
        # An empty entry of PYTHONPATH means the working directory.
        inherited = filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))
        try:
            self._process = subprocess.Popen(
                # -P: no file of the working directory is imported in place of a module of ours.
                [sys.executable, "-P", "-m", "mannerly.demo.server"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                env=os.environ | {"PYTHONPATH": os.pathsep.join([root, *inherited])},
            )
        except OSError as error:
            raise DemoError(f"cannot start a process for the demonstration web: {error}") from error
        self.pid = self._process.pid
        try:
            self._start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _start(self) -> None:
        reply = self._ask(self._config.to_json())
        if "error" in reply:
            raise DemoError(f"the demonstration web cannot be served: {reply['error']}")
        self.hosts = tuple(reply["hosts"])
        self.canary = reply["canary"]
        self.sites = dict(zip(self.hosts, self._config.sites, strict=True))

    def _ask(self, line: str) -> Any:
        process = self._process
        if process is None or process.stdin is None or process.stdout is None:
            raise DemoError("the demonstration web is not running")
        try:
            process.stdin.write(line + "\n")
            process.stdin.flush()
            reply = process.stdout.readline()
        except OSError:  # a broken pipe, which Windows calls an invalid argument
            reply = ""
        if not reply:
            raise DemoError("the demonstration web's process has died")
        return json.loads(reply)

    def stop(self) -> None:
        """Stop the servers; a second call does nothing."""
        process, self._process = self._process, None
        if process is None:
            return
        with process:  # closes the pipes and waits
            if process.stdin:
                with suppress(OSError):  # the process has died with a line unread
                    process.stdin.close()
            try:
                process.wait(STOP_S)
            except subprocess.TimeoutExpired:
                process.kill()

    def host(self, name: str) -> str:
        """Return the netloc of the site with this name."""
        return next(host for host, site in self.sites.items() if site.name == name)

    def url(self, name: str, path: str = "/") -> str:
        """Return a URL of the site with this name."""
        return f"http://{self.host(name)}{path}"

    def seeds(self) -> list[str]:
        """Return the root URL of every host, as seeds of a crawl."""
        return [f"http://{host}/" for host in self.hosts]

    def log(self) -> list[Record]:
        """Return all requests so far, to every host and the canary, in order of arrival."""
        return sorted((Record(*row) for row in self._ask("log")), key=lambda record: record.t)

    def log_of(self, name: str) -> list[Record]:
        """Return all requests so far to the site with this name, in order of arrival."""
        host = self.host(name)
        return [record for record in self.log() if record.host == host]

    def verdicts(self, *, least_gap_s: float = 0.0) -> Sequence[HostVerdict]:
        """Judge every host by the log so far (`log.judge`); the canary is last, if contacted."""
        records = self.log()
        known = dict(self.sites)
        if any(record.host == self.canary for record in records):
            known[self.canary] = CANARY
        return judge_all(known, records, least_gap_s=least_gap_s)
