"""The options of a crawl: one table from which everything else is made.

An option is a keyword of the library, a command-line option, an environment variable (MANNERLY_ and
its name) and a key of a configuration file, with the same meaning everywhere, because each is made
from its entry here. `target` is the field of `CrawlSettings` that it sets, or `politeness.` and a
field of the politeness core's `Settings`; without one it is for one run of the command only. Ranges
are not repeated here: the settings check themselves. Each help text says what the option does, its
unit and its default.

The most used settings of the politeness core have an entry here, with a short name; all others are
made from their fields (`options.pace`).

It is long because it is a table with one entry for each of the options. It imports nothing of the
crawler: `mannerly --help` must stay fast.
"""

from __future__ import annotations

import os

from mannerly.politeness.settings import STRATEGIES, STRATEGY_ALIASES

from .option import Option, ProjectUse, ValueKind
from .pace import POLITENESS, pace_options


def _limits() -> tuple[Option, ...]:
    return (
        Option(
            "max_urls",
            ValueKind.INTEGER,
            "Stop after this many pages in this run (default: no limit).",
            "max_urls",
            "N",
            for_jobs=True,
        ),
        Option(
            "max_depth",
            ValueKind.INTEGER,
            "Fetch only pages at most this many links away from a seed (default: no limit).",
            "max_depth",
            "N",
            for_jobs=True,
        ),
        Option(
            "follow",
            ValueKind.FLAG,
            "Follow the links of pages, not only seeds and sitemaps (default on).",
            "follow",
            for_jobs=True,
        ),
        Option(
            "max_per_host",
            ValueKind.INTEGER,
            "Fetch at most this many pages of one host (default: no limit).",
            "max_per_host",
            "N",
            for_jobs=True,
        ),
        Option(
            "duration",
            ValueKind.NUMBER,
            "Stop after this many seconds (default: no limit).",
            "duration_s",
            "S",
            for_jobs=True,
        ),
        Option(
            "grace",
            ValueKind.NUMBER,
            "When the crawl is stopped (Ctrl-C), wait at most this many seconds for requests in "
            "flight; then cancel them and keep their URLs queued (default 2).",
            "grace_s",
            "S",
            is_advanced=True,
            for_jobs=True,
        ),
        Option(
            "scope",
            ValueKind.TEXT,
            "Follow links on the seeds' host (default), site (registrable domain), prefix "
            "(directory), or any host.",
            "scope",
            "WORD",
            choices=("host", "site", "prefix", "any"),
            for_jobs=True,
        ),
        Option(
            "include",
            ValueKind.LIST,
            "Fetch only URLs that match this glob; repeatable.",
            "include",
            "GLOB",
            for_jobs=True,
        ),
        Option(
            "exclude",
            ValueKind.LIST,
            "Never fetch URLs that match this glob; repeatable.",
            "exclude",
            "GLOB",
            for_jobs=True,
        ),
        Option(
            "drop_tracking",
            ValueKind.FLAG,
            "Remove utm_… and other tracking parameters from links (default on).",
            "drop_tracking",
            is_advanced=True,
            for_jobs=True,
        ),
        Option(
            "links",
            ValueKind.FLAG,
            "Keep the links, images, scripts and metadata of every page, for exports and reports "
            "(default off; on with -o links:FILE).",
            "links",
            is_advanced=True,
        ),
        Option(
            "anchors",
            ValueKind.FLAG,
            "With --links: keep the ids of every page, so that a report finds links to anchors "
            "that do not exist (default off).",
            "anchors",
            is_advanced=True,
        ),
        Option(
            "text_digest",
            ValueKind.TEXT,
            "Which pages get a digest of their visible text, by which a recrawl tells a change "
            "from a new nonce: auto (default: those without a Last-Modified header, or with one "
            "that is the time of the answer), all, or none.",
            "text_digest",
            "WORD",
            choices=("auto", "all", "none"),
            is_advanced=True,
        ),
        Option(
            "seeding_strategy",
            ValueKind.TEXT,
            "Where to look for more URLs to start from: none, sitemap (default), ct (certificate "
            "transparency logs), commoncrawl, or all. With ct and all the scope is the site, "
            "unless --scope is given.",
            "seeding",
            "WORD",
            choices=("none", "sitemap", "ct", "commoncrawl", "all"),
            for_jobs=True,
        ),
        Option(
            "sitemap",
            ValueKind.LIST,
            "Read this sitemap, too; repeatable.",
            "sitemaps",
            "URL",
            is_advanced=True,
            for_jobs=True,
        ),
        Option(
            "max_sitemaps",
            ValueKind.INTEGER,
            "Fetch at most this many sitemaps of one host in one run (default 500).",
            "max_sitemaps",
            "N",
            is_advanced=True,
            for_jobs=True,
        ),
        Option(
            "ct_url",
            ValueKind.TEXT,
            "URL of the certificate-transparency index; {site} is replaced by the site (default: "
            "crt.sh).",
            "ct_url",
            "URL",
            is_advanced=True,
        ),
        Option(
            "commoncrawl_url",
            ValueKind.TEXT,
            "URL of the Common Crawl index; {site} is replaced by the site (default: "
            "index.commoncrawl.org).",
            "commoncrawl_url",
            "URL",
            is_advanced=True,
        ),
    )


