"""Crawls in a Redis or Valkey server: create, join, or inspect one.

`mannerly crawl` creates or joins with the same command. A command that takes the directory of a
crawl takes one in a server, too (`mannerly status redis://HOST:PORT/DB --crawl NAME`): the argument
becomes the location of the crawl before the command sees it (`command_line`).

The options of the crawl are kept when it is created: another value is an error that names both.
`OF_MACHINE` lists those that every machine has for itself.

A password is read from the environment or a file (`mannerly.database.address`). So the options
about it become variables of this process, which its child processes inherit.
"""

from __future__ import annotations

import os
import re
import shlex
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import unquote

from mannerly.crawler.options.option import Option, ValueKind
from mannerly.crawler.options.table import CHANGEABLE, OPTIONS
from mannerly.crawler.options.values import OptionError, printable

from .config import ConfigError
from .terminal import fail, note, safe_term

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mannerly.crawler.runtime.coordinator import Membership
    from mannerly.crawler.settings import CrawlSettings
    from mannerly.crawler.store.base import Manifest

    from .config import Configuration
    from .crawl import RunPlan
    from .seeds import SeedSource

T = TypeVar("T")

ENABLED = "redis://127.0.0.1:6379/0"  # --enable-redis without --redis-url
AGAIN_S = 1.0  # between two tries to reach the server
SAY_AGAIN_S = 30.0

# Options that a machine has for itself, by name. Secrets are not kept with a crawl.
OF_MACHINE = tuple(name for name, option in OPTIONS.items() if option.of_machine)


def prepare_shared(
    sources: list[SeedSource],
    seeds: list[str],
    configuration: Configuration,
    server: str,
    base: CrawlSettings | None = None,
    name: str | None = None,
) -> RunPlan:
    """Return the plan of a run that creates a crawl in a server, or joins it.

    `name` is that of the crawl if no option names it; by default it is made from the seeds.
    """
    from mannerly.crawler.settings import check_shared
    from mannerly.crawler.store import failover_risk, read_records_from

    from . import notices
    from .crawl import RunPlan, check_start
    from .export import check_function, check_outputs, for_outputs
    from .report import read_rules

    location = location_of(configuration, server, seeds, name)
    member = membership(configuration, location)
    check_outputs(configuration)
    own = configuration.settings(base)
    check_shared(own)
    said = [*notices.project_file(configuration), *notices.seeds_read(sources)]
    manifest = patiently(
        configuration,
        lambda: existing(location, member, is_fresh=bool(configuration.value("fresh"))),
    )
    if manifest is not None:
        settings = joined(configuration, manifest, location)
        said.append(f"Joining the crawl {location}")
    else:
        settings = own
        check_start(settings, seeds, location)
    settings = for_outputs(settings, configuration)
    if "processes" not in configuration.given:
        settings = replace(settings, processes=1)
    if settings.extract is not None:
        check_function(settings.extract)
        if manifest is not None:
            said += patiently(configuration, lambda: _other_versions(location, settings.extract))
    rules = read_rules(configuration.texts("fail_on"))
    if (risk := patiently(configuration, lambda: failover_risk(location))) is not None:
        said.append(risk)
    read_records_from([member.segments or member.data_dir])
    is_joined = manifest is not None
    return RunPlan(settings, seeds, location, configuration, is_joined, said, rules, member=member)


def records_elsewhere(plan: RunPlan) -> dict[str, int]:
    """Say which part of the records the outputs of a worker have, and how to write all of them.

    Returns:
        The number of records that other workers have, for the result as JSON.
    """
    outputs = plan.configuration.texts("output")
    if plan.member is None or not outputs:
        return {}
    from mannerly.crawler.stored import open_crawl

    with open_crawl(plan.location) as crawl:
        elsewhere, total = crawl.lost_records(), crawl.status().total
    if elsewhere:
        everything = total["fetched"] + total["failed"]
        server, _, name = plan.location.partition("#")
        words = ["mannerly", "export", server, "--crawl", unquote(name)]
        words += ["--data-dir", str(plan.member.segments or plan.member.data_dir)]
        words += [word for output in outputs for word in ("-o", output)]
        note(
            f"-o has the part of this worker: {everything - elsewhere:,} of {everything:,} "
            f"records. Other workers have {elsewhere:,}. To write all, add --data-dir with the "
            f"directory of each of them:\n  {safe_term(shlex.join(words))}"
        )
    return {"records_elsewhere": elsewhere}


