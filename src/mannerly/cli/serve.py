"""`mannerly serve`: run crawls as jobs, with an HTTP API.

Its options are declared in `options.declared.ServeFields`. Options of a crawl that the environment
or a file sets hold for every job that does not set them itself.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Any

import typer

from mannerly.crawler.options.table import SERVE

from .config import resolve_service
from .listening import address, fail_without_packages, is_loopback, shown
from .terminal import fail, failing_clearly, note


def _option(name: str) -> Any:
    return typer.Option(metavar=SERVE[name].metavar, help=SERVE[name].help)


def serve(
    data_root: Annotated[str | None, _option("data_root")] = None,
    listen: Annotated[str | None, _option("listen")] = None,
    token_file: Annotated[str | None, _option("token_file")] = None,
    jobs: Annotated[int | None, _option("jobs")] = None,
    allow_net: Annotated[
        list[str] | None,
        typer.Option(
            metavar="CIDR",
            help="Let jobs contact this private network (CIDR) or host:port; repeatable.",
        ),
    ] = None,
    allow_host: Annotated[list[str] | None, _option("allow_host")] = None,
    failure_threshold: Annotated[int | None, _option("failure_threshold")] = None,
    throttle_threshold: Annotated[int | None, _option("throttle_threshold")] = None,
    throttle_delay: Annotated[float | None, _option("throttle_delay")] = None,
    webhook_secret_file: Annotated[str | None, _option("webhook_secret_file")] = None,
) -> None:
    """Run crawls as jobs: an HTTP API to create, watch, schedule and steer them.

    Options of a crawl that the environment (MANNERLY_…) or a configuration file sets hold for
    every job that does not set them itself.
    """
    given = {name: value for name, value in locals().items() if value is not None}
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

        of_jobs, own = resolve_service(given, environment=os.environ, directory=Path.cwd())
        chosen: dict[str, Any] = {name: each.default for name, each in SERVE.items()}
        chosen |= {name: each.value for name, each in own.items()}
        root, names = Path(chosen["data_root"]), chosen["allow_host"]
        host, port = address("--listen", chosen["listen"])
        token = None if chosen["token_file"] is None else _secret(Path(chosen["token_file"]))
        if token is None and not is_loopback(host):
            token = _new_token(root)
        secret = chosen["webhook_secret_file"]
        service = Service(
            root,
            of_jobs.settings(CrawlSettings(seeds_open_network=False)),
            jobs=chosen["jobs"],
            failure_threshold=chosen["failure_threshold"],
            throttle_threshold=chosen["throttle_threshold"],
            throttle_delay_s=chosen["throttle_delay"],
            webhook_secret=None if secret is None else _secret(Path(secret)),
        )
        ending = LastAnswers()
        app = service_app(service, ending, hosts=[shown(host), *names], token=token)
        _log_changes()
        note(f"Listening on http://{shown(host)}:{port}/ for jobs in {root}")
        if token is not None:
            note("The page needs the token in its address: add #token=TOKEN")
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