def _politeness() -> tuple[Option, ...]:
    return (
        Option(
            "strategy",
            ValueKind.TEXT,
            "Algorithm that sets each host's pace: learned (default), linear, aimd, gradient, "
            "fixed (leaky).",
            "politeness.strategy",
            "NAME",
            for_one_host=True,
            choices=(*STRATEGIES, *STRATEGY_ALIASES),
            for_jobs=True,
        ),
        Option(
            "delay",
            ValueKind.NUMBER,
            "Minimum delay between requests to one host, in seconds; the exact delay with "
            "--strategy fixed (default: set by the strategy; with fixed, 1 / --max-rate).",
            "politeness.delay_s",
            "S",
            for_one_host=True,
            for_jobs=True,
        ),
        Option(
            "max_rate",
            ValueKind.RATE,
            "Maximum requests per second to one host (default 8), or unlimited.",
            "politeness.max_rate",
            "R",
            for_one_host=True,
            for_jobs=True,
        ),
        Option(
            "start_rate",
            ValueKind.NUMBER,
            "Requests per second to a host at first, until its limit is learned (default 1); not "
            "with --strategy fixed.",
            "politeness.start_delay_s",
            "R",
            is_inverse=True,
            for_one_host=True,
            for_jobs=True,
        ),
        Option(
            "address_max_rate",
            ValueKind.NUMBER,
            "Maximum requests per second to one address that names of several sites lead to "
            "(default 64).",
            "address_max_rate",
            "R",
            is_advanced=True,
        ),
        Option(
            "per_host",
            ValueKind.INTEGER,
            "Maximum requests in flight to a host (default 8).",
            "politeness.max_concurrency",
            "N",
            for_one_host=True,
            for_jobs=True,
        ),
        Option(
            "ignore_robots",
            ValueKind.FLAG,
            "Do not fetch robots.txt, and fetch URLs that it forbids (default off).",
            "ignore_robots",
        ),
        Option(
            "robots_unreachable",
            ValueKind.TEXT,
            "If robots.txt cannot be fetched: disallow (default, RFC 9309) or allow all URLs.",
            "robots_unreachable",
            "WORD",
            is_advanced=True,
            choices=("disallow", "allow"),
            for_jobs=True,
        ),
        Option(
            "robots_timeout",
            ValueKind.NUMBER,
            "Timeout of a request for robots.txt, in seconds (default 3).",
            "robots_timeout_s",
            "S",
            is_advanced=True,
            for_jobs=True,
        ),
        Option(
            "robots_limit",
            ValueKind.INTEGER,
            "Maximum robots.txt files fetched at once (default 64).",
            "robots_limit",
            "N",
            is_advanced=True,
        ),
        Option(
            "robots_patience",
            ValueKind.NUMBER,
            "Wait this many seconds for a robots.txt that cannot be fetched; then give its URLs "
            "up (default 150).",
            "robots_patience_s",
            "S",
            is_advanced=True,
            for_jobs=True,
        ),
        Option(
            "user_agent",
            ValueKind.TEXT,
            "User-Agent header; robots.txt is read for the name before the / (default: mannerly, "
            "its version and the contact).",
            "user_agent",
            "TEXT",
            for_jobs=True,
        ),
        Option(
            "contact",
            ValueKind.CONTACT,
            "E-mail address or page for site owners, sent in the User-Agent; an address also as "
            "the From header (default: none).",
            "contact",
            "MAIL|URL",
            for_jobs=True,
        ),
        Option(
            "host_failure_limit",
            ValueKind.INTEGER,
            "Give a host up after this many failures in a row (default 20).",
            "host_failure_limit",
            "N",
            is_advanced=True,
            for_jobs=True,
        ),
        Option(
            "give_up_after",
            ValueKind.NUMBER,
            "Give a host up after this many seconds without a success since it first refused or "
            "failed; at once if it asks for a longer pause and nothing else is left "
            "(default 3600).",
            "politeness.give_up_after_s",
            "S",
            for_one_host=True,
            for_jobs=True,
        ),
        Option(
            "host",
            ValueKind.HOSTS,
            "An option of this group or the next ones for one host, such as example.org:delay=5; "
            "repeatable.",
            "hosts",
            "HOST:NAME=VALUE",
        ),
    )


