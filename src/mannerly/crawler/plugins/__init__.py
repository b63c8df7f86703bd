"""The modes of a crawl beside fetching and reading pages: one plug-in a file (`shard.plugin`).

    recheck    pages that have a record are asked for with validators, and compared
    check      once only links are checked, no page is visited
    warm       a page is asked for until its cache has it
    render     pages are shown in a browser before they are read
    links      the links of pages are kept
    requisites what pages need to be shown is fetched, too
    archive    answers are kept
    sessions   requests of the user's code have cookies by the name of a session
    extract    the user's function makes items of pages

They are made here by the settings of a crawl, in the order in which they are called.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mannerly.crawler.shard.plugin import Plugins

from .check import Check
from .recheck import Recheck

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from mannerly.crawler.events import Event
    from mannerly.crawler.page.extract import Extracting
    from mannerly.crawler.page.links import LinkRules
    from mannerly.crawler.settings import CrawlSettings
    from mannerly.crawler.shard.plugin import Plugin
    from mannerly.crawler.store.base import ShardStore


def plugins_for(
    settings: CrawlSettings,
    rules: LinkRules,
    store: ShardStore,
    emit: Callable[[Event], None],
    *,
    archive: Plugin | None = None,
    extract: Extracting | None = None,
    folder: Path | None = None,
) -> Plugins:
    """Return the plug-ins of a shard; `archive` keeps its answers (`archive.Archive`).

    `folder` is that of the crawl, if it has one.
    """
    # Those that few crawls need are imported when they are.
    plugins: list[Plugin] = [Recheck(store, settings, rules), Check()]
    if settings.warm:
        from .warm import Warm

        plugins.append(Warm(settings, emit))
    if settings.render:
        from .render import RenderPages

        plugins.append(RenderPages(settings, folder))
    if settings.links:
        from .links import Links

        plugins.append(Links())
    if settings.requisites:
        from .requisites import Requisites

        plugins.append(Requisites())
    if archive is not None:
        plugins.append(archive)
    if extract is not None:
        from .extract import Extract
        from .sessions import Sessions

        plugins.append(Sessions(store))
        plugins.append(Extract(extract, store, emit))
    return Plugins(plugins)
