"""Decides which URLs belong to a crawl, from their text alone and in linear time.

The rules are checked from the cheapest to the most expensive; the first that fails is the reason:

    depth  →  host, site or prefix of a seed  →  exclude  →  include

A glob is matched against the whole canonical URL, and only `*` is special (any run of characters,
slashes too). `?` and `[` are ordinary, because URLs are full of them: `*?page=*` matches a literal
question mark. Matching goes once from left to right with substring search, so no pattern and no URL
can make it slow; that is why there are no regular expressions here.

The scheme never decides: a site that moves its pages to https stays in scope. A seed is always
included, even where no include glob fits it, or the crawl could not start; exclude binds seeds too.

This module knows no page, no queue and no network. Its URLs must be canonical (`urls.py`).
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import quote

from .choices import ScopeMode
from .urls import Url, UrlRules, canonical, host_key_of, site_of, with_plain_escapes

if TYPE_CHECKING:
    from collections.abc import Iterable

# The length limit and dropped parameters are rules for links only. A seed must merely be spelled as
# links to it will be.
_SEED_RULES = UrlRules(max_length=65_536, drop_params=frozenset(), drop_prefixes=())
MAX_GLOB_LENGTH = 2048  # as long as a URL
_ASCII = "".join(map(chr, range(0x21, 0x7F)))


class SkipReason(StrEnum):
    """The reason why a URL is not in scope. The values are stored in records."""

    TOO_DEEP = "too_deep"
    OFF_HOST = "off_host"
    OFF_SITE = "off_site"
    OFF_PREFIX = "off_prefix"
    EXCLUDED = "excluded"
    NOT_INCLUDED = "not_included"


class SortedLinks(NamedTuple):
    """The links of one page, in scope or not; both lists keep the page's order."""

    inside: list[str]
    outside: list[tuple[str, SkipReason]]


class Glob:
    """A pattern in which `*` stands for any run of characters."""

    __slots__ = ("_head", "_middle", "_tail", "pattern")

    def __init__(self, pattern: str) -> None:
        _check_glob(pattern)
        self.pattern = pattern
        # Canonical URLs have other alphabets percent-encoded; people write them as they are.
        head, *rest = with_plain_escapes(quote(pattern, safe=_ASCII)).split("*")
        self._head = head
        self._tail: str | None = rest[-1] if rest else None
        self._middle = tuple(part for part in rest[:-1] if part)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.pattern!r})"

    def matches(self, text: str) -> bool:
        """Return whether all of `text` matches. Leftmost places are enough, as `*` may be empty."""
        if self._tail is None:
            return text == self._head
        if not text.startswith(self._head):
            return False
        at = len(self._head)
        for part in self._middle:
            found = text.find(part, at)
            if found < 0:
                return False
            at = found + len(part)
        return len(text) - at >= len(self._tail) and text.endswith(self._tail)


