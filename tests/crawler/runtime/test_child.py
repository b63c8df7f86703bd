"""Child processes: how they come into being, what they see of the world, and how they end."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.crawler.runtime.harness import Crawler
from tests.harness.waiting import eventually

import mannerly
from mannerly.crawler.runtime.child import Channel, Child

if TYPE_CHECKING:
    from collections.abc import Iterator

MODULE = "child_tasks"  # importable by children only
SOURCE = Path(mannerly.__file__).parents[1]
HERE = Path(__file__).parent


@pytest.fixture(autouse=True)
def tasks_on_path(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let children find what they do in these tests."""
    monkeypatch.syspath_prepend(HERE)


@contextmanager
def child(order: object = None) -> Iterator[Child]:
    started = Child(MODULE, order)
    try:
        yield started
    finally:
        started.close()


def asked(of: Child, question: object) -> object:
    of.channel.send(question)
    return of.channel.wait()


# ---------------------------------------------------------------------- channels


@given(
    messages=st.lists(st.binary(max_size=300) | st.integers() | st.text(max_size=50), max_size=8),
    cuts=st.lists(st.integers(1, 400), max_size=30),
)
def test_messages_arrive_whole_whatever_pieces_they_come_in(
    messages: list[object], cuts: list[int]
) -> None:
    """Every message once, in order, and not before its last byte."""
    ours, theirs = socket.socketpair()
    spy, wire = socket.socketpair()
    with theirs, ours, spy, wire:
        sender, receiver = Channel(ours), Channel(wire)
        for message in messages:
            sender.send(message)
        sent = theirs.recv(1_000_000) if messages else b""
        received: list[object] = []
        for size in cuts:
            spy.sendall(sent[:size])
            sent = sent[size:]
            received += receiver.receive()
        spy.sendall(sent)
        received += receiver.receive()

    assert received == messages


def test_sending_does_not_wait_for_a_reader() -> None:
    """What does not fit into the socket waits in the sender, and goes on with its next call."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        sender, receiver = Channel(ours), Channel(theirs)
        big = b"x" * 5_000_000

        sender.send(big)
        stuck = sender.has_unsent
        received: list[object] = []
        while not received:
            sender.flush()
            received = receiver.receive()

        assert stuck
        assert not sender.has_unsent
        assert received == [big]


@given(sizes=st.lists(st.integers(0, 700_000), max_size=8))
def test_messages_of_any_size_arrive_in_order(sizes: list[int]) -> None:
    """However many wait, and whether or not they fit into the buffer of the receiver."""
    one, other = (Channel(end) for end in socket.socketpair())
    sent = [bytes([number]) * size for number, size in enumerate(sizes)]
    received: list[object] = []

    for message in sent:
        one.send(message)
    while len(received) < len(sent):
        one.flush()
        received += other.receive()
    one.close()
    other.close()

    assert received == sent


def test_last_words_are_heard_before_the_end() -> None:
    """The end of the other side is told only after everything that it said."""
    ours, theirs = socket.socketpair()
    speaker, listener = Channel(ours), Channel(theirs)

    listener.send("never read")
    speaker.send("one")
    speaker.send("two")
    speaker.close()

    assert listener.receive() == ["one", "two"]
    assert listener.is_ended
    listener.send("not read")
    with pytest.raises(EOFError):
        listener.wait()
    listener.close()


# ---------------------------------------------------------------------- children


@pytest.mark.processes
def test_a_child_uses_the_package_of_its_parent() -> None:
    """It gets its order, and answers."""
    with child({"any": "value"}) as started:
        assert started.channel.wait() == ("began", {"any": "value"})
        assert asked(started, "package") == mannerly.__file__


@pytest.mark.processes
def test_a_child_imports_no_main_and_not_the_working_directory() -> None:
    """Its `__main__` is ours, and its path has absolute places only."""
    with child() as started:
        started.channel.wait()

        assert str(asked(started, "main")).endswith("bootstrap.py")
        path = asked(started, "path")
        assert isinstance(path, list)
        assert all(Path(entry).is_absolute() for entry in path)


@pytest.mark.processes
def test_a_child_has_its_own_group_and_ignores_signals() -> None:
    """A terminal's Ctrl-C is not for it; neither is a signal that is sent to it alone."""
    with child() as started:
        started.channel.wait()

        assert asked(started, "group") == started.pid != os.getpgrp()
        assert asked(started, "ignored") == [True, True]
        os.kill(started.pid, signal.SIGINT)
        os.kill(started.pid, signal.SIGTERM)
        assert asked(started, 7) == 7


