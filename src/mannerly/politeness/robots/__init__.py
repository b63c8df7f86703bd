"""Parse robots.txt files and decide what they allow: RFC 9309, interpreted as Google does.

    robots = Robots.parse(body)
    robots.allowed("https://example.com/private/", "mannerly/0.1 (+https://example.org)")
    print(robots.explain("/private/", "mannerly"))     # disallowed: line 2, Disallow: /private

Site owners test their files with Google's parser, so files with errors are interpreted as it
does; the tests compare both, file by file. An agent obeys all groups that name its token, and the
`*` groups only if there are none. Any bytes can be parsed: invalid lines are skipped, and a URL is
allowed unless a rule disallows it.

    lines.py       bytes → groups of raw directives
    paths.py       one spelling for URLs and patterns
    matching.py    which rule decides
    extensions.py  Crawl-delay, Request-rate, Visit-time

Nothing here fetches files or expires them. The caller decides what a missing or unreachable file
means, with `allow_all` or `disallow_all`.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, TypeVar

from . import extensions
from .extensions import RequestRate, VisitTime
from .lines import ANY_AGENT, EMPTY, Contents, LineKind, read, token_of
from .matching import TOO_LONG, Rule, RuleSet
from .paths import path_of

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Explanation", "RequestRate", "Robots", "RobotsVerdict", "VisitTime"]

_OWN_PATH = "/robots.txt"
_COMPILED_AGENTS = 8  # a crawl has one agent; a file can name thousands
_Value = TypeVar("_Value")


class RobotsVerdict(StrEnum):
    """The answer of a robots.txt for one URL."""

    ALLOWED = "allowed"
    DISALLOWED = "disallowed"


@dataclass(frozen=True, slots=True)
class Explanation:
    """The verdict on one URL and the reason for it. `line_number` is None if no rule matched."""

    verdict: RobotsVerdict
    because: str
    group: str | None = None  # the agent token whose rules applied
    rule: str | None = None  # as the file has it: "Disallow: /private"
    line_number: int | None = None

    @property
    def allowed(self) -> bool:
        return self.verdict is RobotsVerdict.ALLOWED

    def __str__(self) -> str:
        return f"{self.verdict}: {self.because}"


class Robots:
    """The rules of one origin. Immutable; the rules of an agent are compiled on first use."""

    __slots__ = ("_blanket", "_compiled", "_contents")

    def __init__(self, contents: Contents, *, blanket: Explanation | None = None) -> None:
        self._contents = contents
        self._blanket = blanket
        self._compiled: dict[str, RuleSet] = {}

    @classmethod
    def parse(cls, body: bytes) -> Robots:
        """Parse a robots.txt. Never raises: invalid lines are skipped."""
        return cls(read(body))

    @classmethod
    def allow_all(cls, because: str = "there is no robots.txt") -> Robots:
        """Return rules that allow everything: after a 4xx other than 429 (RFC 9309 §2.3.1.3)."""
        return cls(EMPTY, blanket=Explanation(RobotsVerdict.ALLOWED, because))

    @classmethod
    def disallow_all(cls, because: str = "robots.txt cannot be reached") -> Robots:
        """Return rules that allow nothing: after a 429, a 5xx or no response (§2.3.1.4)."""
        return cls(EMPTY, blanket=Explanation(RobotsVerdict.DISALLOWED, because))

    @property
    def sitemaps(self) -> tuple[str, ...]:
        """The values of all Sitemap lines, in order, without duplicates. They are not validated."""
        return self._contents.sitemaps

    def allowed(self, url: str, agent: str) -> bool:
        """Return whether `agent` (a User-Agent or its token) may fetch `url` (or a path)."""
        path = path_of(url)
        if path == _OWN_PATH:
            return True
        if self._blanket is not None:
            return self._blanket.allowed
        rule = self._rules(agent).find(path)
        return rule is None or rule.is_allow

    def explain(self, url: str, agent: str) -> Explanation:
        """Return the verdict of `allowed` with its reason: the line that decided."""
        path = path_of(url)
        if path == _OWN_PATH:
            return Explanation(RobotsVerdict.ALLOWED, "robots.txt itself may always be fetched")
        if self._blanket is not None:
            return self._blanket
        group = self._group_of(agent)
        rule = self._rules(agent).find(path)
        if rule is not None:
            return _explain_rule(rule, group)
        if group not in self._contents.groups:
            return Explanation(
                RobotsVerdict.ALLOWED, f"no group for {token_of(agent) or ANY_AGENT!r}"
            )
        return Explanation(RobotsVerdict.ALLOWED, f"no rule of group {group!r} matches", group)

    def crawl_delay_s(self, agent: str) -> float | None:
        """Return the first valid Crawl-delay of the agent's own groups, else of `*`, in seconds."""
        return self._extension(agent, LineKind.CRAWL_DELAY, extensions.crawl_delay_s)

    def request_rate(self, agent: str) -> RequestRate | None:
        """Return the first valid Request-rate of the agent's own groups, else of `*`."""
        return self._extension(agent, LineKind.REQUEST_RATE, extensions.request_rate)

    def visit_time(self, agent: str) -> VisitTime | None:
        """Return the first valid Visit-time of the agent's own groups, else of `*`."""
        return self._extension(agent, LineKind.VISIT_TIME, extensions.visit_time)

    def __repr__(self) -> str:
        if self._blanket is not None:
            return f"<Robots everything {self._blanket}>"
        agents, sitemaps = len(self._contents.groups), len(self._contents.sitemaps)
        return f"<Robots {agents} agents, {sitemaps} sitemaps>"

    def _group_of(self, agent: str) -> str:
        token = token_of(agent)
        return token if token in self._contents.groups else ANY_AGENT

    def _rules(self, agent: str) -> RuleSet:
        rules = self._compiled.get(agent)
        if rules is None:
            if len(self._compiled) >= _COMPILED_AGENTS:
                self._compiled.clear()
            joined = self._contents.groups.get(self._group_of(agent), ())
            rules = RuleSet([rule for each in joined for rule in each.rules])
            self._compiled[agent] = rules
        return rules

    def _extension(
        self, agent: str, kind: LineKind, read_value: Callable[[bytes], _Value | None]
    ) -> _Value | None:
        for token in (token_of(agent), ANY_AGENT):
            for group in self._contents.groups.get(token, ()):
                for line_kind, text, _ in group.extensions:
                    value = read_value(text) if line_kind is kind else None
                    if value is not None:
                        return value
        return None


def _explain_rule(rule: Rule, group: str) -> Explanation:
    if rule is TOO_LONG:
        because = "the rules with wildcards take too long to check"
        return Explanation(RobotsVerdict.DISALLOWED, because, group)
    kind, value, line = rule.directive
    text = f"{kind.name.capitalize()}: {value.decode('utf-8', 'replace')}"
    verdict = RobotsVerdict.ALLOWED if rule.is_allow else RobotsVerdict.DISALLOWED
    return Explanation(verdict, f"line {line}, {text}", group, text, line)
