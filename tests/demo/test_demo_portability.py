"""The demonstration on systems with fewer features than Linux, and from hostile directories.

A `sitecustomize` module on PYTHONPATH is run by every Python process at its start, so it changes
the servers' process as another operating system would.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest

from mannerly.demo import DemoError, DemoWeb, Feature, Site, SitemapKind, plain_sites

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = pytest.mark.processes

ONE_ADDRESS = """
import errno, socket

class OneAddressSocket(socket.socket):
    def bind(self, address):
        if address[0] != "127.0.0.1":
            raise OSError(errno.EADDRNOTAVAIL, "Can't assign requested address")
        super().bind(address)

socket.socket = OneAddressSocket
"""

NO_UNIX = """
import asyncio, signal, sys

def missing(*_arguments):
    raise NotImplementedError

sys.modules["resource"] = None  # importing it raises ImportError
asyncio.SelectorEventLoop.add_signal_handler = missing
asyncio.SelectorEventLoop.connect_read_pipe = missing
del signal.pause
"""

SITES = (
    Site(name="bucket", pages=60, limit="bucket:2:4+retry-after", neighbours=2),
    Site(name="delay", pages=60, crawl_delay_s=2.0, sitemap=SitemapKind.INDEX),
    Site(name="private", pages=60, features=frozenset({Feature.PRIVATE, Feature.INTERNAL})),
    Site(name="redirects", pages=60, features=frozenset({Feature.REDIRECTS, Feature.BROKEN})),
)


@pytest.fixture
def customise(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Run a piece of code at the start of every Python process that this test starts."""

    def write(code: str) -> None:
        folder = tmp_path / "customised"
        folder.mkdir()
        (folder / "sitecustomize.py").write_text(code)
        monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(folder), *sys.path]))

    return write


