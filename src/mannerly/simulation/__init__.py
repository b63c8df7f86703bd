"""Virtual time: modelled servers against the product's own politeness core.

    from mannerly.simulation import run
    result = run(Settings(), "bucket:5:10", duration_s=900, seed=1)
    result.steady_util, result.steady_rejected

`servers` says what limits look like and `outages` what else goes wrong; `spec` names both in a
word. `run` drives the core, `witness` counts broken promises, `result` turns a run into figures,
`chart` and `svg` draw them, and `tuning` lists the servers that strategies are judged on.
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
