"""The declaration of every option of a crawl: what it does, its default, range and use.

Each is declared here once, as a field. Everything else is made from it (`table`): the option of the
command line, the environment variable (MANNERLY_ and its name), the key of a configuration file,
the keyword of the library, the option of a job, and docs/reference/options.md. Most settings of the
politeness core are declared in `mannerly.politeness.settings`, in the same way.

`CrawlSettings` extends `CrawlFields` by its checks and by what follows from the values. The fields
stand here, apart from it, because `mannerly --help` reads them and must stay fast: this module
imports nothing of the crawler but words. It is long because it has an entry for each of the
options.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from mannerly.crawler.web.choices import Content, ScopeMode
from mannerly.politeness.settings import Settings
from mannerly.version import VERSION

from .option import ProjectUse, ValueKind, option

USER_AGENT = f"mannerly/{VERSION}"
_NO_LIMIT = "no limit"

WARMING: dict[str, Any] = {
    "warm": True,
    "follow": False,
    "text_digest": "none",
    "max_error_rate": 0.2,
    # The pace yields early enough for the 95th percentile of the latency to stay below twice that
    # of an idle site (`python -m bench warm`).
    "latency_factor": 1.4,
}
"""The defaults of a run of warming, by option, where they are not those of a crawl."""

CHECKING: dict[str, Any] = {"links": True, "anchors": True}
"""The options of a crawl whose links are checked afterwards."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CrawlFields:
    """The fields of the settings of a crawl."""

    max_urls: int | None = option(
        None,
        "Stop after this many pages in this run.",
        group="What to crawl",
        default_words=_NO_LIMIT,
        low=1,
        for_jobs=True,
        is_changeable=True,
    )
    max_depth: int | None = option(
        None,
        "Fetch only pages at most this many links away from a seed.",
        default_words=_NO_LIMIT,
        low=0,
        for_jobs=True,
        is_fixed=True,
    )
    follow: bool = option(
        True,
        "Follow the links of pages, not only seeds and sitemaps.",
        for_jobs=True,
        is_fixed=True,
    )
    max_per_host: int | None = option(
        None,
        "Fetch at most this many pages of one host.",
        default_words=_NO_LIMIT,
        low=1,
        for_jobs=True,
    )
    max_requests: int | None = option(
        None,
        "Stop after this many requests of every kind in this run: pages, robots.txt, sitemaps, "
        "requisites, retries. With --processes, all of them learn of it within "
        "half a second.",
        default_words=_NO_LIMIT,
        low=1,
        is_advanced=True,
        for_jobs=True,
        of_machine=True,
    )
    duration_s: float | None = option(
        None,
        "Stop after this many seconds.",
        default_words=_NO_LIMIT,
        low=0.001,
        for_jobs=True,
        is_changeable=True,
        of_machine=True,
    )
    grace_s: float = option(
        2.0,
        "When the crawl is stopped (Ctrl-C), wait at most this long for requests in flight; then "
        "cancel them and keep their URLs queued.",
        low=0,
        is_advanced=True,
        for_jobs=True,
        of_machine=True,
    )
    scope: ScopeMode = option(
        ScopeMode.HOST,
        "Follow links on the seeds' host, site (registrable domain), prefix (directory), or any "
        "host.",
        choices=tuple(ScopeMode),
        for_jobs=True,
        is_fixed=True,
    )
    include: tuple[str, ...] = option(
        (),
        "Fetch only URLs that match this glob; repeatable.",
        metavar="GLOB",
        for_jobs=True,
        is_fixed=True,
    )
    exclude: tuple[str, ...] = option(
        (),
        "Never fetch URLs that match this glob; repeatable.",
        metavar="GLOB",
        for_jobs=True,
        is_fixed=True,
        is_changeable=True,
    )
    drop_tracking: bool = option(
        True,
        "Remove utm_… and other tracking parameters from links.",
        is_advanced=True,
        for_jobs=True,
        is_fixed=True,
    )
    links: bool = option(
        False,
        "Keep the links, images, scripts and metadata of every page, for exports and reports; "
        "-o links:FILE turns it on.",
        is_advanced=True,
        is_fixed=True,
    )
    requisites: bool = option(
        False,
        "Also fetch what pages need to be shown (styles, images …), from other hosts, too: each "
        "once, not counted by --max-urls.",
        for_jobs=True,
    )
    anchors: bool = option(
        False,
        "With --links: keep the ids of every page, so that a report finds links to anchors that "
        "do not exist.",
        is_advanced=True,
    )
    text_digest: str = option(
        "auto",
        "Which pages get a digest of their visible text, by which a recrawl tells a change from a "
        "new nonce: auto (those without a Last-Modified header, or with one that is the time of "
        "the answer), all, or none.",
        choices=("auto", "all", "none"),
        is_advanced=True,
    )
    seeding: str = option(
        "sitemap",
        "Where to look for more URLs to start from: none, sitemap, ct (certificate transparency "
        "logs), commoncrawl, or all. With ct and all the scope is the site, unless --scope is "
        "given.",
        name="seeding_strategy",
        choices=("none", "sitemap", "ct", "commoncrawl", "all"),
        for_jobs=True,
        is_fixed=True,
    )
    sitemaps: tuple[str, ...] = option(
        (),
        "Read this sitemap, too; repeatable.",
        name="sitemap",
        metavar="URL",
        is_advanced=True,
        for_jobs=True,
        is_fixed=True,
    )
    max_sitemaps: int = option(
        500,
        "Fetch at most this many sitemaps of one host in one run.",
        low=0,
        is_advanced=True,
        for_jobs=True,
    )
    ct_url: str = option(
        "https://crt.sh/?q=%25.{site}&output=json",
        "URL of the certificate-transparency index; {site} is replaced by the site.",
        default_words="crt.sh",
        metavar="URL",
        is_advanced=True,
    )
    commoncrawl_url: str = option(
        "https://index.commoncrawl.org/CC-MAIN-2026-43-index?url=*.{site}/*&output=json&fl=url",
        "URL of the Common Crawl index; {site} is replaced by the site.",
        default_words="index.commoncrawl.org",
        metavar="URL",
        is_advanced=True,
    )

    # The settings of the politeness core: its most used ones are the first of this group, the
    # others are groups of their own behind it.
    politeness: Settings = field(default=Settings(), metadata={"range": None})
    address_max_rate: float = option(
        64.0,
        "Maximum requests per second to one address that names of several sites lead to.",
        group="Politeness",
        metavar="R",
        low=0.001,
        is_advanced=True,
    )
    ignore_robots: bool = option(False, "Do not fetch robots.txt, and fetch URLs that it forbids.")
    robots_unreachable: str = option(
        "disallow",
        "If robots.txt cannot be fetched: disallow (RFC 9309) or allow all URLs.",
        choices=("disallow", "allow"),
        is_advanced=True,
        for_jobs=True,
    )
    robots_timeout_s: float = option(
        3.0, "Timeout of a request for robots.txt.", low=0.001, is_advanced=True, for_jobs=True
    )
    robots_limit: int = option(
        64,
        "Maximum robots.txt files fetched at once.",
        low=1,
        is_advanced=True,
        variables=("ROBOTS_FETCH_SEMAPHORE_LIMIT",),
    )
    robots_patience_s: float = option(
        150.0,
        "Wait this long for a robots.txt that cannot be fetched; then give its URLs up.",
        low=0,
        is_advanced=True,
        for_jobs=True,
    )
    user_agent: str = option(
        USER_AGENT,
        "User-Agent header; robots.txt is read for the name before the /.",
        default_words="mannerly, its version and the contact",
        for_jobs=True,
    )
    contact: str | None = option(
        None,
        "E-mail address or page for site owners, sent in the User-Agent; an address also as the "
        "From header.",
        kind=ValueKind.CONTACT,
        metavar="MAIL|URL",
        for_jobs=True,
    )
    host_failure_limit: int = option(
        20,
        "Give a host up after this many failures in a row.",
        low=1,
        is_advanced=True,
        for_jobs=True,
    )
    hosts: dict[str, dict[str, Any]] = option(
        {},
        "An option of this group or the next ones for one host, such as example.org:delay=5; "
        "repeatable.",
        name="host",
        metavar="HOST:NAME=VALUE",
    )

    concurrency: int = option(
        512,
        "Maximum requests in flight over all hosts.",
        group="Network and resources",
        aliases=("workers",),
        low=1,
        for_jobs=True,
        is_changeable=True,
        of_machine=True,
    )
    processes: int = option(
        1,
        "Number of processes; each owns a part of the hosts.",
        default_words="one per core, not more than seed hosts",
        low=1,
        of_machine=True,
    )
    timeout_s: float = option(20.0, "Request timeout.", low=0.001, for_jobs=True)
    max_bytes: int = option(
        10 << 20,
        "Cut response bodies after this many bytes, decompressed.",
        kind=ValueKind.BYTES,
        low=1,
        is_advanced=True,
        for_jobs=True,
    )
    memory_limit: int = option(
        256 << 20,
        "Memory for bodies that are being received, read or delivered, over all processes.",
        kind=ValueKind.BYTES,
        low=1 << 20,
        is_advanced=True,
        of_machine=True,
    )
    memory: str | None = option(
        None,
        "File in which all crawls of this machine remember the pace of hosts and take turns on "
        "them, redis://HOST:PORT for all that use this server, or none.",
        default_words="~/.local/state/mannerly/hosts.sqlite, with --redis-url that server",
        metavar="FILE|URL|none",
        project_use=ProjectUse.PATHS_INSIDE,
        is_advanced=True,
        of_machine=True,
    )
    max_redirects: int = option(
        10, "Maximum redirects followed from one URL.", low=0, is_advanced=True, for_jobs=True
    )
    allow_net: tuple[str, ...] = option(
        (),
        "Allow requests to this private network (CIDR) or host:port; repeatable.",
        metavar="CIDR",
        project_use=ProjectUse.NONE,
    )
    # Whether a seed may be a private address or have an unusual port. Not an option: a service,
    # which takes seeds from others, says no.
    seeds_open_network: bool = field(default=True, metadata={"range": None})
    headers: tuple[str, ...] = option(
        (),
        "Send a header to one host, or without HOST= to the hosts of the seeds. VALUE may be "
        "env:NAME or file:PATH; repeatable.",
        name="header",
        metavar="[HOST=]NAME:VALUE",
        has_secret=True,
        project_use=ProjectUse.NONE,
        of_machine=True,
    )
    auth: tuple[str, ...] = option(
        (),
        "Log in to one host over https: user:password, bearer:TOKEN, env:NAME or file:PATH. "
        "For http, write http:// before HOST; repeatable.",
        metavar="HOST=LOGIN",
        has_secret=True,
        project_use=ProjectUse.NONE,
        of_machine=True,
    )
    cookies: bool = option(
        False,
        "Keep the cookies that each host sets, send them to it alone, and forget them at the end "
        "of the run.",
    )
    proxy: str | None = option(
        None,
        "Send all requests through this proxy: http://, https://, socks5:// or socks5h://, with "
        "user:password@ or user:env:NAME@ if needed. The network guard cannot see which addresses "
        "the proxy contacts.",
        metavar="URL",
        has_secret=True,
        project_use=ProjectUse.NONE,
        of_machine=True,
    )
    proxy_env: bool = option(
        False,
        "Use the proxies of the variables http_proxy, https_proxy, all_proxy and no_proxy, which "
        "are ignored otherwise.",
        project_use=ProjectUse.NONE,
        is_advanced=True,
        of_machine=True,
    )
    ca_file: str | None = option(
        None,
        "Trust the certificate authorities in this PEM file instead of the system's.",
        kind=ValueKind.FILE,
        project_use=ProjectUse.NONE,
        is_advanced=True,
        of_machine=True,
    )
    insecure_hosts: tuple[str, ...] = option(
        (),
        "Do not verify the TLS certificate of this host (name or address); repeatable.",
        name="insecure_host",
        metavar="HOST",
        project_use=ProjectUse.NONE,
        is_advanced=True,
    )
    frontier_limit: int = option(
        5_000_000,
        "Maximum URLs in the queue; further URLs wait on disk.",
        low=1,
        is_advanced=True,
        variables=("GLOBAL_FRONTIER_SIZE_LIMIT",),
    )
    heap_limit: int = option(
        500_000,
        "Maximum hosts scheduled at once; further hosts wait.",
        low=1,
        is_advanced=True,
        variables=("READY_HEAP_SIZE_LIMIT",),
    )
    parse_limit: int = option(
        256,
        "Start no request while this many big pages are being parsed or wait for it.",
        low=1,
        is_advanced=True,
        of_machine=True,
        variables=("PARSE_SEMAPHORE_LIMIT",),
    )
    parse_processes: int = option(
        2,
        "Maximum helper processes that parse big pages, and as many for --extract, in each "
        "process.",
        low=1,
        is_advanced=True,
        of_machine=True,
    )
    check_limit: int = option(
        512,
        "Maximum URLs that a shard looks up at once in its index of known URLs, in a directory.",
        low=1,
        is_advanced=True,
        of_machine=True,
        variables=("FP_CHECK_SEMAPHORE_LIMIT",),
    )
    governor: bool = option(
        True,
        "Lower concurrency while this machine is the bottleneck.",
        is_advanced=True,
        of_machine=True,
        variables=("GOVERNOR_ENABLED",),
    )
    extract: str | None = option(
        None,
        "Run this function on every page and keep the items that it returns: FILE.py:FUNCTION or "
        "MODULE:FUNCTION.",
        metavar="FUNCTION",
        project_use=ProjectUse.NONE,
    )
    extract_timeout_s: float = option(
        60.0,
        "Time that the extract function may take for one page; then the page has no items.",
        low=0.001,
        is_advanced=True,
    )
    keep_bodies: bool = option(
        False,
        "Keep every answer as it was received, in WARC files in the data directory; an output "
        "that needs bodies turns it on.",
    )
    segment_bytes: int = option(
        1 << 30,
        "Begin a new WARC file after this many bytes.",
        name="segment_size",
        kind=ValueKind.BYTES,
        low=1,
        is_advanced=True,
        of_machine=True,
    )
    durable: bool = option(
        False,
        "fsync every commit: survives power loss, slower.",
        is_advanced=True,
        of_machine=True,
    )

    render: tuple[str, ...] = option(
        (),
        "Show these pages in a Chromium first: a glob over their URL, a host, all, or auto (with "
        "scripts and next to no text); repeatable. The crawl has one process then.",
        group="Pages that need a browser",
        metavar="PATTERN",
        for_one_host=True,
        host_kind=ValueKind.FLAG,
        for_jobs=True,
    )
    browser: str | None = option(
        None,
        "With render: the Chromium to start.",
        default_words="the system's, or that of Playwright",
        metavar="PATH",
        is_advanced=True,
        project_use=ProjectUse.NONE,
        of_machine=True,
    )
    browser_no_sandbox: bool = option(
        False,
        "With render, as root: start the browser without its sandbox. It has no network, but a "
        "page that breaks out of it has the rights of root.",
        project_use=ProjectUse.NONE,
        is_advanced=True,
        of_machine=True,
    )
    render_timeout_s: float = option(
        30.0,
        "Time that a page may take until it rests, in its own time, which stands still while its "
        "requests wait; then its DOM is read as it is.",
        low=0.1,
        is_advanced=True,
        for_jobs=True,
    )
    wait_for: tuple[str, ...] = option(
        (),
        "With render: pages of this host are finished when this CSS selector matches; repeatable.",
        metavar="HOST=SELECTOR",
        is_advanced=True,
        for_one_host=True,
        host_kind=ValueKind.TEXT,
        for_jobs=True,
    )
    render_block: str = option(
        "image,font,media",
        "With render: kinds of requests that pages do not make, with commas: image, font, media, "
        "stylesheet, script, xhr, fetch, document (frames), other; none.",
        metavar="KINDS",
        is_advanced=True,
        for_jobs=True,
    )
    render_post: tuple[str, ...] = option(
        (),
        "With render: let scripts of pages send POST requests to this host; repeatable.",
        metavar="HOST",
        is_advanced=True,
        for_jobs=True,
    )
    render_session: tuple[str, ...] = option(
        (),
        "With render: let pages of this host see the storage of those before; repeatable.",
        metavar="HOST",
        is_advanced=True,
        for_jobs=True,
    )
    render_ignore_robots_for_assets: bool = option(
        False,
        "With render: robots.txt does not decide about what rendered pages ask for, only about "
        "pages.",
        project_use=ProjectUse.NONE,
        is_advanced=True,
    )
    screenshot: bool = option(
        False,
        "With render: keep a picture (PNG) of each rendered page in the folder screenshots of the "
        "data directory.",
        is_advanced=True,
    )
    render_tabs: int = option(
        8,
        "With render: maximum pages that a process shows at once; 55 MB each.",
        low=1,
        high=256,
        is_advanced=True,
        of_machine=True,
    )
    render_memory: int = option(
        2 << 30,
        "With render: maximum memory of a browser; beyond it the largest page is ended.",
        kind=ValueKind.BYTES,
        low=256 << 20,
        is_advanced=True,
        of_machine=True,
    )

    warm: bool = option(
        False,
        "Ask for each page again until the cache in front of the site has it: see mannerly warm.",
        group="Warming",
        is_advanced=True,
    )
    variants: tuple[str, ...] = option(
        (),
        "With warm: ask for this variant of each page, too: mobile, gzip, br, zstd, identity, or "
        "a header such as 'Accept-Language: de'; repeatable.",
        name="variant",
        metavar="VARIANT",
        is_advanced=True,
        for_jobs=True,
    )
    max_error_rate: float | None = option(
        None,
        "Stop when more than this share of requests fails, from 0 to 1, of the last 50 or more.",
        default_words=f"no limit; warm: {WARMING['max_error_rate']}",
        metavar="SHARE",
        above=0,
        high=1,
        is_advanced=True,
        for_jobs=True,
    )


