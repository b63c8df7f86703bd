"""Content that people read: what selectors, Markdown and comparisons of pages rest on."""

from __future__ import annotations

from .model import Mutant

_FORMATTING = "crawler/page/formatting.py"
_TEST_FORMATTING = "crawler/page/test_formatting.py::"

READABLE = (
    Mutant(
        "parse large pages for selectors without their formatting",
        "P3",
        "crawler/page/tree.py",
        "    return _parse(text, bounded)",
        "    return _parse(text, disarmed)",
        (f"{_TEST_FORMATTING}test_large_page_keeps_its_formatting",),
    ),
    Mutant(
        "parse large pages for selectors without a bound",
        "P5",
        "crawler/page/tree.py",
        "    return _parse(text, bounded)",
        "    return parse(text, positions=False)",
        (f"{_TEST_FORMATTING}test_hostile_pages_cost_little_memory",),
    ),
    Mutant(
        "believe an end tag in a comment",
        "P5",
        _FORMATTING,
        "        if tag is None:\n            follower.lose_sight()\n",
        "        if tag is None:\n",
        (f"{_TEST_FORMATTING}test_formatting_of_hostile_pages_is_bounded",),
    ),
    Mutant(
        "take an ETag for a sign that nothing else is needed",
        "P3",
        "crawler/page/harvest.py",
        '        wanted = "none" if modified and modified != headers.get("date") else "all"',
        '        wanted = "none" if modified or "etag" in headers else "all"',
        ("cli/test_recrawl.py::test_a_changed_nonce_is_no_change",),
    ),
    Mutant(
        "call a page changed that could not be compared",
        "P3",
        "crawler/changes.py",
        "                return PageChange.UNCLEAR",
        "                return PageChange.CHANGED",
        ("cli/test_recrawl.py::test_a_page_that_cannot_be_compared_is_unclear",),
    ),
)
