"""Options of the command are keywords of the library; wrong ones are refused with a good reason."""

from __future__ import annotations

import inspect
import subprocess
import sys
from typing import TYPE_CHECKING, Any, get_type_hints

import pytest
from cryptography import x509
from tests.crawler.fetch.certificates import Authority
from tests.harness.commands import ROOT
from tests.library.loops import FAST

import mannerly
from mannerly.crawler.options.keywords import CrawlOptions
from mannerly.crawler.options.option import ValueKind
from mannerly.crawler.options.table import ALIASES, KEYWORDS, OPTIONS
from mannerly.crawler.settings import in_force
from mannerly.demo import DemoWeb, plain_sites

if TYPE_CHECKING:
    from pathlib import Path

SEED = "http://127.0.0.1:9/"
LIBRARY = (
    "data_dir",
    "fresh",
    "redis_url",
)  # options of the command that are parameters with a name

# A value that each option takes; the others take that of their kind.
OF_KIND: dict[ValueKind, Any] = {
    ValueKind.INTEGER: 3,
    ValueKind.BYTES: 3 << 20,
    ValueKind.NUMBER: 2.5,
    ValueKind.RATE: 2.0,
    ValueKind.TEXT: "word",
    ValueKind.CONTACT: "me@a.example",
    ValueKind.FLAG: True,
    ValueKind.LIST: ["http://*"],
    ValueKind.STATUSES: [429, 503],
    ValueKind.HOSTS: {"127.0.0.1:9": {"delay": 5.0, "start_rate": 0.25}},
}
VALUES: dict[str, Any] = {
    "scope": "site",
    "seeding_strategy": "none",
    "strategy": "aimd",
    "latency_samples": 32,
    "robots_unreachable": "allow",
    "contact": "me@example.org",
    "ct_url": "https://ct.example/{site}",
    "commoncrawl_url": "https://cc.example/{site}",
    "proxy": "http://127.0.0.1:3128",
    "allow_net": ["127.0.0.0/8"],
    "insecure_host": ["127.0.0.1"],
    "text_digest": "all",
    "sitemap": ["https://a.example/news.xml"],
    "variant": ["mobile"],
    "max_error_rate": 0.5,
    "header": ["X-Api-Key: key", "a.example=X-Other: value"],
    "auth": ["a.example=joe:password"],
    "max_rate": "unlimited",
    "group_by": "site",
    "browser_no_sandbox": True,
    "wait_for": ["a.example=.price"],
    "render_block": "image,font",
    "render_memory": 1 << 30,
    "long_crawl_delay": "cap",
    **dict.fromkeys(("probe_budget", "cruise", "aimd_decrease", "gradient_smoothing"), 0.1),
    **dict.fromkeys(("breaker_error_rate", "retry_budget"), 0.1),
}


def setting(crawl: mannerly.Crawl, name: str) -> Any:
    """Return the field of the settings that an option sets."""
    return in_force(crawl.settings, OPTIONS[name])


@pytest.mark.parametrize("name", OPTIONS)
def test_every_option_of_the_command_is_known(name: str, tmp_path: Path) -> None:
    """Those about the crawl are keywords; those about the command's output say that they are."""
    if name in LIBRARY:
        assert name in inspect.signature(mannerly.crawl).parameters
        return
    given = {name: VALUES.get(name, OF_KIND.get(OPTIONS[name].kind))}
    if name == "render":
        given[name] = []  # more needs a browser: tests/crawler/render
    if OPTIONS[name].kind is ValueKind.FILE:
        given[name] = Authority(tmp_path).certificate(x509.DNSName("localhost")).file
    if name not in KEYWORDS:
        with pytest.raises(mannerly.OptionError, match=f"^{name} is an option of the command, not"):
            mannerly.Crawl(SEED, **given)
        return
    with mannerly.Crawl(SEED, **given) as crawl, mannerly.Crawl(SEED) as usual:
        value = given[name]
        if OPTIONS[name].kind is ValueKind.LIST:
            value = tuple(value)
        elif OPTIONS[name].kind is ValueKind.FILE:
            value = str(value)
        assert setting(crawl, name) == value
        assert usual.settings == mannerly.Crawl.of(usual.settings, [SEED], tmp_path / "c").settings


