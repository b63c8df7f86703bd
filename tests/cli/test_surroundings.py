"""Files of the working directory and variables of the environment: none is trusted in silence."""

from __future__ import annotations

import gzip
import io
import json
import os
import subprocess
import sys
import zlib
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from cryptography import x509
from tests.crawler.fetch.certificates import Authority
from tests.crawler.fetch.raw_server import RawServer, answer, routes
from tests.harness.commands import invoke

import mannerly
from mannerly.cli.config import resolve
from mannerly.cli.seeds import SeedError, read_seeds
from mannerly.cli.terminal import json_escaped, plain
from mannerly.crawler.options.option import ProjectUse
from mannerly.crawler.options.table import OPTIONS
from mannerly.exports.rows import write_jsonl

if TYPE_CHECKING:
    from collections.abc import Callable

    from click.testing import Result

PATIENCE_S = 60
SOURCE = str(Path(mannerly.__file__).parents[1])
HTML = "Content-Type: text/html"
PAGES = routes({path: answer(b"<a href=/b>b</a>", "200 OK", HTML) for path in ("/", "/planted")})
QUICK = ("--seeding-strategy", "none", "--processes", "1", "--max-rate", "unlimited")
NASTY = "\x1b[31mred\x1b]0;title\x07\x9b2J\u202e\u2066\U000e0041"
NO_SUCH = "https://no.such.host.invalid/"


