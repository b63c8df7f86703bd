"""Every politeness setting from every place, for all hosts and for one."""

from __future__ import annotations

import json
import tomllib
from typing import TYPE_CHECKING, Any

import pytest
from tests.harness.commands import invoke
from tests.politeness.cases import case

from mannerly.cli.config import resolve
from mannerly.crawler.options.option import ValueKind
from mannerly.crawler.options.table import FIELDS, OPTIONS
from mannerly.crawler.options.values import OptionError, from_keywords
from mannerly.crawler.settings import CrawlSettings, with_options
from mannerly.demo import DemoWeb, gaps_s, plain_sites
from mannerly.politeness import Settings
from mannerly.politeness.settings import groups

if TYPE_CHECKING:
    from pathlib import Path


HOST = "example.org"

# A value that each setting takes, other than its default, by the kind of its option.
OF_KIND: dict[ValueKind, Any] = {
    ValueKind.INTEGER: 7,
    ValueKind.NUMBER: 0.75,
    ValueKind.RATE: 2.5,
    ValueKind.FLAG: False,
    ValueKind.STATUSES: [429, 503],
}
VALUES: dict[str, Any] = {
    "strategy": "aimd",
    "error_window": 20.0,
    "latency_samples": 32,
    "group_by": "site",
    "long_crawl_delay": "cap",
    "gradient_tolerance": 3.5,
    "latency_factor": 3.5,
    "aimd_degrade_factor": 3.5,
    "probe_budget": 0.01,
}
PACES = {name: VALUES.get(name, OF_KIND.get(OPTIONS[name].kind)) for name in FIELDS.values()}
OWN = [name for name in PACES if OPTIONS[name].for_one_host]


@pytest.fixture(autouse=True)
def _empty_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)


def as_text(value: Any) -> str:
    return " ".join(map(str, value)) if isinstance(value, list) else str(value)


def in_core(name: str, settings: Settings) -> Any:
    """Return what the core has for an option, as the option spells it."""
    field = next(field for field, option in FIELDS.items() if option == name)
    value = getattr(settings, field)
    if isinstance(value, frozenset):
        return sorted(value)
    return 1 / value if OPTIONS[name].is_inverse else value


# ---------------------------------------------------------------------- every setting


def test_every_setting_of_the_core_has_an_option() -> None:
    """Only the timeout of requests has none of its own: --timeout sets it, too."""
    fields = {each.name for members in groups().values() for each in members}

    assert fields - FIELDS.keys() == {"request_timeout_s"}


def test_every_setting_can_be_set_everywhere(tmp_path: Path) -> None:
    """On the command line, in the environment, in a file and as a keyword."""
    for name, value in PACES.items():
        with case(name):
            option, usual = OPTIONS[name], Settings()
            file = tmp_path / "mannerly.toml"
            file.write_text(f"{name} = {json.dumps(value)}\n")
            written = value if isinstance(value, bool) else as_text(value)
            places = (
                resolve({name: written}, environment={}, directory=None),
                resolve({}, environment={option.variable: as_text(value)}, directory=None),
                resolve({}, environment={"HOME": "nowhere"}, directory=tmp_path),
            )

            found = [place.settings().politeness for place in places]
            found.append(with_options(CrawlSettings(), from_keywords({name: value})).politeness)

            assert [in_core(name, each) for each in found] == [value] * 4
            assert in_core(name, usual) != value


def test_every_setting_can_be_set_for_one_host_everywhere(tmp_path: Path) -> None:
    """The host has its own value, all others that of the crawl."""
    for name in OWN:
        with case(name):
            value, usual = PACES[name], Settings()
            file = tmp_path / "mannerly.toml"
            file.write_text(f'[host."{HOST}"]\n{name} = {json.dumps(value)}\n')
            entry = f"{HOST}:{name}={as_text(value).replace(' ', ',')}"
            places = (
                resolve({"host": [entry]}, environment={}, directory=None),
                resolve({}, environment={"MANNERLY_HOST": entry}, directory=None),
                resolve({}, environment={"HOME": "nowhere"}, directory=tmp_path),
            )

            settings = [place.settings() for place in places]
            keywords = from_keywords({"host": {HOST: {name: value}}})
            settings.append(with_options(CrawlSettings(), keywords))

            assert [in_core(name, each.pace_of(HOST)) for each in settings] == [value] * 4
            assert [in_core(name, each.pace_of("other")) for each in settings] == [
                in_core(name, usual)
            ] * 4


