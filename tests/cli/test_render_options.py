"""`--render` at the command's edge: what is refused before the first request, and single hosts."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from tests.harness.commands import invoke

import mannerly
from mannerly.cli.config import resolve
from mannerly.crawler.options.values import OptionError, from_keywords
from mannerly.crawler.settings import CrawlSettings, with_options
from mannerly.service.jobs.model import settings_of

if TYPE_CHECKING:
    from pathlib import Path

NOWHERE = "http://127.0.0.1:9/"
SHOP = "shop.example"
SEVERAL = with_options(CrawlSettings(), from_keywords({"processes": 4}))  # of the operator


@pytest.fixture(autouse=True)
def _empty_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)


@pytest.fixture
def _any_browser(monkeypatch: pytest.MonkeyPatch) -> None:
    """Settings are made without a browser."""
    monkeypatch.setattr(CrawlSettings, "check_files", lambda _: None)


def _in_file(tmp_path: Path, text: str) -> CrawlSettings:
    (tmp_path / "mannerly.toml").write_text(text)
    return resolve({}, environment={}, directory=tmp_path).settings(SEVERAL)


# ---------------------------------------------------------------------- one process


def test_more_processes_are_refused() -> None:
    """A rendered page could not ask for hosts of another process."""
    refused = invoke("crawl", NOWHERE, "--render", "all", "--processes", "2")

    assert refused.exit_code == 2
    assert "--processes is 2; allowed: 1 with --render, or leave it out" in refused.stderr


@pytest.mark.usefixtures("_any_browser")
def test_server_is_refused() -> None:
    """Neither the command nor the library asks the server for anything."""
    where = "redis://127.0.0.1:9/0"
    refused = invoke("crawl", NOWHERE, "--render", "all", "--redis-url", where)

    assert refused.exit_code == 2
    assert "--render cannot be used with --redis-url" in refused.stderr
    with pytest.raises(OptionError, match="--redis-url"):
        mannerly.Crawl(NOWHERE, render="all", redis_url=where)


@pytest.mark.usefixtures("_any_browser")
def test_one_process_is_the_default() -> None:
    """That of the command is one for each core; that of a service is the operator's."""
    assert with_options(SEVERAL, from_keywords({"render": "all"})).processes == 1
    assert with_options(SEVERAL, from_keywords({"render": "all", "processes": 1})).processes == 1
    assert with_options(SEVERAL, {}).processes == 4
    assert settings_of({"render": ["all"]}, SEVERAL).processes == 1


# ---------------------------------------------------------------------- a browser


def test_missing_browser_is_said_in_a_sentence(tmp_path: Path) -> None:
    """No option is quoted that nobody gave."""
    nothing = {"PATH": str(tmp_path), "PLAYWRIGHT_BROWSERS_PATH": str(tmp_path)}
    missing = invoke("crawl", NOWHERE, "--render", "all", env=nothing)
    wrong = invoke("crawl", NOWHERE, "--render", "all", "--browser", "none-such", env=nothing)

    assert (missing.exit_code, wrong.exit_code) == (2, 2)
    assert "--render needs a Chromium, and none was found; install one" in missing.stderr
    assert "--browser none-such: there is no such program; install one" in wrong.stderr
    assert "allowed" not in missing.stderr + wrong.stderr


# ---------------------------------------------------------------------- single hosts


@pytest.mark.usefixtures("_any_browser")
def test_hosts_in_a_file_join_the_lists(tmp_path: Path) -> None:
    """Beside what holds for all; the crawl renders, so it has one process."""
    table = f'[host."{SHOP}"]\nrender = true\nwait_for = ".price[data-x]"\ndelay = 5\n'
    alone = _in_file(tmp_path, table)
    beside = _in_file(tmp_path, f'render = ["auto"]\nwait_for = ["a.example=p"]\n{table}')

    assert (alone.render, alone.wait_for) == ((SHOP,), (f"{SHOP}=.price[data-x]",))
    assert alone.processes == 1
    assert list(alone.hosts) == [SHOP]
    assert set(beside.render) == {SHOP, "auto"}
    assert set(beside.wait_for) == {f"{SHOP}=.price[data-x]", "a.example=p"}


@pytest.mark.usefixtures("_any_browser")
def test_hosts_join_stored_lists_once() -> None:
    """A crawl is resumed with the same file; a selector of an option wins over the table."""
    own = from_keywords({"host": {SHOP: {"render": True, "wait_for": ".new"}}})
    stored = CrawlSettings(render=(SHOP,), wait_for=(f"{SHOP}=.old",))
    resumed = with_options(stored, own)
    given = from_keywords({"host": {SHOP: {"wait_for": ".new"}}, "wait_for": [f"{SHOP}=.mine"]})

    assert resumed.render == (SHOP,)
    assert resumed.wait_for[-1] == f"{SHOP}=.new"
    assert with_options(stored, given).wait_for[-1] == f"{SHOP}=.mine"


@pytest.mark.usefixtures("_any_browser")
def test_hosts_on_the_command_line_join_the_lists() -> None:
    """As any other option of one host."""
    words = {"host": [f"{SHOP}:render=true", f"{SHOP}:wait_for=.price"]}
    settings = resolve(words, environment={}, directory=None).settings()

    assert (settings.render, settings.wait_for) == ((SHOP,), (f"{SHOP}=.price",))


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ({"render": "all"}, "render is 'all'; allowed: true or false"),
        ({"render": False}, "render is False; allowed: true; leave it out"),
        ({"wait_for": ["a", "b"]}, "wait_for is"),
        ({"wait_for": ""}, "wait_for"),
    ],
    ids=["pattern", "off", "list", "empty"],
)
def test_wrong_values_of_a_host_are_refused(table: dict[str, Any], words: str) -> None:
    """The message names the place."""
    with pytest.raises(OptionError, match=words):
        with_options(CrawlSettings(), from_keywords({"host": {SHOP: table}}))


@pytest.mark.usefixtures("_any_browser")
def test_origin_of_what_a_host_adds_is_said(tmp_path: Path) -> None:
    """`config show --origin` names the file."""
    (tmp_path / "mannerly.toml").write_text(f'[host."{SHOP}"]\nrender = true\n')
    shown = invoke("config", "show", "--origin", "--json")

    rendered = json.loads(shown.stdout)["render"]
    assert rendered["value"] == [SHOP]
    assert "mannerly.toml" in rendered["origin"]
