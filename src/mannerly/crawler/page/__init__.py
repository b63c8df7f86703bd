"""Reading pages: bytes to a `Page`, and the raw links of a page to canonical URLs."""

from __future__ import annotations

from .html import parse_page
from .links import HrefMemory, PageLinks, resolve_links
from .parsed import Page, ParseFailed

__all__ = ["HrefMemory", "Page", "PageLinks", "ParseFailed", "parse_page", "resolve_links"]