@pytest.mark.processes
def test_a_child_that_ends_is_noticed_and_reaped() -> None:
    """The channel ends, and no zombie stays."""
    with child() as started:
        started.channel.wait()
        started.channel.send("end")
        with pytest.raises(EOFError):
            started.channel.wait()
        started.end(10.0)

        assert not started.is_alive
        assert not Path(f"/proc/{started.pid}").exists()


@pytest.mark.processes
def test_a_child_that_fails_says_why(capfd: pytest.CaptureFixture[str]) -> None:
    """The traceback goes to standard error, and the exit status is not 0."""
    with child() as started:
        started.channel.wait()
        started.channel.send("fail")
        started.end(10.0)

    assert "ValueError: as ordered" in capfd.readouterr().err


@pytest.mark.processes
def test_closing_kills_a_child_that_is_stuck() -> None:
    """It is gone when `close` returns, whatever it was doing."""
    with child() as started:
        started.channel.wait()
        os.kill(started.pid, signal.SIGSTOP)

    assert not Path(f"/proc/{started.pid}").exists()


_PARENT = f"""
import sys, time
from mannerly.crawler.runtime.child import Child
children = [Child("{MODULE}", n) for n in range(3)]
for each in children:
    each.channel.wait()
print(*(each.pid for each in children), flush=True)
time.sleep(600)
"""


@pytest.mark.processes
def test_children_end_with_a_parent_that_is_killed() -> None:
    """After SIGKILL no message tells them: the end of their channels does."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(SOURCE), str(HERE)])}
    with subprocess.Popen(
        [sys.executable, "-c", _PARENT], stdout=subprocess.PIPE, text=True, env=environment
    ) as parent:
        assert parent.stdout is not None
        pids = [int(pid) for pid in parent.stdout.readline().split()]
        alive = [Crawler.is_alive(pid) for pid in pids]
        parent.kill()
        killed_at = time.monotonic()
        eventually(lambda: not any(map(Crawler.is_alive, pids)), within_s=2.0)

    assert alive == [True] * 3
    assert time.monotonic() - killed_at < 2.0


_ONE_CHILD = f"""
import sys
sys.path.append({str(HERE)!r})
from mannerly.crawler.runtime.child import Child
child = Child("{MODULE}", None)
child.channel.wait()
child.channel.send("package")
print(child.channel.wait())
child.channel.send("modules")
assert "multiprocessing" not in child.channel.wait()
child.close()
"""
TRAP = "raise SystemExit('a module of the working directory was imported')"


@pytest.mark.processes
@pytest.mark.parametrize("name", ["multiprocessing", "mannerly", "json", "socket", "msgspec"])
def test_no_module_of_the_working_directory_is_imported(name: str, tmp_path: Path) -> None:
    """A crawl in a directory of foreign files runs none of them."""
    (tmp_path / f"{name}.py").write_text(TRAP)
    path = os.pathsep.join(["", ".", str(SOURCE)])
    script = [sys.executable, "-P", "-c", _fix_path(_ONE_CHILD)]
    done = subprocess.run(
        script,
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert done.stdout.strip() == mannerly.__file__, done.stderr


def _fix_path(code: str) -> str:
    """Let the parent itself be careful; its environment is not, and that is what children get."""
    return (
        "import os, sys\n"
        "sys.path = [p for p in sys.path if os.path.isabs(p) and p != os.getcwd()]\n" + code
    )


@pytest.mark.processes
@pytest.mark.parametrize("how", ["relative", "inserted"])
def test_a_package_that_children_could_not_find_is_found(how: str, tmp_path: Path) -> None:
    """PYTHONPATH=src, or a program that changed sys.path: children use the same package."""
    code = _ONE_CHILD
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    if how == "relative":
        environment["PYTHONPATH"] = os.path.relpath(SOURCE, tmp_path)
    else:
        code = f"import sys; sys.path.insert(0, {str(SOURCE)!r})\n" + code
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert Path(tmp_path / done.stdout.strip()).resolve() == Path(mannerly.__file__), done.stderr
