"""Every command that is printed can be pasted: it runs, and does what its sentence says.

A crawl is driven through the states in which commands are printed. Each printed command is read
from the output, is run by a shell in the same directory as it stands, and must succeed. The names
of the data directory have a space and a quote, so that a missing quote shows.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from typing import TYPE_CHECKING, NamedTuple

import pytest
from tests.crawler.control.steering import Running, until_requests
from tests.crawler.fetch.raw_server import RawServer, answer, routes
from tests.harness.commands import ROOT
from tests.harness.waiting import PATIENCE_S, eventually

from mannerly.cli.endings import next_command, resume_command
from mannerly.cli.retry import retry_command
from mannerly.cli.steer import host_resume_command, unpause_command
from mannerly.demo import DemoWeb, Site

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.processes

DIR = "it's mine"
FAST = ("--strategy", "fixed", "--delay", "0.05", "--max-rate", "unlimited", "--processes", "1")
# A command ends at the end of its line, or at a full stop, a semicolon or a bracket that follows.
COMMAND = re.compile(
    r"(?:^|[:`(] ?|  )(mannerly (?:[a-z]+).*?)(?=$|`|[;)] |\. |, and | \()", re.MULTILINE
)
# Sentences that name a command, without its arguments, to tell where a value came from.
NAMED = ("mannerly set", "mannerly host set")


class Said(NamedTuple):
    """What a command line gave."""

    code: int
    text: str

    @property
    def commands(self) -> list[str]:
        """Return the commands in it."""
        found = [match.strip() for match in COMMAND.findall(self.text)]
        return [each for each in found if each not in NAMED]


class Shell:
    """A shell in a directory, in which `mannerly` is this code."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        bin_dir = directory / "bin"
        bin_dir.mkdir()
        launcher = bin_dir / "mannerly"
        launcher.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m mannerly "$@"\n')
        launcher.chmod(0o755)
        self._environment = {
            "HOME": str(directory),
            "PATH": f"{bin_dir}{os.pathsep}/usr/bin:/bin",
            "PYTHONPATH": str(ROOT / "src"),
            "MANNERLY_MEMORY": "none",
        }

    def paste(self, line: str) -> Said:
        """Run a line as a user pastes it."""
        done = subprocess.run(
            ["/bin/sh", "-c", line],
            cwd=self.directory,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )
        return Said(done.returncode, done.stdout + done.stderr)

    def begin(self, *words: object) -> Running:
        """Begin a crawl that runs on."""
        return Running(self.directory, words, self.directory / "run.txt")


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path)


@pytest.fixture
def web() -> Iterator[DemoWeb]:
    with DemoWeb([Site(name="a", pages=200, disallow=())]) as web:
        yield web


def quoted(words: tuple[object, ...]) -> str:
    return " ".join(f'"{word}"' for word in words)


def test_commands_of_a_crawl_that_is_steered_can_be_pasted(shell: Shell, web: DemoWeb) -> None:
    """Pause, unpause, stop, and the same for a host: each sentence leads on to the next state."""
    host = web.host("a")
    with shell.begin("crawl", web.url("a"), "--data-dir", DIR, *FAST) as run:
        until_requests(web, 3)
        paused = shell.paste(f'mannerly pause "{DIR}"')
        unpaused = [shell.paste(command) for command in paused.commands]
        host_paused = shell.paste(f'mannerly host pause "{DIR}" {host}')
        host_resumed = [shell.paste(command) for command in host_paused.commands]
        until_requests(web, 3)
        stopped = shell.paste(f'mannerly stop "{DIR}"')
        ended = Said(run.end().code, run.text)
    shell.paste(f'mannerly host pause "{DIR}" {host}')
    status = shell.paste(f'mannerly status "{DIR}"')

    assert paused.commands == [unpause_command(DIR)]
    assert host_paused.commands == [host_resume_command(DIR, host)]
    assert [each.code for each in unpaused + host_resumed] == [0, 0]
    assert stopped.commands == [resume_command(DIR)]
    assert ended.code == 143
    assert ended.commands == [resume_command(DIR)]
    assert [shell.paste(command).code for command in status.commands] == [0] * len(status.commands)
    resumed = shell.paste(f"{ended.commands[0]} --max-urls 1 --duration 2")
    assert resumed.commands[0] == host_resume_command(DIR, host)
    assert shell.paste(resumed.commands[0]).code == 0


def test_commands_of_every_ending_can_be_pasted(shell: Shell, web: DemoWeb) -> None:
    """A limit, the end, and what is done with a finished crawl."""
    words = quoted(("crawl", web.url("a"), "--data-dir", DIR, *FAST, "--max-depth", "1"))
    limited = shell.paste(f"mannerly {words} --max-urls 3")
    resumed = shell.paste(f"{limited.commands[-1]} --max-urls 1000")
    reported = shell.paste(next_command(DIR))

    assert limited.commands == [resume_command(DIR)]
    assert resumed.code == 0
    assert resumed.commands == [next_command(DIR)]
    assert reported.code == 0
    assert (shell.directory / "report.html").exists()


