"""Starting is cheap because of what is not imported: a fresh interpreter is asked, not a clock."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytestmark = pytest.mark.processes

PROBE = """
import sys
{work}
print(*sys.modules, file=sys.stderr)
"""
# None of these is needed to decide when a host may be contacted, and each takes long to import.
HEAVY = {"asyncio", "logging", "http", "ssl", "sqlite3", "msgspec"}
ENGINE = {"pycurl", "apsw", "turbohtml", "publicsuffixlist", "multiprocessing"}


def modules_after(work: str) -> set[str]:
    """The modules that a fresh interpreter has after some work."""
    probe = subprocess.run(
        [sys.executable, "-c", PROBE.format(work=work)],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    return set(probe.stderr.split())


@pytest.mark.parametrize(
    "work",
    [
        "from mannerly.politeness.core import Politeness",
        "from mannerly.politeness.robots import Robots; Robots.parse(b'Disallow: /')",
        "from mannerly.politeness import Politeness; Politeness().reserve('example.com', now=0.0)",
    ],
)
def test_politeness_imports_little(work: str) -> None:
    """Neither importing nor using the core needs anything slow, nor anything of the crawler."""
    loaded = modules_after(work)

    assert ("mannerly.politeness.core" in loaded) == ("Politeness" in work)
    assert not loaded & (HEAVY | ENGINE)
    ours = {name.split(".")[1] for name in loaded if name.startswith("mannerly.")}
    assert ours == {"politeness", "version"}


def test_modules_for_rare_headers_are_imported_on_first_use() -> None:
    """Dates, addresses and JSON are not imported with the package."""
    loaded = modules_after("from mannerly.politeness import Politeness")

    assert not loaded & {"datetime", "ipaddress", "json"}


NAMES_ONLY = (
    "options",
    "options.declared",
    "options.option",
    "options.secrets",
    "options.table",
    "options.values",
    "web",
    "web.choices",
    "web.words",
)  # modules of the crawler that hold words only


@pytest.mark.parametrize("words", [["--help"], ["crawl", "--help"], ["host", "--help"]])
def test_help_imports_only_the_command(words: list[str]) -> None:
    """To say what it could do, the command needs nothing that does it."""
    loaded = modules_after(
        f"sys.argv = ['mannerly', *{words!r}]\n"
        "from mannerly.cli import main\n"
        "try: main()\n"
        "except SystemExit as end: assert end.code in (0, None)"
    )

    crawler = {name for name in loaded if name.startswith("mannerly.crawler")}
    core = {name for name in loaded if name.startswith("mannerly.politeness.")}
    ours = {name.split(".")[1] for name in loaded if name.startswith("mannerly.")}
    assert ours == {"cli", "crawler", "politeness", "version"}
    assert core == {f"mannerly.politeness.{name}" for name in ("bounds", "errors", "settings")}
    assert crawler <= {"mannerly.crawler", *(f"mannerly.crawler.{name}" for name in NAMES_ONLY)}
    assert not loaded & (ENGINE | {"asyncio", "msgspec", "rich", "sqlite3", "tomllib"})


def test_a_crawl_imports_no_other_client() -> None:
    """Proxies of the environment and versions of extras are read where they are asked for."""
    loaded = modules_after("import mannerly.crawler.crawl, mannerly.cli.crawl")

    assert "mannerly.crawler.fetch.settings" in loaded
    assert not loaded & {"email", "http", "ssl", "urllib.request", "importlib.metadata"}


def test_hosts_are_loaded_only_where_a_place_is_named() -> None:
    """A driver or an adapter without `memory=` needs neither leases nor a database."""
    probe = "from mannerly.politeness.drivers.threads import ThreadedPoliteness as P; {}"

    alone = modules_after(probe.format("P(); import mannerly.adapters.httpx"))
    shared = modules_after(probe.format("P(memory='memory:probe').close()"))

    assert not {name for name in alone if name.startswith(("mannerly.hosts", "mannerly.database"))}
    assert "mannerly.hosts.programs" in shared