def run(
    directory: Path, *arguments: object, stdin: bytes = b"", **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run the command in a directory, with an empty home."""
    home = directory / "home"
    home.mkdir(exist_ok=True)
    done = subprocess.run(
        [sys.executable, "-m", "mannerly", *map(str, arguments)],
        cwd=directory,
        env={"HOME": str(home), "PATH": os.defpath, "PYTHONPATH": SOURCE, **environment},
        input=stdin,
        capture_output=True,
        timeout=PATIENCE_S,
        check=False,
    )
    out, err = done.stdout.decode(), done.stderr.decode()
    return subprocess.CompletedProcess(done.args, done.returncode, out, err)


# ---------------------------------------------------------------------- modules

TRAP = "import pathlib, sys; pathlib.Path('sprung').write_text(__name__); sys.exit('planted')"
PLANTED = (
    "multiprocessing",
    "pcre2",
    "json",
    "msgspec",
    "pycurl",
    "bisect",
    "random",
    "click",
    "colorsys",
)


@pytest.fixture
def planted(tmp_path: Path) -> Path:
    """A directory full of modules that nobody should import."""
    for name in PLANTED:
        (tmp_path / f"{name}.py").write_text(TRAP)
    return tmp_path


@pytest.mark.processes
def test_crawl_imports_nothing_of_the_working_directory(planted: Path) -> None:
    """Neither the command, nor its worker processes, nor the helpers that read long pages."""
    long_page = b"<p>" + b"x" * 1_200_000 + b"<a href=/b>b</a>"
    with RawServer(routes({"/": answer(long_page, "200 OK", HTML)})) as server:
        outcome = run(
            planted, "crawl", server.url(), "--seeding-strategy", "none", "--processes", "2",
            "--max-rate", "unlimited", "--max-urls", "2", "--quiet",
        )  # fmt: skip

    assert (outcome.returncode, outcome.stderr) == (0, "")
    assert not (planted / "sprung").exists()


@pytest.mark.processes
def test_demo_imports_nothing_of_the_working_directory(planted: Path) -> None:
    """Its servers are another process; a module called mannerly is not theirs."""
    code = "import sys; sys.argv = ['mannerly', 'demo', '--seconds', '1']\n"
    code += "from mannerly.__main__ import main; main()"
    (planted / "mannerly.py").write_text(TRAP)
    done = subprocess.run(
        [sys.executable, "-P", "-c", code],
        cwd=planted,
        env={"HOME": str(planted), "PATH": os.defpath, "PYTHONPATH": SOURCE},
        capture_output=True,
        timeout=PATIENCE_S,
        check=False,
    )

    assert b"Limit/s" in done.stdout
    assert not (planted / "sprung").exists()


@pytest.mark.processes
def test_simulation_imports_a_module_only_when_it_is_named(planted: Path) -> None:
    """MODULE:NAME may be a module of the working directory; it hides no other one."""
    (planted / "mine.py").write_text(
        "import colorsys\n\nclass Server:\n"
        "    def request(self, now, in_flight):\n        return 200, 0.1, {}\n"
    )

    models = run(planted, "simulate", "--server", "bucket:5:10", "--seconds", "5")
    named = run(planted, "simulate", "--server", "mine:Server", "--seconds", "5")

    assert (models.returncode, named.returncode) == (0, 0), named.stderr
    assert not (planted / "sprung").exists()


# ---------------------------------------------------------------------- project files


@pytest.mark.processes
@pytest.mark.parametrize(
    "line",
    [
        'allow_net = ["0.0.0.0/0"]',
        'proxy = "http://127.0.0.1:9"',
        'ca_file = "mine.pem"',
        'insecure_host = ["a.example"]',
        "fresh = true",
        'data_dir = "/tmp/elsewhere"',
        'data_dir = "../elsewhere"',
        'data_dir = "link/elsewhere"',
        'output = ["/tmp/pages.csv"]',
        'output = ["pages.csv", "../pages.csv"]',
    ],
)
def test_project_file_cannot_open_the_network_or_write_elsewhere(tmp_path: Path, line: str) -> None:
    """The error says where such an option may be set; nothing is written."""
    file = "pyproject.toml" if "fresh" in line else "mannerly.toml"
    (tmp_path / "link").symlink_to("/tmp")
    (tmp_path / file).write_text(f"[tool.mannerly]\n{line}\n" if "py" in file else line)

    outcome = run(tmp_path, "crawl", NO_SUCH)

    name = line.partition(" ")[0]
    assert outcome.returncode == 2
    assert f"{name} is refused: a project file may" in outcome.stderr
    assert f"Use {OPTIONS[name].flag}, {OPTIONS[name].variable} or ~/.config" in outcome.stderr
    assert not list(tmp_path.glob("crawl-*"))


@pytest.mark.processes
def test_other_options_of_a_project_file_are_named_at_the_start(tmp_path: Path) -> None:
    """Paths inside the directory may be written; --quiet is silent about it."""
    (tmp_path / "mannerly.toml").write_text(
        'max_urls = 1\ndata_dir = "mine"\noutput = ["pages.jsonl"]\nallow_net = []\n'
    )
    with RawServer(PAGES) as server:
        loud = run(tmp_path, "crawl", server.url(), *QUICK)
        quiet = run(tmp_path, "crawl", server.url(), *QUICK, "--quiet")

    assert (loud.returncode, quiet.returncode, quiet.stderr) == (0, 0, "")
    said = "Options from mannerly.toml in the working directory: max_urls, data_dir, output, "
    assert loud.stderr.startswith(said)
    assert (tmp_path / "pages.jsonl").exists()


def test_dangerous_options_are_marked() -> None:
    """A new option of this kind has to be added here and marked in the table."""
    marked = {name for name, each in OPTIONS.items() if each.project_use is not ProjectUse.ANY}

    assert marked >= {
        "allow_net", "proxy", "ca_file", "insecure_host", "fresh", "data_dir", "output",
    }  # fmt: skip


@pytest.mark.processes
def test_user_file_and_environment_may_set_everything(tmp_path: Path) -> None:
    """They are the operator's own."""
    (tmp_path / "home/.config/mannerly").mkdir(parents=True)
    (tmp_path / "home/.config/mannerly/config.toml").write_text('allow_net = ["10.0.0.0/8"]\n')

    outcome = run(tmp_path, "config", "show", MANNERLY_PROXY="http://127.0.0.1:9")

    assert outcome.returncode == 0
    assert 'allow_net = ["10.0.0.0/8"]' in outcome.stdout


# ---------------------------------------------------------------------- what is read and resumed


@pytest.mark.processes
def test_file_named_like_a_host_is_not_guessed_at(tmp_path: Path) -> None:
    """The error says how to write either."""
    (tmp_path / "example.com").write_text("https://other.example/\n")

    outcome = run(tmp_path, "crawl", "example.com")

    assert outcome.returncode == 2
    assert (
        "write https://example.com/ for the host, or ./example.com for the file" in outcome.stderr
    )


@pytest.mark.processes
def test_file_of_seeds_is_named(tmp_path: Path) -> None:
    """With the number of its URLs."""
    with RawServer(PAGES) as server:
        (tmp_path / "seeds").write_text(f"{server.url()}\n")
        outcome = run(tmp_path, "crawl", "seeds", *QUICK, "--max-urls", "1")

    assert outcome.stderr.startswith("Read 1 URL from seeds\n")


@pytest.mark.processes
def test_resumed_crawl_is_said_with_its_seeds_and_what_it_allows(tmp_path: Path) -> None:
    """Also what a planted directory brings."""
    with RawServer(PAGES) as server:
        seed = server.url()
        run(tmp_path, "crawl", seed, *QUICK, "--max-urls", "1", "--allow-net", "10.0.0.0/8")
        again = run(tmp_path, "crawl", seed, *QUICK, "--max-urls", "1")

    assert again.returncode == 0
    assert again.stderr.startswith(f"Resuming the crawl in crawl-{seed[7:-1].replace(':', '-')}: ")
    assert f"{seed}; --allow-net 10.0.0.0/8\n" in again.stderr


@pytest.mark.processes
def test_crawl_with_other_seeds_is_not_resumed_by_its_default_name(tmp_path: Path) -> None:
    """`resume` takes it as it is: then the operator has named it."""
    with RawServer(PAGES) as server:
        seed = server.url()
        run(tmp_path, "crawl", seed, server.url("/planted"), *QUICK, "--max-urls", "1")
        found = run(tmp_path, "crawl", seed, *QUICK, "--max-urls", "1")
        directory = next(tmp_path.glob("crawl-*")).name
        named = run(tmp_path, "resume", directory, "--max-urls", "1")

    assert found.returncode == 2
    assert f"has other seeds, too: {seed}planted; to resume it as it is: " in found.stderr
    assert f"mannerly resume {directory}; to start over, add --fresh" in found.stderr
    assert named.returncode == 0
    assert "and 1 more seed\n" in named.stderr


def test_crawl_of_another_user_is_not_resumed_by_its_default_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error names the owner and the command that resumes it nevertheless."""
    from mannerly.cli import notices

    (tmp_path / "crawl-a").mkdir()
    assert notices.foreign_owner(str(tmp_path / "crawl-a")) is None
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)

    with pytest.raises(ValueError, match=rf"belongs to another user \(uid {os.getuid()}\)"):
        notices.check_found(str(tmp_path / "crawl-a"), [], [])


# ---------------------------------------------------------------------- files that are no text


def _fifo(file: Path) -> None:
    os.mkfifo(file)


def _damaged(file: Path) -> None:
    packed = bytearray(gzip.compress(b"https://a.example/\n" * 99))
    packed[10] = 0xFF  # no such type of block
    file.write_bytes(packed)


def _bomb(file: Path) -> None:
    packer = zlib.compressobj(9, wbits=31)
    file.write_bytes(
        b"".join(packer.compress(bytes(1_000_000)) for _ in range(100)) + packer.flush()
    )


ODD: dict[str, tuple[Callable[[Path], object], str]] = {
    "a pipe": (_fifo, "is a pipe or a device, not a file; to read URLs from a pipe, use -"),
    "a device": (lambda file: file.symlink_to("/dev/zero"), "is a pipe or a device, not a file"),
    "damaged gzip": (_damaged, "is not a gzip file"),
    "a gzip bomb": (_bomb, "is longer than 65,536 bytes"),
    "a long line": (lambda file: file.write_text("x" * 70_000), "is longer than 65,536 bytes"),
    "binary": (lambda file: file.write_bytes(bytes(range(256))), "is not"),
}


@pytest.mark.processes
@pytest.mark.parametrize("kind", ODD)
def test_odd_file_of_seeds_is_a_clear_error(tmp_path: Path, kind: str) -> None:
    """At once, and within 100 MB of memory."""
    make, words = ODD[kind]
    make(tmp_path / "seeds.txt")
    code = (
        "import resource; resource.setrlimit(resource.RLIMIT_DATA, (10**8, 10**8))\n"
        "import sys; sys.argv = ['mannerly', 'crawl', 'seeds.txt']\n"
        "from mannerly.__main__ import main; main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env={"HOME": str(tmp_path), "PATH": os.defpath, "PYTHONPATH": SOURCE},
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )

    assert done.returncode == 2
    assert done.stderr.startswith("mannerly: seeds.txt")
    assert words in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.processes
def test_endless_standard_input_is_a_clear_error(tmp_path: Path) -> None:
    """It is read no further than its first line."""
    outcome = run(tmp_path, "crawl", "-", stdin=bytes(1_000_000))

    assert outcome.returncode == 2
    assert "standard input, line 1, is longer than 65,536 bytes" in outcome.stderr


def test_file_of_too_many_lines_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Blank lines count."""
    monkeypatch.setattr("mannerly.cli.seeds.MAX_LINES", 3)
    (tmp_path / "seeds.txt").write_text("a.example\n\n\n\n")

    with pytest.raises(SeedError, match="split it into several files"):
        read_seeds([str(tmp_path / "seeds.txt")])


@pytest.mark.processes
@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("a = " + "[" * 10_000, "it is nested too deeply"),
        ("a = " + "1" * 10_000, "is not a TOML file"),
        ("#" * 1_000_001, "is longer than 1,000,000 bytes"),
        ("max_urls = \xff", "is not"),
        (None, "is a pipe or a device"),
    ],
)
def test_odd_configuration_file_is_a_clear_error(
    tmp_path: Path, content: str | None, words: str
) -> None:
    """Also a pipe, which would never end."""
    file = tmp_path / "mannerly.toml"
    if content is None:
        os.mkfifo(file)
    else:
        file.write_bytes(content.encode("latin-1"))

    outcome = run(tmp_path, "config", "show")

    assert outcome.returncode == 2
    assert words in outcome.stderr
    assert outcome.stderr.count("\n") == 1