@pytest.mark.parametrize("name", KEYWORDS)
def test_none_stands_for_the_default(name: str) -> None:
    """So a program can pass on what its own caller may have left out."""
    with mannerly.Crawl(SEED, **{name: None}) as crawl, mannerly.Crawl(SEED) as usual:  # type: ignore[misc]
        assert crawl.settings == usual.settings


def test_types_know_every_keyword() -> None:
    """`CrawlOptions`, which type checkers see, has exactly the keywords that there are."""
    assert set(get_type_hints(CrawlOptions)) == {*KEYWORDS, *ALIASES}
    assert not CrawlOptions.__required_keys__


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        ("max_url", "max_urls"),
        ("max_dept", "max_depth"),
        ("exlude", "exclude"),
        ("user_agnet", "user_agent"),
        ("data_dri", "data_dir"),
        ("politness", "politeness"),
        ("concurency", "concurrency"),
    ],
)
@pytest.mark.parametrize("call", [mannerly.crawl, mannerly.acrawl, mannerly.Crawl])
def test_wrong_names_get_a_suggestion(call: Any, wrong: str, right: str) -> None:
    """It is told at the call, before anything is made."""
    with pytest.raises(
        mannerly.OptionError, match=rf"^{wrong} is not an option; did you mean {right}\?"
    ):
        call(SEED, **{wrong: 1})


def test_names_like_nothing_get_none() -> None:
    """A guess that is no help is not made."""
    with pytest.raises(mannerly.OptionError, match=r"^banana is not an option$"):
        mannerly.crawl(SEED, banana=1)  # type: ignore[call-arg]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_urls": "many"}, "max_urls is 'many'; allowed: a whole number"),
        ({"max_urls": 1.5}, "max_urls is 1.5; allowed: a whole number"),
        ({"max_urls": True}, "max_urls is True; allowed: a whole number"),
        ({"max_urls": -1}, "max_urls"),
        ({"delay": -0.5}, "delay"),
        ({"delay": float("nan")}, "delay is nan; allowed: a number"),
        ({"scope": "planet"}, "scope"),
        ({"strategy": "eager"}, "strategy"),
        ({"max_rate": "fast"}, "max_rate is 'fast'; allowed: a number, or \"unlimited\""),
        ({"exclude": [1]}, "exclude is [1]; allowed: a list of texts"),
        ({"governor": "yes"}, "governor is 'yes'; allowed: true or false"),
        ({"user_agent": "two\nlines"}, "user_agent"),
        ({"processes": 0}, "processes"),
        ({"concurrency": 0}, "concurrency"),
        ({"timeout": 0.0}, "timeout"),
    ],
)
def test_wrong_values_name_their_option(options: Any, message: str) -> None:
    """The message begins with the keyword as it was written, and leaves nothing behind."""
    with pytest.raises(mannerly.OptionError) as caught:
        mannerly.crawl(SEED, **options)

    assert str(caught.value).startswith(message)


@pytest.mark.parametrize("name", ["ca_file", "data_dir"])
def test_a_path_will_do_where_a_text_is_taken(name: str, tmp_path: Path) -> None:
    """The complaint is about what the path names, not about its type."""
    file = tmp_path / "file"
    file.write_text("something else")

    with pytest.raises((mannerly.OptionError, mannerly.StoreError), match=str(file)):
        mannerly.crawl(SEED, **{name: file})  # type: ignore[arg-type]


def test_one_text_will_do_where_several_are_taken() -> None:
    """`exclude="*.pdf"` is one pattern, not five letters; a tuple is as good as a list."""
    with (
        mannerly.Crawl(SEED, exclude="*.pdf", include=("*a*", "*b*")) as crawl,
        mannerly.Crawl(SEED, exclude=["*.pdf"], include=["*a*", "*b*"]) as same,
    ):
        assert crawl.settings == same.settings
        assert crawl.settings.exclude == ("*.pdf",)


