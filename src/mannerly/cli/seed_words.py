"""Words for seeds that could not be fetched or that lead elsewhere, and what to do about it."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from mannerly.crawler.options.table import OPTIONS
from mannerly.crawler.web.words import many

from .display import width, wrapped
from .terminal import safe_term

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mannerly.crawler.inspection.seeds import SeedAstray, SeedProblem

    from .display import Display

_SEEDS = 10  # that are named; the rest is one number
_URL = 200  # characters of one

_ADVICE = {
    "name_not_resolved": "Check the name, then run the same command again.",
    "connection_refused": "Check the port, and that the server runs; then run the same command "
    "again.",
    "robots": "The site's robots.txt forbids these pages to crawlers like this one. Start from a "
    "URL that it allows, or ask the owner of the site.",
    "401": "The page asks for a login.",
    "403": "The site refuses us. Perhaps the page needs a login, or the site wants to know who "
    "asks: --contact names you.",
    "404": "Check the URL, then run the same command again.",
    "robots_timeout": "No page is asked for before the robots.txt is known. Wait longer for it "
    "with --robots-timeout; --robots-unreachable allow goes on without it.",
    "blocked_address": "The name leads to a private address. If that is meant: --allow-net.",
}
_TLS = (
    "Check the host's certificate. --ca-file trusts another authority, --insecure-host skips the "
    "check for one host."
)
_LATER = "Run the same command again when the server answers."


def failed_seed_lines(problems: Sequence[SeedProblem], display: Display) -> list[str]:
    """Return each seed with its cause, then what to do."""
    lines = [line for problem in problems[:_SEEDS] for line in _named(problem, display)]
    if len(problems) > _SEEDS:
        lines.append(f"  and {many(len(problems) - _SEEDS, 'more seed')}")
    advice = dict.fromkeys(_advice(problem.code) for problem in problems)
    said = [line for each in advice for line in _paragraph(each, display)]
    return ["", *lines, "", *said]


def _named(problem: SeedProblem, display: Display) -> list[str]:
    """Return a seed and its cause; on a narrow terminal, the cause below it."""
    url, why = safe_term(problem.url, limit=_URL), safe_term(problem.cause)
    line = f"  {url}   {why}"
    fits = not display.wraps or width(line) < display.columns
    return [line] if fits else [f"  {url}", f"      {why}"]


def _advice(code: str) -> str:
    if code.startswith("tls"):
        return _TLS
    if code == "401":
        return f"{_ADVICE[code]} {_credentials()}".rstrip()
    return _ADVICE.get(code, _LATER)


def _credentials() -> str:
    """Return how to send credentials, as far as there are options for it."""
    flags = [OPTIONS[name].flag for name in ("auth", "header") if name in OPTIONS]
    return f"{' or '.join(flags)} sends credentials to its host." if flags else ""


def astray_lines(seeds: Sequence[SeedAstray], pages: str) -> tuple[str, list[str]]:
    """Return the headline for seeds that lead elsewhere, and the lines below it."""
    is_login = any(seed.is_login for seed in seeds)
    who = "the seed leads" if len(seeds) == 1 else "all seeds lead"
    where = "another host" if len(seeds) == 1 else "other hosts"
    if is_login:
        where = "a login page"
    elif all(seed.skipped for seed in seeds):
        where = "a page that was skipped" if len(seeds) == 1 else "pages that were skipped"
    lines = [""]
    for seed in seeds[:_SEEDS]:
        url, target = safe_term(seed.url, limit=_URL), safe_term(seed.target, limit=_URL)
        why = f"   {safe_term(seed.skipped)}" if seed.skipped else ""
        lines.append(f"  {url}  {seed.status} →  {target}{why}")
    if len(seeds) > _SEEDS:
        lines.append(f"  and {many(len(seeds) - _SEEDS, 'more seed')}")
    lines.append("")
    said = f": {pages}; {who} to {where}"
    return said, [*lines, *(_login() if is_login else _follow(seeds))]


def _login() -> list[str]:
    return [f"  Start from a page that needs no login. {_credentials()}".rstrip()]


def _follow(seeds: Sequence[SeedAstray]) -> list[str]:
    """Return the commands that follow: there alone, or both."""
    seeds = [seed for seed in seeds if not seed.skipped]
    if not seeds:
        return ["  Start from a page that may be fetched."]
    given = [shlex.quote(seed.url) for seed in seeds[:_SEEDS]]
    targets = [shlex.quote(seed.target) for seed in seeds[:_SEEDS]]
    there = f"  mannerly crawl {safe_term(' '.join(dict.fromkeys(targets)))}"
    both = f"  mannerly crawl {safe_term(' '.join(dict.fromkeys([*given, *targets])))}"
    return [f"{there}   # crawl there instead", f"{both}   # or both"]


def _paragraph(text: str, display: Display) -> list[str]:
    """Return a text as lines, indented by two."""
    indented = wrapped("", text.split(" "), display.columns + 13, gap=" ")
    return [f"  {line.strip()}" for line in indented]
