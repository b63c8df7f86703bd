"""Give freed memory back to the system at once.

The C library of Linux keeps freed blocks of up to 32 MB for itself once a block of that size was
freed: a crawl that has met large bodies would keep a third more than it uses. With fixed limits
every body above 128 KB is a mapping of its own, which goes away with the body.
"""

from __future__ import annotations

import sys

# Numbers of mallopt(3), and what they are set to: bytes from which a block is mapped, and bytes at
# the end of the heap that are kept.
SETTINGS = {-3: 128 * 1024, -1: 256 * 1024}


def return_freed_memory() -> None:
    """Set the limits for this process, where its C library has them."""
    if not sys.platform.startswith("linux"):
        return
    import ctypes

    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        for name, value in SETTINGS.items():
            mallopt(name, value)
