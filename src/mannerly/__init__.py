"""Mannerly: as fast as each site allows, never faster, never losing a URL, and able to prove it."""

from __future__ import annotations

from .politeness import Politeness, Settings

__all__ = ["Politeness", "Settings"]
__version__ = "0.1.0"
