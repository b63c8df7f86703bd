"""Run the commands of a page as a reader would, and compare what they print with the page.

    ```console                  lines that begin with `$ ` are run by bash, one after the other, in
    $ mannerly status mine      one directory a page; the other lines are what they print
    ```

    ```python                   a block whose first line is a comment with a file's name is that
    # titles.py                 file, and is there when its page has been read so far
    …

Numbers, times and spaces may differ; a line that is not printed may not stand in the page; what is
printed may be left out. A command that fails is followed by `$ echo $?`, so that the page says with
what it exits. Names of hosts lead to `pretend_web`; a command with an address of this machine or a
name that cannot exist (`.invalid`) goes there without it; so do `simulate`, `config`,
`demo`, and crawls whose names begin with `practice`. `redis://127.0.0.1:6379` is a real server.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from tests.crawler.store.valkey_server import LocalServer
from tests.harness.sites import free_port

if TYPE_CHECKING:
    from tests.docs.pretend_web import PretendWeb

ROOT = Path(__file__).parents[2]
PRACTICE_PORT = "8080"
SERVER = "redis://127.0.0.1:6379"
TIMEOUT_S = 300.0  # for all commands of a page, with much room

_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_FILE = re.compile(r"# ([\w.-]+\.\w+)\n")
_MARK = "\x1e"  # separates what commands print; no command prints it
_DIRECT = re.compile(r"\.invalid|127\.0\.0\.|simulate|config|demo|practice")
_NUMBER = re.compile(r"\d[\d,.:/TZ-]*")
_TIME = re.compile(r"0 (?:h|min|ms|s)(?: 0 (?:min|ms|s))*\b")
# Quick, but not so quick that a crawl is over before it can be stopped.
_PACE = {"MANNERLY_START_RATE": "20", "MANNERLY_MAX_RATE": "50"}


class Step(NamedTuple):
    """One command of a page, and the lines that the page shows below it."""

    command: str
    shown: tuple[str, ...]


class Done(NamedTuple):
    """What a command did."""

    command: str
    status: int
    printed: str


def parts(text: str) -> list[Step | tuple[str, str]]:
    """Return the commands of a page and the files (name, content) that it has, in their order."""
    found: list[Step | tuple[str, str]] = []
    for language, block in _FENCE.findall(text):
        if language == "console":
            found += _steps(block)
        elif name := _FILE.match(block):
            found.append((name[1], block))
    return found


def _steps(block: str) -> list[Step]:
    steps: list[Step] = []
    for line in block.splitlines():
        if line.startswith("$ "):
            steps.append(Step(line[2:], ()))
        elif line.startswith("> "):  # goes on with the command above
            steps[-1] = Step(f"{steps[-1].command}\n{line[2:]}", ())
        else:
            steps[-1] = steps[-1]._replace(shown=(*steps[-1].shown, line))
    return steps


def run(text: str, web: PretendWeb, directory: Path) -> list[Done]:
    """Run all commands of a page in a directory, and return what each did."""
    if SERVER not in text:
        return _run(text, web, directory)
    with LocalServer("--appendonly", "yes", "--maxmemory", "100mb") as server:
        # Commands with 127.0.0. are about the web of this machine (`_DIRECT`): name it otherwise.
        return _run(text.replace(SERVER, f"redis://localhost:{server.port}"), web, directory)


def _run(text: str, web: PretendWeb, directory: Path) -> list[Done]:
    commands = [part.command for part in parts(text) if isinstance(part, Step)]
    text = text.replace(PRACTICE_PORT, str(free_port()))  # theirs may be taken here
    script = [f"cd {shlex.quote(str(directory))}", "status=0"]
    for part in parts(text):
        if isinstance(part, Step):
            script += [f"(exit $status)\n{_spelled(part.command)}\nstatus=$?", _mark()]
        else:
            (directory / "files").mkdir(exist_ok=True)
            place = directory / "files" / part[0]
            place.write_text(_local(part[1], web), "utf-8")
            script.append(f"cp {shlex.quote(str(place))} .")
    script.append("kill $(jobs -p) 2> /dev/null")  # what a page leaves running
    bin_folder = str(Path(sys.executable).parent)
    process = subprocess.Popen(
        ["bash", "-c", "\n".join(script)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        stdin=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
        env={
            "PATH": os.pathsep.join([bin_folder, "/usr/bin", "/bin"]),
            "HOME": str(directory),
            "LC_ALL": "C.UTF-8",
            **web.environment,
            **_PACE,
        },
    )
    try:
        printed, _ = process.communicate(timeout=TIMEOUT_S)
    finally:
        process.kill()
    chunks = _from_local(printed, web).split(_MARK)
    assert len(chunks) == 2 * len(commands) + 1, f"the shell ended early:\n{printed}"
    return [
        Done(command, int(status), said)
        for command, said, status in zip(commands, chunks[::2], chunks[1::2], strict=False)
    ]


def _spelled(command: str) -> str:
    if not _DIRECT.search(command):
        return command
    ours = ("MANNERLY_PROXY", "MANNERLY_CA_FILE", *_PACE)
    unset = " ".join(f"-u {name}" for name in ours if name not in command)
    return re.sub(r"\b(mannerly|python) ", rf"env {unset} \1 ", command)


def _mark() -> str:
    return f"printf '{_MARK}%s{_MARK}' $status"


def _local(program: str, web: PretendWeb) -> str:
    """A program of the library takes no options from the environment: give it the address."""
    return program.replace("https://example.org/", f"http://{web.netloc}/")


def _from_local(printed: str, web: PretendWeb) -> str:
    printed = re.sub(r";? --proxy \S+ --ca-file \S+", "", printed)
    return printed.replace(f"http://{web.netloc}", "https://example.org")


# ---------------------------------------------------------------------- judging


def complaints(text: str, done: list[Done]) -> list[str]:
    """Return what a page says and its commands did not do."""
    steps = [part for part in parts(text) if isinstance(part, Step)]
    found = []
    for number, (step, did) in enumerate(zip(steps, done, strict=True)):
        is_told = number + 1 < len(steps) and steps[number + 1].command == "echo $?"
        if did.status and not is_told:
            found.append(f"$ {step.command}\nexits with {did.status}:\n{did.printed}")
        elif missing := _missing(step.shown, did.printed):
            found.append(f"$ {step.command}\ndoes not print:\n{missing}\nbut:\n{did.printed}")
    return found


def _missing(shown: tuple[str, ...], printed: str) -> str | None:
    """Return the first line of the page that was not printed, in this order."""
    lines = iter([normal(line) for line in printed.splitlines()])
    for line in shown:
        if line.strip() in ("", "…"):
            continue
        if normal(line) not in lines:  # takes lines from the iterator until it is found
            return line
    return None


def normal(line: str) -> str:
    """Return a line without what differs between runs: numbers, times, spaces."""
    # The next instant of a host may be now, soon or not known yet.
    line = _NUMBER.sub("0", line.replace(" now ", " 0 s ").replace(" – ", " 0 s "))
    line = _TIME.sub("0 s", line)
    return " ".join(line.split())
