"""The data directory of a run that was not named: its default name, or a temporary one."""

from __future__ import annotations

import re
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from mannerly.crawler.options.values import Value

    from .seeds import SeedSource


def default_location(sources: list[SeedSource]) -> str:
    """Return the name of a crawl's directory, in characters that every file system accepts.

    `crawl-` and the host of the seeds; of several hosts the first, and how many more; or the name
    of the one file that the seeds were read from.
    """
    from mannerly.crawler.web.urls import host_key_of

    from .seeds import STANDARD_INPUT

    file = sources[0].file
    if len(sources) == 1 and file is not None and file != STANDARD_INPUT:
        stem = Path(file).name.split(".")[0]
        return "crawl-" + (re.sub(r"[^\w-]+", "-", stem).strip("-") or "seeds")
    hosts = list(dict.fromkeys(host_key_of(url) for source in sources for url in source.urls))
    more = f"-and-{len(hosts) - 1}-more" if len(hosts) > 1 else ""
    return "crawl-" + hosts[0].replace(":", "-").strip("[]") + more


@contextmanager
def named_or_temporary(given: Mapping[str, Value], command: str) -> Iterator[str]:
    """Yield the directory that --data-dir names, or a temporary one that is removed at the end."""
    if named := given.get("data_dir"):
        yield str(named)
        return
    with tempfile.TemporaryDirectory(prefix=f"mannerly-{command}-") as made:
        yield str(Path(made) / "crawl")