def test_politeness_is_taken_as_a_whole_and_changed_by_options() -> None:
    """`politeness=Settings(…)` sets everything; a single option changes one thing of it."""
    polite = mannerly.Settings(strategy="fixed", delay_s=7.0, max_attempts=2)

    with mannerly.Crawl(SEED, politeness=polite, delay=9.0) as crawl:
        settings = crawl.settings.politeness

    assert (settings.strategy, settings.delay_s, settings.max_attempts) == ("fixed", 9.0, 2)


def test_a_resumed_crawl_keeps_its_options(tmp_path: Path) -> None:
    """What is not given again is as it was; what decides about URLs cannot be changed."""
    with mannerly.Crawl(SEED, data_dir=tmp_path / "c", scope="site", delay=4.0, timeout=3.0):
        pass

    with mannerly.Crawl(data_dir=tmp_path / "c", scope="any", timeout=2.0) as crawl:
        settings = crawl.settings

    assert (settings.scope, settings.timeout_s, settings.politeness.delay_s) == ("site", 2.0, 4.0)


def test_processes_are_one_unless_given() -> None:
    """The command counts cores; a library starts no processes that were not asked for."""
    with mannerly.Crawl(SEED) as crawl:
        assert crawl.settings.processes == 1


@pytest.mark.processes
def test_public_names_are_there_and_cheap() -> None:
    """Everything in `__all__` exists; importing the package alone loads none of it."""
    for name in mannerly.__all__:
        assert getattr(mannerly, name) is not None
        assert name in dir(mannerly)
    with pytest.raises(AttributeError, match="no attribute 'spider'"):
        mannerly.spider  # type: ignore[attr-defined]  # noqa: B018
    loaded = "import sys, mannerly; print(sorted(m for m in sys.modules if 'mannerly' in m))"
    done = subprocess.run(
        [sys.executable, "-c", loaded], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "['mannerly', 'mannerly.version']"


@pytest.mark.parametrize("name", mannerly.__all__)
def test_types_of_every_public_name_are_checked(name: str) -> None:
    """Strict mypy reads tests/typing/api.py, in which each of them is used."""
    assert f"mannerly.{name}" in (ROOT / "tests" / "typing" / "api.py").read_text()


def test_docstrings_show_an_example() -> None:
    """`help(mannerly.crawl)` begins with what to type."""
    for call in (mannerly, mannerly.crawl, mannerly.acrawl, mannerly.Crawl, mannerly.open):
        assert "mannerly." in (call.__doc__ or "")


def test_options_reach_the_crawl() -> None:
    """One that can be seen from outside: no URL that is excluded is asked for."""
    with DemoWeb(plain_sites(1, pages=30)) as web:
        urls = [page.url for page in mannerly.crawl(web.seeds(), exclude="*/section-1/*", **FAST)]
        asked = {record.path for record in web.log()}

    assert len(urls) > 5
    assert not any("/section-1/" in path for path in asked)


@pytest.mark.parametrize(
    ("text", "number"),
    [("1048576", 1 << 20), ("64KB", 1 << 16), ("256MB", 256 << 20), ("1g", 1 << 30), (5, 5)],
)
def test_sizes_may_have_a_unit(text: str | int, number: int) -> None:
    """Units are powers of 1,024, with or without a B."""
    with mannerly.Crawl(SEED, max_bytes=text) as crawl:
        assert crawl.settings.max_bytes == number


@pytest.mark.parametrize("text", ["", "MB", "1.5MB", "-1", "10 apples", "１MB"])
def test_text_that_is_no_size_is_refused(text: str) -> None:
    """The error shows what is allowed."""
    with pytest.raises(mannerly.OptionError, match=r"max_bytes is .*256MB"):
        mannerly.Crawl(SEED, max_bytes=text)
