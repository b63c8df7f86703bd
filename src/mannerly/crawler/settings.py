"""The settings of a crawl: one frozen value, checked when it is made, kept in the manifest.

Its fields are declared in `options.declared`; here are the checks of their values, and what follows
from them. An error names the field, the value and what is allowed. The settings of the politeness
core (`politeness.Settings`) are one field. Nothing is read from the environment or from files here:
the command does that (`cli.config`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mannerly.crawler.options.declared import USER_AGENT, WARMING, CrawlFields
from mannerly.crawler.options.option import ValueKind
from mannerly.crawler.options.secrets import NOTHING, absolute, hidden, is_hidden, revealed
from mannerly.crawler.options.table import FIELDS, OPTIONS, POLITENESS
from mannerly.crawler.options.values import OptionError, host_of, option_of, printable, refusal
from mannerly.crawler.web.urls import UrlRules, canonical
from mannerly.politeness.errors import SettingsError
from mannerly.politeness.settings import check_field

from .fetch.credentials import read_header, read_login
from .fetch.guard import NetworkGuard
from .fetch.settings import check_header, check_proxy, host_name
from .render.choice import check_pattern
from .web.caches import variants_of
from .web.choices import ScopeMode
from .web.scope import Scope
from .web.seeds import COMMONCRAWL, CT
from .web.words import HIDDEN

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from mannerly.crawler.options.option import Option
    from mannerly.crawler.options.values import Given
    from mannerly.politeness.settings import Settings

RENDER_KINDS = frozenset(
    {"image", "font", "media", "stylesheet", "script", "xhr", "fetch", "document", "other"}
)
"""The kinds of requests of pages that can be switched off."""

NAMES_HOSTS = ("ct", "all")  # sources of seeds that name other hosts of the seeds' sites


@dataclass(frozen=True, slots=True, kw_only=True)
class CrawlSettings(CrawlFields):
    """The settings of one crawl: the declared fields with their checks."""

    def __post_init__(self) -> None:
        for spec in fields(self):
            if spec.metadata["range"] is not None:
                check_field(spec, getattr(self, spec.name))
        if not isinstance(self.scope, ScopeMode):
            raise SettingsError("scope", self.scope, "one of " + ", ".join(ScopeMode))
        CT.address(self.ct_url, "example.com")
        COMMONCRAWL.address(self.commoncrawl_url, "example.com")
        if self.politeness.group_by == "ip":
            allowed = "host or site in a crawl: addresses of hosts change while it runs"
            raise SettingsError("group_by", "ip", allowed)
        for host in self.hosts:
            self.pace_of(host)
        self._check_warming()
        self._check_rendering()
        self._check_wire()

    def _check_rendering(self) -> None:
        for pattern in self.render:
            try:
                check_pattern(pattern)
            except ValueError as error:
                raise SettingsError("render", pattern, str(error)) from None
        for text in self.wait_for:
            host, equals, selector = text.partition("=")
            if not (host.strip() and equals and selector.strip()):
                allowed = "HOST=SELECTOR, as in shop.example=.price"
                raise SettingsError("wait_for", text, allowed)
        for kind in sorted(self.blocked_kinds - RENDER_KINDS):
            allowed = "kinds of " + ", ".join(sorted(RENDER_KINDS)) + ", or none"
            raise SettingsError("render_block", kind, allowed)

    @property
    def blocked_kinds(self) -> frozenset[str]:
        """Return the kinds of requests that rendered pages do not make."""
        if self.screenshot:
            return frozenset()
        words = {word.strip().lower() for word in self.render_block.split(",")}
        return frozenset(words - {"", "none"})

    def _check_warming(self) -> None:
        for text in self.variants:
            try:
                variants_of((text,), self.user_agent)
            except ValueError as error:
                raise SettingsError("variants", text, str(error)) from None
        for url in self.sitemaps:
            if canonical(url) != url:
                raise SettingsError("sitemaps", url, "an http or https URL, as a browser spells it")

    def _check_wire(self) -> None:
        """Raise SettingsError for a value that would fail at the first request."""
        NetworkGuard(allow_net=self.allow_net)
        check_header("User-Agent", self.user_agent)
        check_header("From", self.contact or "")
        for name, text in self._with_secrets():
            _check_secret(name, text, text)
        if self.proxy and self.proxy_env:
            raise SettingsError("proxy_env", value=True, allowed="either proxy or proxy_env")
        for host in self.insecure_hosts:
            try:
                host_name(host)
            except ValueError:
                allowed = "host names or addresses, without scheme, port, path and wildcards"
                raise SettingsError("insecure_hosts", host, allowed) from None

    def check_files(self) -> None:
        """Raise an error if a file, a secret or a browser that is named here cannot be used.

        The constructor does not check these, so that the settings of a stored crawl can be read
        after a file was removed. Secrets are not stored.
        """
        self._check_secrets()
        if self.render:
            self._check_browser()
        if self.ca_file is None:
            return
        if not Path(self.ca_file).is_file():
            raise SettingsError("ca_file", self.ca_file, "the path of a file that exists")
        import ssl  # slow to import, and rarely needed

        try:
            ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(self.ca_file)
        except OSError:  # SSLError is one too
            allowed = "a readable file of certificates in PEM format"
            raise SettingsError("ca_file", self.ca_file, allowed) from None

    def _check_browser(self) -> None:
        """Raise OptionError if there is no browser that starts."""
        from .render.chromium import BrowserError, checked  # rarely needed

        try:
            checked(self.browser, no_sandbox=self.browser_no_sandbox)
        except BrowserError as error:
            raise OptionError(str(error)) from None

    def _check_secrets(self) -> None:
        for name, text in self._with_secrets():
            if is_hidden(name, text):
                flag = OPTIONS[name].flag
                raise SettingsError(
                    OPTIONS[name].target or name,
                    text,
                    f"the real value in place of {HIDDEN}: secrets are not stored with a crawl (a "
                    f"reference such as env:NAME or file:PATH is), so give {flag} again, or "
                    f"{flag} none",
                )
            _check_secret(name, text, None)

    def _with_secrets(self) -> list[tuple[str, str]]:
        """Return the options that may hold a secret, each with a value."""
        return [
            *([("proxy", self.proxy)] if self.proxy else ()),
            *(("header", text) for text in self.headers),
            *(("auth", text) for text in self.auth),
        ]

    def without_secrets(self) -> CrawlSettings:
        """Return these settings as they may be stored: with references, but without secrets."""
        return replace(
            self,
            proxy=self.proxy and hidden("proxy", self.proxy),
            headers=tuple(hidden("header", text) for text in self.headers),
            auth=tuple(hidden("auth", text) for text in self.auth),
        )

    def pace_of(self, host: str, rest: Settings | None = None) -> Settings:
        """Return the politeness settings of a host; what it has no value for is as in `rest`."""
        return (rest or self.politeness).with_changes(self.hosts.get(host, {}))

    @property
    def full_user_agent(self) -> str:
        """Return the User-Agent header: that of the operator, or ours with the contact."""
        is_ours = self.user_agent == USER_AGENT and self.contact
        return f"{USER_AGENT} (+{self.contact})" if is_ours else self.user_agent

    @property
    def agent_token(self) -> str:
        """Return the name that is looked up in robots.txt: the User-Agent up to the / or space."""
        return self.user_agent.split("/")[0].split(" ")[0]

    @property
    def url_rules(self) -> UrlRules:
        """Return the rules by which links are spelled."""
        if self.drop_tracking:
            return UrlRules()
        return UrlRules(drop_params=frozenset(), drop_prefixes=())

    def scope_of(self, seeds: Iterable[str]) -> Scope:
        """Return the scope of a crawl from these seeds. Raises ValueError if a glob is wrong."""
        return Scope(tuple(seeds), self.scope, self.include, self.exclude, self.max_depth)


def warming(base: CrawlSettings) -> CrawlSettings:
    """Return the settings of a run of warming: those of `base`, with other defaults."""
    crawl: dict[str, Any] = {}
    pace: dict[str, Any] = {}
    for name, value in WARMING.items():
        field = OPTIONS[name].target or name
        chosen = pace if field.startswith(POLITENESS) else crawl
        chosen[field.removeprefix(POLITENESS)] = value
    return replace(base, **crawl, politeness=replace(base.politeness, **pace))


def checking_links(base: CrawlSettings) -> CrawlSettings:
    """Return the settings of the run that asks for links: one request at a time to a host."""
    return replace(base, politeness=replace(base.politeness, max_concurrency=1), max_urls=None)


def _check_secret(name: str, text: str, full: str | None) -> None:
    """Raise SettingsError, without the secret, for an option that cannot be sent.

    `full` is the text with its secret; None: it is read from where the text refers to.
    """
    checks = {"proxy": check_proxy, "header": read_header, "auth": read_login}
    try:
        known = revealed(name, text) if full is None else full
        if not known.startswith(("env:", "file:")):  # the whole URL of a proxy
            checks[name](known)
    except ValueError as error:
        raise SettingsError(OPTIONS[name].target or name, hidden(name, text), str(error)) from None


def with_options(base: CrawlSettings, given: Mapping[str, Given]) -> CrawlSettings:
    """Return settings with the options that were given, on top of those of `base`.

    Raises:
        OptionError: one of them is out of its range; the message names its place.

    A source of seeds that names other hosts of the site makes the scope the site, unless a scope is
    given: with the scope of one host, all that it finds would be left out.
    """
    crawl: dict[str, Any] = {}
    pace: dict[str, Any] = {}
    hosts = {host: dict(own) for host, own in base.hosts.items()}
    joining: dict[str, list[str]] = {}  # what single hosts add to a list
    for key, each in given.items():
        option, host = option_of(key), host_of(key)
        if option.target is None:
            continue
        field = option.target.removeprefix(POLITENESS)
        if host is not None and option.host_kind is not None:
            entry = host if each.value is True else f"{host}={each.value}"
            joining.setdefault(field, []).append(entry)
            continue
        if host is not None:
            chosen = hosts.setdefault(host, {})
        else:
            chosen = crawl if field == option.target else pace
        chosen[field] = _converted(option, each)
    for field, entries in joining.items():  # the last entry of a host wins: that of the option
        stored, own = getattr(base, field), crawl.get(field, ())
        crawl[field] = tuple(dict.fromkeys((*(() if own else stored), *entries, *own)))
    if _names_other_hosts(crawl.get("seeding"), base) and "scope" not in crawl:
        crawl["scope"] = ScopeMode.SITE
    try:
        settings = replace(base, hosts={}, **crawl)
        # The core needs the timeout, too.
        politeness = base.politeness.with_changes({"request_timeout_s": settings.timeout_s, **pace})
        settings = replace(settings, politeness=politeness)
        if settings.render:
            settings = _in_one_process(settings, given)
        settings.check_files()
    except SettingsError as error:
        raise OptionError(_placed(error, given)) from error
    for host, own in hosts.items():
        try:
            politeness.with_changes(own)
        except SettingsError as error:
            raise OptionError(_placed(error, given, host)) from error
    return replace(settings, hosts=hosts)


def _in_one_process(settings: CrawlSettings, given: Mapping[str, Given]) -> CrawlSettings:
    """Return the settings of a crawl that renders pages, with one process.

    A page's requests stay in the process that renders it, and the hosts of a crawl are shared out
    among its processes: pages would be incomplete.

    Raises:
        OptionError: more processes were given.
    """
    processes = given.get("processes")
    if settings.processes > 1 and processes is not None:
        raise OptionError(
            refusal(processes.where, processes.value, "1 with --render, or leave it out")
        )
    return replace(settings, processes=1)


def check_shared(settings: CrawlSettings) -> None:
    """Raise OptionError for settings with which no crawl in a server can be made."""
    if settings.render:
        raise OptionError(
            "--render cannot be used with --redis-url: pages are rendered by one process, which "
            "must have all hosts of the crawl; leave one of them out"
        )


def _converted(option: Option, given: Given) -> Any:
    """Return the value of a setting from that of its option."""
    value, where, _ = given
    if option.is_inverse:
        return 1.0 / _positive(value, where)
    if option.target == "extract":
        place, colon, function = str(value).rpartition(":")  # may be used in another directory
        is_file = place.endswith(".py")
        return f"{Path(place).expanduser().absolute()}{colon}{function}" if is_file else value
    if option.target == "scope":
        return ScopeMode(str(value))
    if option.has_secret:
        texts = value if isinstance(value, list) else [value]
        full = tuple(absolute(option.name, str(text)) for text in texts if text != NOTHING)
        return full if option.kind is ValueKind.LIST else next(iter(full), None)
    if option.kind is ValueKind.FILE:
        # A crawl may be resumed in another directory.
        return str(Path(str(value)).expanduser().absolute())
    return tuple(value) if isinstance(value, list) else value


def in_force(settings: CrawlSettings, option: Option) -> object:
    """Return the value of an option."""
    assert option.target is not None
    if option.kind is ValueKind.HOSTS:
        return {
            host: {FIELDS[field]: _shown(OPTIONS[FIELDS[field]], own[field]) for field in own}
            for host, own in settings.hosts.items()
        }
    if not option.target.startswith(POLITENESS):
        return getattr(settings, option.target)
    return _shown(option, getattr(settings.politeness, option.target.removeprefix(POLITENESS)))


def _shown(option: Option, value: Any) -> object:
    """Return the value of an option from that of its setting."""
    if option.kind is ValueKind.STATUSES:
        return sorted(value)
    return 1.0 / value if option.is_inverse else value


def _positive(value: object, where: str) -> float:
    if not isinstance(value, int | float) or not 0 < value < math.inf:
        raise OptionError(refusal(where, value, "a number above 0"))
    return value


def _names_other_hosts(seeding: object, base: CrawlSettings) -> bool:
    """Return whether this source of seeds is of no use with the scope of a new crawl."""
    is_new = base.seeding not in NAMES_HOSTS  # a resumed crawl keeps its scope
    return is_new and seeding in NAMES_HOSTS and base.scope is ScopeMode.HOST


def _placed(error: SettingsError, given: Mapping[str, Given], host: str | None = None) -> str:
    """Return the error with the place where the value was set, for all hosts or for one."""
    for key, (value, where, _) in given.items():
        is_its_field = (option_of(key).target or "").removeprefix(POLITENESS) == error.field
        if is_its_field and host_of(key) in (host, None):
            return refusal(where, printable(key, value), error.allowed)
    name = FIELDS.get(error.field, error.field)
    return refusal(f"{name} of {host}" if host else name, error.value, error.allowed)
