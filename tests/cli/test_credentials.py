"""Headers, logins and cookies: to the host that they belong to, and nowhere else.

Two real servers record what they are sent. The one that holds the secrets links and redirects to
the other, to itself over another port, and back.
"""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.crawler.fetch.raw_server import RawServer, answer, routes
from tests.crawler.fetch.tiny_proxy import proxy_to
from tests.harness.commands import bare, invoke, run

if TYPE_CHECKING:
    import socket

    from click.testing import Result

HTML = "Content-Type: text/html"
QUICK = ("--strategy", "fixed", "--delay", "0.01", "--max-rate", "unlimited", "--processes", "1")
HERE = ("--seeding-strategy", "none", "--data-dir", "mine", "--scope", "any")
ALLOWED = ("--allow-net", "127.0.0.1/32")
SECRET = "s3cr3t-value"
BASIC = "Authorization: Basic " + base64.b64encode(f"joe:{SECRET}".encode()).decode()


@pytest.fixture(autouse=True)
def _empty_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


def crawl(*arguments: object, env: dict[str, str] | None = None) -> Result:
    return invoke("crawl", *arguments, *QUICK, *HERE, env=env)


def everything_written() -> bytes:
    """The content of every file below the working directory."""
    return b"".join(file.read_bytes() for file in Path().rglob("*") if file.is_file())


def linking(other: RawServer) -> RawServer:
    """A server whose pages lead to another one: by a link, a redirect and a refresh."""
    links = f'<a href="{other.url("/linked")}">x</a><a href="/moved">y</a><a href="/own">z</a>'

    def handler(connection: socket.socket, path: str) -> bool:
        replies = {
            "/": answer(links.encode(), "200 OK", HTML, "Set-Cookie: visit=1; Path=/"),
            "/own": answer(b"mine", "200 OK", HTML),
            "/moved": answer(b"", "302 Found", f"Location: {other.url('/redirected')}"),
        }
        connection.sendall(replies.get(path, answer(b"", "404 Not Found")))
        return True

    return RawServer(handler)


def back_to(path: str) -> RawServer:
    return RawServer(routes({each: answer(b"other", "200 OK", HTML) for each in (path,)}))


# ---------------------------------------------------------------------- to one host only


@pytest.mark.parametrize(
    ("options", "line"),
    [
        (("--auth", "{host}=joe:" + SECRET), BASIC),
        (("--auth", "{host}=bearer:" + SECRET), f"Authorization: Bearer {SECRET}"),
        (("--auth", "{host}=env:LOGIN"), BASIC),
        (("--auth", "{host}=joe:env:PASSWORD"), BASIC),
        (("--auth", "{host}=joe:file:password.txt"), BASIC),
        (("--header", "{host}=X-Api-Key: " + SECRET), f"X-Api-Key: {SECRET}"),
        (("--header", "X-Api-Key: env:PASSWORD"), f"X-Api-Key: {SECRET}"),
        (("--header", "Cookie: " + f"id={SECRET}"), f"Cookie: id={SECRET}"),
    ],
)
def test_secret_goes_to_its_host_alone(options: tuple[str, ...], line: str) -> None:
    """Not along a link, not along a redirect; and it is neither printed nor stored."""
    Path("password.txt").write_text(SECRET + "\n")
    env = {"LOGIN": f"joe:{SECRET}", "PASSWORD": SECRET}
    other = RawServer(routes({}))
    with other, linking(other) as server:
        host = server.url().rstrip("/")
        given = [each.replace("{host}", host) for each in options]
        outcome = crawl(server.url(), *given, *ALLOWED, "-v", "-o", "pages.jsonl", env=env)
        heads, others = server.heads, other.heads
    Path("password.txt").unlink()

    assert outcome.exit_code == 0, outcome.output
    assert len(heads) >= 4
    assert all(line in head for head in heads)  # robots.txt included
    paths = {head.split(" ")[1] for head in others}
    assert {"/linked", "/redirected"} <= paths
    secrets = (SECRET, BASIC.rpartition(" ")[2])
    assert not any(secret in head for secret in secrets for head in others)
    assert not any(name in head for name in ("Authorization", "X-Api-Key") for head in others)
    for secret in secrets:
        assert secret not in outcome.output
        assert secret.encode() not in everything_written()


def test_headers_of_a_variable_are_lines() -> None:
    """Values have spaces; each line is one header."""
    with RawServer(routes({"/": answer(b"x", "200 OK", HTML)})) as server:
        outcome = crawl(server.url(), env={"MANNERLY_HEADER": "X-One: a b\nX-Two: c"})
        heads = server.heads

    assert outcome.exit_code == 0
    assert all("X-One: a b" in head and "X-Two: c" in head for head in heads)