def server_of(configuration: Configuration) -> str | None:
    """Return the URL of the server that holds the crawl, without a password; None: a directory.

    Raises:
        ConfigError: an option needs --redis-url, or a password is where others can read it.
    """
    given = configuration.given
    url = configuration.value("redis_url")
    if url is None and configuration.value("enable_redis"):
        url = ENABLED
    if url is None:
        for name in ("crawl", "segments", "store_patience", "shards"):
            if name in given and given[name].where == OPTIONS[name].flag:
                raise ConfigError(f"{OPTIONS[name].flag} needs --redis-url")
        return None
    from mannerly.crawler.store import in_server, without_password
    from mannerly.extras import require_redis

    require_redis("--redis-url")
    named = given.get("redis_url")
    if named is not None and named.where != OPTIONS["redis_url"].variable:
        in_server(str(url))  # others can read it there: it must not hold a password
    export_secrets(
        password_file=configuration.value("redis_password_file"),
        is_insecure=bool(configuration.value("insecure_redis")),
    )
    return without_password(str(url))


def export_secrets(*, password_file: object, is_insecure: bool) -> None:
    """Tell the store, and child processes, where the password is."""
    if password_file is not None:
        os.environ[OPTIONS["redis_password_file"].variable] = str(
            Path(str(password_file)).absolute()
        )
    if is_insecure:
        os.environ[OPTIONS["insecure_redis"].variable] = "1"


def location_of(
    configuration: Configuration, url: str, seeds: list[str], name: str | None = None
) -> str:
    """Return the location of the crawl: its name is given, or follows from the first seed."""
    from mannerly.crawler.store import in_server
    from mannerly.crawler.web.urls import host_key_of

    name = str(configuration.value("crawl") or name or "") or None
    if name is None and not seeds:
        fail("nothing to crawl: give a URL, a file of URLs, or --crawl NAME of a crawl to join")
    return in_server(url, name or "crawl-" + host_key_of(seeds[0]))


def membership(configuration: Configuration, location: str) -> Membership:
    """Return the place of this run in the crawl; by default in a directory of the crawl's name."""
    from mannerly.crawler.runtime.coordinator import Membership

    data_dir, segments = configuration.value("data_dir"), configuration.value("segments")
    name = re.sub(r"[^\w.-]+", "-", location.partition("#")[2])
    return Membership(
        Path(str(data_dir or name)).absolute(),
        None if segments is None else Path(str(segments)).absolute(),
        float(str(configuration.value("store_patience"))),
        int(str(configuration.value("shards"))),
    )


def existing(location: str, member: Membership, *, is_fresh: bool) -> Manifest | None:
    """Return the manifest of a crawl that is to be joined; None: it has to be created.

    Raises:
        CrawlGone: the data directory belongs to a crawl that is not in the server any more.
    """
    from mannerly.crawler.store import check_home, open_crawl
    from mannerly.crawler.store.base import StoreMissing

    if is_fresh:
        return None
    try:
        store = open_crawl(location)
    except StoreMissing:
        check_home(member.data_dir, None, location)
        return None
    check_home(member.data_dir, store.manifest.id, location)
    store.close()
    return store.manifest


def patiently(configuration: Configuration, action: Callable[[], T]) -> T:
    """Return what an action returns; wait for its server as long as --store-patience says.

    Raises:
        StoreAway: it could not be reached.
    """
    from mannerly.crawler.store.fleet import StoreAway

    patience_s = float(str(configuration.value("store_patience")))
    began = time.monotonic()
    said_at = -SAY_AGAIN_S
    while True:
        try:
            return action()
        except StoreAway as error:
            waited_s = time.monotonic() - began
            if waited_s >= patience_s:
                raise StoreAway(f"{error} (waited {patience_s:g} s: --store-patience)") from error
            if waited_s - said_at >= SAY_AGAIN_S and not configuration.value("quiet"):
                said_at = waited_s
                note(f"Waiting for the server: {safe_term(str(error))}")
            time.sleep(min(AGAIN_S, patience_s - waited_s))


