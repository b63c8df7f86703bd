"""`mannerly serve`: run crawls as jobs, with an HTTP API.

Its options are declared in `options.serving`. Options of a crawl that the environment or a file
sets hold for every job that does not set them itself.
"""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mannerly.crawler.options.serving import SERVE
from mannerly.crawler.options.values import OptionError, refusal

from .config import resolve_service
from .listening import address, fail_without_packages, is_loopback, shown
from .terminal import fail, failing_clearly, note

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mannerly.crawler.options.values import Given

DEFAULTS: dict[str, Any] = {
    "data_root": "mannerly-jobs",
    "listen": "127.0.0.1:7465",
    "token_file": None,
    "jobs": 2,
    "allow_host": [],
    "failure_threshold": 20,
    "throttle_threshold": 0,
    "throttle_delay": 60.0,
    "webhook_secret_file": None,
}
_AT_LEAST = {"jobs": 1, "failure_threshold": 0, "throttle_threshold": 0}


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
        chosen = _chosen(own)
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


def _chosen(own: Mapping[str, Given]) -> dict[str, Any]:
    """Return the value of every option of the service.

    Raises:
        OptionError: a number is out of its range.
    """
    for name, least in _AT_LEAST.items():
        if name in own and int(own[name].value) < least:  # type: ignore[arg-type]
            allowed = f"a whole number of at least {least}"
            raise OptionError(refusal(own[name].where, own[name].value, allowed))
    delay = own.get("throttle_delay")
    if delay is not None and not 0 < float(delay.value) < math.inf:  # type: ignore[arg-type]
        raise OptionError(refusal(delay.where, delay.value, "a number above 0"))
    return {**DEFAULTS, **{name: each.value for name, each in own.items()}}


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
