"""Measure bytes per host: of active hosts with all they have learned, and of idle known hosts."""

from __future__ import annotations

import gc
import resource
import subprocess
import sys
import tracemalloc

from mannerly.politeness import Grant, Politeness, Response, Settings

OK = Response(status=200, latency_s=0.1)


def _visit(core: Politeness, name: str, times: int, start: float) -> None:
    now = start
    for _ in range(times):
        decision = core.reserve(name, now=now)
        assert isinstance(decision, Grant)
        core.report(decision.permit, OK, now=now + 0.1)
        now += 1.0


def active_bytes(hosts: int = 10_000, requests: int = 50) -> int:
    """Return the bytes of that many hosts after that many requests each, names included."""
    gc.collect()
    tracemalloc.start()
    core = Politeness(Settings())
    for index in range(hosts):
        _visit(core, f"www.host-{index}.example", requests, index * 0.001)
    gc.collect()
    used, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(core) == hosts
    return used


def idle_resident_bytes(hosts: int) -> int:
    """Return the growth of resident memory after one request to each of that many hosts."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    core = Politeness(Settings())
    for index in range(hosts):
        _visit(core, f"www.host-{index}.example", 1, index * 0.001)
    assert len(core) == hosts
    return (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024


def run() -> None:
    """Print both figures."""
    used = active_bytes()
    print("Memory of the politeness core")
    print(f"10,000 active hosts, 50 requests each: {used / 1e6:6.1f} MB (target < 10)")
    command = [
        sys.executable,
        "-c",
        "from bench.memory import idle_resident_bytes as f; print(f(10**6))",
    ]
    grown = int(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    print(f"1,000,000 known idle hosts:            {grown / 1e6:6.1f} MB resident (target < 600)")


if __name__ == "__main__":
    run()
