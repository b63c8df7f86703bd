"""Control records: small orders to a crawl, kept in its store.

Every process that can open the store may add one: a second terminal, the library's handle, the live
page, another machine. The owner of each shard reads the new ones four times a second (in a crawl
that several runs share once a second) and acts on them. A crawl that is not running acts on them
when it is resumed.

Two sorts:

    lasting    Pause, Unpause, SetOption, Exclude, HostPause, HostResume, HostSet, SeedsMoved
               the sum of all of them is in force, so all are read again at every start
    once       AddSeeds, CheckUrls, HostForget, RetryUrls, Recrawl, Stop, FetchRobots
               each shard acts on each number once (`Batch.applied` keeps how far it has come);
               a Stop from before the present run is void

Workers give two orders to each other: `SeedsMoved` and `FetchRobots`.

`in_force` adds the lasting ones up. This file holds values only: what they do is in `shard` and
`runtime`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

import msgspec

from .model import RobotsRequest  # noqa: TC001 - msgspec reads it at run time

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


Rate: TypeAlias = float | Literal["unlimited"]


class _Control(msgspec.Struct, frozen=True, tag_field="order", tag=str.lower):
    """Base of all control records: stored as JSON, with the class name under "order"."""


class Pause(_Control, frozen=True):
    """Start no request until `Unpause`; requests under way come to their end."""


class Unpause(_Control, frozen=True):
    """Continue after `Pause`."""


class Stop(_Control, frozen=True):
    """End this run as SIGTERM does: drain, commit, exit 143. The crawl can be resumed."""


class AddSeeds(_Control, frozen=True):
    """Queue these URLs (canonical), and let the scope include them."""

    urls: tuple[str, ...]


class SeedsMoved(_Control, frozen=True):
    """Let the scope include these URLs, to which seeds were redirected."""

    urls: tuple[str, ...]


class FetchRobots(_Control, frozen=True):
    """Fetch these robots.txt for other shards: each is sent by the shard that owns its host."""

    requests: tuple[RobotsRequest, ...]


class CheckUrls(_Control, frozen=True):
    """Ask whether these URLs (canonical) exist, each once, whatever the scope.

    From then on the crawl visits no page: those that are queued are skipped.
    """

    urls: tuple[str, ...]


class SetOption(_Control, frozen=True):
    """Change an option of the running crawl: max_rate, max_urls, duration or concurrency."""

    name: str
    value: float | None  # None: no limit

    def __post_init__(self) -> None:
        """Give an order of an earlier version the present name of its option."""
        if self.name == "workers":
            msgspec.structs.force_setattr(self, "name", "concurrency")


class Exclude(_Control, frozen=True):
    """Fetch no URL that matches this glob from now on; queued ones are dropped at their turn."""

    glob: str


class HostPause(_Control, frozen=True):
    """Send nothing to a host until `HostResume`."""

    host: str


class HostResume(_Control, frozen=True):
    """End a `HostPause`, and give a host that was given up another chance."""

    host: str


class HostSet(_Control, frozen=True):
    """Set the pace of one host; None leaves a value as it is."""

    host: str
    delay_s: float | None = None  # smallest gap between requests
    max_rate: Rate | None = None  # requests a second
    per_host: int | None = None  # requests under way at once


class HostForget(_Control, frozen=True):
    """Forget what was learned about a host; waits that it asked for stay."""

    host: str


class RetryUrls(_Control, frozen=True, tag="retry"):
    """Queue URLs again that failed or were given up, of one host or of all.

    Hosts that were given up are taken into the crawl again.
    """

    failed: bool = True
    given_up: bool = True
    host: str | None = None
    skipped: str | None = None  # also those that were skipped for this reason
    missing: bool = False  # also pages whose kept answer is lost; their records stay until then
    lost: bool = False  # also URLs whose record is lost, which `Fleet.recall` has found
    handlers: bool = False  # also pages on which the user's code failed, without a kept answer
    seeds: bool = False  # of all these, only those that no page has led to


class Recrawl(_Control, frozen=True):
    """Ask for every URL again that has a record, and tell what has changed.

    `round` is 1 for the first recrawl of a crawl.
    """

    round: int


Control: TypeAlias = (
    Pause
    | Unpause
    | Stop
    | AddSeeds
    | SeedsMoved
    | FetchRobots
    | CheckUrls
    | SetOption
    | Exclude
    | HostPause
    | HostResume
    | HostSet
    | HostForget
    | RetryUrls
    | Recrawl
)


def is_for_shards(order: Control) -> bool:
    """Return whether shards act on a record (`Batch.applied`), and not only the runtime."""
    if isinstance(order, SetOption):
        return order.name == "max_rate"
    return not isinstance(order, (Pause, Unpause, Stop))


encode = msgspec.json.Encoder().encode
decode = msgspec.json.Decoder(Control).decode


class HostOrders(NamedTuple):
    """The sum of the lasting control records about one host; None: none was given."""

    is_paused: bool = False
    delay_s: float | None = None
    max_rate: Rate | None = None
    per_host: int | None = None

    @property
    def settings(self) -> dict[str, Any]:
        """Return what was set for the host, by the names of the politeness settings."""
        given = {
            "delay_s": self.delay_s,
            "max_rate": self.max_rate,
            "max_concurrency": self.per_host,
        }
        return {name: value for name, value in given.items() if value is not None}


class InForce(NamedTuple):
    """The sum of a crawl's lasting control records."""

    is_paused: bool
    options: Mapping[str, float | None]  # by name, from SetOption; None: no limit
    excludes: tuple[str, ...]  # globs, in the order in which they were given
    hosts: Mapping[str, HostOrders]


def in_force(orders: Iterable[tuple[int, Control]]) -> InForce:
    """Add up what `CrawlStore.orders` returned from the beginning: later records win.

    Records that are acted on once (AddSeeds, CheckUrls, HostForget, RetryUrls, Recrawl, Stop) are
    left out.
    """
    is_paused = False
    options: dict[str, float | None] = {}
    excludes: dict[str, None] = {}
    hosts: dict[str, HostOrders] = {}
    for _, order in orders:
        match order:
            case Pause() | Unpause():
                is_paused = isinstance(order, Pause)
            case SetOption():
                options[order.name] = order.value
            case Exclude():
                excludes[order.glob] = None
            case HostPause() | HostResume():
                before = hosts.get(order.host, HostOrders())
                hosts[order.host] = before._replace(is_paused=isinstance(order, HostPause))
            case HostSet():
                hosts[order.host] = merged(hosts.get(order.host, HostOrders()), order)
    return InForce(is_paused, options, tuple(excludes), hosts)


def merged(before: HostOrders, order: HostSet) -> HostOrders:
    """Return a host's orders after a `HostSet`: what it does not name stays."""
    given = {name: getattr(order, name) for name in ("delay_s", "max_rate", "per_host")}
    return before._replace(**{name: each for name, each in given.items() if each is not None})
