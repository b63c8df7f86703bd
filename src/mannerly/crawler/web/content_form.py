"""The forms in which the content of a page can be exported. Cheap to import."""

from __future__ import annotations

from enum import StrEnum


class Content(StrEnum):
    """The content of a page that is exported beside its record."""

    NONE = "none"
    HTML = "html"  # the whole page, decoded
    TEXT = "text"  # its main part as plain text
    MARKDOWN = "markdown"  # its main part as Markdown
