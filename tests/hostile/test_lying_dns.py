"""Names whose DNS server fails, is silent, changes its mind or lies, and a real resolver.

The resolver says the same of NXDOMAIN, SERVFAIL and silence: that there is no such name.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.hostile.lying_dns import ALLOWED, FORBIDDEN, PAGES
from torture.command import ENVIRONMENT

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.hostile.conftest import Figure

pytestmark = pytest.mark.processes

SCRIPT = Path(__file__).with_name("lying_dns.py")
OPTIONS = ("--strategy", "fixed", "--delay", "0.05", "--max-rate", "unlimited", "--timeout", "5")
OPTIONS = (*OPTIONS, "--seeding-strategy", "none", "--processes", "1", "--ignore-robots")
NAMESPACES = ("unshare", "--map-root-user", "--mount", "--net")


@pytest.fixture
def crawl(tmp_path: Path) -> Callable[..., dict[str, Any]]:
    """Return a function that crawls names within a network of its own."""
    try:
        subprocess.run([*NAMESPACES, "true"], check=True, capture_output=True, timeout=30)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("this system allows no network of one's own (unshare)")

    def run(*names: str, allow: str = "127.0.0.0/8") -> dict[str, Any]:
        seeds = [f"http://{name}.example/" for name in names]
        words = [*NAMESPACES, sys.executable, str(SCRIPT), str(tmp_path), *seeds, *OPTIONS]
        done = subprocess.run(
            [*words, "--allow-net", allow],
            env=ENVIRONMENT,
            capture_output=True,
            text=True,
            timeout=200,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        said: dict[str, Any] = json.loads(done.stdout)
        return said

    return run


def fetched(said: dict[str, Any]) -> Counter[str]:
    """Return how many pages of each host were fetched."""
    rows = (row for row in said["records"] if row.get("status") == 200)
    return Counter(row["host"].partition(".")[0] for row in rows)


def test_failing_names_cost_their_own_host_only(
    crawl: Callable[..., dict[str, Any]], figure: Figure
) -> None:
    """NXDOMAIN, SERVFAIL and silence are failures of a name; hosts that resolve are complete."""
    said = crawl("good", "nx", "servfail", "silent")

    asked = {name: said["questions"].get(f"{name}.example", 0) for name in ("nx", "servfail")}
    figure(
        "F12",
        f"NXDOMAIN, SERVFAIL, no answer: {PAGES - fetched(said)['good']} pages of others lost",
    )
    assert fetched(said) == {"good": PAGES}
    assert said["code"] == 0, said["err"]
    assert max(asked.values()) <= 20
    for name in ("nx", "servfail", "silent"):
        (row,) = (row for row in said["records"] if f"//{name}." in row["url"])
        assert row["error"] == "dns"


def test_a_flapping_name_and_one_with_a_thousand_addresses_are_crawled(
    crawl: Callable[..., dict[str, Any]], figure: Figure
) -> None:
    """If two of three questions fail, no page is lost; a thousand addresses are one host."""
    said = crawl("flapping", "many")

    addresses = {address for address, host, _ in said["visits"] if host.startswith("many")}
    figure("F12", f"SERVFAIL twice of three times: {PAGES - fetched(said)['flapping']} pages lost")
    figure("F12", f"1,000 addresses: {PAGES - fetched(said)['many']} pages lost")
    assert fetched(said) == {"flapping": PAGES, "many": PAGES}, said["err"]
    assert len(addresses) >= 1


def test_a_name_that_turns_to_a_forbidden_address_is_not_followed(
    crawl: Callable[..., dict[str, Any]], figure: Figure
) -> None:
    """DNS rebinding: the address that is connected is judged, whatever the answer before was."""
    said = crawl("rebinding", "mixed", allow=f"{ALLOWED}/32")

    forbidden = [visit for visit in said["visits"] if visit[0] == FORBIDDEN]
    figure("S4", f"rebinding and mixed answers: {len(forbidden)} requests to the forbidden address")
    assert forbidden == []
    assert {address for address, _, _ in said["visits"]} == {ALLOWED}
    assert fetched(said)["mixed"] == PAGES
