"""A crawl refuses at the start what would fail at the first request: grouping by address."""

from __future__ import annotations

import pytest

from mannerly.crawler.settings import CrawlSettings
from mannerly.politeness import Settings, SettingsError


def test_grouping_by_address_is_refused_in_a_crawl() -> None:
    """The politeness core would need a function for it, which a crawl does not have."""
    with pytest.raises(SettingsError, match="host or site in a crawl"):
        CrawlSettings(politeness=Settings(group_by="ip"))


@pytest.mark.parametrize("group_by", ["host", "site"])
def test_other_groups_are_allowed(group_by: str) -> None:
    """They need nothing but the name."""
    assert CrawlSettings(politeness=Settings(group_by=group_by)).politeness.group_by == group_by
