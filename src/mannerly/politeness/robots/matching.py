"""Find the rule that decides about a path: the longest matching pattern; Allow wins a tie.

A pattern is a fixed prefix and then, after each `*`, a piece that must occur further on:

    /a/*.php$   =   starts with "/a/", then contains ".php" + END     (END marks the path's end)

So a literal pattern has no pieces, and `$` needs no special case. It is enough to find each piece
at its first occurrence, because a later one leaves less room for the rest: no backtracking, and no
regular expressions.

Rules are stored by prefix. A lookup tries the prefixes of the path in the lengths that occur among
the rules, those with the highest possible rank first, and stops when no other length can have a
higher one. So 20,000 literal rules cost as much as their few dozen different lengths.

Many rules with wildcards may share a prefix (`/*`), so more than `FEW_WILDCARDS` of them are stored
by a *key*: three letters that a path must contain to match, chosen so that few rules share a key.
A lookup checks only the rules whose key is in the path. A file can be written so that this does not
help. So a lookup may take at most `MAX_STEPS`, about half a millisecond; a path for which that is
not enough is disallowed, because no honest file needs a tenth of it.

Google compares paths as they are written, RFC 9309 in a canonical form (see `paths.py`). A path may
be fetched only if both allow it: the stricter result respects the site in any case.
This module knows nothing of agents, groups or files.
"""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING

from .lines import LineKind
from .paths import canonical_path, canonical_pattern, pattern_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from .lines import Directive

FEW_WILDCARDS = 64  # of one agent: so many are checked one by one in microseconds
MAX_STEPS = 2000  # pieces looked for in one lookup, at 0.2 µs each

END = "\xff"  # paths and patterns are ASCII, so this occurs only where we add it
_LINES = 1 << 20  # more lines than 500 KiB can hold
_KEY = 3  # letters of a key; fewer if no part of the pattern has as many
_KEYS_TRIED = 4  # for one rule
_PARTS_TRIED = 8
_FEW_PREFIXES = 32  # so many are compared in one step
_NO_PIECES: list[str] = []
_rank = attrgetter("rank")


class Rule:
    """One Allow or Disallow line, compiled. Of all matching rules, the highest rank decides."""

    __slots__ = ("directive", "is_allow", "pieces", "prefix", "rank")

    def __init__(self, directive: Directive, pattern: str) -> None:
        kind, _, line = self.directive = directive
        self.is_allow = kind is LineKind.ALLOW
        # One integer orders rules by length, then Allow over Disallow, then the earlier line.
        self.rank = (2 * len(pattern) + self.is_allow) * _LINES - line
        if pattern.endswith("$"):
            pattern = pattern[:-1] + END
        self.prefix, star, rest = pattern.partition("*")
        self.pieces = [piece for piece in rest.split("*") if piece] if star else _NO_PIECES

    def matches(self, target: str) -> bool:
        """Return whether all pieces occur in order in `target`, which starts with the prefix."""
        position = len(self.prefix)
        for piece in self.pieces:
            position = target.find(piece, position)
            if position < 0:
                return False
            position += len(piece)
        return True


# The result of a lookup that takes too long.
TOO_LONG = Rule((LineKind.DISALLOW, b"", 0), "/")


