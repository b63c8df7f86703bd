"""The beginning of a program that is killed by SIGKILL at its Nth statement of SQLite."""

from __future__ import annotations

KILLED_AT = """
import os, signal, sys
import apsw

left = [int(sys.argv[2])]

def count(*_):
    left[0] -= 1
    if left[0] < 0:
        os.kill(os.getpid(), signal.SIGKILL)
    return True

def traced(connection):
    connection.exec_trace = count

apsw.connection_hooks.append(traced)
"""
