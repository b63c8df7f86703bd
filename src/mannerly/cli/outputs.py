"""The needs of the outputs of a crawl: checked before it starts, not after days."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from mannerly.crawler.web.choices import Content

from .config import ConfigError

if TYPE_CHECKING:
    from mannerly.crawler.settings import CrawlSettings

    from .config import Configuration


def check_outputs(configuration: Configuration) -> None:
    """Raise ConfigError or ExportError for outputs that cannot be written."""
    outputs = configuration.texts("output")
    if not outputs:
        return
    from mannerly.exports import STDOUT, read_target

    wants_stdout = sum(read_target(output).path == STDOUT for output in outputs)
    wants_stdout += bool(configuration.value("json"))
    if wants_stdout > 1:
        raise ConfigError("--json and --output - both write to standard output: choose one")


def check_function(name: str) -> None:
    """Load the extract function, so that a mistake is found before the first request."""
    from mannerly.crawler.page.extract import ExtractError, load

    try:
        load(name)
    except ExtractError as error:
        raise ConfigError(f"--extract: {error}") from error


def for_outputs(settings: CrawlSettings, configuration: Configuration) -> CrawlSettings:
    """Return settings that keep bodies or links, if an output needs them."""
    outputs = configuration.texts("output")
    if not outputs:
        return settings
    from mannerly.exports import Table, read_target

    content = content_of(configuration)
    targets = [read_target(output) for output in outputs]
    if any(target.needs_bodies(content) for target in targets):
        settings = replace(settings, keep_bodies=True)
    if any(target.table is Table.LINKS for target in targets):
        settings = replace(settings, links=True)
    return settings


def content_of(configuration: Configuration) -> Content:
    """Return the content of pages that goes into the outputs."""
    return Content(str(configuration.value("content")))