def _resources() -> tuple[Option, ...]:
    return (
        Option(
            "workers",
            ValueKind.INTEGER,
            "Maximum requests in flight over all hosts (default 512).",
            "workers",
            "N",
            for_jobs=True,
        ),
        Option(
            "processes",
            ValueKind.INTEGER,
            "Number of processes (default: one per core, not more than seed hosts).",
            "processes",
            "N",
        ),
        Option(
            "timeout",
            ValueKind.NUMBER,
            "Request timeout in seconds (default 20).",
            "timeout_s",
            "S",
            for_jobs=True,
        ),
        Option(
            "max_bytes",
            ValueKind.BYTES,
            "Cut response bodies after this many bytes, decompressed (default 10MB).",
            "max_bytes",
            "BYTES",
            is_advanced=True,
            for_jobs=True,
        ),
        Option(
            "memory_limit",
            ValueKind.BYTES,
            "Memory for bodies that are being received, read or delivered, over all processes "
            "(default 256MB).",
            "memory_limit",
            "BYTES",
            is_advanced=True,
        ),
        Option(
            "memory",
            ValueKind.TEXT,
            "File in which all crawls of this machine remember the pace of hosts and take turns on "
            "them (default: ~/.local/state/mannerly/hosts.sqlite), redis://HOST:PORT for all that "
            "use this server (the default with --redis-url), or none.",
            "memory",
            "FILE|URL|none",
            project_use=ProjectUse.PATHS_INSIDE,
            is_advanced=True,
        ),
        Option(
            "max_redirects",
            ValueKind.INTEGER,
            "Maximum redirects followed from one URL (default 10).",
            "max_redirects",
            "N",
            is_advanced=True,
            for_jobs=True,
        ),
        Option(
            "allow_net",
            ValueKind.LIST,
            "Allow requests to this private network (CIDR) or host:port; repeatable.",
            "allow_net",
            "CIDR",
            project_use=ProjectUse.NONE,
        ),
        Option(
            "header",
            ValueKind.LIST,
            "Send a header to one host, or without HOST= to the hosts of the seeds. VALUE may be "
            "env:NAME or file:PATH; repeatable.",
            "headers",
            "[HOST=]NAME:VALUE",
            has_secret=True,
            project_use=ProjectUse.NONE,
        ),
        Option(
            "auth",
            ValueKind.LIST,
            "Log in to one host over https: user:password, bearer:TOKEN, env:NAME or file:PATH. "
            "For http, write http:// before HOST; repeatable.",
            "auth",
            "HOST=LOGIN",
            has_secret=True,
            project_use=ProjectUse.NONE,
        ),
        Option(
            "cookies",
            ValueKind.FLAG,
            "Keep the cookies that each host sets, send them to it alone, and forget them at the "
            "end of the run (default off).",
            "cookies",
        ),
        Option(
            "proxy",
            ValueKind.TEXT,
            "Send all requests through this proxy: http://, https://, socks5:// or socks5h://, "
            "with user:password@ or user:env:NAME@ if needed (default: none). The network guard "
            "cannot see which addresses the proxy contacts.",
            "proxy",
            "URL",
            has_secret=True,
            project_use=ProjectUse.NONE,
        ),
        Option(
            "proxy_env",
            ValueKind.FLAG,
            "Use the proxies of the variables http_proxy, https_proxy, all_proxy and no_proxy, "
            "which are ignored otherwise (default off).",
            "proxy_env",
            project_use=ProjectUse.NONE,
            is_advanced=True,
        ),
        Option(
            "ca_file",
            ValueKind.FILE,
            "Trust the certificate authorities in this PEM file instead of the system's.",
            "ca_file",
            "FILE",
            project_use=ProjectUse.NONE,
            is_advanced=True,
        ),
        Option(
            "insecure_host",
            ValueKind.LIST,
            "Do not verify the TLS certificate of this host (name or address); repeatable.",
            "insecure_hosts",
            "HOST",
            project_use=ProjectUse.NONE,
            is_advanced=True,
        ),
        Option(
            "frontier_limit",
            ValueKind.INTEGER,
            "Maximum URLs in the queue; further URLs wait on disk (default 5,000,000).",
            "frontier_limit",
            "N",
            is_advanced=True,
        ),
        Option(
            "heap_limit",
            ValueKind.INTEGER,
            "Maximum hosts scheduled at once; further hosts wait (default 500,000).",
            "heap_limit",
            "N",
            is_advanced=True,
        ),
        Option(
            "parse_limit",
            ValueKind.INTEGER,
            "Start no request while this many big pages are being parsed or wait for it (default "
            "256).",
            "parse_limit",
            "N",
            is_advanced=True,
        ),
        Option(
            "parse_processes",
            ValueKind.INTEGER,
            "Maximum helper processes that parse big pages, and as many for --extract, in each "
            "process (default 2).",
            "parse_processes",
            "N",
            is_advanced=True,
        ),
        Option(
            "check_limit",
            ValueKind.INTEGER,
            "Maximum URLs that a shard looks up at once in its index of known URLs, in a directory "
            "(default 512).",
            "check_limit",
            "N",
            is_advanced=True,
        ),
        Option(
            "governor",
            ValueKind.FLAG,
            "Lower concurrency while this machine is the bottleneck (default on).",
            "governor",
            is_advanced=True,
        ),
        Option(
            "extract",
            ValueKind.TEXT,
            "Run this function on every page and keep the items that it returns: "
            "FILE.py:FUNCTION or MODULE:FUNCTION (default: none).",
            "extract",
            "FUNCTION",
            project_use=ProjectUse.NONE,
        ),
        Option(
            "extract_timeout",
            ValueKind.NUMBER,
            "Seconds that the extract function may take for one page; then the page has no items "
            "(default 60).",
            "extract_timeout_s",
            "S",
        ),
        Option(
            "keep_bodies",
            ValueKind.FLAG,
            "Keep every answer as it was received, in WARC files in the data directory (default "
            "off; an output that needs bodies turns it on).",
            "keep_bodies",
        ),
        Option(
            "segment_size",
            ValueKind.BYTES,
            "Begin a new WARC file after this many bytes (default 1GB).",
            "segment_bytes",
            "BYTES",
            is_advanced=True,
        ),
        Option(
            "durable",
            ValueKind.FLAG,
            "fsync every commit: survives power loss, slower (default off).",
            "durable",
            is_advanced=True,
        ),
    )


