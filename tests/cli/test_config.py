from __future__ import annotations

import dataclasses
import re
import tomllib
from typing import TYPE_CHECKING

import pytest
from tests.harness.commands import invoke

from mannerly.cli.config import (
    ConfigError,
    Configuration,
    effective,
    resolve,
    user_file,
)
from mannerly.crawler.options.table import OPTIONS, cores
from mannerly.crawler.settings import CrawlSettings
from mannerly.crawler.web.choices import ScopeMode

if TYPE_CHECKING:
    from pathlib import Path

    from mannerly.cli.config import Value


@pytest.fixture
def home(tmp_path: Path) -> dict[str, str]:
    """An environment whose home directory is empty."""
    (tmp_path / "home").mkdir()
    return {"HOME": str(tmp_path / "home")}


def settle(
    directory: Path,
    home: dict[str, str],
    command_line: dict[str, Value] | None = None,
    **environment: str,
) -> Configuration:
    return resolve(command_line or {}, environment={**home, **environment}, directory=directory)


def test_each_place_wins_over_those_below_it(tmp_path: Path, home: dict[str, str]) -> None:
    """Command line, environment, project file, user file, default."""
    user = user_file(home)
    user.parent.mkdir(parents=True)
    user.write_text("max_urls = 1\nmax_depth = 1\nmax_per_host = 1\nconcurrency = 1\n")
    (tmp_path / "mannerly.toml").write_text("max_urls = 2\nmax_depth = 2\nmax_per_host = 2\n")

    found = settle(
        tmp_path, home, {"max_urls": "4"}, MANNERLY_MAX_URLS="3", MANNERLY_MAX_DEPTH="3"
    ).settings()

    assert (found.max_urls, found.max_depth, found.max_per_host) == (4, 3, 2)
    assert (found.concurrency, found.robots_limit) == (1, CrawlSettings().robots_limit)


def test_pyproject_is_a_project_file(tmp_path: Path, home: dict[str, str]) -> None:
    """`[tool.mannerly]` takes the same keys, with - or with _."""
    (tmp_path / "pyproject.toml").write_text("[tool.mannerly]\nmax-urls = 7\n")

    found = settle(tmp_path, home)

    assert found.settings().max_urls == 7
    assert found.given["max_urls"].where == "pyproject.toml: tool.mannerly.max-urls"


def test_two_project_files_are_refused(tmp_path: Path, home: dict[str, str]) -> None:
    """Neither can be ignored in silence."""
    (tmp_path / "pyproject.toml").write_text("[tool.mannerly]\nmax_urls = 7\n")
    (tmp_path / "mannerly.toml").write_text("max_urls = 8\n")

    with pytest.raises(ConfigError, match="keep one of them"):
        settle(tmp_path, home)


