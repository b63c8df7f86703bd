"""Our verdicts against those of Google's own matcher, on real files and on invented ones."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from bench.robots import agents, google, urls
from hypothesis import given
from hypothesis import strategies as st
from tests.politeness.cases import case

from mannerly.politeness.robots import Robots

RobotsMatcher = pytest.importorskip(
    "jwm.robotstxt.googlebot", reason="Google's matcher has no wheel for this Python"
).RobotsMatcher

CORPUS = sorted((Path(__file__).parent / "robots_corpus").glob("*.txt"))
RULES_PER_FILE = 20

AGENTS = ("foo", "bar", "Foo-Bar", "stranger")
WORDS = st.sampled_from(
    ["/", "/a", "/b", "a", "*", "$", "/index.html", "?q=", "%C3%A9", "%2F", ".php", "x", "//"]
)
PATHS = st.lists(WORDS, max_size=5).map("".join)
KEYS = st.sampled_from(
    ["User-agent", "useragent", "Disallow", "Allow", "disalow", "Sitemap", "Crawl-delay", "Noise"]
)
NAMES = st.sampled_from(["foo", "Bar", "foo-bar", "*", "* x", "*x", "360", "foo bar", "foo/1.0"])
SEPARATORS = st.sampled_from([":", ": ", " : ", " ", "\t", "  "])
ENDS = st.sampled_from(["\n", "\r\n", "\r", "\n\n", " # note\n"])


@st.composite
def bodies(draw: st.DrawFn) -> bytes:
    """Files that look like robots.txt, with the mistakes that people make."""
    lines = draw(st.lists(st.tuples(KEYS, SEPARATORS, PATHS | NAMES, ENDS), max_size=12))
    mark = draw(st.sampled_from(["", "\ufeff"]))
    return (mark + "".join("".join(line) for line in lines)).encode()


def upper_case_escapes(url: str) -> str:
    """Google's matcher expects a URL's escapes in upper case; ours sees to that itself."""
    return re.sub("%[0-9a-fA-F]{2}", lambda found: found[0].upper(), url)


def test_corpus_is_judged_as_google_judges_it() -> None:
    """On real files, verdicts agree in at least 99.98 % of the questions."""
    answers = {
        (file.name, url, agent): robots.allowed(url, agent)
        is google(body, upper_case_escapes(url), agent)
        for file in CORPUS
        for body in [file.read_bytes()]
        for robots in [Robots.parse(body)]
        for agent in agents(body)
        for url in urls(body, RULES_PER_FILE)
    }

    differing = [question for question, agrees in answers.items() if not agrees]

    assert len(answers) > 5_000
    assert len(differing) <= 0.0002 * len(answers), differing


def test_corpus_verdicts_rest_on_the_same_line() -> None:
    """When a rule decides, it stands on the line that Google's matcher reports."""
    for file in CORPUS:
        with case(file):
            body = file.read_bytes()
            robots = Robots.parse(body)
            matcher = RobotsMatcher()
            agent, _ = agents(body)

            for url in urls(body):
                matcher.OneAgentAllowedByRobots(body, agent, upper_case_escapes(url))
                line_number = robots.explain(url, agent).line_number

                assert line_number in (None, matcher.matching_line())


@given(body=bodies(), path=PATHS, agent=st.sampled_from(AGENTS))
def test_invented_files_are_never_judged_more_freely(body: bytes, path: str, agent: str) -> None:
    """What Google's matcher forbids, we forbid, whatever the file looks like."""
    url = "https://example.com/" + path

    assert not Robots.parse(body).allowed(url, agent) or google(body, url, agent)


@given(body=bodies(), path=PATHS, agent=st.sampled_from(AGENTS))
def test_plain_paths_are_judged_exactly_alike(body: bytes, path: str, agent: str) -> None:
    """Without `*` or `$` in the URL there is but one reading, and it is Google's."""
    url = "https://example.com/" + path.replace("*", "").replace("$", "")

    assert Robots.parse(body).allowed(url, agent) is google(body, url, agent)


@given(body=st.binary(max_size=400) | bodies(), url=st.text(max_size=60), agent=st.text(max_size=9))
def test_any_octets_get_an_answer(body: bytes, url: str, agent: str) -> None:
    """No file, URL or agent makes a question fail, and both ways of asking agree."""
    robots = Robots.parse(body)

    explanation = robots.explain(url, agent)

    assert robots.allowed(url, agent) is explanation.allowed
    assert (robots.crawl_delay_s(agent) or 0.0) >= 0.0
    assert all(isinstance(sitemap, str) for sitemap in robots.sitemaps)


@given(url=st.text(st.characters(min_codepoint=0xD800, max_codepoint=0xDFFF), min_size=1))
def test_lone_surrogates_get_an_answer(url: str) -> None:
    """Not even text that cannot be encoded stops a check."""
    robots = Robots.parse(b"User-agent: *\nDisallow: /")

    assert not robots.allowed("/" + url, url)
