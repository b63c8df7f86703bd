"""The options of the service (`mannerly serve`): one table, beside that of a crawl.

Each is an option of the command line, an environment variable (MANNERLY_ and its name), and a key
of the table `[serve]` of a configuration file. The options of a crawl in the environment and in
the files hold for every job that does not set them itself.
"""

from __future__ import annotations

from .option import Option, ProjectUse, ValueKind

_TABLE = (
    Option(
        "data_root",
        ValueKind.TEXT,
        "Directory of the jobs and their data (default mannerly-jobs).",
        metavar="DIR",
        project_use=ProjectUse.PATHS_INSIDE,
    ),
    Option(
        "listen",
        ValueKind.TEXT,
        "Address to listen on; beyond loopback a token is required (default 127.0.0.1:7465).",
        metavar="HOST:PORT",
        project_use=ProjectUse.NONE,
    ),
    Option(
        "token_file",
        ValueKind.FILE,
        "File with the token that clients send as Authorization: Bearer TOKEN.",
        metavar="FILE",
        project_use=ProjectUse.NONE,
    ),
    Option("jobs", ValueKind.INTEGER, "Jobs that run at once (default 2).", metavar="N"),
    Option(
        "allow_host",
        ValueKind.LIST,
        "Name under which clients reach this service; repeatable.",
        metavar="NAME",
        project_use=ProjectUse.NONE,
    ),
    Option(
        "failure_threshold",
        ValueKind.INTEGER,
        "A job fails after this many URLs in a row that ended in an error, in an answer of 400 or "
        "above, or with their host given up (default 20; 0: never; not in jobs that check links).",
        metavar="N",
    ),
    Option(
        "throttle_threshold",
        ValueKind.INTEGER,
        "A job is cancelled after this many answers 429 in a row, each with a wait of "
        "--throttle-delay or longer (default 0: never).",
        metavar="N",
    ),
    Option(
        "throttle_delay",
        ValueKind.NUMBER,
        "Shortest wait, in seconds, that counts for --throttle-threshold (default 60).",
        metavar="S",
    ),
    Option(
        "webhook_secret_file",
        ValueKind.FILE,
        "File with the secret that signs webhooks.",
        metavar="FILE",
        project_use=ProjectUse.NONE,
    ),
)

SERVE = {option.name: option for option in _TABLE}
SERVE_ALIASES = {"BBB_JOB_FAILURE_THRESHOLD": "failure_threshold"}
