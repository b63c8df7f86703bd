"""The report of a crawl: one HTML file for people, CSV files for spreadsheets, numbers for rules.

    facts        read a crawl once: its pages, hosts and links
    pages        what a page means: broken, redirected, indexable
    table        the values of sections, their words, and their CSV files
    proof … changes   the sections, by what they are about
    findings     all sections, and the sentence above them
    rules        --fail-on: numbers of the findings against limits
    html         the file, with its script and style

It reads through the store's contract only, so it works for running and for stopped crawls, and for
every kind of store.
"""

from __future__ import annotations

from .findings import Findings, find
from .html import write_html
from .rules import FailRule, RuleError, parse_rule

__all__ = ["FailRule", "Findings", "RuleError", "find", "parse_rule", "write_html"]
