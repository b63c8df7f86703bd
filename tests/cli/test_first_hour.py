"""Where a crawl is kept, what site owners see of it, and what the installation can do."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.crawler.fetch.raw_server import RawServer, answer, routes
from tests.harness.commands import invoke

import mannerly
from mannerly.cli import installation
from mannerly.cli.seeds import read_sources
from mannerly.cli.stored import default_location
from mannerly.crawler.fetch import libcurl

PAGES = routes({"/": answer(b"<title>Home</title>", "200 OK", "Content-Type: text/html")})
QUICK = ("--strategy", "fixed", "--delay", "0.01", "--max-rate", "unlimited", "--processes", "1")


@pytest.fixture(autouse=True)
def _empty_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)


# ---------------------------------------------------------------------- the directory


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        (["a.example"], "crawl-a.example"),
        (["https://a.example/x", "https://a.example/y"], "crawl-a.example"),
        (["http://127.0.0.1:8080/"], "crawl-127.0.0.1-8080"),
        (["a.example", "b.example"], "crawl-a.example-and-1-more"),
        (["a.example", "b.example", "c.example/x", "c.example/y"], "crawl-a.example-and-2-more"),
        (["./shops.txt"], "crawl-shops"),
        (["./My list (new).urls.txt.gz"], "crawl-My-list-new"),
        (["./shops.txt", "z.example"], "crawl-a.example-and-2-more"),
    ],
)
def test_directory_is_named_after_what_is_crawled(arguments: list[str], name: str) -> None:
    """One host, several hosts, or the file of URLs; the same arguments give the same name."""
    for file in ("shops.txt", "My list (new).urls.txt.gz"):
        Path(file).write_text("https://a.example/\nhttps://b.example/\n")

    assert default_location(read_sources(arguments)) == name


def test_crawl_of_a_file_is_resumed_by_the_same_command() -> None:
    """The name of its directory depends on the arguments alone."""
    with RawServer(PAGES) as one, RawServer(PAGES) as other:
        Path("shops.txt").write_text(f"{one.url()}\n{other.url()}\n")
        command = ("crawl", "shops.txt", *QUICK, "--seeding-strategy", "none")
        first, again = invoke(*command), invoke(*command)

    assert (first.exit_code, again.exit_code) == (0, 0)
    assert Path("crawl-shops").is_dir()
    assert "Resuming the crawl in crawl-shops" in again.stderr


# ---------------------------------------------------------------------- who we are


@pytest.mark.parametrize(
    ("options", "agent", "sender"),
    [
        ((), "mannerly/{version}", None),
        (("--contact", "me@a.example"), "mannerly/{version} (+me@a.example)", "me@a.example"),
        (("--contact", "https://a.example/"), "mannerly/{version} (+https://a.example/)", None),
        (("--user-agent", "Own/2", "--contact", "me@a.example"), "Own/2", "me@a.example"),
    ],
)
def test_server_sees_name_version_and_contact(
    options: tuple[str, ...], agent: str, sender: str | None
) -> None:
    """And no address that is not the operator's."""
    with RawServer(PAGES) as server:
        outcome = invoke("crawl", server.url(), *QUICK, "--data-dir", "mine", *options)
        heads = server.heads

    assert outcome.exit_code == 0
    for head in heads:
        lines = dict(line.split(": ", 1) for line in head.split("\r\n")[1:])
        assert lines["User-Agent"] == agent.format(version=mannerly.__version__)
        assert lines.get("From") == sender


def test_operator_is_told_once_what_site_owners_see() -> None:
    """When a crawl of public hosts begins without a contact; not when it is resumed."""
    command = ("crawl", "https://no.such.host.invalid/", "--data-dir", "mine", *QUICK)
    first, again = invoke(*command), invoke(*command)
    named = invoke(*command, "--fresh", "--contact", "me@a.example")
    with RawServer(PAGES) as server:
        private = invoke("crawl", server.url(), *QUICK, "--data-dir", "other")

    words = f'Site owners see the User-Agent "mannerly/{mannerly.__version__}"'
    assert [words in each.stderr for each in (first, again, named, private)] == [
        True, False, False, False,
    ]  # fmt: skip
    assert "--contact you@example.org" in first.stderr


# ---------------------------------------------------------------------- doctor


def test_doctor_says_what_the_installation_can_do() -> None:
    """Versions and abilities, as text and as JSON."""
    text = invoke("doctor")
    found = {each["name"]: each for each in json.loads(invoke("doctor", "--json").stdout)}

    assert text.exit_code == 0
    assert "This installation is sound" in text.stderr
    for name in ("mannerly", "Python", "SQLite", "curl", "HTTP/2", "HTTP/3"):
        assert name in text.stdout
        assert found[name]["value"]
    assert found["mannerly"]["value"] == mannerly.__version__


def test_doctor_names_what_is_not_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    """An old SQLite is a problem: exit 1, and what to do."""
    monkeypatch.setattr("mannerly.crawler.store.sqlite_version", lambda: (3, 40, 0))

    outcome = invoke("doctor")

    assert outcome.exit_code == 1
    assert "older than 3.51.3, with known faults: pip install --upgrade apsw" in outcome.stderr


def test_doctor_says_what_is_lost_without_an_ability(monkeypatch: pytest.MonkeyPatch) -> None:
    """That is no problem, but explains a slower crawl."""
    without = {"HTTP/2": False, "HTTP/3": False}
    monkeypatch.setattr(libcurl, "abilities", lambda: without)

    lacks = {each.name: each.lack for each in installation.findings()}

    assert lacks["HTTP/2"] == "hosts are asked over HTTP/1.1"
    assert lacks["HTTP/3"] == ""


def test_doctor_repairs_a_crawl_only() -> None:
    """Without a directory there is nothing to repair."""
    assert invoke("doctor", "--repair").exit_code == 2


def test_every_encoding_that_can_be_decoded_is_asked_for() -> None:
    """But for zstd, whose package is an extra for archives."""
    with RawServer(PAGES) as server:
        invoke("crawl", server.url(), *QUICK, "--data-dir", "mine")
        head = server.heads[-1]

    line = next(line for line in head.split("\r\n") if line.startswith("Accept-Encoding"))
    assert line == "Accept-Encoding: gzip, deflate, br"
