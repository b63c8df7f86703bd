"""`mannerly serve`: run crawls as jobs, with an HTTP API.

Options of a crawl that the environment or a file sets hold for every job that does not set them
itself.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

from mannerly.crawler.options.option import ProjectUse, declaration

from .command_line import GivenOptions, OptionsOfCrawl
from .config import resolve
from .terminal import fail, failing_clearly, note

if TYPE_CHECKING:
    from mannerly.service.jobs.model import JobSpider


def serve(
    *,
    data_root: Annotated[
        Path,
        declaration(
            "Directory of the jobs and their data.",
            metavar="DIR",
            project_use=ProjectUse.PATHS_INSIDE,
        ),
    ] = Path("mannerly-jobs"),
    listen: Annotated[
        str,
        declaration(
            "Address to listen on; beyond loopback a token is required.",
            metavar="HOST:PORT",
            project_use=ProjectUse.NONE,
        ),
    ] = "127.0.0.1:7465",
    token_file: Annotated[
        Path | None,
        declaration(
            "File with the token that clients send as Authorization: Bearer TOKEN.",
            project_use=ProjectUse.NONE,
        ),
    ] = None,
    jobs: Annotated[int, declaration("Jobs that run at once.", low=1)] = 2,
    allow_host: Annotated[
        list[str] | None,
        declaration(
            "Name under which clients reach this service; repeatable.",
            metavar="NAME",
            project_use=ProjectUse.NONE,
        ),
    ] = None,
    failure_threshold: Annotated[
        int,
        declaration(
            "A job fails after this many URLs in a row that ended in an error, in an answer of 400 "
            "or above, or with their host given up; 0: never; not in jobs that check links.",
            low=0,
            variables=("BBB_JOB_FAILURE_THRESHOLD",),
        ),
    ] = 20,
    throttle_threshold: Annotated[
        int,
        declaration(
            "A job is cancelled after this many answers 429 in a row, each with a wait of "
            "--throttle-delay or longer; 0: never.",
            low=0,
        ),
    ] = 0,
    throttle_delay: Annotated[
        float,
        declaration(
            "Shortest wait, in seconds, that counts for --throttle-threshold; one that is n times "
            "as long counts n times.",
            metavar="S",
            above=0,
        ),
    ] = 60.0,
    webhook_secret_file: Annotated[
        Path | None,
        declaration("File with the secret that signs webhooks.", project_use=ProjectUse.NONE),
    ] = None,
    spider: Annotated[
        list[str] | None,
        declaration(
            "A spider that jobs may name: its file is loaded now, and by every such job; "
            "repeatable.",
            metavar="NAME=FILE[:NAME]",
            project_use=ProjectUse.NONE,
        ),
    ] = None,
    of_jobs: Annotated[
        GivenOptions,
        OptionsOfCrawl(
            only=("allow_net",),
            helps={
                "allow_net": "Let jobs contact this private network (CIDR) or host:port; "
                "repeatable."
            },
        ),
    ],
) -> None:
    """Run crawls as jobs behind an HTTP API.

    Jobs are created, watched, scheduled and steered by requests, or on a page in the browser.
    Options of a crawl that the environment (MANNERLY_…) or a configuration file sets hold for
    every job that does not set them itself.
    """
    with failing_clearly():
        try:
            from mannerly.service.app import service_app
            from mannerly.service.connections import web_config
            from mannerly.service.server import LastAnswers, WebServer
        except ModuleNotFoundError as error:
            if (error.name or "").startswith("mannerly"):
                raise
            fail_without_packages("mannerly serve")
        from mannerly.crawler.settings import CrawlSettings
        from mannerly.service.service import Service

        configuration = resolve(of_jobs, environment=os.environ, directory=Path.cwd())
        host, port = address("--listen", listen)
        token = None if token_file is None else _secret(token_file)
        if token is None and not is_loopback(host):
            token = _new_token(data_root)
        service = Service(
            data_root,
            configuration.settings(CrawlSettings(seeds_open_network=False)),
            jobs=jobs,
            failure_threshold=failure_threshold,
            throttle_threshold=throttle_threshold,
            throttle_delay_s=throttle_delay,
            spiders=_spiders(spider or []),
            webhook_secret=None if webhook_secret_file is None else _secret(webhook_secret_file),
        )
        ending = LastAnswers()
        app = service_app(service, ending, hosts=[shown(host), *(allow_host or [])], token=token)
        _log_changes()
        note(f"Listening on http://{shown(host)}:{port}/ for jobs in {data_root}")
        if token is not None:
            note("The page needs the token in its address: add #token=TOKEN")
        config = web_config(app, host=host, port=port, log_level="warning")
        WebServer(config, ending).run()


def _spiders(texts: list[str]) -> dict[str, JobSpider]:
    """Load the spiders that jobs may name."""
    from mannerly.crawler.options.values import OptionError, from_keywords
    from mannerly.crawler.spider import find_spider
    from mannerly.service.jobs.model import JobSpider

    spiders: dict[str, JobSpider] = {}
    for text in texts:
        name, equals, file = text.partition("=")
        if not equals or not name.isprintable() or not name or name in spiders:
            why = "the name is taken" if name in spiders else "allowed: NAME=FILE.py[:NAME]"
            raise OptionError(f"--spider is {text!r}; {why}")
        found = find_spider(file)
        seeds = tuple(found.spider.seeds)
        spiders[name] = JobSpider(found.place, seeds, from_keywords(found.spider.options))
    return spiders


def _log_changes() -> None:
    """Print a line on standard error for every change that a client makes, and for problems."""
    import logging

    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    logger = logging.getLogger("mannerly.service")
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    logger.propagate = False


def _secret(file: Path) -> str:
    """Return the secret in a file that others cannot read."""
    text = file.read_text(encoding="utf-8").strip()
    if not text:
        fail(f"{file} is empty: write a secret into it")
    if os.name == "posix" and file.stat().st_mode & 0o077:
        note(f"Others can read {file}: run chmod 600 {file}")
    return text


def _new_token(root: Path) -> str:
    """Return the token of this directory; a new one is printed once."""
    import secrets

    file = root / "token"
    if file.exists():
        return _secret(file)
    root.mkdir(parents=True, exist_ok=True, mode=0o700)
    token = secrets.token_urlsafe(32)
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as opened:
        opened.write(token + "\n")
    note(f"Clients need a token, kept in {file} and shown only now: {token}")
    return token


def fail_without_packages(what: str) -> NoReturn:
    """Exit with code 2, and say how to install the packages that a server needs."""
    from mannerly.extras import install_words

    fail(f"{what} needs more packages: {install_words('serve')}")


def address(option: str, text: str) -> tuple[str, int]:
    """Return host and port of [HOST:]PORT; exit with code 2 if it is something else.

    Without a host it is 127.0.0.1.
    """
    host, _, port = text.rpartition(":")
    if not port.isascii() or not port.isdigit() or not 0 < int(port) < 65536:
        fail(f"{option} is {text!r}; allowed: [HOST:]PORT, such as 127.0.0.1:7465")
    return host.strip("[]") or "127.0.0.1", int(port)


def shown(host: str) -> str:
    """Return a host as a URL has it."""
    return f"[{host}]" if ":" in host else host


def is_loopback(host: str) -> bool:
    """Return whether only this machine reaches an address."""
    from ipaddress import ip_address

    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