# ---------------------------------------------------------------------- secrets


@pytest.mark.processes
@pytest.mark.parametrize(
    "words",
    [
        ("crawl", "https://me:hunter2@a.example/"),
        ("crawl", "me:hunter2@a.example"),
        ("crawl", "ftp://me:hunter2@a.example/"),
        ("crawl", "https://me:hun/ter2@a..example/"),
        ("crawl", "-"),
        ("explain", "mine", "https://me:hunter2@a..b/"),
        ("host", "show", "mine", "https://me:hunter2@a..b/"),
        ("host", "show", "mine", "https://me:hunter2@other.example/"),
    ],
)
def test_password_of_a_url_is_not_echoed(tmp_path: Path, words: tuple[str, ...]) -> None:
    """In no message, wherever the URL was given."""
    for seed in ("https://me:hunter2@a.example/", "https://me:hunter2@a..b/"):
        with pytest.raises(ValueError, match=r".") as refused:
            mannerly.Crawl(seed.replace("://", ":/[/"))
        assert "ter2" not in str(refused.value)
    with mannerly.Crawl("https://a.example/", data_dir=tmp_path / "mine"):
        pass

    outcome = run(tmp_path, *words, stdin=b"https://me:hunter2@a.example/\n")

    assert outcome.returncode == 2
    assert "ter2" not in outcome.stderr + outcome.stdout


