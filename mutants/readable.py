"""Content that people read: what selectors, Markdown and comparisons of pages rest on."""

from __future__ import annotations

from .model import Mutant

_FORMATTING = "crawler/page/tree.py"
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
    Mutant(
        "leave the language of code out",
        "P3",
        "crawler/page/blocks.py",
        "        if found := _named(element):\n            return found\n",
        "        if found := _named(element):\n            return found and ''\n",
        ("crawler/page/test_markdown.py::test_element_becomes_markdown",),
    ),
    Mutant(
        "write what looks like a tag as it is",
        "P3",
        "crawler/page/markdown_text.py",
        '        return _MARKUP.sub(r"\\\\\\g<0>", text)',
        "        return text",
        ("crawler/page/test_markdown.py::test_any_markup_becomes_clean_markdown",),
    ),
    Mutant(
        "take what holds the first heading for a frame",
        "P3",
        "crawler/page/content.py",
        "            is_kept = element.tag in _KEPT or hash(element) in around",
        "            is_kept = element.tag in _KEPT",
        ("crawler/page/test_markdown.py::test_names_are_only_a_hint",),
    ),
    Mutant(
        "take most of a page for a frame",
        "P3",
        "crawler/page/content.py",
        "        and not is_box(element)\n        and len(element.text) <= most\n",
        "        and not is_box(element)\n",
        ("crawler/page/test_markdown.py::test_names_are_only_a_hint",),
    ),
    Mutant(
        "name files by the words of their URL alone",
        "P3",
        "exports/folder.py",
        '    return f"{site}/{words}-{digest}{SUFFIXES[form]}"',
        '    return f"{site}/{words}-{digest[:0]}{SUFFIXES[form]}"',
        ("exports/test_content.py::test_names_stay_apart_and_inside",),
    ),
)
