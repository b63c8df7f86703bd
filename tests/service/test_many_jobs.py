"""Jobs on a service that is killed: the small form of `python -m bench jobs`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.service.many_jobs import many_jobs

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.processes


def test_killed_service_loses_no_page_and_no_state(tmp_path: Path) -> None:
    """Six jobs on three hosts, three at a time, two kills."""
    verdict = many_jobs(tmp_path, jobs=6, hosts=3, at_once=3, kills=2, pages=15)

    assert verdict.problems == []
    assert verdict.moves >= 12


@pytest.mark.long
def test_fifty_jobs_survive_five_kills(tmp_path: Path) -> None:
    """Fifty jobs on twenty hosts, five at a time."""
    verdict = many_jobs(tmp_path, jobs=50, hosts=20, at_once=5, kills=5, pages=40)

    assert verdict.problems == []
