"""The place of a run in a crawl that several runs share. It is cheap to import."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from pathlib import Path


class Membership(NamedTuple):
    """The place of a run in a crawl that several runs share."""

    data_dir: Path  # of this run alone
    segments: Path | None = None  # where page records go; None: to the data directory
    store_patience_s: float = 300.0  # with a server that cannot be reached
    shards: int = 64  # of a crawl that does not exist yet

    def of_process(self, index: int) -> Membership:
        """Return the place of one of several processes: a member of its own, in a directory below.

        Processes of one run know nothing of each other, as those of several machines.
        """
        return self._replace(data_dir=self.data_dir / f"process-{index}")