def joined(configuration: Configuration, manifest: Manifest, location: str) -> CrawlSettings:
    """Return the settings of a crawl that exists, with what this machine has for itself.

    Raises:
        ConfigError: an option of the crawl is given with another value.
    """
    from mannerly.crawler.inspection.view import settings_of
    from mannerly.crawler.settings import in_force

    base = settings_of(manifest)
    own = configuration.settings()
    wanted = configuration.settings(base)
    for name, given in configuration.given.items():
        option = OPTIONS.get(name)
        if option is None or option.target is None or name in OF_MACHINE:
            continue
        if name == "extract" and base.extract is not None:
            continue  # the same file may be elsewhere on this machine (`_other_versions`)
        here, there = in_force(wanted, option), in_force(base, option)
        if here != there:
            change = ", or change it for all workers with `mannerly set`"
            raise ConfigError(
                f"{given.where} is {_shown(name, here)}, and {_shown(name, there)} in the crawl "
                f"{location}: leave it out{change if name in CHANGEABLE else ''}"
            )
    for name, given in configuration.given.items():
        if name == "shards" and given.value != manifest.shards:
            raise ConfigError(f"{given.where} is {given.value}, and {manifest.shards} in the crawl")
    fields = [OPTIONS[name].target or name for name in OF_MACHINE]
    settings = replace(base, **{field: getattr(own, field) for field in fields})
    return settings if own.extract is None else replace(settings, extract=own.extract)


def _other_versions(location: str, extract: str | None) -> list[str]:
    """Return a sentence for each worker of a crawl that runs another version of the user's code."""
    from mannerly.crawler.page.extract import shown, version_of
    from mannerly.crawler.stored import open_crawl

    own = version_of(extract)
    with open_crawl(location) as crawl:
        workers = crawl.store.workers()
    return [
        f"The worker {each.id} on {each.machine} runs another version of {shown(extract or '')} "
        f"({each.code}, here {own}): items of both are mixed. Give all machines the same file"
        for each in workers
        if each.code and own and each.code != own
    ]


def _shown(name: str, value: object) -> str:
    text = printable(name, value)
    return "not set" if text in (None, [], ()) else safe_term(str(text))


_HELPS = {
    "crawl": "With a server's URL in place of DIR: the name of the crawl.",
    "data_dir": "With a server's URL: a worker's data directory, or the one of --segments, in "
    "which records are; repeatable.",
}


def server_options() -> list[Option]:
    """Return the options that name a crawl in a server."""
    found = [OPTIONS[name] for name in ("crawl", "data_dir", "redis_password_file")]
    found.append(OPTIONS["insecure_redis"])
    return [
        each._replace(
            doc=_HELPS.get(each.name, each.doc),
            default_words="" if each.name in _HELPS else each.default_words,
            kind=ValueKind.LIST if each.name == "data_dir" else each.kind,
            is_advanced=False,
        )
        for each in found
    ]


def located(location: str, kept: Mapping[str, Any]) -> str:
    """Return the location of a crawl in a server; any other is left as it is."""
    from mannerly.crawler.store import is_in_server

    if not is_in_server(location):
        for name in kept:
            raise OptionError(
                f"{OPTIONS[name].flag} is for a crawl in a server: give redis://HOST:PORT/DB"
            )
        return location
    from mannerly.crawler.store import in_server, read_records_from
    from mannerly.extras import require_redis

    require_redis("a crawl in a server")
    export_secrets(
        password_file=kept.get("redis_password_file"),
        is_insecure=bool(kept.get("insecure_redis")),
    )
    folders = [Path(each).absolute() for each in kept.get("data_dir", ())]
    for folder in folders:
        if not folder.is_dir():
            note(f"There is no directory {folder} (--data-dir): its records count as missing")
    read_records_from(folders)
    return in_server(location, kept.get("crawl", ""))
