"""The only module that touches the `pcre2` package, which may be missing, broken or changed.

PCRE2 can replace all matches of a pattern and leave out the text between them
(`PCRE2_SUBSTITUTE_REPLACEMENT_ONLY`). The binding has that option, but not in its public `sub`, so
a private function of it is called (docs/adr/0017). Every error of the binding therefore switches
the scanner off for the rest of the process, and `problem` says why:

    - the package is missing or cannot be imported;
    - the private function has another name or other arguments;
    - the pattern does not compile, or not to machine code, without which a tree is as fast (a
      service with systemd's `MemoryDenyWriteExecute`, some SELinux policies);
    - a sample page does not give the expected fields;
    - a later call raises an unexpected exception.

A page that exceeds a limit of PCRE2 is an error of that page only: the scanner stays on.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

# PCRE2_ERROR_… of one subject: JIT_STACKLIMIT, MATCHLIMIT (ten million steps without a match, in a
# page of many megabytes), DEPTHLIMIT, HEAPLIMIT. From pcre2.h; they are part of its stable API.
_LIMITS_OF_A_PAGE = frozenset({-46, -47, -53, -63})


class Scanner:
    """Replaces each match of a pattern by `field` and drops everything else.

    `samples` maps pages to the fields that they must give: the self-check at the start.
    """

    __slots__ = ("_problem", "_substitute")

    def __init__(self, pattern: bytes, field: bytes, samples: Mapping[bytes, bytes]) -> None:
        self._problem: str | None = None
        self._substitute: Callable[[bytes], tuple[bytes, int]] | None = None
        try:
            substitute = _substitution(pattern, field)
            is_right = all(substitute(page)[0] == fields for page, fields in samples.items())
        except Exception as error:  # noqa: BLE001 - foreign code: whatever it raises, the tree reads
            self._switch_off(f"{type(error).__name__}: {error}")
            return
        if is_right:
            self._substitute = substitute
        else:
            self._switch_off("pcre2 gave wrong results for a sample page")

    @property
    def problem(self) -> str | None:
        """The reason why the scanner is off, or None while it is on."""
        return self._problem

    def fields(self, body: bytes) -> bytes | None:
        """Return the fields of a page, or None if the page, or any page, cannot be scanned."""
        if self._substitute is None:
            return None
        try:
            found, _ = self._substitute(body)
        except MemoryError:
            return None
        except Exception as error:  # noqa: BLE001 - as above
            if getattr(error, "code", None) not in _LIMITS_OF_A_PAGE:
                self._switch_off(f"{type(error).__name__}: {error}")
            return None
        return found

    def _switch_off(self, problem: str) -> None:
        self._substitute = None
        self._problem = problem


class Substitution:
    """Replaces each match of a pattern and keeps everything else; None where that cannot be."""

    __slots__ = ("_substitute",)

    def __init__(self, pattern: bytes, replacement: bytes) -> None:
        self._substitute: Callable[[bytes], tuple[bytes, int]] | None = None
        try:
            self._substitute = _substitution(pattern, replacement, keeps_rest=True)
        except Exception:  # noqa: BLE001 - foreign code: whatever it raises, `re` does the same
            return

    def __call__(self, text: bytes) -> bytes | None:
        """Return the text with all matches replaced; None: do it another way."""
        if self._substitute is None:
            return None
        try:
            return self._substitute(text)[0]
        except Exception:  # noqa: BLE001 - as above; a limit of PCRE2 is an error of this text only
            return None


def _substitution(
    pattern: bytes, field: bytes, *, keeps_rest: bool = False
) -> Callable[[bytes], tuple[bytes, int]]:
    import pcre2
    from pcre2 import _cy

    code = pcre2.compile(pattern, pcre2.VERBOSE | pcre2.IGNORECASE)._pcre2_code
    option = _cy.SubstituteOption
    options = option.GLOBAL if keeps_rest else option.GLOBAL | option.REPLACEMENT_ONLY
    return partial(_cy.substitute, code, field, byte_offset=0, options=int(options))
