"""Words that options choose from. They stand apart so that options can be declared cheaply."""

from __future__ import annotations

from enum import StrEnum


class Content(StrEnum):
    """The content of a page that is exported beside its record."""

    NONE = "none"
    HTML = "html"  # the whole page, decoded
    TEXT = "text"  # its main part as plain text
    MARKDOWN = "markdown"  # its main part as Markdown


class HostSort(StrEnum):
    """The order of hosts: the largest value first."""

    QUEUED = "queued"
    FETCHED = "fetched"
    REFUSED = "refused"
    FAILED = "failed"
    GIVEN_UP = "given_up"
    DELAY = "delay"


class ScopeMode(StrEnum):
    """The distance from its seeds that a crawl may go."""

    HOST = "host"
    SITE = "site"
    PREFIX = "prefix"
    ANY = "any"