@pytest.mark.processes
def test_tls_secrets_are_not_logged(tmp_path: Path) -> None:
    """SSLKEYLOGFILE is not honoured: it would let others decrypt the traffic."""
    certificate = Authority(tmp_path).certificate(x509.IPAddress(ip_address("127.0.0.1")))
    with RawServer(PAGES, tls=certificate.context()) as server:
        outcome = run(
            tmp_path, "crawl", server.url(), *QUICK, "--max-urls", "1", "--json",
            "--ca-file", certificate.file, SSLKEYLOGFILE=str(tmp_path / "keys"),
        )  # fmt: skip

    assert json.loads(outcome.stdout)["statuses"] == {"200": 1}
    assert not (tmp_path / "keys").exists()


@pytest.mark.parametrize("evil", ["a\r\nX-Evil: 1", "a\nb", "a\rb", "a\0b", "a\x7fb", "a\x1bb"])
@pytest.mark.parametrize("name", ["user_agent", "contact"])
def test_header_with_a_line_break_is_refused_when_it_is_set(
    tmp_path: Path, name: str, evil: str
) -> None:
    """By the command line's files, by the library, and by the settings themselves."""
    from mannerly.crawler.settings import CrawlSettings

    (tmp_path / "mannerly.toml").write_text(f"{name} = {json.dumps(evil)}\n")

    with pytest.raises(mannerly.OptionError):
        resolve({}, environment={"HOME": str(tmp_path)}, directory=tmp_path)
    with pytest.raises(mannerly.OptionError):
        mannerly.Crawl("https://a.example/", **{name: evil})  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="header"):
        CrawlSettings(**{name: evil})


