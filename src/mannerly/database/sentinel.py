"""Sentinels know which server is the primary now: it is asked for before every connection.

So a connection that breaks in a failover is made again to the server that was promoted. The answer
may be out of date for some seconds; what is then met is a server that is gone or a replica, and
both mean that the store is away.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .address import sentinel_password
from .errors import StoreAway

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .address import Address

TIMEOUT_S = 0.5  # of one sentinel: the others are asked after it


class Sentinels:
    """The sentinels of one server; the one that answered last is asked first."""

    def __init__(self, address: Address) -> None:
        self._address = address
        self._places = list(address.sentinels)

    def primary(self, options: Mapping[str, Any]) -> tuple[str, int]:
        """Return the host and the port of the primary. `options` are those of the client.

        Raises:
            StoreAway: no sentinel answers, or none knows a primary of this name.
        """
        import redis

        reasons = []
        for place in list(self._places):
            host, port = place
            asked: Any = redis.Redis(host, port, **self._options(options))
            try:
                found = asked.execute_command(
                    "SENTINEL", "GET-MASTER-ADDR-BY-NAME", self._address.service
                )
            except (redis.RedisError, OSError) as error:
                reasons.append(f"{host}:{port}: {str(error) or type(error).__name__}")
                continue
            finally:
                asked.close()
            if found is None:
                reasons.append(f"{host}:{port}: no primary named {self._address.service!r}")
                continue
            self._places.remove(place)
            self._places.insert(0, place)
            primary, at = found
            return _text(primary), int(at)
        raise StoreAway(
            f"{self._address.server}: no sentinel names the primary ({'; '.join(reasons)})"
        )

    @staticmethod
    def _options(options: Mapping[str, Any]) -> dict[str, Any]:
        kept = ("retry", "protocol", *(name for name in options if name.startswith("ssl")))
        return {
            **{name: options[name] for name in kept},
            "password": sentinel_password(),
            "socket_timeout": TIMEOUT_S,
            "socket_connect_timeout": TIMEOUT_S,
        }


def _text(value: bytes | str) -> str:
    return value.decode() if isinstance(value, bytes) else value