def _warming() -> tuple[Option, ...]:
    return (
        Option(
            "warm",
            ValueKind.FLAG,
            "Ask for each page again until the cache in front of the site has it (default off; see "
            "mannerly warm).",
            "warm",
            is_advanced=True,
        ),
        Option(
            "variant",
            ValueKind.LIST,
            "With warm: ask for this variant of each page, too: mobile, gzip, br, zstd, identity, "
            "or a header such as 'Accept-Language: de'; repeatable.",
            "variants",
            "VARIANT",
            is_advanced=True,
            for_jobs=True,
        ),
        Option(
            "max_error_rate",
            ValueKind.NUMBER,
            "Stop when more than this share of requests fails, from 0 to 1, of the last 50 or more "
            "(default: no limit; warm: 0.2).",
            "max_error_rate",
            "SHARE",
            is_advanced=True,
            for_jobs=True,
        ),
    )


def _run() -> tuple[Option, ...]:
    return (
        Option(
            "data_dir",
            ValueKind.TEXT,
            "Directory of the crawl's data (default ./crawl- and the host, or the name of the "
            "file of URLs).",
            metavar="DIR",
            project_use=ProjectUse.PATHS_INSIDE,
        ),
        Option(
            "fresh",
            ValueKind.FLAG,
            "Start over: delete the crawl in the data directory first.",
            project_use=ProjectUse.NONE,
        ),
        Option(
            "redis_url",
            ValueKind.TEXT,
            "Share the crawl by a server (mannerly help fleet).",
            metavar="URL",
            has_secret=True,
            project_use=ProjectUse.NONE,
        ),
        Option(
            "crawl",
            ValueKind.TEXT,
            "Name of the crawl in the server (default crawl- and the first seed's host).",
            metavar="NAME",
            is_advanced=True,
        ),
        Option(
            "enable_redis",
            ValueKind.FLAG,
            "The same as --redis-url redis://127.0.0.1:6379/0, if no --redis-url is given.",
            project_use=ProjectUse.NONE,
            is_advanced=True,
        ),
        Option(
            "segments",
            ValueKind.TEXT,
            "With --redis-url: write page records to this directory on shared storage (default "
            "the data directory), so that none is lost with a machine.",
            metavar="DIR",
            project_use=ProjectUse.PATHS_INSIDE,
            is_advanced=True,
        ),
        Option(
            "store_patience",
            ValueKind.NUMBER,
            "With --redis-url: wait this many seconds for a server that cannot be reached, then "
            "exit with code 5 (default 300).",
            metavar="S",
            is_advanced=True,
        ),
        Option(
            "shards",
            ValueKind.INTEGER,
            "With --redis-url: divide a new crawl into this many parts, which its workers share "
            "(default 64).",
            metavar="N",
            is_advanced=True,
        ),
        Option(
            "redis_password_file",
            ValueKind.FILE,
            "File with the server's password and nothing else.",
            metavar="FILE",
            project_use=ProjectUse.NONE,
            is_advanced=True,
        ),
        Option(
            "insecure_redis",
            ValueKind.FLAG,
            "Allow a server beyond this machine without a password or without TLS (default off).",
            project_use=ProjectUse.NONE,
            is_advanced=True,
        ),
        Option(
            "output",
            ValueKind.LIST,
            "Export at the end: TABLE is pages (default), links or items; format by suffix: "
            ".jsonl, .jsonl.gz, .csv, .parquet, .xml (sitemap), .warc.gz, .wacz, or a folder/; - "
            "is standard output (JSON lines); repeatable.",
            metavar="[TABLE:]FILE",
            short="-o",
            project_use=ProjectUse.PATHS_INSIDE,
        ),
        Option(
            "fail_on",
            ValueKind.LIST,
            "Exit with code 1 if this holds at the end, such as broken>0, refused>1% or slow>2s; "
            "repeatable.",
            metavar="RULE",
        ),
        Option(
            "content",
            ValueKind.TEXT,
            "Content of pages in .jsonl, .parquet and folders: none (default), html, text or "
            "markdown; keeps bodies.",
            metavar="FORM",
            choices=("none", "html", "text", "markdown"),
        ),
        Option("json", ValueKind.FLAG, "Print the result as JSON on standard output."),
        Option("quiet", ValueKind.FLAG, "Print errors only.", short="-q"),
        Option(
            "verbose",
            ValueKind.FLAG,
            "Print where each setting comes from, and more hosts in the summary.",
            short="-v",
        ),
        Option(
            "dashboard",
            ValueKind.TEXT,
            "Show the crawl live on a page, with control: at 127.0.0.1:7465 or the next free port, "
            "or at [HOST:]PORT. The printed address has a token, without which nothing is shown.",
            metavar="[[HOST:]PORT]",
            project_use=ProjectUse.NONE,
        ),
        Option(
            "log_format",
            ValueKind.TEXT,
            "Print log lines instead of the live view, as text or json.",
            metavar="WORD",
            choices=("text", "json"),
        ),
        Option(
            "log_interval",
            ValueKind.NUMBER,
            "Seconds between two log lines (default 10).",
            metavar="S",
            is_advanced=True,
        ),
        Option(
            "metrics_file",
            ValueKind.FILE,
            "Write metrics for Prometheus (textfile collector) to this file.",
            metavar="FILE",
            is_advanced=True,
            project_use=ProjectUse.PATHS_INSIDE,
        ),
        Option(
            "metrics_interval",
            ValueKind.NUMBER,
            "Seconds between two writes of --metrics-file (default 60).",
            metavar="S",
            is_advanced=True,
        ),
        Option(
            "metrics_hosts",
            ValueKind.INTEGER,
            "Write metrics of this many of the busiest hosts, too; at most 100 (default 0).",
            metavar="N",
            is_advanced=True,
        ),
    )