def test_settings_that_cannot_differ_between_hosts_are_refused() -> None:
    """Those are few, and the message says why."""
    assert PACES.keys() - set(OWN) == {"random_seed", "group_by", "idle_ttl", "max_host_states"}
    for name in PACES.keys() - set(OWN):
        with case(name), pytest.raises(OptionError, match="holds for the whole crawl"):
            from_keywords({"host": {HOST: {name: PACES[name]}}})


# ---------------------------------------------------------------------- config show


def test_config_show_names_the_winner_of_each_option_of_a_host(tmp_path: Path) -> None:
    """Values of one host come from different places; the output is a file that means the same."""
    user = tmp_path / "home" / ".config" / "mannerly"
    user.mkdir(parents=True)
    (user / "config.toml").write_text(
        f'[host."{HOST}"]\ndelay = 1\nper_host = 2\nbreaker_open = 9\n'
    )
    (tmp_path / "mannerly.toml").write_text(f'[host."{HOST.upper()}"]\ndelay = 2\nper-host = 3\n')
    env = {"MANNERLY_HOST": f"{HOST}:delay=3 [::1]:8080:max_rate=unlimited"}

    shown = invoke("config", "show", "--origin", env=env)
    as_json = json.loads(invoke("config", "show", "--origin", "--json", env=env).stdout)
    plain = invoke("config", "show", env=env).stdout
    (tmp_path / "mannerly.toml").write_text(plain)
    again = invoke("config", "show").stdout

    assert tomllib.loads(shown.stdout)["host"] == {
        HOST: {"delay": 3, "per_host": 3, "breaker_open": 9},
        "[::1]:8080": {"max_rate": "unlimited"},
    }
    lines = {line.partition(" = ")[0]: line for line in shown.stdout.splitlines()[-6:]}
    assert lines["delay"].endswith(f"# MANNERLY_HOST {HOST}:delay")
    assert lines["per_host"].endswith('# mannerly.toml: host."EXAMPLE.ORG".per-host')
    assert lines["breaker_open"].endswith(f'config.toml: host."{HOST}".breaker_open')
    assert as_json["host"][HOST]["delay"] == {"value": 3, "origin": f"MANNERLY_HOST {HOST}:delay"}
    assert again == plain


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("breakr_open = 3", "mannerly.toml: breakr_open is not an option; did you mean breaker_op"),
        ("delai = 3", "mannerly.toml: delai is not an option; did you mean delay?"),
        ("max_concurrency = 3", "max_concurrency is not an option; did you mean per_host?"),
        ("breaker_open_s = 3", "breaker_open_s is not an option; did you mean breaker_open?"),
        ("retry_statuses = [99]", "retry_statuses is [99]; allowed: HTTP statuses from 100 to 599"),
        ('retry_statuses = "429"', "retry_statuses is '429'; allowed: HTTP statuses such as 429"),
        ("retry_base = 100", "retry_base is 100; allowed: above 0, at most the longest backoff"),
        ("retry_max = 0.1", "retry_base is 0.5; allowed: above 0, at most the longest backoff"),
        ('group_by = "ip"', "mannerly.toml: group_by is 'ip'; allowed: one of host, site"),
        (
            "host = 3",
            "mannerly.toml: host is 3; allowed: a table of options for each host, as in [",
        ),
        ("[host]\ndelay = 3", "mannerly.toml: host is {'delay': 3}; allowed: a table of options"),
        (
            '[host."a.b"]\ndely = 3',
            'host."a.b".dely is not an option of a host; did you mean delay',
        ),
        ('[host."a.b"]\ndelay = -3', 'mannerly.toml: host."a.b".delay is -3; allowed: above 0'),
        ('[host."a.b"]\nmax_urls = 3', "cannot be set for one host: max_urls holds for the whole"),
        ('[host."*.b"]\ndelay = 3', "is '*.b'; allowed: a host name or address such as www.examp"),
        ('[host."A.b"]\ndelay = 3\n[host."a.b"]\ndelay = 2', "is set twice, in two spellings"),
        ('[hosts."a.b"]\ndelay = 3', "mannerly.toml: hosts is not an option; did you mean host?"),
        ('[host."a.b"]\nretry_max = 0.1', "retry_base of a.b is 0.5; allowed: above 0, at most"),
    ],
)
def test_mistake_in_a_file_is_refused_with_the_right_name(
    tmp_path: Path, text: str, words: str
) -> None:
    """File, key, value, what is allowed; nothing is ignored."""
    (tmp_path / "mannerly.toml").write_text(text)

    outcome = invoke("config", "show")

    assert outcome.exit_code == 2
    assert words in outcome.stderr


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ("a.example", "--host is 'a.example'; allowed: HOST:NAME=VALUE, as in example.org:delay=5"),
        ("a.example:delay", "--host is 'a.example:delay'; allowed: HOST:NAME=VALUE"),
        ("a.example:delay=", "--host is 'a.example:delay='; allowed: HOST:NAME=VALUE"),
        ("a.example:dely=1", "--host a.example:dely is not an option of a host; did you mean del"),
        ("a.example:delay=x", "--host a.example:delay is 'x'; allowed: a number"),
        ("a b:delay=1", "is 'a b'; allowed: a host name or address"),
    ],
)
def test_mistake_on_the_command_line_names_the_entry(entry: str, words: str) -> None:
    """Nothing is fetched."""
    outcome = invoke("crawl", "http://site.example/", "--host", entry)

    assert outcome.exit_code == 2
    assert words in outcome.stderr


