"""Run the user's extract function on a page: `page -> dict | list[dict] | None`.

It runs in the crawl's own loop, on pages with a status of 2xx, so nothing has to be copied; what it
returns is committed with the page, exactly once. An exception costs the page its items, and is
counted and shown.

While it runs, the crawl does nothing else. So a thread watches it: after a second it says which
function works on which page, and after `LONGEST_S` the function is ended by an exception. One that
does not return from C code (a regular expression without an end) cannot be ended, only named.

    my_items.py:extract     a function in a file; the file's folder can be imported from
    package.items:extract   a function of an installed module
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec

from mannerly.crawler.model import PageItems

from .page import Page
from .parsed import clean_line

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mannerly.crawler.model import PageRecord

    Extract: TypeAlias = Callable[[Page], dict[str, Any] | list[dict[str, Any]] | None]

SLOW_S = 1.0  # then it is said, and again after twice as long
LONGEST_S = 30.0

_HERE = "here:"  # the beginning of the names of functions that only this process has
_here: dict[str, Extract] = {}


class ExtractError(ValueError):
    """The function cannot be used: it is not there, or other processes cannot import it."""


class ExtractTimeout(BaseException):
    """The extract function took too long."""


def name_of(function: Extract) -> str:
    """Return a name by which `load` finds a function: in every process, if it can be imported."""
    module, name = function.__module__, function.__qualname__
    found: Any = sys.modules.get(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    if module != "__main__" and found is function:
        return f"{module}:{name}"
    text = f"{_HERE}{name}-{id(function)}"
    _here[text] = function
    return text


def is_only_here(name: str) -> bool:
    """Return whether other processes cannot find this function."""
    return name.startswith(_HERE)


def load(name: str) -> Extract:
    """Return a function by its name.

    Raises:
        ExtractError: there is none; the message says what to write.
    """
    if name in _here:
        return _here[name]
    place, colon, function = name.rpartition(":")
    if is_only_here(name) or not colon or not place or not function.isidentifier():
        raise ExtractError(
            f"{shown(name)} is not FILE.py:FUNCTION or MODULE:FUNCTION"
            if not is_only_here(name)
            else "the extract function of this crawl was an object of the program: pass it again"
        )
    module = _from_file(Path(place)) if place.endswith(".py") else _from_module(place)
    found = getattr(module, function, None)
    if not callable(found):
        names = [each for each, value in vars(module).items() if callable(value)]
        known = ", ".join(each for each in names if not each.startswith("_")) or "none"
        raise ExtractError(f"{place} has no function {function} (it has: {known})")
    return found  # type: ignore[no-any-return]


def shown(name: str) -> str:
    """Return a name for messages: without the folder of a file."""
    place, colon, function = name.rpartition(":")
    return f"{Path(place).name}:{function}" if colon and place.endswith(".py") else name


def _from_file(path: Path) -> object:
    if not path.is_file():
        raise ExtractError(f"there is no file {path}")
    folder = str(path.parent)
    if folder not in sys.path:
        sys.path.append(folder)
    spec = importlib.util.spec_from_file_location(f"mannerly_extract_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    return _run(lambda: spec.loader.exec_module(module) or module, str(path))  # type: ignore[union-attr]


def _from_module(name: str) -> object:
    return _run(lambda: importlib.import_module(name), name)


def _run(load_module: Callable[[], object], name: str) -> object:
    try:
        return load_module()
    except Exception as error:
        raise ExtractError(f"{name} cannot be loaded: {type(error).__name__}: {error}") from error


class Extractor:
    """Calls the function, page by page. Close it to end its thread."""

    def __init__(self, name: str, *, longest_s: float = LONGEST_S) -> None:
        self.name = shown(name)
        self._function = load(name)
        self._encode = msgspec.json.Encoder().encode
        self._longest_s = longest_s
        self._thread_id = 0
        self._page: tuple[str, float] | None = None  # what it works on, and since when
        self._is_closed = threading.Event()
        self._watch = threading.Thread(target=self._watched, name="mannerly-extract", daemon=True)
        self._watch.start()

    def __call__(self, record: PageRecord, headers: Mapping[str, str], body: bytes) -> PageItems:
        """Return the items of a page, or why there are none."""
        self._thread_id = threading.get_ident()
        self._page = (record.url, time.monotonic())
        try:
            found = self._function(Page(record, headers, body))
            self._page = None
            return PageItems(self._lines(found))
        except ExtractTimeout:
            return PageItems([], f"took longer than {self._longest_s:g} s")
        except MemoryError:
            raise
        except Exception as error:  # noqa: BLE001 - whatever it is, it costs this page only
            return PageItems([], clean_line(f"{type(error).__name__}: {error}"))
        finally:
            self._page = None

    def close(self) -> None:
        """End the thread."""
        self._is_closed.set()

    def _lines(self, found: object) -> list[bytes]:
        items = found if isinstance(found, list) else [] if found is None else [found]
        for item in items:
            if not isinstance(item, dict) or not all(isinstance(key, str) for key in item):
                kind = type(item).__name__
                raise TypeError(f"extract returned {kind}: return dict, list[dict] or None")
        return [self._encode(item) for item in items]

    def _watched(self) -> None:
        next_s = SLOW_S
        while not self._is_closed.wait(SLOW_S / 4):
            page = self._page
            took_s = 0.0 if page is None else time.monotonic() - page[1]
            if page is None or took_s < SLOW_S:
                next_s = SLOW_S
            elif took_s >= self._longest_s:
                self._interrupt(page)
            elif took_s >= next_s:
                next_s = 2 * took_s
                text = f"the extract function {self.name} has worked for {took_s:.0f} s on"
                print(  # noqa: T201 - the loop that shows everything else waits
                    f"mannerly: {text} {clean_line(page[0])}; the crawl waits for it",
                    file=sys.stderr,
                    flush=True,
                )

    def _interrupt(self, page: tuple[str, float]) -> None:
        """Raise an exception in the function, unless it has just ended."""
        if self._page is page:
            import ctypes  # rarely needed

            thread = ctypes.c_ulong(self._thread_id)
            ctypes.pythonapi.PyThreadState_SetAsyncExc(thread, ctypes.py_object(ExtractTimeout))
            self._is_closed.wait(SLOW_S)