def _groups() -> dict[str, tuple[Option, ...]]:
    politeness = _politeness()
    named = [(option.target or "").removeprefix(POLITENESS) for option in politeness]
    return {
        "What to crawl": _limits(),
        "Politeness": politeness,
        **pace_options(named),
        "Network and resources": _resources(),
        "Warming": _warming(),
        "This run": _run(),
    }


GROUPS = _groups()
OPTIONS = {option.name: option for group in GROUPS.values() for option in group}

# The options that are keywords of the library: all but those of one run of the command.
KEYWORDS = tuple(name for name, option in OPTIONS.items() if option.target is not None)

# The options that set fields of the politeness core, by the names of those fields.
FIELDS = {
    option.target.removeprefix(POLITENESS): name
    for name, option in OPTIONS.items()
    if option.target is not None and option.target.startswith(POLITENESS)
}

# Other names of environment variables, by the options that they set.
ALIASES = {
    "GLOBAL_FRONTIER_SIZE_LIMIT": "frontier_limit",
    "READY_HEAP_SIZE_LIMIT": "heap_limit",
    "ROBOTS_FETCH_SEMAPHORE_LIMIT": "robots_limit",
    "MAX_INFLIGHT_PER_HOST": "per_host",
    "GOVERNOR_ENABLED": "governor",
    "METRIC_EXPORT_INTERVAL_SECS": "metrics_interval",
    "PARSE_SEMAPHORE_LIMIT": "parse_limit",
    "FP_CHECK_SEMAPHORE_LIMIT": "check_limit",
}


def cores() -> int:
    """Return how many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
