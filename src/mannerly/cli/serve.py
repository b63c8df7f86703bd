"""`mannerly serve`: run crawls as jobs, with an HTTP API."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from .listening import address, fail_without_packages, is_loopback, shown
from .terminal import fail, failing_clearly, note

DEFAULT_LISTEN = "127.0.0.1:7465"


def serve(
    data_root: Annotated[
        Path, typer.Option(metavar="DIR", help="Directory of the jobs and their data.")
    ] = Path("mannerly-jobs"),
    listen: Annotated[
        str,
        typer.Option(
            metavar="HOST:PORT", help="Address to listen on; beyond loopback a token is required."
        ),
    ] = DEFAULT_LISTEN,
    token_file: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="File with the token that clients send as Authorization: Bearer TOKEN.",
        ),
    ] = None,
    jobs: Annotated[int, typer.Option(min=1, metavar="N", help="Jobs that run at once.")] = 2,
    allow_net: Annotated[
        list[str] | None,
        typer.Option(
            metavar="CIDR",
            help="Let jobs contact this private network (CIDR) or host:port; repeatable.",
        ),
    ] = None,
    allow_host: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME", help="Name under which clients reach this service; repeatable."
        ),
    ] = None,
    failure_threshold: Annotated[
        int,
        typer.Option(
            min=0,
            metavar="N",
            help="A job fails after this many URLs in a row that ended in an error; 0: never.",
            envvar=["MANNERLY_FAILURE_THRESHOLD", "BBB_JOB_FAILURE_THRESHOLD"],
        ),
    ] = 20,
    throttle_threshold: Annotated[
        int,
        typer.Option(
            min=0,
            metavar="N",
            help="A job is cancelled after this many answers 429 in a row at a delay of 60 s or "
            "more; 0: never.",
            envvar="MANNERLY_THROTTLE_THRESHOLD",
        ),
    ] = 0,
    webhook_secret_file: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="File with the secret that signs webhooks."),
    ] = None,
) -> None:
    """Run crawls as jobs: an HTTP API to create, watch, schedule and steer them."""
    with failing_clearly():
        try:
            from mannerly.service.app import service_app
            from mannerly.service.connections import web_config
            from mannerly.service.ending import LastAnswers
            from mannerly.service.server import WebServer
        except ModuleNotFoundError as error:
            if (error.name or "").startswith("mannerly"):
                raise
            fail_without_packages("mannerly serve")
        from mannerly.crawler.settings import CrawlSettings
        from mannerly.service.service import Service

        host, port = address("--listen", listen)
        token = None if token_file is None else _secret(token_file)
        if token is None and not is_loopback(host):
            token = _new_token(data_root)
        settings = CrawlSettings(allow_net=tuple(allow_net or ()), seeds_open_network=False)
        service = Service(
            data_root,
            settings,
            jobs=jobs,
            failure_threshold=failure_threshold,
            throttle_threshold=throttle_threshold,
            webhook_secret=None if webhook_secret_file is None else _secret(webhook_secret_file),
        )
        ending = LastAnswers()
        names = [shown(host), *(allow_host or ())]
        app = service_app(service, ending, hosts=names, token=token)
        _log_changes()
        note(f"Listening on http://{shown(host)}:{port}/ for jobs in {data_root}")
        config = web_config(app, host=host, port=port, log_level="warning")
        WebServer(config, ending).run()


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
