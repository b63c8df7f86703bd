"""Reading pages: bytes to a `ParsedPage`, and the raw links of a page to canonical URLs."""

from __future__ import annotations

from .html import parse_page
from .links import HrefMemory, PageLinks, resolve_links
from .parsed import ParsedPage, ParseFailed
from .scan import scanner_problem

__all__ = [
    "HrefMemory",
    "PageLinks",
    "ParseFailed",
    "ParsedPage",
    "parse_page",
    "resolve_links",
    "scanner_problem",
]