def test_login_without_a_scheme_is_for_https() -> None:
    """A page could link to the host over http, where a password is readable; a notice says so."""
    other = RawServer(routes({}))
    with other, linking(other) as server:
        host = server.url().split("/")[2]
        outcome = crawl(server.url(), "--auth", f"{host}=joe:{SECRET}")
        heads = server.heads

    assert outcome.exit_code == 0
    assert not any("Authorization" in head for head in heads)
    assert f"--auth for {host} is sent over https only" in outcome.stderr
    assert f"--auth http://{host}=" in outcome.stderr


def test_cookies_are_kept_for_each_host_if_asked() -> None:
    """By default none is sent; with --cookies they go back to the host that set them alone."""
    other = RawServer(routes({}))
    with other, linking(other) as server:
        crawl(server.url(), *ALLOWED)
        without = [head for head in server.heads if "Cookie" in head]
        crawl(server.url(), "--cookies", "--fresh", *ALLOWED)
        own = [head for head in server.heads if "GET /own" in head][-1]
        others = other.heads

    assert without == []
    assert "Cookie: visit=1" in own
    assert len(others) >= 4
    assert not any("Cookie" in head for head in others)
    assert b"visit=1" not in everything_written()


@pytest.mark.processes
def test_login_is_not_on_the_process_list_of_children() -> None:
    """Workers get their settings through a pipe, and the command line of the operator may refer."""
    with RawServer(routes({"/": answer(b"x", "200 OK", HTML)})) as server:
        host = server.url().rstrip("/")
        words = (
            *("crawl", server.url(), "--processes", "2", "--delay", "5"),
            *("--auth", f"{host}=env:LOGIN", "--duration", "30", "--data-dir", "mine"),
            *("--seeding-strategy", "none"),
        )
        done = run(*words, env=bare(Path.cwd()) | {"LOGIN": f"joe:{SECRET}"})
        heads = server.heads

    assert done.returncode == 0, done.stderr
    assert any(BASIC in head for head in heads)
    assert SECRET not in done.stdout + done.stderr


# ---------------------------------------------------------------------- resuming


def test_secret_has_to_be_given_again_and_a_reference_has_not() -> None:
    """Nothing is stored but what may be read; the message says what to do."""
    with RawServer(routes({"/": answer(b"x", "200 OK", HTML)})) as server:
        host = server.url().rstrip("/")
        first = crawl(server.url(), "--auth", f"{host}=joe:{SECRET}")
        manifest = json.loads(Path("mine/crawl.json").read_text())
        lost = invoke("resume", "mine")
        status = invoke("status", "mine")
        again = invoke("resume", "mine", "--auth", f"{host}=joe:{SECRET}")
        cleared = invoke("resume", "mine", "--auth", "none")
        crawl(server.url(), "--auth", f"{host}=env:LOGIN", "--fresh", env={"LOGIN": "a:b"})
        referred = invoke("resume", "mine", env={"LOGIN": "a:b"})
        unset = invoke("resume", "mine")

    codes = [each.exit_code for each in (first, lost, status, again, cleared, referred, unset)]
    assert codes == [0, 2, 0, 0, 0, 0, 2]
    assert manifest["settings"]["auth"] == [f"{host}=joe:***"]
    assert "secrets are not stored with a crawl" in lost.stderr
    assert "give --auth again" in lost.stderr
    assert "env:LOGIN with a variable that is set" in unset.stderr


def test_password_of_a_proxy_is_not_stored() -> None:
    """It is asked for again; a reference is read again."""
    with RawServer(routes({"/": answer(b"x", "200 OK", HTML)})) as plain, proxy_to(plain) as proxy:
        url = f"http://joe:{SECRET}@127.0.0.1:{proxy.port}"
        first = crawl("http://site.example/", "--proxy", url)
        stored = everything_written()
        lost = invoke("resume", "mine")
        again = invoke("resume", "mine", "--proxy", url)
        named = f"http://joe:env:PROXY_PASSWORD@127.0.0.1:{proxy.port}"
        env = {"PROXY_PASSWORD": SECRET}
        referred = crawl("http://site.example/", "--proxy", named, "--fresh", env=env)
        resumed = invoke("resume", "mine", env=env)
        heads = proxy.heads

    codes = [each.exit_code for each in (first, lost, again, referred, resumed)]
    assert codes == [0, 2, 0, 0, 0]
    assert SECRET.encode() not in stored
    assert "give --proxy again" in lost.stderr
    login = base64.b64encode(f"joe:{SECRET}".encode()).decode()
    assert all(f"Proxy-Authorization: Basic {login}" in head for head in heads)


