"""Write the web to disk, once: `.cache/bench-web/NAME/hosts/ADDRESS/…`, and its specification.

A tree is built under another name and renamed when complete, so an incomplete one is never used. A
tree of another specification, or of an earlier `EDITION` of this generator, is built again.
"""

from __future__ import annotations

import json
import shutil
from dataclasses import asdict
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

from .links import LinkChooser
from .manners import MANNERS
from .page import Prose, render

if TYPE_CHECKING:
    from .spec import WebSpec

EDITION = 1  # raise it when pages change
CACHE = Path(__file__).resolve().parents[2] / ".cache" / "bench-web"

ROBOTS = """# robots.txt of host {host}
User-agent: GreedyBot
User-agent: Scraper-9000
Disallow: /

User-agent: *
Disallow: /private/
Allow: /private/open/
Disallow: /search
Disallow: /cart/
Disallow: /*?session=
Disallow: /*.pdf$

# thank you
"""


def ensure(spec: WebSpec) -> Path:
    """Return the directory of this web; build it if it is missing."""
    path = CACHE / spec.name
    note = path / "web.json"
    made_from = {"edition": EDITION, **asdict(spec)}
    if note.is_file() and json.loads(note.read_text()) == made_from:
        return path
    unfinished = CACHE / f"{spec.name}.unfinished"
    for old in (unfinished, path):
        shutil.rmtree(old, ignore_errors=True)
    prose = Prose(Random(spec.seed))
    for host in range(spec.hosts):
        directory = unfinished / "hosts" / spec.address(host)
        if spec.directory:
            directory.parent.mkdir(parents=True, exist_ok=True)
            directory.symlink_to(Path(spec.directory).resolve(), target_is_directory=True)
        else:
            write_host(directory, spec, host, prose)
    (unfinished / "web.json").write_text(json.dumps(made_from, indent=1))
    unfinished.rename(path)
    return path


def write_host(directory: Path, spec: WebSpec, host: int, prose: Prose) -> None:
    """Write all files of one host."""
    for section in range(1, spec.sections + 1):
        (directory / f"section-{section}").mkdir(parents=True)
    (directory / "private").mkdir()
    (directory / "robots.txt").write_text(ROBOTS.format(host=host))
    chooser = LinkChooser(spec, host)
    for page in range(spec.files):
        rng = Random(f"{spec.seed}/{host}/{page}")
        body = write_page(rng, prose, spec, chooser, page, spec.origin(host) + spec.path(page))
        (directory / file_of(spec.path(page))).write_bytes(body)


def write_page(
    rng: Random, prose: Prose, spec: WebSpec, chooser: LinkChooser, page: int, url: str
) -> bytes:
    menu, links = chooser.menu(), chooser.tree(page)
    wanted = rng.randint(spec.min_links, spec.max_links)
    links += chooser.body(rng, page, wanted - len(menu) - len(links))
    size = int(rng.triangular(spec.min_bytes, spec.max_bytes, spec.usual_bytes))
    manner = MANNERS[spec.kind]
    return render(rng, prose, manner, url=url, number=page, menu=menu, links=links, size=size)


def file_of(path: str) -> str:
    """Return the file of a path, relative to its host's directory."""
    return f"{path[1:]}index.html" if path.endswith("/") else path[1:]
