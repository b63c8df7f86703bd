"""The inputs of html5lib's tests (MIT licence): thousands of pages that parsers get wrong.

They are in html5lib's source distribution, which pip downloads once into the user's cache directory
and which is checked by its digest. Nothing of it is part of this repository. pip runs its setup.py
to read its metadata, and that needs an older setuptools.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import sys
import tarfile
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

NAME = "html5lib-1.1.tar.gz"
SHA256 = "b2e5b40261e20f354d198eae92afc10d750afb487ed5e50f9c4eaf07c184146f"
BUILD = "setuptools<80\n"
BUILD_CONSTRAINTS_SINCE = (25, 3)  # of pip; earlier versions apply all constraints to builds, too
TIMEOUT_S = 120.0

_CODE_UNIT = re.compile(r"\\u([0-9a-fA-F]{4})")
_TREE_TEST = re.compile(r"(?:^|\n)#data\n(.*?)\n#errors(.*?)(?=\n#document\n|\Z)", re.DOTALL)
_CONTEXT = re.compile(r"\n#document-fragment\n([^\n]+)")


def archive() -> Path:
    """Return the path of the source distribution, downloaded if it is not in the cache.

    Raises:
        OSError: it cannot be downloaded, or is not the file that it was.
    """
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "mannerly-tests"
    path = cache / NAME
    if path.exists() and _digest(path.read_bytes()) == SHA256:
        return path
    cache.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=cache) as folder:
        downloaded = _downloaded(Path(folder))
        if _digest(downloaded.read_bytes()) != SHA256:
            raise OSError(f"{NAME} has another SHA-256 than {SHA256}")
        downloaded.replace(path)
    return path


def _downloaded(folder: Path) -> Path:
    """Have pip download the source distribution into a folder."""
    constraint = folder / "build.txt"
    constraint.write_text(BUILD)
    words = ["-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
    words += ["--no-binary", "html5lib"]
    surroundings = dict(os.environ)
    major, minor, *_ = version("pip").split(".")
    if (int(major), int(minor)) >= BUILD_CONSTRAINTS_SINCE:
        words += ["--build-constraint", str(constraint)]
    else:
        surroundings["PIP_CONSTRAINT"] = str(constraint)
    try:
        subprocess.run(
            [sys.executable, *words, "--dest", str(folder), "html5lib==1.1"],
            env=surroundings,
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            check=True,
        )
    except subprocess.CalledProcessError as error:
        raise OSError(f"pip cannot download html5lib: {error.stderr.strip()[-300:]}") from error
    except subprocess.TimeoutExpired as error:
        raise OSError(f"pip took more than {TIMEOUT_S:g} s to download html5lib") from error
    return folder / NAME


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
