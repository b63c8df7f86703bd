"""--proxy, --ca-file and --insecure-host, from the command line to real servers on loopback."""

from __future__ import annotations

import base64
import json
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from cryptography import x509
from tests.crawler.fetch.certificates import Authority, Certificate
from tests.crawler.fetch.raw_server import RawServer, answer, routes
from tests.crawler.fetch.tiny_proxy import proxy_to
from tests.harness.commands import invoke

if TYPE_CHECKING:
    from click.testing import Result

PAGES = routes({"/": answer(b"<title>Home</title>", "200 OK", "Content-Type: text/html")})
QUICK = ("--strategy", "fixed", "--delay", "0.01", "--max-rate", "unlimited", "--processes", "1")
BRIEFLY = ("--fresh", "--duration", "0.5")  # for what fails and would be tried again
ONE_PAGE = ("--max-urls", "1", "--seeding-strategy", "none", "--data-dir", "mine", "--json")
HERE, ELSEWHERE = (x509.IPAddress(ip_address(text)) for text in ("127.0.0.1", "127.0.0.2"))


@pytest.fixture(autouse=True)
def _empty_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)


@pytest.fixture
def valid(tmp_path: Path) -> Certificate:
    return Authority(tmp_path).certificate(HERE)


def crawl(seed: str, *options: object) -> Result:
    return invoke("crawl", seed, *QUICK, *ONE_PAGE, *options)


def statuses(outcome: Result) -> dict[str, int]:
    found: dict[str, int] = json.loads(outcome.stdout)["statuses"]
    return found


def test_ca_file_is_trusted(tmp_path: Path, valid: Certificate) -> None:
    """A certificate of a private authority is accepted, with a path from the working directory."""
    with RawServer(PAGES, tls=valid.context()) as server:
        outcome = crawl(server.url(), "--ca-file", valid.file.relative_to(tmp_path))
        refused = crawl(server.url(), *BRIEFLY)

    assert outcome.exit_code == 0
    assert statuses(outcome)["200"] == 1
    assert statuses(refused) == {}