def test_commands_for_urls_that_were_given_up_can_be_pasted(shell: Shell, web: DemoWeb) -> None:
    """A host that does not answer beside one that does."""
    seeds = (web.url("a"), "http://127.0.0.77:9/")
    words = quoted(
        ("crawl", *seeds, "--data-dir", DIR, *FAST, "--max-depth", "0", "--give-up-after", "1")
    )
    ended = shell.paste(f"mannerly {words} --seeding-strategy none")

    assert ended.code == 1
    assert ended.commands == [f"{retry_command(DIR)} --given-up"]
    assert shell.paste(f"{ended.commands[0]}").code == 1  # it does not answer now, either


def test_command_for_failed_pages_can_be_pasted(shell: Shell) -> None:
    """With its comment: a finished crawl of which a page answered 500."""
    page = answer(b"<a href=/1>1</a>", "200 OK", "Content-Type: text/html")
    broken = answer(b"", "500 Internal Server Error")
    with RawServer(routes({"/": page, "/1": broken})) as server:
        words = quoted(("crawl", server.url(), "--data-dir", DIR, *FAST, "--max-attempts", "1"))
        ended = shell.paste(f"mannerly {words} --seeding-strategy none")
        again = shell.paste(ended.commands[-1])

    assert ended.code == 0
    assert ended.commands[-1].startswith(retry_command(DIR))
    assert again.code == 0
    assert "Trying 1 failed and 0 given-up URLs again" in again.text


def test_commands_of_wrong_input_can_be_pasted(shell: Shell, web: DemoWeb) -> None:
    """A directory in place of a seed, a crawl that is not running, seeds of another crawl."""
    words = quoted(("crawl", web.url("a"), "--data-dir", DIR, *FAST, "--max-urls", "2"))
    shell.paste(f"mannerly {words}")
    wrong = {
        line: shell.paste(f"mannerly {line}")
        for line in (f'crawl "./{DIR}"', f'unpause "{DIR}"', f'stop "{DIR}"')
    }

    assert {line: said.code for line, said in wrong.items()} == {
        f'crawl "./{DIR}"': 2,
        f'unpause "{DIR}"': 0,
        f'stop "{DIR}"': 2,
    }
    printed = [command for said in wrong.values() for command in said.commands]
    assert printed == [resume_command(f"./{DIR}")]
    assert [shell.paste(f"{command} --max-urls 1").code for command in printed] == [0]


def test_commands_about_a_seed_that_leads_elsewhere_can_be_pasted(shell: Shell) -> None:
    """Both commands crawl the host that the seed leads to."""
    page = answer(b"<p>here", "200 OK", "Content-Type: text/html")
    with RawServer(routes({"/": page}), "127.0.0.2") as there:
        target = there.url()
        moved = answer(b"", "301 Moved", f"Location: {target}")
        with RawServer(routes({"/": moved})) as here:
            words = quoted(
                ("crawl", here.url(), "--data-dir", DIR, *FAST, "--seeding-strategy", "none")
            )
            ended = shell.paste(f"mannerly {words} --allow-net 127.0.0.0/8")
            again = [
                shell.paste(f"MANNERLY_DATA_DIR=again-{number} {command}")
                for number, command in enumerate(ended.commands)
            ]

    assert ended.code == 1
    assert [target in command for command in ended.commands] == [True, True]
    assert [each.code for each in again] == [0, 0]


def test_doctor_of_a_damaged_crawl_prints_the_command_that_repairs_it(
    shell: Shell, web: DemoWeb
) -> None:
    """With the directory in it."""
    words = quoted(("crawl", web.url("a"), "--data-dir", DIR, *FAST, "--max-urls", "2"))
    shell.paste(f"mannerly {words}")
    for shard in (shell.directory / DIR).glob("shard-*.db"):
        shard.write_bytes(shard.read_bytes()[:5000])
    examined = shell.paste(f'mannerly doctor "{DIR}"')
    resumed = shell.paste(resume_command(DIR))

    assert examined.code == 4
    assert resumed.code == 4
    printed = [*examined.commands, *resumed.commands]
    assert printed
    assert all("doctor" in command and "mine" in command for command in printed)
    assert {shell.paste(command).code for command in printed} <= {0, 1}


def test_waiting_for_the_end_of_a_stop_is_an_option(shell: Shell, web: DemoWeb) -> None:
    """`stop --wait` ends when the crawl has ended: the printed command can be pasted at once."""
    with shell.begin("crawl", web.url("a"), "--data-dir", DIR, *FAST) as run:
        until_requests(web, 2)
        stopped = shell.paste(f'mannerly stop "{DIR}" --wait')
        resumed = shell.paste(f"{stopped.commands[0]} --max-urls 1")
        eventually(lambda: run.end().code == 143)

    assert resumed.code == 0
