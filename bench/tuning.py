"""Server specs for tuning strategies, and others for judging them only.

The constants of the strategies were chosen on `TUNING_SERVERS`, and the project's figures come from
them. `REACHABLE_SERVERS` is for the default settings. `UNSEEN_SERVERS` has known weak spots, and
limits that no constant was chosen for. Each spec can be run alone with
`mannerly simulate --server SPEC`.
"""

from __future__ import annotations

from mannerly.politeness import Settings

TUNING_SERVERS: dict[str, str] = {
    "bucket 5/s b10": "bucket:5:10",
    "bucket 5/s b10, Retry-After": "bucket:5:10+retry-after",
    "bucket 0.5/s b5": "bucket:0.5:5",
    "bucket 30/s b30": "bucket:30:30",
    "fixed 60/60 s": "fixed:60:60",
    "fixed 60/60 s, Retry-After": "fixed:60:60+retry-after",
    "fixed 300/60 s": "fixed:300:60",
    "sliding 100/20 s": "sliding:100:20",
    "sliding 100/20 s, Retry-After": "sliding:100:20+retry-after",
    "concurrency 4×0.4 s": "concurrency:4:0.4",
    "knee 3×0.25 s": "knee:3:0.25",
    "8→2→8/s b5": "steps:8@0,2@300,8@600:5",
    "ban 30 s, 4/s b4": "ban:4:4:30",
    "bucket 5/s b10, 1 % 503": "bucket:5:10+noise=0.01",
}

# The tuning set within reach of the default settings (at most 8/s): four limits are lower.
REACHABLE_SERVERS: dict[str, str] = {
    **{
        name: spec
        for name, spec in TUNING_SERVERS.items()
        if not name.startswith(("bucket 30/s", "concurrency", "knee", "8→2→8/s"))
    },
    "bucket 7/s b30": "bucket:7:30",
    "concurrency 2×0.4 s": "concurrency:2:0.4",
    "knee 2×0.4 s": "knee:2:0.4",
    "6→1.5→6/s b5": "steps:6@0,1.5@300,6@600:5",
}

UNSEEN_SERVERS: dict[str, str] = {
    "sliding 300/60 s": "sliding:300:60",
    "sliding 1000/300 s": "sliding:1000:300",
    "sliding 100/100 s": "sliding:100:100",
    "sliding 600/60 s, Retry-After": "sliding:600:60+retry-after",
    "rise 2→8/s b5": "steps:2@0,8@300:5",
    "drop 10→1/s b10": "steps:10@0,1@300:10",
    "ban 30 s, 4/s b4, Retry-After": "ban:4:4:30+retry-after",
    "ban 60 s, 2/s b4": "ban:2:4:60",
    "extending ban 30 s, 4/s b4": "extending-ban:4:4:30",
    "knee 1×0.2 s": "knee:1:0.2",
    "knee 2×0.25 s": "knee:2:0.25",
    "knee 8×0.5 s": "knee:8:0.5",
    "bucket 1/s b5": "bucket:1:5",
    "bucket 2/s b20": "bucket:2:20",
    "bucket 12/s b12": "bucket:12:12",
    "bucket 3/s b1": "bucket:3:1",
    "bucket 20/s b100, date": "bucket:20:100+retry-after-date",
    "fixed 100/10 s": "fixed:100:10",
    "fixed 600/60 s": "fixed:600:60",
    "fixed 30/60 s": "fixed:30:60",
    "fixed 30/60 s, headers": "fixed:30:60+headers",
    "bucket 5/s b10, headers": "bucket:5:10+headers",
    "concurrency 2×0.3 s": "concurrency:2:0.3",
    "concurrency 6×0.2 s": "concurrency:6:0.2",
    "bucket 5/s b10, 3 % 503": "bucket:5:10+noise=0.03",
    "bucket 5/s, out 300–360 s": "bucket:5:10+outage=300-360",
    "bucket 5/s, hangs 300–360 s": "bucket:5:10+hang=300-360",
}


def tuning_settings(strategy: str) -> Settings:
    """Return the settings of the project's figures: at most 50/s, start at 2/s, 8 in flight."""
    return Settings(
        strategy=strategy,
        start_delay_s=0.5,
        delay_s=0.5 if strategy == "fixed" else None,
        max_rate=50.0,
        min_delay_s=0.01,
        max_concurrency=8,
    )
