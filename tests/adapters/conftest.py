"""A site for each test."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.adapters.loopback_site import running_site

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.adapters.loopback_site import Site


@pytest.fixture
def site() -> Iterator[Site]:
    with running_site() as site:
        yield site
