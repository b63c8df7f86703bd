"""Write the report as one HTML file that needs nothing else and sends nothing.

Crawled text can be hostile. It is in one place of the file, a block of JSON that no browser runs,
in which every `<` is escaped; the script puts it on the page as text. A Content-Security-Policy
allows this script and this style by their hashes, and nothing else: no request, no frame, no form.
"""

from __future__ import annotations

import base64
import hashlib
import os.path
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

import msgspec

from mannerly.exports.whole import whole_file
from mannerly.version import VERSION

from .table import SHOWN_ROWS

if TYPE_CHECKING:
    from .findings import Findings
    from .table import ReportTable, Section


def write_html(findings: Findings, path: Path, csv_directory: Path | None = None) -> None:
    """Write the file; tables link to their CSV files if there is a directory of them.

    Raises:
        OSError: it cannot be written; an earlier file is unchanged.
    """
    beside = None
    if csv_directory is not None:
        beside = os.path.relpath(csv_directory.absolute(), path.absolute().parent)
        beside = quote(Path(beside).as_posix())
    with whole_file(path) as file:
        file.write(page(findings, beside).encode())


def page(findings: Findings, csv_directory: str | None = None) -> str:
    """Return the HTML of a report."""
    style, script = _static("report.css"), _static("report.js")
    policy = (
        f"default-src 'none'; script-src {_hash(script)}; style-src {_hash(style)}; img-src data:; "
        "base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'"
    )
    parts = {"policy": policy, "style": style, "script": script}
    text = _static("report.html")
    for name, value in parts.items():
        text = text.replace("{{" + name + "}}", value)
    # Last, and only once: crawled text may look like one of the other places.
    before, _, after = text.partition("{{data}}")
    return before + _json(_data(findings, csv_directory)) + after


def _data(findings: Findings, csv_directory: str | None) -> dict[str, object]:
    proof = findings.sections[0].extra
    every_row = "the CSV files hold every row"
    if csv_directory is None:
        every_row = "mannerly report --csv DIR writes every row"
    return {
        "title": f"{findings.facts.main_host}: site report",
        "origin": findings.facts.origin,
        "period": findings.period,
        "sentence": findings.sentence,
        "about": findings.about,
        "proof": {"badge": proof["badge"], "sentence": proof["sentence"]},
        "numbers": findings.key_numbers,
        "sections": [_section(each, csv_directory) for each in findings.sections],
        "made": [
            f"mannerly {VERSION}",
            f"Tables end after {SHOWN_ROWS:,} rows and say so; {every_row}.",
        ],
    }


def _section(section: Section, csv_directory: str | None) -> dict[str, object]:
    has_csv = section.csv is not None and csv_directory is not None
    return {
        "id": section.id,
        "title": section.title,
        "nav": (section.nav or section.title) if section.is_listed else None,
        "count": section.count,
        "about": section.about,
        "note": section.note,
        "empty": section.empty,
        "half": section.half,
        "csv": f"{csv_directory}/{section.csv.name}" if section.csv and has_csv else None,
        "csvName": section.csv.name if section.csv else None,
        "extra": section.extra,
        "table": _table(section.table) if section.table and section.table.rows else None,
    }


def _table(table: ReportTable) -> dict[str, object]:
    return {
        "columns": [column._asdict() for column in table.columns],
        "rows": [
            (row.cells, None if row.details is None else row.details._asdict())
            for row in table.rows[:SHOWN_ROWS]
        ],
        "total": len(table.rows),
        "noun": table.noun,
        "sort": table.sort,
        "first": table.first,
    }


def _json(value: object) -> str:
    """Return JSON that cannot end the element it is in, nor begin a comment."""
    text = msgspec.json.encode(value).decode()
    for character in ("<", ">", "&", "\u2028", "\u2029"):
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def _hash(text: str) -> str:
    digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
    return f"'sha256-{digest}'"


@cache
def _static(name: str) -> str:
    return files(__package__).joinpath("static", name).read_text("utf-8").strip()