# ---------------------------------------------------------------------- escape sequences


def _is_clean(outcome: subprocess.CompletedProcess[str] | Result) -> bool:
    text = outcome.stdout + outcome.stderr
    return all(character.isprintable() or character == "\n" for character in text)


@pytest.mark.processes
def test_text_of_local_files_reaches_no_terminal_raw(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Keys and values of files, names of files, the owner of a lock: on every way to the screen."""
    nasty = NASTY.replace("/", "")
    quoted = json.dumps(nasty.replace("\U000e0041", ""))
    with mannerly.Crawl("https://a.example/", data_dir=tmp_path / "mine"):
        pass
    (tmp_path / nasty).mkdir()
    (tmp_path / nasty / nasty).write_text("")
    (tmp_path / f"{nasty}.txt").write_text(nasty)
    config = tmp_path / "mannerly.toml"

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))

    outcomes = [
        invoke(*words)
        for words in (
            ("crawl", nasty),
            ("crawl", f"{nasty}.txt"),
            ("crawl", NO_SUCH, "--data-dir", nasty),
            ("crawl", NO_SUCH, "-o", f"{nasty}/x.csv", "-o", f"{nasty}.{nasty}"),
            ("crawl", NO_SUCH, "--include", nasty),
            ("status", nasty),
            ("export", "mine", "-o", f"{nasty}/{nasty}/x.csv"),
            ("explain", "mine", nasty),
            ("host", "show", "mine", nasty),
            ("host", "pause", "mine", nasty),
            ("set", "mine", f"exclude=*{nasty}*"),
            ("set", "mine", f"{nasty}={nasty}"),
            ("resume", "mine", "--duration", "0.1", "-v"),
            ("status", "mine"),
            ("status", "mine", "--json"),
            ("wipe", nasty, "--yes"),
            ("simulate", "--server", nasty),
        )
    ]
    for text in (
        f"{quoted} = 1",
        f"scope = {quoted}",
        f'data_dir = {quoted}\nexclude = ["*{nasty[5:8]}*"]',
        f"exclude = [{quoted}]",
        f"[tool]\n{quoted} = {quoted}",
    ):
        config.write_text(text)
        outcomes += [invoke("config", "show"), invoke("config", "show", "--json")]

    assert [each.stdout + each.stderr for each in outcomes if not _is_clean(each)] == []
    assert _is_clean(run(tmp_path, "status", nasty, f"--{nasty}"))  # an error of the parser


@pytest.mark.processes
def test_configuration_with_invisible_characters_is_shown_as_a_valid_file(tmp_path: Path) -> None:
    """Escaped, and read back as the same value."""
    import tomllib

    pattern = "*\x9b\u202e\U000e0041*"
    (tmp_path / "mannerly.toml").write_text(f'exclude = ["{pattern}"]')

    shown = run(tmp_path, "config", "show")
    as_json = run(tmp_path, "config", "show", "--json")

    assert _is_clean(shown)
    assert _is_clean(as_json)
    assert tomllib.loads(shown.stdout)["exclude"] == [pattern]
    assert json.loads(as_json.stdout)["exclude"] == [pattern]


def test_escaping_keeps_what_can_be_read() -> None:
    """Lines and letters of every script stay; everything else is written in ASCII."""
    assert plain("größe 漢字\nsecond") == "größe 漢字\nsecond"
    assert plain("a\tb\x9b") == "a\\tb\\x9b"
    assert json.loads(json_escaped(json.dumps(NASTY, ensure_ascii=False))) == NASTY


def test_exported_lines_have_no_escape_sequences() -> None:
    """`export -o -` of a prepared crawl prints data, and the data are the same."""
    nasty = NASTY.replace("\U000e0041", "") + "\x7f\x85\u200e\u2029\ufeff größe"
    file = io.BytesIO()

    write_jsonl([{"title": nasty}], file)  # type: ignore[list-item]

    (line,) = file.getvalue().decode().splitlines()
    assert line.isprintable()
    assert json.loads(line) == {"title": nasty}
    assert "größe" in line
