"""Write a file under a temporary name, and rename it when it is complete.

So readers see the earlier export or the new one, never a part. Pipes and devices are written
directly. For a symbolic link the target is replaced, not the link.
"""

from __future__ import annotations

import os
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, BinaryIO

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_BUFFER_BYTES = 1 << 20


@contextmanager
def whole_file(path: Path) -> Iterator[BinaryIO]:
    """Yield a file that becomes `path` if no exception is raised.

    Raises:
        OSError: it cannot be written; the earlier file is kept.
    """
    target = path.resolve()
    if target.exists() and not target.is_file():
        with target.open("wb") as file:
            yield file
        return
    beside = target.with_name(f".{target.name}.{os.getpid()}.new")
    try:
        with beside.open("wb", buffering=_BUFFER_BYTES) as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        beside.replace(target)
    except BaseException:
        with suppress(OSError):
            beside.unlink()
        raise