@dataclass(frozen=True, slots=True)
class Scope:
    """The scope of one crawl. `dataclasses.replace(scope, seeds=…)` makes one for other seeds."""

    seeds: tuple[str, ...]
    mode: ScopeMode = ScopeMode.HOST
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    max_depth: int | None = None
    _hosts: set[str] = field(init=False, repr=False, compare=False)
    _sites: set[str] = field(init=False, repr=False, compare=False)
    _prefixes: dict[str, tuple[str, ...]] = field(init=False, repr=False, compare=False)
    _include: tuple[Glob, ...] = field(init=False, repr=False, compare=False)
    _exclude: tuple[Glob, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.max_depth is not None and self.max_depth < 0:
            raise ValueError(f"max_depth must be 0 or more, not {self.max_depth}")
        if not self.seeds:
            raise ValueError("a crawl needs at least one seed URL")
        put = object.__setattr__
        put(self, "_hosts", set())
        put(self, "_sites", set())
        put(self, "_prefixes", {})
        put(self, "_include", tuple(map(Glob, self.include)))
        put(self, "_exclude", tuple(map(Glob, self.exclude)))
        self._add(map(_checked_seed, self.seeds))

    def _add(self, seeds: Iterable[Url]) -> None:
        folders: dict[str, set[str]] = {}
        for seed in seeds:
            self._hosts.add(seed.host_key)
            if self.mode is ScopeMode.SITE:  # the first call loads the list of public suffixes
                self._sites.add(site_of(seed.host_key))
            # `/docs/a.html` and `/docs/?q` both mean the folder `/docs/`.
            path = seed.path_and_query.partition("?")[0]
            folders.setdefault(seed.host_key, set()).add(path[: path.rfind("/") + 1])
        for host_key, paths in folders.items():
            self._prefixes[host_key] = (*self._prefixes.get(host_key, ()), *sorted(paths))

    def including(self, *urls: str) -> Scope:
        """Return a scope that includes these canonical URLs, as if they were seeds."""
        wanted = [
            url
            for url in urls
            if self._off_limits(url) is not None or host_key_of(url) not in self._hosts
        ]
        if not wanted:
            return self
        wider = copy(self)
        put = object.__setattr__
        put(wider, "seeds", (*self.seeds, *wanted))
        for name in ("_hosts", "_sites", "_prefixes"):
            put(wider, name, copy(getattr(self, name)))
        wider._add(map(Url.of, wanted))
        return wider

    def judge(self, url: str, depth: int) -> SkipReason | None:
        """Return why a canonical URL at `depth` (seeds: 0) is not in scope; None if it is."""
        if self.max_depth is not None and depth > self.max_depth:
            return SkipReason.TOO_DEEP
        return self._off_limits(url) or self._globs_against(url, depth)

    def has_seed_on(self, host: str) -> bool:
        """Return whether a seed is on this host, given as a host key."""
        return host in self._hosts

    def excludes(self, url: str) -> bool:
        """Return whether an exclude glob matches: such a URL is never fetched, for any purpose."""
        return bool(self._exclude) and any(glob.matches(url) for glob in self._exclude)

    def sort(self, urls: Iterable[str], depth: int, *, page_url: str) -> SortedLinks:
        """Judge the links of one page. Most lead to the page's own host, which is judged once."""
        if self.max_depth is not None and depth > self.max_depth:
            return SortedLinks([], [(url, SkipReason.TOO_DEEP) for url in urls])
        neighbours = self._neighbours(page_url)
        has_globs = bool(self._include or self._exclude)
        inside: list[str] = []
        outside: list[tuple[str, SkipReason]] = []
        for url in urls:
            reason = None if url.startswith(neighbours) else self._off_limits(url)
            if reason is None and has_globs:
                reason = self._globs_against(url, depth)
            if reason is None:
                inside.append(url)
            else:
                outside.append((url, reason))
        return SortedLinks(inside, outside)

    def _neighbours(self, page_url: str) -> tuple[str, ...]:
        """The prefixes of URLs that are in scope because this page is; perhaps none."""
        # A prefix scope may include a part of a host only, so this short cut does not apply.
        if self.mode is ScopeMode.PREFIX or self._off_limits(page_url) is not None:
            return ()
        host_key = host_key_of(page_url)
        return (f"https://{host_key}/", f"http://{host_key}/")

    def _off_limits(self, url: str) -> SkipReason | None:
        mode = self.mode
        if mode is ScopeMode.ANY:
            return None
        host_key = host_key_of(url)
        if mode is ScopeMode.HOST:
            return None if host_key in self._hosts else SkipReason.OFF_HOST
        if mode is ScopeMode.SITE:
            return None if site_of(host_key) in self._sites else SkipReason.OFF_SITE
        path = url[url.find("/", 8) :]
        is_below_seed = path.startswith(self._prefixes.get(host_key, ()))
        return None if is_below_seed else SkipReason.OFF_PREFIX

    def _globs_against(self, url: str, depth: int) -> SkipReason | None:
        if self.excludes(url):
            return SkipReason.EXCLUDED
        if not self._include or depth == 0:
            return None
        for glob in self._include:
            if glob.matches(url):
                return None
        return SkipReason.NOT_INCLUDED


def _checked_seed(seed: str) -> Url:
    text = canonical(seed, rules=_SEED_RULES)
    # A crawl that an earlier release began may have a seed with escapes spelled otherwise.
    if text is None or not seed.startswith(Url.of(text).origin + "/"):
        raise ValueError(f"seed is not a canonical http(s) URL: {seed!r}")
    return Url.of(text)


def _check_glob(pattern: str) -> None:
    if len(pattern) > MAX_GLOB_LENGTH:
        raise ValueError(
            f"glob {pattern[:40]!r}… has {len(pattern)} characters: {MAX_GLOB_LENGTH} are allowed"
        )
    if not pattern.startswith(("*", "http://", "https://")):
        raise ValueError(
            f"glob {pattern!r} can match no URL: it is compared with the whole URL, "
            f"so start it with *, http:// or https:// (perhaps '*{pattern}')"
        )
    if "#" in pattern or any(char.isspace() or ord(char) < 32 for char in pattern):
        raise ValueError(
            f"glob {pattern!r} can match no URL: URLs are compared without their fragment (#…), "
            "and have no spaces"
        )
