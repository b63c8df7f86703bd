"""`with DemoWeb(sites) as web:` — a web of real servers for as long as the block lasts.

The servers run in a process of their own, so that neither a busy crawler delays their clock nor
they the crawler. Leaving the block stops them; so does the death of this process, however sudden.
This file only starts, asks and stops; what the hosts do is told in `server`.
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
from .server_config import ServerConfig
from .sites import CANARY

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from types import TracebackType
    from typing import Self

    from .log import HostVerdict
    from .sites import Site

FIRST_ADDRESS = "127.0.0.2"
STOP_S = 5.0  # a server that takes longer to stop is killed


class DemoError(RuntimeError):
    """The web could not be started, or its process is gone."""


class DemoWeb:
    """A running web; the names below may be used inside the block.

    hosts: the netlocs (`127.0.0.2:41234`) in the order of the sites, all on one port.
    sites: netloc → site.
    canary: a netloc that answers, but that nobody may contact; its visits are in the log.
    pid: of the server's process.
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
        """Describe a web; nothing runs before the block is entered.

        Args:
            sites: one host each, from `demo_sites()`, `plain_sites()` or your own.
            port: of all hosts; 0 picks a free one.
            log_path: a file to which every record is appended as a JSON line (`read_log`).
            first_address: of the first site; the next site has the next address of 127.0.0.0/8.
        """
        path = None if log_path is None else str(Path(log_path).absolute())
        self._order = ServerConfig(tuple(sites), port, first_address, path)
        self._process: subprocess.Popen[str] | None = None
        names = [site.name for site in self._order.sites]
        if not names or len(set(names)) < len(names):
            raise ValueError("a web has at least one site, and each has a name of its own")

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

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def _start(self) -> None:
        reply = self._ask(self._order.to_json())
        if "error" in reply:
            raise DemoError(f"the demonstration web cannot be served: {reply['error']}")
        self.hosts = tuple(reply["hosts"])
        self.canary = reply["canary"]
        self.sites = dict(zip(self.hosts, self._order.sites, strict=True))

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
        """End the servers; a second call does nothing."""
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
        """The netloc of the site with this name."""
        return next(host for host, site in self.sites.items() if site.name == name)

    def url(self, name: str, path: str = "/") -> str:
        """A URL on the site with this name."""
        return f"http://{self.host(name)}{path}"

    def seeds(self) -> list[str]:
        """The root of every host: where a crawl starts."""
        return [f"http://{host}/" for host in self.hosts]

    def log(self) -> list[Record]:
        """Everything that arrived so far, on every host and the canary, in order of arrival."""
        return sorted((Record(*row) for row in self._ask("log")), key=lambda record: record.t)

    def log_of(self, name: str) -> list[Record]:
        """What arrived at the site with this name, in order of arrival."""
        host = self.host(name)
        return [record for record in self.log() if record.host == host]

    def verdicts(self, *, least_gap_s: float = 0.0) -> Sequence[HostVerdict]:
        """Every host judged by what arrived so far (`log.judge`); last the canary, if visited."""
        records = self.log()
        known = dict(self.sites)
        if any(record.host == self.canary for record in records):
            known[self.canary] = CANARY
        return judge_all(known, records, least_gap_s=least_gap_s)
