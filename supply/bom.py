"""The bill of materials: the lock files as CycloneDX 1.6 JSON.

What runs has the scope `required`; what only builds and tests is `excluded`. The same lock files
give the same text: no instant and no random serial number is in it.
"""

from __future__ import annotations

import json
import tomllib
from typing import Any

from .lock import LOCKS, ROOT, Pin, read_lock


def bill_of_materials() -> str:
    """Return the bill as JSON text."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    run = read_lock(LOCKS / "run.txt")
    names = {pin.name for pin in run}
    others = [pin for pin in read_lock(LOCKS / "dev.txt") if pin.name not in names]
    bill = {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "component": {
                "type": "application",
                "bom-ref": "mannerly",
                "name": project["name"],
                "version": project["version"],
                "purl": f"pkg:pypi/{project['name']}@{project['version']}",
                "licenses": [{"license": {"id": project["license"]}}],
            }
        },
        "components": [
            *(_component(pin, "required") for pin in run),
            *(_component(pin, "excluded") for pin in others),
        ],
        "dependencies": [{"ref": "mannerly", "dependsOn": [_purl(pin) for pin in run]}],
    }
    return json.dumps(bill, indent=2) + "\n"


def _component(pin: Pin, scope: str) -> dict[str, Any]:
    component: dict[str, Any] = {
        "type": "library",
        "bom-ref": _purl(pin),
        "name": pin.name,
        "version": pin.version,
        "scope": scope,
        "purl": _purl(pin),
        "hashes": [{"alg": "SHA-256", "content": each} for each in pin.hashes],
    }
    if pin.marker:
        component["properties"] = [{"name": "python:marker", "value": pin.marker}]
    return component


def _purl(pin: Pin) -> str:
    return f"pkg:pypi/{pin.name}@{pin.version}"