def test_ca_file_is_kept_for_a_resumed_crawl(
    tmp_path: Path, valid: Certificate, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The whole path is stored; once the file is gone, resuming says so and takes another one."""
    other = tmp_path / "elsewhere"
    other.mkdir()
    with RawServer(PAGES, tls=valid.context()) as server:
        crawl(server.url(), "--ca-file", valid.file.name)
        monkeypatch.chdir(other)
        again = invoke("resume", tmp_path / "mine", *QUICK)
        moved = valid.file.rename(other / "moved.pem")
        explained = invoke("explain", tmp_path / "mine", server.url())
        lost = invoke("resume", tmp_path / "mine", *QUICK)
        found = invoke("resume", tmp_path / "mine", *QUICK, "--ca-file", moved)

    assert [each.exit_code for each in (again, explained, lost, found)] == [0, 0, 2, 0]
    assert "allowed: the path of a file that exists" in lost.stderr


def test_insecure_host_is_not_verified(tmp_path: Path, valid: Certificate) -> None:
    """A host that is named may have any certificate; another one may not."""
    stranger = Authority(tmp_path).certificate(ELSEWHERE).file
    with RawServer(PAGES, tls=valid.context()) as server:
        named = crawl(
            server.url(), "--ca-file", stranger, "--insecure-host", "A.example",
            "--insecure-host", "127.0.0.1",
        )  # fmt: skip
        other = crawl(server.url(), "--ca-file", stranger, "--insecure-host", "::1", *BRIEFLY)

    assert statuses(named)["200"] == 1
    assert statuses(other) == {}


def test_proxy_gets_every_request(valid: Certificate) -> None:
    """Names are left to the proxy, https goes through a tunnel, and the password is sent."""
    with (
        RawServer(PAGES) as plain,
        RawServer(PAGES, tls=valid.context()) as secure,
        proxy_to(plain) as proxy,
        proxy_to(secure) as tunnel,
    ):
        url = f"http://user:secret@127.0.0.1:{proxy.port}"
        first = crawl("http://site.example/", "--proxy", url)
        second = crawl(
            "https://127.0.0.1:8443/", "--proxy", tunnel.url(), "--ca-file", valid.file, "--fresh"
        )
        heads, tunnels, plainly = proxy.heads, tunnel.heads, plain.heads

    assert (first.exit_code, second.exit_code) == (0, 0)
    assert [head.split("\r\n")[0] for head in heads] == [
        "GET http://site.example/robots.txt HTTP/1.1",
        "GET http://site.example/ HTTP/1.1",
    ]
    secret = base64.b64encode(b"user:secret").decode()
    assert all(f"Proxy-Authorization: Basic {secret}" in head for head in heads)
    assert not any("secret" in head or secret in head for head in plainly)
    assert tunnels[0].startswith("CONNECT 127.0.0.1:8443 ")
    assert not any(head.startswith("GET") for head in tunnels)


def test_proxy_does_not_open_private_addresses() -> None:
    """A literal private address in a link is refused before the proxy is asked."""
    page = answer(b'<a href="http://127.0.0.9/">x</a>', "200 OK", "Content-Type: text/html")
    with RawServer(routes({"/": page})) as plain, proxy_to(plain) as proxy:
        outcome = invoke(
            "crawl", "http://site.example/", *QUICK, "--scope", "any", "--seeding-strategy", "none",
            "--data-dir", "mine", "--proxy", proxy.url(),
        )  # fmt: skip

        assert outcome.exit_code == 0
        assert not any("127.0.0.9" in head.split("\r\n")[0] for head in proxy.heads)


@pytest.mark.parametrize("password", ["secret", "sec:ret", "secr%40et"])
def test_proxy_password_is_not_printed(password: str) -> None:
    """Neither `-v` nor `config show` prints it, in any of its forms."""
    env = {"MANNERLY_PROXY": f"http://user:{password}@127.0.0.1:9"}

    told = invoke("crawl", "http://site.example/", *QUICK, *BRIEFLY, "-v", env=env)
    shown = [invoke("config", "show", *form, env=env) for form in ((), ("--json",), ("--origin",))]

    for outcome in (told, *shown):
        assert "http://user:***@127.0.0.1:9" in outcome.output
        assert password not in outcome.output


def test_proxy_of_config_show_needs_its_password_again() -> None:
    """A file made from `config show` is refused with a sentence, not by the proxy later."""
    env = {"MANNERLY_PROXY": "http://user:secret@127.0.0.1:9"}
    file = Path(".config/mannerly/config.toml")
    file.parent.mkdir(parents=True)
    file.write_text(invoke("config", "show", env=env).stdout)

    outcome = invoke("config", "show")

    assert outcome.exit_code == 2
    assert "config.toml: proxy is 'http://user:***@127.0.0.1:9'; allowed: the" in outcome.stderr


@pytest.mark.parametrize(
    ("option", "value", "words"),
    [
        ("--proxy", "ftp://u:secret@h:1", "--proxy is 'ftp://u:***@h:1'; allowed: a URL like http"),
        ("--proxy", "u:secret@h:1", "--proxy is 'u:***@h:1'; allowed"),
        ("--proxy", "http://u:secret/@h:1", "--proxy is 'http://u:***@h:1'; allowed"),
        ("--proxy", "http://u:sec\nret@h:1", "--proxy is 'http://u:***@h:1'; allowed"),
        ("--proxy", "http://h:70000", "--proxy is 'http://h:70000'; allowed"),
        ("--proxy", "http://h:1/path", "--proxy is 'http://h:1/path'; allowed"),
        ("--ca-file", "gone.pem", "--ca-file is 'gone.pem'; allowed: the path of a file"),
        ("--ca-file", ".", "--ca-file is '.'; allowed: the path of a file"),
        ("--ca-file", "text.pem", "--ca-file is 'text.pem'; allowed: a readable file of cert"),
        ("--insecure-host", "https://h", "--insecure-host is ['https://h']; allowed: host names"),
        ("--insecure-host", "h:443", "--insecure-host is ['h:443']; allowed: host names"),
        ("--insecure-host", "[::1]:443", "--insecure-host is ['[::1]:443']; allowed: host names"),
        ("--insecure-host", "*.example", "--insecure-host is ['*.example']; allowed: host names"),
        ("--insecure-host", "u@h", "--insecure-host is ['u@h']; allowed: host names"),
    ],
)
def test_mistake_is_named_before_the_crawl_begins(option: str, value: str, words: str) -> None:
    """The option, the value and what is allowed; nothing is made, and no password is shown."""
    Path("text.pem").write_text("no certificate")

    outcome = crawl("http://site.example/", option, value)

    assert outcome.exit_code == 2
    assert words in outcome.stderr
    assert "secret" not in outcome.output
    assert "ret@" not in outcome.output
    assert not Path("mine").exists()