# ---------------------------------------------------------------------- --proxy-env


def test_proxies_of_the_environment_are_used_if_asked() -> None:
    """Without --proxy-env the variables are ignored; with it, no_proxy is respected, too."""
    with RawServer(routes({"/": answer(b"x", "200 OK", HTML)})) as plain, proxy_to(plain) as proxy:
        env = {"http_proxy": proxy.url(), "no_proxy": "127.0.0.1"}
        ignored = crawl(plain.url(), env={"http_proxy": proxy.url()})
        before = len(proxy.heads)
        asked = crawl("http://site.example/", "--proxy-env", "--fresh", env=env)
        through = len(proxy.heads)
        direct = crawl(plain.url(), "--proxy-env", "--fresh", env=env)
        after = len(proxy.heads)

    assert [each.exit_code for each in (ignored, asked, direct)] == [0, 0, 0]
    assert (before, through, after) == (0, 2, 2)


def test_guard_holds_for_hosts_that_no_proxy_is_used_for() -> None:
    """A private address is refused whether a proxy would be asked or not."""
    page = answer(b'<a href="http://127.0.0.9/">x</a>', "200 OK", HTML)
    with RawServer(routes({"/": page})) as plain, proxy_to(plain) as proxy:
        env = {"http_proxy": proxy.url(), "no_proxy": "127.0.0.9"}
        outcome = crawl("http://site.example/", "--proxy-env", env=env)
        asked = [head.split("\r\n")[0] for head in proxy.heads]
        why = invoke("explain", "mine", "http://127.0.0.9/").output

    assert outcome.exit_code == 0
    assert not any("127.0.0.9" in line for line in asked)
    assert "blocked_address" in why or "private" in why


# ---------------------------------------------------------------------- mistakes


@pytest.mark.parametrize(
    ("option", "value", "words"),
    [
        ("--auth", "joe:" + SECRET, "--auth is ['joe=***']; allowed: HOST=user:password, HOST="),
        ("--auth", "a.example=" + SECRET, "--auth is ['a.example=***']; allowed: HOST=user:passw"),
        ("--auth", f"a.example/x=joe:{SECRET}", "allowed: a host such as example.org, or http://"),
        ("--auth", "a.example=env:NOT_SET", "allowed: env:NOT_SET with a variable that is set"),
        ("--auth", "a.example=bearer:file:gone", "allowed: file:"),
        ("--header", SECRET, "allowed: NAME: VALUE, or HOST=NAME: VALUE for one host"),
        ("--header", f"X-Key: {SECRET}\r\nY: z", "--header is ['X-Key: ***']; allowed: NAME: VAL"),
        ("--header", f"X-Key: {SECRET}é", "--header is ['X-Key: ***']; allowed: NAME: VALUE"),
        ("--header", f"Host: {SECRET}", "allowed: any header but Host, which mannerly sets itself"),
        ("--header", f"Proxy-Authorization: {SECRET}", "any header but Proxy-Authorization"),
        ("--header", "a.example=X-Key: env:NOT_SET", "allowed: env:NOT_SET with a variable"),
    ],
)
def test_mistake_is_named_without_the_secret(option: str, value: str, words: str) -> None:
    """The option, what is allowed, and nothing made."""
    outcome = crawl("https://a.example/", option, value)

    assert outcome.exit_code == 2
    assert words in outcome.stderr
    assert SECRET not in outcome.output
    assert not Path("mine").exists()


def test_config_show_has_no_secret() -> None:
    """References are shown, secrets are not; what it prints is refused with a sentence."""
    env = {"MANNERLY_AUTH": f"a.example=joe:{SECRET}", "MANNERLY_PROXY": "env:PROXY", "PROXY": "x"}
    shown = [invoke("config", "show", *form, env=env) for form in ((), ("--json",), ("--origin",))]

    assert [each.exit_code for each in shown] == [2, 2, 2]
    assert all("PROXY is 'env:PROXY'; allowed: a URL like" in each.stderr for each in shown)
    del env["MANNERLY_PROXY"]
    for form in ((), ("--json",), ("--origin",)):
        text = invoke("config", "show", *form, env=env).output
        assert "a.example=joe:***" in text
        assert SECRET not in text


def test_project_file_may_not_name_credentials() -> None:
    """It could send a file of the user's to a host of its own."""
    for line in ('auth = ["a.example=file:/etc/passwd"]', 'header = ["X: env:HOME"]'):
        Path("mannerly.toml").write_text(line)

        outcome = invoke("config", "show")

        assert outcome.exit_code == 2
        assert "a project file may not set this option" in outcome.stderr
