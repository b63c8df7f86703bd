"""Programs that tests need and pip does not bring: skipped without them, but not in CI."""

from __future__ import annotations

import os
import shutil

import pytest


def program(name: str, package: str) -> str:
    """Return the path of a program; skip the test without it, fail in CI."""
    found = shutil.which(name) or shutil.which(name, path="/usr/sbin:/usr/local/sbin")
    if found is None:
        missing = f"there is no {name}: apt-get install {package}"
        if os.environ.get("CI") == "true":
            pytest.fail(missing)
        pytest.skip(missing)
    return found