class RuleTable:
    """The rules of one agent, either as written or in canonical form."""

    __slots__ = ("_by_key", "_by_prefix", "_few_prefixes", "_lengths", "_wild_pieces")

    def __init__(self, rules: Iterable[Rule]) -> None:
        ranked = sorted(rules, key=_rank, reverse=True)
        self._by_key: dict[str, list[Rule]] = {}
        if sum(bool(rule.pieces) for rule in ranked) > FEW_WILDCARDS:
            for rule in ranked:
                if rule.pieces:
                    _add_by_key(self._by_key, rule)
            ranked = [rule for rule in ranked if not rule.pieces]
        self._by_prefix: dict[str, list[Rule]] = {}
        best_of_length: dict[int, int] = {}
        for rule in ranked:
            self._by_prefix.setdefault(rule.prefix, []).append(rule)
            best_of_length.setdefault(len(rule.prefix), rule.rank)
        # Rules were inserted by descending rank, so the lengths are in that order, too.
        self._lengths = list(best_of_length.items())
        # Of each rule with a wildcard, one piece without which it cannot match.
        self._wild_pieces = {max(rule.pieces, key=len) for rule in ranked if rule.pieces}
        prefixes = {rule.prefix for rule in ranked if not rule.pieces}
        self._few_prefixes = tuple(prefixes) if len(prefixes) <= _FEW_PREFIXES else None

    def find(self, path: str) -> Rule | None:
        """Return the highest rule that matches; TOO_LONG if that would take too long to find."""
        target = path + END
        few = self._few_prefixes
        if not (
            few is None
            or target.startswith(few)
            or any(map(target.__contains__, self._wild_pieces))
        ):
            # Most paths: two steps in C, however many rules there are, show that none matches.
            return self._find_by_key(target, None, 0) if self._by_key else None
        best = None
        best_rank = steps = 0
        rules_with = self._by_prefix.get
        for length, best_possible in self._lengths:
            if best_possible < best_rank:
                break
            for rule in rules_with(target[:length], ()):
                if rule.rank < best_rank:
                    break
                if rule.pieces:
                    steps += len(rule.pieces)
                    if steps > MAX_STEPS:
                        return TOO_LONG
                    if not rule.matches(target):
                        continue
                best, best_rank = rule, rule.rank
                break
        return self._find_by_key(target, best, steps) if self._by_key else best

    def _find_by_key(self, target: str, best: Rule | None, steps: int) -> Rule | None:
        best_rank = 0 if best is None else best.rank
        for key in _keys_in(target, self._by_key):
            for rule in self._by_key[key]:
                if rule.rank < best_rank:
                    break
                steps += len(rule.pieces)
                if steps > MAX_STEPS:
                    return TOO_LONG
                if target.startswith(rule.prefix) and rule.matches(target):
                    best, best_rank = rule, rule.rank
                    break
        return best


def _add_by_key(by_key: dict[str, list[Rule]], rule: Rule) -> None:
    """Store a rule by a key of its longest part: the one that fewest rules have, of a few."""
    part = max(rule.prefix, *rule.pieces[:_PARTS_TRIED], key=len)
    ends = max(1, len(part) - _KEY + 1)
    least: list[Rule] | None = None
    for start in range(0, ends, -(-ends // _KEYS_TRIED)):
        rules = by_key.setdefault(part[start : start + _KEY], [])
        if least is None or len(rules) < len(least):
            least = rules
    assert least is not None
    least.append(rule)


def _keys_in(target: str, by_key: dict[str, list[Rule]]) -> Iterable[str]:
    """Return the keys that occur in the target."""
    found = set(target)
    for size in range(2, _KEY + 1):
        found.update([target[start : start + size] for start in range(len(target) - size + 1)])
    return by_key.keys() & found


class RuleSet:
    """The rules of one agent, as written and in canonical form; the stricter result counts."""

    __slots__ = ("_canonical", "_written")

    def __init__(self, directives: Sequence[Directive]) -> None:
        written = [pattern_of(value) for _, value, _ in directives]
        canonical = [canonical_pattern(pattern) for pattern in written]
        self._written = _table(directives, written)
        self._canonical = self._written if canonical == written else _table(directives, canonical)

    def find(self, path: str) -> Rule | None:
        """Return the rule that decides about a path; None: no rule matches, it is allowed."""
        rule = self._written.find(path)
        if rule is not None and not rule.is_allow:
            return rule
        canonical = canonical_path(path)
        if canonical is path and self._canonical is self._written:
            return rule
        stricter = self._canonical.find(canonical)
        return rule if stricter is None or stricter.is_allow else stricter


def _table(directives: Sequence[Directive], patterns: Sequence[str]) -> RuleTable:
    rules: list[Rule] = []
    for directive, pattern in zip(directives, patterns, strict=True):
        # Paths start with a slash: other patterns (empty, whole URLs, single words) never match.
        if not pattern.startswith(("/", "*")):
            continue
        rule = Rule(directive, pattern)
        rules.append(rule)
        if rule.is_allow and "/index.htm" in pattern:
            rules.extend(_directory(directive, pattern))
    return RuleTable(rules)


def _directory(directive: Directive, pattern: str) -> list[Rule]:
    """Return a rule that allows `/a/` if `/a/index.html` is allowed, as Google's parser does."""
    folder, _, page = pattern.rpartition("/")
    return [Rule(directive, folder + "/$")] if page.startswith("index.htm") else []
