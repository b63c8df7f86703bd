"""Run the real politeness core against modelled servers in virtual time.

from mannerly.simulation import run
result = run(Settings(), "bucket:5:10", duration_s=900, seed=1)
result.steady_util, result.steady_rejected

servers         models of servers with a hidden limit
outages         random errors and outages in front of any server
spec            short names for both, such as `bucket:5:10+noise=0.01`
run             one host in virtual time: core against server
suites          many servers, one law or several: where does each stand?
laws            the beginning of a control law of your own
audit           counts broken promises during a run
result          the figures of a run
chart, svg      the run as a picture, in the terminal or as SVG
"""

from __future__ import annotations

from .result import Result, Second
from .run import Controller, run, run_many
from .servers import Server
from .spec import SpecError, parse_server

__all__ = [
    "Controller",
    "Result",
    "Second",
    "Server",
    "SpecError",
    "parse_server",
    "run",
    "run_many",
]
