"""A story that takes a while and does little: it runs beside the others."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest
from tests.crawler.control.troubles import Forgotten, tell_in

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="session")
def troubles(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Future[Forgotten]]:
    """Begin the story of `test_hosts`; most of its time is waiting."""
    with ThreadPoolExecutor(1) as pool:
        yield pool.submit(tell_in, tmp_path_factory.mktemp("hosts"))