@dataclass(init=False, repr=False, eq=False)
class RunFields:
    """The options of one run of the command `crawl`, and of those that are like it."""

    data_dir: str | None = option(
        None,
        "Directory of the crawl's data.",
        group="This run",
        default_words="./crawl- and the host, or the name of the file of URLs",
        metavar="DIR",
        project_use=ProjectUse.PATHS_INSIDE,
    )
    fresh: bool = option(
        False,
        "Start over: delete the crawl in the data directory first.",
        project_use=ProjectUse.NONE,
    )
    redis_url: str | None = option(
        None,
        "Share the crawl by a server (mannerly help fleet).",
        metavar="URL",
        has_secret=True,
        project_use=ProjectUse.NONE,
    )
    crawl: str | None = option(
        None,
        "Name of the crawl in the server.",
        default_words="crawl- and the first seed's host",
        metavar="NAME",
        is_advanced=True,
    )
    enable_redis: bool = option(
        False,
        "The same as --redis-url redis://127.0.0.1:6379/0, if no --redis-url is given.",
        project_use=ProjectUse.NONE,
        is_advanced=True,
    )
    segments: str | None = option(
        None,
        "With --redis-url: write page records to this directory on shared storage, so that none "
        "is lost with a machine.",
        default_words="the data directory",
        metavar="DIR",
        project_use=ProjectUse.PATHS_INSIDE,
        is_advanced=True,
    )
    store_patience: float = option(
        300.0,
        "With --redis-url: wait this many seconds for a server that cannot be reached, then exit "
        "with code 5.",
        metavar="S",
        is_advanced=True,
    )
    shards: int = option(
        64,
        "With --redis-url: divide a new crawl into this many parts, which its workers share.",
        is_advanced=True,
    )
    redis_password_file: str | None = option(
        None,
        "File with the server's password and nothing else.",
        kind=ValueKind.FILE,
        project_use=ProjectUse.NONE,
        is_advanced=True,
    )
    insecure_redis: bool = option(
        False,
        "Allow a server beyond this machine without a password or without TLS.",
        default_words="off",
        project_use=ProjectUse.NONE,
        is_advanced=True,
    )
    output: tuple[str, ...] = option(
        (),
        "Export at the end: TABLE is pages (default), links or items; format by suffix: .jsonl, "
        ".jsonl.gz, .csv, .parquet, .xml (sitemap), .warc.gz, .wacz, or a folder/; - is standard "
        "output (JSON lines); repeatable.",
        metavar="[TABLE:]FILE",
        short="-o",
        project_use=ProjectUse.PATHS_INSIDE,
    )
    fail_on: tuple[str, ...] = option(
        (),
        "Exit with code 1 if this holds at the end, such as broken>0, refused>1% or slow>2s; "
        "repeatable.",
        metavar="RULE",
    )
    content: str = option(
        "none",
        "Content of pages in .jsonl, .parquet and folders: none, html, text or markdown; keeps "
        "bodies.",
        metavar="FORM",
        choices=tuple(Content),
    )
    json: bool = option(False, "Print the result as JSON on standard output.")
    quiet: bool = option(False, "Print errors only.", short="-q")
    verbose: bool = option(
        False,
        "Print where each setting comes from, and more hosts in the summary.",
        short="-v",
    )
    dashboard: str | None = option(
        None,
        "Show the crawl live on a page, with control: at 127.0.0.1:7465 or the next free port, or "
        "at [HOST:]PORT. The printed address has a token, without which nothing is shown.",
        metavar="[[HOST:]PORT]",
        project_use=ProjectUse.NONE,
    )
    log_format: str | None = option(
        None,
        "Print log lines instead of the live view, as text or json.",
        choices=("text", "json"),
    )
    log_interval: float = option(
        10.0, "Seconds between two log lines.", metavar="S", above=0, is_advanced=True
    )
    metrics_file: str | None = option(
        None,
        "Write metrics for Prometheus (textfile collector) to this file.",
        kind=ValueKind.FILE,
        is_advanced=True,
        project_use=ProjectUse.PATHS_INSIDE,
    )
    metrics_interval: float = option(
        60.0,
        "Seconds between two writes of --metrics-file.",
        metavar="S",
        above=0,
        is_advanced=True,
        variables=("METRIC_EXPORT_INTERVAL_SECS",),
    )
    metrics_hosts: int = option(
        0,
        "Write metrics of this many of the busiest hosts, too; at most 100.",
        low=0,
        is_advanced=True,
    )
