"""Mannerly: as fast as each site allows, never faster, never losing a URL, and able to prove it.

The public names are looked up when they are asked for, so that the command starts quickly.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .politeness import Politeness, Settings

__all__ = ["Politeness", "Settings"]
__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from . import politeness

    return getattr(politeness, name)