def test_options_reach_their_settings(tmp_path: Path, home: dict[str, str]) -> None:
    """Crawl settings and politeness settings, each in its own type."""
    found = settle(
        tmp_path,
        home,
        {
            "scope": "site",
            "include": ["*/a/*", "*/b/*"],
            "strategy": "fixed",
            "delay": "2.5",
            "max_rate": "unlimited",
            "per_host": "3",
            "timeout": "9",
            "ignore_robots": True,
        },
    ).settings()

    assert (found.scope, found.include) == (ScopeMode.SITE, ("*/a/*", "*/b/*"))
    assert (found.politeness.strategy, found.politeness.delay_s) == ("fixed", 2.5)
    assert (found.politeness.max_rate, found.politeness.max_concurrency) == ("unlimited", 3)
    assert found.timeout_s == found.politeness.request_timeout_s == 9
    assert found.ignore_robots
    assert found.processes == cores()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("max_urls = 0", "mannerly.toml: max_urls is 0; allowed: at least 1"),
        ('max_urls = "9"', "mannerly.toml: max_urls is '9'; allowed: a whole number"),
        ("max_urls = true", "mannerly.toml: max_urls is True; allowed: a whole number"),
        ("max_url = 9", r"mannerly.toml: max_url is not an option; did you mean max_urls\?"),
        ("include = [1]", r"mannerly.toml: include is \[1\]; allowed: a list of texts"),
        ('scope = "all"', "mannerly.toml: scope is 'all'; allowed: one of host, site, prefix, any"),
        ('strategy = "x"', "mannerly.toml: strategy is 'x'; allowed: one of learned"),
        ("max_rate = 0", "mannerly.toml: max_rate is 0; allowed: above 0"),
        ('log_format = "xml"', "mannerly.toml: log_format is 'xml'; allowed: one of text, json"),
        ("log_interval = 0", "mannerly.toml: log_interval is 0; allowed: a number above 0"),
        ("timeout = -1", "mannerly.toml: timeout is -1; allowed: at least 0.001"),
        ("max_urls = ", "mannerly.toml is not a TOML file"),
        ("max_urls = 1\nmax-urls = 2", "set twice"),
    ],
)
def test_mistake_in_a_file_names_file_key_value_and_what_is_allowed(
    tmp_path: Path, home: dict[str, str], text: str, words: str
) -> None:
    """Nothing in a file is ignored."""
    (tmp_path / "mannerly.toml").write_text(text)

    with pytest.raises(ConfigError, match=words):
        settle(tmp_path, home).settings()


@pytest.mark.parametrize(
    ("variable", "value", "words"),
    [
        ("MANNERLY_MAX_URLS", "many", "MANNERLY_MAX_URLS is 'many'; allowed: a whole number"),
        ("MANNERLY_DELAY", "nan", "MANNERLY_DELAY is nan"),
        ("MANNERLY_GOVERNOR", "perhaps", "MANNERLY_GOVERNOR is 'perhaps'; allowed: true or false"),
        ("MANNERLY_USER_AGENT", "me\r\nX: y", "allowed: text of visible characters"),
        ("MANNERLY_MAX_URL", "9", r"did you mean MANNERLY_MAX_URLS\?"),
        ("READY_HEAP_SIZE_LIMIT", "0", "READY_HEAP_SIZE_LIMIT is 0; allowed"),
        ("PARSE_SEMAPHORE_LIMIT", "none", "PARSE_SEMAPHORE_LIMIT is 'none'"),
    ],
)
def test_mistake_in_the_environment_names_the_variable(
    tmp_path: Path, home: dict[str, str], variable: str, value: str, words: str
) -> None:
    """Whichever spelling was used, that is the one the message names."""
    with pytest.raises(ConfigError, match=words):
        settle(tmp_path, home, **{variable: value}).settings()


@pytest.mark.parametrize(
    ("variable", "value", "name", "expected"),
    [
        ("GLOBAL_FRONTIER_SIZE_LIMIT", "11", "frontier_limit", 11),
        ("READY_HEAP_SIZE_LIMIT", "12", "heap_limit", 12),
        ("ROBOTS_FETCH_SEMAPHORE_LIMIT", "13", "robots_limit", 13),
        ("PARSE_SEMAPHORE_LIMIT", "3", "parse_limit", 3),
        ("FP_CHECK_SEMAPHORE_LIMIT", "99", "check_limit", 99),
        ("MAX_INFLIGHT_PER_HOST", "14", "per_host", 14),
        ("GOVERNOR_ENABLED", "false", "governor", False),
        ("METRIC_EXPORT_INTERVAL_SECS", "60", "metrics_interval", 60.0),
    ],
)
def test_variable_of_another_crawler_is_an_alias(
    tmp_path: Path, home: dict[str, str], variable: str, value: str, name: str, expected: object
) -> None:
    """It sets an option, and the option's own variable is stronger."""
    alias = settle(tmp_path, home, **{variable: value})
    both = settle(tmp_path, home, **{variable: value, OPTIONS[name].variable: "1"})

    assert alias.given[name].value == expected
    assert alias.given[name].where == variable
    assert both.given[name].where == OPTIONS[name].variable


