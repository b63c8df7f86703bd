"""Disks that fail: one that dies or fills up at the Nth operation, one that loses power.

Both are SQLite's view of a real disk (a VFS). Writing, flushing, truncating and deleting are
counted; reading is not, since it changes nothing.

What a power cut leaves of a file is its content at the last flush, plus any of the writes since
then: each of them whole, torn at a sector, or missing, and in any order.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

import apsw

if TYPE_CHECKING:
    import random

SECTOR = 512
_names = count()


@dataclass
class _Image:
    """A file as it is on the platter, and what was written since the last flush."""

    durable: bytearray
    pending: list[tuple[int, bytes | None]] = field(default_factory=list)  # None: cut off here

    def flush(self) -> None:
        for offset, content in self.pending:
            self.write(offset, content)
        self.pending.clear()

    def write(self, offset: int, content: bytes | None) -> None:
        if content is None:
            del self.durable[offset:]
            return
        if len(self.durable) < offset:
            self.durable.extend(bytes(offset - len(self.durable)))
        self.durable[offset : offset + len(content)] = content

    def after_power_cut(self, rng: random.Random) -> bytes:
        survivor = _Image(bytearray(self.durable))
        writes = list(self.pending)
        if all(content is not None for _, content in writes):
            rng.shuffle(writes)
        for offset, content in writes:
            fate = rng.random()
            if content is None or fate < 0.4:
                survivor.write(offset, content)
            elif fate < 0.6:
                survivor.write(offset, content[: rng.randrange(0, len(content) + 1, SECTOR)])
        return bytes(survivor.durable)


class FailingDisk(apsw.VFS):
    """A disk on which the Nth operation fails, and, if it `dies`, every later one too."""

    def __init__(
        self, *, dies: bool = True, error: type[apsw.Error] = apsw.IOError, power: bool = False
    ) -> None:
        self.name = f"failing-{next(_names)}"
        super().__init__(self.name, "")
        self.operations = 0
        self.fails_at: int | None = None
        self.has_failed = False
        self.images: dict[str, _Image] | None = {} if power else None
        self._dies = dies
        self._error = error

    def arm(self, operations: int) -> None:
        """Let this many more operations through."""
        self.fails_at = self.operations + operations
        self.has_failed = False

    def disarm(self) -> None:
        self.fails_at = None

    def operate(self) -> None:
        is_due = self.fails_at is not None and self.operations >= self.fails_at
        if is_due and (self._dies or not self.has_failed):
            self.has_failed = True
            raise self._error("the disk failed")
        self.operations += 1

    def excepthook(self, kind, error, trace) -> bool:
        """SQLite keeps some failures to itself, such as those of closing: so do we."""
        return True

    def xOpen(self, name, flags):  # noqa: N802
        return _File(self, name, flags)

    def xDelete(self, filename, syncdir):  # noqa: N802
        self.operate()
        super().xDelete(filename, syncdir)
        if self.images is not None:
            self.images.pop(filename, None)

    def lose_power(self, rng: random.Random, target: Path) -> None:
        """Put what a power cut would leave into another directory."""
        assert self.images is not None
        for name, image in self.images.items():
            (target / Path(name).name).write_bytes(image.after_power_cut(rng))


class _File(apsw.VFSFile):
    def __init__(self, disk: FailingDisk, name, flags) -> None:
        self._disk = disk
        self._image: _Image | None = None
        path = name.filename() if isinstance(name, apsw.URIFilename) else name
        if disk.images is not None and path is not None:
            if path not in disk.images:
                file = Path(path)
                content = file.read_bytes() if file.exists() else b""
                disk.images[path] = _Image(bytearray(content))
            self._image = disk.images[path]
        super().__init__("", name, flags)

    def excepthook(self, kind, error, trace) -> bool:
        return True

    def xWrite(self, data, offset):  # noqa: N802
        self._disk.operate()
        super().xWrite(data, offset)
        if self._image:
            self._image.pending.append((offset, bytes(data)))

    def xTruncate(self, size):  # noqa: N802
        self._disk.operate()
        super().xTruncate(size)
        if self._image:
            self._image.pending.append((size, None))

    def xSync(self, flags):  # noqa: N802
        self._disk.operate()  # the real disk need not wait: its power is not cut
        if self._image:
            self._image.flush()
