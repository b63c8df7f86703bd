"""`python -m mannerly` is the command `mannerly`."""

from __future__ import annotations

from .cli import main

main()
