"""Where benchmarks leave their figures: one JSON file each, so that documents and later runs can
read what a run printed. This file knows nothing about what was measured.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

FOLDER = Path(__file__).parent.parent / ".cache" / "bench"


def write(name: str, figures: Mapping[str, object]) -> Path:
    """The figures of the benchmark `name` replace those of its last run."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    path = FOLDER / f"{name}.json"
    path.write_text(json.dumps(figures, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    return path