# ---------------------------------------------------------------------- in a crawl


@pytest.mark.processes
def test_host_of_a_table_is_crawled_at_its_own_pace(tmp_path: Path) -> None:
    """By the servers' log: one host keeps its delay, the other is not held up, resumed or not."""
    with DemoWeb(plain_sites(2, pages=4)) as web:
        slow = web.seeds()[0].split("/")[2]
        (tmp_path / "mannerly.toml").write_text(
            'strategy = "fixed"\ndelay = 0.01\nmax_rate = "unlimited"\n'
            f'[host."{slow}"]\ndelay = 0.5\n'
        )
        options = ("--data-dir", "mine", "--processes", "1", "--seeding-strategy", "none")
        first = invoke("crawl", *web.seeds(), *options, "--max-urls", "5")
        (tmp_path / "mannerly.toml").unlink()
        again = invoke("resume", "mine")
        shown = invoke("host", "show", "mine", slow)
        slowly, quickly = (gaps_s(web.log_of(f"plain-{number}")) for number in range(2))

    assert (first.exit_code, again.exit_code) == (0, 0)
    assert "own options     delay = 0.5" in shown.stdout
    assert len(slowly) >= 3
    assert min(slowly) >= 0.5 * 0.98
    assert min(quickly) < 0.4


@pytest.mark.processes
def test_unknown_host_of_a_table_is_named(tmp_path: Path) -> None:
    """A host that no seed is on may be misspelled."""
    with DemoWeb(plain_sites(1, pages=1)) as web:
        seed = web.seeds()[0]
        host = seed.split("/")[2]
        other = f"{host[:-1]}{9 - int(host[-1])}"

        outcome = invoke("crawl", seed, "--host", f"{other}:delay=5", "--data-dir", "mine")

    assert outcome.exit_code == 0
    assert f"Hosts with options of their own, but without a seed: {other}" in outcome.stderr
    assert f"did you mean {host}?" in outcome.stderr
