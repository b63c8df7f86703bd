"""Which rule decides about a path: the longest pattern that matches, and Allow on a tie.

A pattern is a fixed prefix and then, after each `*`, a piece that must be found further on:

    /a/*.php$   =   starts with "/a/", then finds ".php" + END        (END marks the path's end)

so a literal is the case of no pieces, and `$` needs no case of its own. Finding each piece at the
first place where it occurs is enough, because a later place can only leave less room for the rest.
That is linear: no regular expression, nothing to explode.

Rules are kept by prefix. A check cuts the path to each length that some prefix has and looks the
cut up, best best_possible first, and stops when no remaining length can beat what was found. So 20,000
literal rules cost as much as their few dozen different lengths.

Google compares paths as they are written, RFC 9309 as they are meant (see `paths.py`). A path may
be fetched only if both readings allow it: the stricter one is never wrong towards the site.
This file knows nothing of agents, groups or files.
"""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING

from .lines import LineKind
from .paths import meant_path, meant_pattern, pattern_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from .lines import Directive

END = "\xff"  # paths and patterns are ASCII by now, so this can only stand where we put it
_LINES = 1 << 20  # more lines than 500 KiB can hold
_NO_PIECES: list[str] = []
_rank = attrgetter("rank")


class Rule:
    """One Allow or Disallow line, ready to match. The higher rank decides."""

    __slots__ = ("directive", "is_allow", "pieces", "prefix", "rank")

    def __init__(self, directive: Directive, pattern: str) -> None:
        kind, _, line = self.directive = directive
        self.is_allow = kind is LineKind.ALLOW
        # Longer first, then Allow, then the line that comes first, in one integer.
        self.rank = (2 * len(pattern) + self.is_allow) * _LINES - line
        if pattern.endswith("$"):
            pattern = pattern[:-1] + END
        self.prefix, star, rest = pattern.partition("*")
        self.pieces = [piece for piece in rest.split("*") if piece] if star else _NO_PIECES

    def matches(self, target: str) -> bool:
        """Whether the pieces follow each other in `target`, which starts with our prefix."""
        position = len(self.prefix)
        for piece in self.pieces:
            position = target.find(piece, position)
            if position < 0:
                return False
            position += len(piece)
        return True


class RuleTable:
    """The rules of one agent in one reading."""

    __slots__ = ("_by_prefix", "_lengths")

    def __init__(self, rules: Iterable[Rule]) -> None:
        self._by_prefix: dict[str, list[Rule]] = {}
        best_of_length: dict[int, int] = {}
        for rule in sorted(rules, key=_rank, reverse=True):
            self._by_prefix.setdefault(rule.prefix, []).append(rule)
            best_of_length.setdefault(len(rule.prefix), rule.rank)
        # Insertion was by falling rank, so the lengths already come best best_possible first.
        self._lengths = list(best_of_length.items())

    def find(self, path: str) -> Rule | None:
        target = path + END
        best: Rule | None = None
        best_rank = 0
        rules_with = self._by_prefix.get
        for length, best_possible in self._lengths:
            if best_possible < best_rank:
                break
            for rule in rules_with(target[:length], ()):
                if rule.rank < best_rank:
                    break
                if not rule.pieces or rule.matches(target):
                    best, best_rank = rule, rule.rank
                    break
        return best


class RuleSet:
    """The rules of one agent in both readings; the stricter verdict counts."""

    __slots__ = ("_as_meant", "_as_written")

    def __init__(self, directives: Sequence[Directive]) -> None:
        written = [pattern_of(value) for _, value, _ in directives]
        meant = [meant_pattern(pattern) for pattern in written]
        self._as_written = _table(directives, written)
        self._as_meant = self._as_written if meant == written else _table(directives, meant)

    def find(self, path: str) -> Rule | None:
        """The rule that decides about a written path; None: no rule matches, so it is free."""
        rule = self._as_written.find(path)
        if rule is not None and not rule.is_allow:
            return rule
        meant = meant_path(path)
        if meant is path and self._as_meant is self._as_written:
            return rule
        stricter = self._as_meant.find(meant)
        return rule if stricter is None or stricter.is_allow else stricter


def _table(directives: Sequence[Directive], patterns: Sequence[str]) -> RuleTable:
    rules: list[Rule] = []
    for directive, pattern in zip(directives, patterns, strict=True):
        # Paths start with a slash: other patterns (empty, whole URLs, bare words) match nothing.
        if not pattern.startswith(("/", "*")):
            continue
        rule = Rule(directive, pattern)
        rules.append(rule)
        if rule.is_allow and "/index.htm" in pattern:
            rules.extend(_directory(directive, pattern))
    return RuleTable(rules)


def _directory(directive: Directive, pattern: str) -> list[Rule]:
    """Who allows `/a/index.html` allows `/a/` itself: Google's kindness, to Allow lines only."""
    folder, _, page = pattern.rpartition("/")
    return [Rule(directive, folder + "/$")] if page.startswith("index.htm") else []
