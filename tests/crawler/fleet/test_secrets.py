"""The password of a server is in no process list, log, file, status, export or setting shown."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.crawler.fleet.fleet_world import Fleet, run
from tests.crawler.store.valkey_server import LocalServer
from tests.harness.waiting import eventually

from mannerly.demo import DemoWeb, plain_sites

pytestmark = pytest.mark.processes

PROCESSES = Path("/proc")
SECRET = "correct-horse-4711"


@pytest.mark.skipif(not PROCESSES.exists(), reason="processes are listed in /proc")
def test_the_password_of_a_server_is_shown_nowhere(tmp_path: Path) -> None:
    """While two processes crawl, and afterwards; it comes from a file, or from the environment."""
    file = tmp_path / "password"
    file.write_text(SECRET)
    folder = tmp_path / "fleet"
    folder.mkdir()
    with (
        LocalServer("--requirepass", SECRET) as server,
        DemoWeb(plain_sites(4, pages=3)) as web,
    ):
        with_password = {"MANNERLY_REDIS_URL": f"redis://:{SECRET}@127.0.0.1:{server.port}/0"}
        fleet = Fleet(server.url, web, folder, "--delay", "0.6")
        worker = fleet.join("--redis-password-file", str(file), "--processes", "2")
        fleet.until_requests(2)
        eventually(lambda: len(_words_of_processes(worker.process.pid)) >= 2)
        processes = _words_of_processes(worker.process.pid)
        shown = [
            fleet.command(*words, **with_password)
            for words in (("status", "--json"), ("hosts",), ("explain", fleet.seeds[0]))
        ]
        code = worker.end()
        homes = ("--data-dir", str(worker.home))
        shown.append(fleet.command("export", "-o", "-", *homes, **with_password))
        shown.append(run("doctor", server.url, **with_password))
        shown.append(run("config", "show", "--origin", **with_password))

    assert code == 0, worker.said
    assert [each.stderr for each in shown if each.returncode not in (0, 1)] == []
    assert not any(SECRET in each.stdout + each.stderr for each in shown)
    assert SECRET not in worker.said
    assert all(SECRET not in words for words in processes)
    written = [path for path in folder.rglob("*") if path.is_file()]
    assert written
    assert [path for path in written if SECRET.encode() in path.read_bytes()] == []


def _words_of_processes(session: int) -> list[str]:
    """Return the command lines of the processes of a session, as a process list shows them."""
    found = []
    for entry in PROCESSES.iterdir():
        if entry.name.isdigit():
            try:
                if os.getsid(int(entry.name)) == session:
                    found.append((entry / "cmdline").read_bytes().decode("utf-8", "replace"))
            except (OSError, ProcessLookupError):
                continue  # it has ended
    return found
