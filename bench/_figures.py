"""Write the figures of a benchmark to a JSON file, for documents and for later runs.

There is one file per benchmark. This module does not know what was measured.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

FOLDER = Path(__file__).parent.parent / ".cache" / "bench"


def write(name: str, figures: Mapping[str, object]) -> Path:
    """Write the figures of the benchmark `name`; those of its last run are replaced."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    path = FOLDER / f"{name}.json"
    path.write_text(json.dumps(figures, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    return path
