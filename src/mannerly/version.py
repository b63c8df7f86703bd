"""The version, apart from the package: everything may import it, and it imports nothing."""

from __future__ import annotations

VERSION = "0.1.0"
