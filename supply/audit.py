"""The audit: are there known security holes in what the lock files name?

pip-audit asks the advisory service. Where that cannot be reached, or does not know a package,
nothing was audited, and the audit says so instead of passing.
"""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

from .lock import LOCKS

CLEAN, VULNERABLE, NOT_AUDITED = 0, 1, 2


def audit(names: tuple[str, ...] = ("run", "dev")) -> tuple[int, str]:
    """Return the exit code and the sentences to print."""
    code, lines = CLEAN, []
    for name in names:
        found, text = judge(name, *_pip_audit(name))
        code = max(code, found)
        lines.append(text)
    return code, "\n".join(lines)


def _pip_audit(name: str) -> tuple[str, str]:
    words = [sys.executable, "-m", "pip_audit", "--requirement", str(LOCKS / f"{name}.txt")]
    words += ["--require-hashes", "--disable-pip", "--format", "json", "--progress-spinner", "off"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    return done.stdout, done.stderr


def judge(name: str, answer: str, complaints: str) -> tuple[int, str]:
    """Return the exit code and a sentence for what pip-audit said about one lock file."""
    try:
        packages: list[dict[str, Any]] = json.loads(answer)["dependencies"]
    except (ValueError, KeyError):
        reason = (complaints.strip().splitlines() or ["no answer"])[-1]
        return NOT_AUDITED, (
            f"locks/{name}.txt: not audited: the advisory service cannot be reached ({reason}). "
            "Run `make audit` where pypi.org can be reached."
        )
    holes = [
        f"  {package['name']} {package['version']}: {hole['id']}, fixed in "
        f"{', '.join(hole['fix_versions']) or 'no release yet'}"
        for package in packages
        for hole in package.get("vulns", ())
    ]
    unknown = [package["name"] for package in packages if package.get("skip_reason")]
    if holes:
        return VULNERABLE, "\n".join([f"locks/{name}.txt: known security holes:", *holes])
    if unknown or not packages:
        return NOT_AUDITED, (
            f"locks/{name}.txt: not audited: the advisory service has no answer for "
            f"{len(unknown)} of {len(packages)} packages ({', '.join(unknown[:3])} …). "
            "Run `make audit` where pypi.org can be reached."
        )
    return CLEAN, f"locks/{name}.txt: no known security hole in {len(packages)} packages"
