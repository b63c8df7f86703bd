from __future__ import annotations

import gzip
from typing import TYPE_CHECKING

import pytest

from mannerly.cli.seeds import SeedError, read_seeds

if TYPE_CHECKING:
    from pathlib import Path


def test_urls_are_canonical_each_once_and_in_order() -> None:
    """A host without a scheme is asked over https."""
    seeds = read_seeds(
        ["example.com", "http://B.example:80/x#f", "https://example.com/", "localhost:8000/a"]
    )

    assert seeds == ["https://example.com/", "http://b.example/x", "https://localhost:8000/a"]


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_file_holds_a_url_a_line(tmp_path: Path, pack: object) -> None:
    """Comments and blank lines are passed over; a gzip file is a file."""
    file = tmp_path / "seeds.txt"
    file.write_bytes(
        pack("\ufeff# mine\n\na.example \t# home\n https://b.example/?utm_source=x \n".encode())
    )

    assert read_seeds([str(file)]) == ["https://a.example/", "https://b.example/"]


@pytest.mark.parametrize(
    ("argument", "words"),
    [
        ("ftp://a.example/", "only http and https"),
        ("https://me:secret@a.example/", "has a user name"),
        ("https://", "is not a URL"),
        ("a..b", "is not a URL"),
        ("7465", "7465 is a number, not a URL"),
        ("missing.txt", "file not found: missing.txt; if it is a host"),
        ("./", "is a directory"),
        ("https://a.example/\x1b[31m\u202e<>:99999999", None),
    ],
)
def test_mistake_names_its_argument(argument: str, words: str | None) -> None:
    """What cannot be a place to start from is told in one sentence, without escape sequences."""
    if words is None:
        assert "\x1b" not in read_seeds([argument])[0]
        return

    with pytest.raises(SeedError, match=words):
        read_seeds([argument])


def test_mistake_in_a_file_names_its_line(tmp_path: Path) -> None:
    """A list of a thousand hosts is mended line by line."""
    file = tmp_path / "seeds.txt"
    file.write_text("a.example\n\nmailto:me\x1b\n")

    with pytest.raises(SeedError, match=r"seeds.txt, line 3: mailto:me\\x1b is not a URL"):
        read_seeds([str(file)])


def test_file_that_is_no_text_is_refused(tmp_path: Path) -> None:
    """Neither a broken gzip file nor bytes of another encoding are guessed at."""
    broken, latin = tmp_path / "a.gz", tmp_path / "b.txt"
    broken.write_bytes(gzip.compress(b"a.example" * 99)[:-9])
    latin.write_bytes(b"caf\xe9.example\n")

    with pytest.raises(SeedError, match="not a gzip file"):
        read_seeds([str(broken)])
    with pytest.raises(SeedError, match="not UTF-8"):
        read_seeds([str(latin)])
