"""Run `mannerly` as on a machine of its own: with a boot that no other process has."""

from __future__ import annotations

from uuid import uuid4

from mannerly.__main__ import main
from mannerly.database import ages

if __name__ == "__main__":
    ages.boot_id = lambda: uuid4().hex
    raise SystemExit(main())