def mannerly(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the command with these arguments."""
    return subprocess.run(
        [sys.executable, "-P", "-m", "mannerly", *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def free_ports(count: int) -> int:
    """The first of some consecutive ports that are free, below those given out for port 0."""
    for first in range(20_000, 30_000, count):
        with ExitStack() as opened:
            try:
                for port in range(first, first + count):
                    listener = opened.enter_context(socket.socket())
                    listener.bind(("127.0.0.1", port))
            except OSError:
                continue
            return first
    raise AssertionError("no consecutive ports are free")


def test_hosts_are_ports_where_only_one_address_exists(
    customise: Callable[[str], None], fetch: Callable[..., Any]
) -> None:
    """As on macOS: every host is a port of 127.0.0.1, and so is the canary."""
    customise(ONE_ADDRESS)

    with DemoWeb(plain_sites(5, neighbours=1)) as web:
        statuses = {fetch(seed).status for seed in web.seeds()}
        home = fetch(web.seeds()[0]).body.decode()
        verdicts = web.verdicts()

    assert {host.partition(":")[0] for host in (*web.hosts, web.canary)} == {"127.0.0.1"}
    assert len({*web.hosts, web.canary}) == 6
    assert statuses == {200}
    assert any(seed in home for seed in web.seeds()[1:]), "a page links to other ports"
    assert [verdict.requests for verdict in verdicts] == [2, 1, 1, 1, 1]


def test_crawl_is_judged_as_usual_where_only_one_address_exists(
    customise: Callable[[str], None], tmp_path: Path
) -> None:
    """Each port has its own pace, rules and limit; the crawler keeps them all, and the closed
    port of the same address stays unvisited.
    """
    customise(ONE_ADDRESS)

    with DemoWeb(SITES) as web:
        seeds = tmp_path / "seeds.txt"
        seeds.write_text("\n".join(web.seeds()))
        ran = mannerly(
            *("crawl", str(seeds), "--data-dir", str(tmp_path / "crawl")),
            *("--duration", "6", "--strategy", "fixed", "--delay", "0.2"),
        )
        # On a busy machine a server may stamp a request some 50 ms late.
        verdicts = {verdict.name: verdict for verdict in web.verdicts(least_gap_s=0.14)}
        visited = {record.host for record in web.log()}

    assert ran.returncode == 0, ran.stderr
    assert visited == set(web.hosts), "all hosts, and not the canary"
    assert {name: verdict.broken for name, verdict in verdicts.items() if verdict.broken} == {}
    assert {verdict.robots for verdict in verdicts.values()} == {1}
    assert verdicts["private"].served > verdicts["bucket"].served >= 8
    assert 2 <= verdicts["delay"].served <= 4


def test_command_demonstrates_where_only_one_address_exists(
    customise: Callable[[str], None],
) -> None:
    """`mannerly demo` crawls all its hosts, and none of them complains."""
    customise(ONE_ADDRESS)

    ran = mannerly("demo", "--seconds", "4")

    assert ran.returncode == 0, ran.stderr
    header, *rows = ran.stdout.partition("\n\n")[0].splitlines()
    column = header.index("Requests") + len("Requests")
    requests = {row.split()[0]: int(row[:column].split()[-1]) for row in rows}
    assert len(requests) >= 12
    assert min(requests.values()) >= 2, requests


def test_chosen_port_is_the_first_of_the_hosts_where_only_one_address_exists(
    customise: Callable[[str], None],
) -> None:
    """Hosts follow one another from there on; a port that is taken or too high is named."""
    customise(ONE_ADDRESS)
    port = free_ports(3)

    with DemoWeb(plain_sites(3), port=port, first_address="127.0.0.1") as web:
        assert web.hosts == tuple(f"127.0.0.1:{port + n}" for n in range(3))
        taken = f"127.0.0.1:{port}: Address already in use"
        with pytest.raises(DemoError, match=taken), DemoWeb(plain_sites(2), port=port):
            pass
    with pytest.raises(DemoError, match="end at 65535"), DemoWeb(plain_sites(9), port=65_530):
        pass


def test_servers_need_nothing_that_only_unix_has(
    customise: Callable[[str], None], fetch: Callable[..., Any]
) -> None:
    """As on Windows: no resource limits, no signal handlers in the loop, no watched pipes."""
    customise(NO_UNIX)

    with DemoWeb(plain_sites(2)) as web:
        statuses = [fetch(seed).status for seed in web.seeds()]
        requests = len(web.log())

    assert statuses == [200, 200]
    assert requests == 2
    with pytest.raises(DemoError, match="not running"):
        web.log()


def test_command_needs_nothing_that_only_unix_has(customise: Callable[[str], None]) -> None:
    """`python -m mannerly.demo` serves until Ctrl-C where signals cannot be waited for."""
    customise(NO_UNIX)

    with subprocess.Popen(
        [sys.executable, "-P", "-m", "mannerly.demo", "--port", "0", "--plain", "1"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as command:
        assert command.stdout is not None
        assert command.stderr is not None
        first = command.stdout.readline()
        assert command.stderr.readline().startswith("Serving")
        command.send_signal(signal.SIGINT)
        told = command.stdout.read()

    assert "plain-0" in first
    assert "Smallest gap" in told
    assert command.returncode == 0


def test_refused_file_limit_is_no_error(
    customise: Callable[[str], None], fetch: Callable[..., Any]
) -> None:
    """Some systems grant fewer open files than they announce."""
    customise(
        "import resource\n"
        "def refuse(*_arguments):\n"
        "    raise ValueError('not allowed to raise maximum limit')\n"
        "resource.getrlimit = lambda _kind: (256, resource.RLIM_INFINITY)\n"
        "resource.setrlimit = refuse\n"
    )

    with DemoWeb(plain_sites(1)) as web:
        assert fetch(web.seeds()[0]).status == 200


@pytest.mark.parametrize("python_path", ["", os.pathsep])
def test_files_of_the_working_directory_are_not_run(tmp_path: Path, python_path: str) -> None:
    """Not in place of this package, and not in place of the standard library; an empty entry of
    PYTHONPATH does not mean the working directory either.
    """
    for name in ("mannerly.py", "asyncio.py", "sitecustomize.py", "json.py"):
        (tmp_path / name).write_text("open('was-run', 'a').write(__file__)\n")
    program = (
        f"import sys; sys.path[:] = {[*filter(None, sys.path)]!r}\n"
        "from mannerly.demo import DemoWeb, plain_sites\n"
        "open('was-run-in-main', 'a').write('x')\n"
        "with DemoWeb(plain_sites(1)) as web:\n"
        "    print(len(web.log()))\n"
    )

    ran = subprocess.run(
        [sys.executable, "-P", "-S", "-c", program],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": python_path},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert ran.stdout == "0\n", ran.stderr
    assert not (tmp_path / "was-run").exists()
    assert (tmp_path / "was-run-in-main").read_text() == "x", "no process runs the program again"


def test_limit_that_the_servers_cannot_import_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A module of this process alone: one sentence, not a traceback of another process."""
    (tmp_path / "own_limit.py").write_text(
        "class Own:\n    def request(self, now, in_flight):\n        return 200, 0.0, {}\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    site = Site(name="own", limit="own_limit:Own")

    with pytest.raises(DemoError, match="own_limit"), DemoWeb([site]):
        pass
