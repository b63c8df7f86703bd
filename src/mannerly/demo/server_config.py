"""What the parent tells the server's process to serve: one line of JSON, and back."""

from __future__ import annotations

import json
from dataclasses import dataclass

from .sites import Site


@dataclass(frozen=True, slots=True)
class ServerConfig:
    """The sites, the port of all (0: any), the first site's address, and where to log."""

    sites: tuple[Site, ...]
    port: int
    first_address: str
    log_path: str | None

    def to_json(self) -> str:
        """One line."""
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
        """The order that `to_json` wrote."""
        plain = json.loads(line)
        sites = tuple(map(Site.from_json, plain["sites"]))
        return cls(sites, plain["port"], plain["first_address"], plain["log_path"])