def test_variables_of_others_are_let_be(tmp_path: Path, home: dict[str, str]) -> None:
    """Kubernetes makes such variables for a service of that name; an empty one is not set."""
    found = settle(
        tmp_path,
        home,
        MANNERLY_SERVICE_HOST="10.0.0.1",
        MANNERLY_PORT_443_TCP="tcp://10.0.0.1:443",
        MANNERLY_MAX_URLS="",
    )

    assert found.given == {}


def test_every_crawl_setting_has_an_option() -> None:
    """Whatever a crawl can be told, the command can tell it."""
    targets = {option.target for option in OPTIONS.values()}
    names = {field.name for field in dataclasses.fields(CrawlSettings)}

    assert names - targets == {"politeness", "seeds_open_network"}


def test_every_option_is_on_the_command_line() -> None:
    """The table, the command and its help list the same options."""
    text = invoke("crawl", "--help-all", env={"COLUMNS": "200"}).stdout

    for option in OPTIONS.values():
        assert option.flag in text.replace("--[no-]", "--")


def test_config_show_prints_a_file_that_means_the_same(
    tmp_path: Path, home: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is in force can be kept as a project file."""
    monkeypatch.chdir(tmp_path)
    env = {**home, "MANNERLY_MAX_URLS": "5", "MANNERLY_INCLUDE": '*/"é"/* */b'}

    shown = invoke("config", "show", env=env)
    (tmp_path / "mannerly.toml").write_text(shown.stdout, encoding="utf-8")
    again = invoke("config", "show", env=home)

    assert shown.exit_code == 0
    assert tomllib.loads(shown.stdout)["include"] == ['*/"é"/*', "*/b"]
    assert again.stdout == shown.stdout


def test_config_show_tells_where_a_value_came_from(
    tmp_path: Path, home: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """`--origin` names the winner, and the aliases."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mannerly.toml").write_text("max_depth = 3\n")

    shown = invoke("config", "show", "--origin", env={**home, "READY_HEAP_SIZE_LIMIT": "9"})

    lines = {
        line.partition(" = ")[0]: line.rpartition("# ")[2] for line in shown.stdout.splitlines()
    }
    assert lines["max_depth"] == "mannerly.toml: max_depth"
    assert lines["heap_limit"] == "READY_HEAP_SIZE_LIMIT"
    assert lines["concurrency"] == "default"
    assert "PARSE_SEMAPHORE_LIMIT sets parse_limit" in shown.stdout


def test_start_rate_is_the_first_pace(tmp_path: Path, home: dict[str, str]) -> None:
    """A rate, as --max-rate is; it is shown as it was given, and has to be above 0."""
    found = settle(tmp_path, home, {"start_rate": "4"})

    assert found.settings().politeness.start_delay_s == 0.25
    assert effective(found, found.settings())["start_rate"] == 4
    for wrong in ("0", "-1", "inf"):
        with pytest.raises(
            ConfigError, match=r"--start-rate is .*; allowed: a number (above 0|of at most)"
        ):
            settle(tmp_path, home, {"start_rate": wrong}).settings()


@pytest.mark.parametrize("words", [(), ("--all",), ("--user",), ("--user", "--all")])
def test_file_of_init_sets_what_it_says(
    tmp_path: Path, home: dict[str, str], monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    """As it is, it changes nothing; and each of its lines may be uncommented."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", home["HOME"])
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    path = user_file(home) if "--user" in words else tmp_path / "mannerly.toml"

    made = invoke("config", "init", *words)
    again = invoke("config", "init", *words)
    as_it_is = settle(tmp_path, home).given
    above_hosts = path.read_text().partition("# ---- One host")[0]
    path.write_text(re.sub(r"^# ([a-z_]+ = )", r"\1", above_hosts, flags=re.MULTILINE))
    whole = settle(tmp_path, home)

    assert (made.exit_code, again.exit_code, as_it_is) == (0, 2, {})
    assert whole.given.keys() >= {"max_urls", "scope", "strategy", "concurrency"}
    assert whole.settings().scope is ScopeMode.HOST
