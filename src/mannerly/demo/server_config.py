"""The configuration that `DemoWeb` sends to the server process, as one line of JSON."""

from __future__ import annotations

import json
from dataclasses import dataclass

from .sites import Site


@dataclass(frozen=True, slots=True)
class ServerConfig:
    """Sites to serve, their port (0: any free one), the first address, and the log file if any."""

    sites: tuple[Site, ...]
    port: int
    first_address: str
    log_path: str | None

    def to_json(self) -> str:
        """Return the configuration as one line of JSON."""
        return json.dumps(
            {
                "sites": [site.to_json() for site in self.sites],
                "port": self.port,
                "first_address": self.first_address,
                "log_path": self.log_path,
            }
        )

    @classmethod
    def from_json(cls, line: str) -> ServerConfig:
        """Return the configuration that `to_json` wrote."""
        plain = json.loads(line)
        sites = tuple(map(Site.from_json, plain["sites"]))
        return cls(sites, plain["port"], plain["first_address"], plain["log_path"])
