"""Write one CSV file for each table, with every row."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mannerly.exports.csv import write_csv
from mannerly.exports.whole import whole_file

if TYPE_CHECKING:
    from pathlib import Path

    from .findings import Findings


def write_csv_files(findings: Findings, directory: Path, *, is_raw: bool = False) -> dict[str, int]:
    """Write the files; return the number of rows of each. The names are constants of ours.

    Text is never taken for a formula, unless `is_raw`.

    Raises:
        OSError: the directory or a file cannot be written.
    """
    directory.mkdir(parents=True, exist_ok=True)
    written = {}
    for section in findings.sections:
        if (file := section.csv) is not None:
            with whole_file(directory / file.name) as target:
                written[file.name] = write_csv(file.rows(), file.fields, target, is_raw=is_raw)
    return written
