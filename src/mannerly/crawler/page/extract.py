"""The user's extract function: of a page with a status of 2xx it makes items, and requests.

It runs in helper processes (`runtime.offload`), so that it cannot stop, end or break the crawl. A
function that other processes cannot import runs in this one (`ExtractHere`). What it returns is
committed with the page, exactly once. Any failure costs the page its items, is the error of its
record, and is counted and shown.

An item is a dict, a dataclass, a msgspec Struct or a pydantic model. A
`Request` asks for more: it joins the commit of the page.

    my_items.py:extract     a function in a file; the file's folder can be imported from
    package.items:extract   a function of an installed module

A function that only this process has, such as a lambda, runs in the crawl's own loop. While it
runs, the crawl does nothing else. So a thread watches it: after a second it says which function
works on which page, and after `longest_s` the function is ended by an exception. One that does not
return from C code (a regular expression without an end) cannot be ended, only named; one that ends
the process (`os._exit`) ends the crawl.

The module is long because the function can be called in a helper and in this process.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
import threading
import time
from collections import deque
from collections.abc import Iterator
from dataclasses import is_dataclass
from functools import lru_cache, partial
from pathlib import Path
from traceback import walk_tb
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias
from weakref import WeakValueDictionary

import msgspec

from mannerly.crawler.model import PageItems

from .handlers import Handlers, UnknownLabelError
from .page import Page
from .parsed import CodeFailed, ParseFailed, clean_line
from .request import MOST, Asked, PageRequest, candidates

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from types import FrameType

    from mannerly.crawler.model import Candidate, PageRecord, Received
    from mannerly.crawler.payload import Payload

    Extract: TypeAlias = Callable[[Page], Any]
    from typing import Any


_FILE_MODULE = "mannerly_extract_"  # the beginning of the names of modules loaded from files
_HERE = "here:"  # the beginning of the names of functions that only this process has

Answer: TypeAlias = "tuple[list[bytes], str | None, list[tuple[str, bytes, bool, int]], bool]"
"""The items of a page, the error, requests and whether no handler has the label, as plain values: a
helper may have lost modules."""


class ExtractResult(NamedTuple):
    """The items of a page, or why there are none, and the requests that it led to."""

    items: PageItems
    requests: Sequence[Candidate] = ()
    lacks_handler: bool = False  # no handler of the spider has the label of the page


class ExtractError(ValueError):
    """The function cannot be used: it is not there, or other processes cannot import it."""


class NamedFunction:
    """A function and a name by which `load` finds it: in every process, if it can be imported.

    A function that only this process has is found for as long as this object is kept.
    """

    __slots__ = ("__weakref__", "function", "name")

    def __init__(self, function: Extract) -> None:
        self.function = function
        self.name = _name_of(function)
        if is_only_here(self.name):
            _here[self.name] = self


_here: WeakValueDictionary[str, NamedFunction] = WeakValueDictionary()


def _name_of(function: Extract) -> str:
    name = getattr(function, "__qualname__", type(function).__qualname__)
    module = sys.modules.get(getattr(function, "__module__", None) or "__main__")
    is_file = module is not None and module.__name__.startswith(_FILE_MODULE)
    if isinstance(function, Handlers) and module is not None:
        name = next((name for name, each in vars(module).items() if each is function), "")
        # Its runs are guarded in the main script, too, which is not so for other functions.
        is_file = is_file or (module.__name__ == "__main__" and not module.__package__)
    if module is not None and (is_file or module.__name__ != "__main__") and name.isidentifier():
        is_found = getattr(module, name, None) is function
        file = Path(getattr(module, "__file__", None) or "/")
        if is_file:
            is_source = is_found and file.suffix == ".py"
            return f"{file.absolute()}:{name}" if is_source else f"{_HERE}{name}-{id(function)}"
        depth = module.__name__.count(".") + (file.stem == "__init__")
        # Other processes do not import from the working directory.
        if is_found and not _is_working_directory(file.parents[min(depth, len(file.parents) - 1)]):
            return f"{module.__name__}:{name}"
        if is_found and file.suffix == ".py" and not depth:
            return f"{file.absolute()}:{name}"
    return f"{_HERE}{name}-{id(function)}"


def _is_working_directory(folder: Path) -> bool:
    try:
        return folder.resolve() == Path.cwd().resolve()
    except OSError:  # it was removed
        return False


def is_only_here(name: str) -> bool:
    """Return whether other processes cannot find this function."""
    return name.startswith(_HERE)


def load(name: str) -> Extract:
    """Return a function by its name.

    Raises:
        ExtractError: there is none; the message says what to write.
    """
    if (kept := _here.get(name)) is not None:
        return kept.function
    place, colon, function = name.rpartition(":")
    if is_only_here(name) or not colon or not place or not function.isidentifier():
        raise ExtractError(
            f"{shown(name)} is not FILE.py:FUNCTION or MODULE:FUNCTION"
            if not is_only_here(name)
            else "the extract function of this crawl was an object of the program: pass it again"
        )
    module = module_of(Path(place)) if place.endswith(".py") else _from_module(place)
    found = getattr(module, function, None)
    if not callable(found):
        names = [each for each, value in vars(module).items() if callable(value)]
        known = ", ".join(each for each in names if not each.startswith("_")) or "none"
        raise ExtractError(f"{place} has no function {function} (it has: {known})")
    return found  # type: ignore[no-any-return]


def version_of(name: str | None) -> str:
    """Return the beginning of the digest of a function's file; nothing if it is in no file."""
    file = Path((name or "").rpartition(":")[0])
    if file.suffix != ".py":
        return ""
    import hashlib

    try:
        return hashlib.sha256(file.read_bytes()).hexdigest()[:12]
    except OSError:
        return ""  # every page will say so


def shown(name: str) -> str:
    """Return a name for messages: without the folder of a file."""
    place, colon, function = name.rpartition(":")
    return f"{Path(place).name}:{function}" if colon and place.endswith(".py") else name


def module_of(path: Path) -> object:
    """Return the module that a file makes, loaded anew.

    Raises:
        ExtractError: there is no such file, or it cannot be loaded; the message names the line.
    """
    if not path.is_file():
        raise ExtractError(f"there is no file {path}")
    folder = str(path.parent)
    if folder not in sys.path:
        sys.path.append(folder)
    spec = importlib.util.spec_from_file_location(f"{_FILE_MODULE}{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses and models look up the types of fields there
    try:
        return _run(lambda: spec.loader.exec_module(module) or module, str(path))  # type: ignore[union-attr]
    except ExtractError:
        del sys.modules[spec.name]
        raise


def _from_module(name: str) -> object:
    return _run(lambda: importlib.import_module(name), name)


_loading: list[str] = []  # modules that are being loaded now


def is_loading() -> bool:
    """Return whether a module of the user is being loaded: it must not run a crawl then."""
    return bool(_loading)


def _run(load_module: Callable[[], object], name: str) -> object:
    _loading.append(name)
    try:
        return load_module()
    except (Exception, SystemExit) as error:
        words = f"{name} cannot be loaded: {_words(error)}{_line_of(error, name)}"
        raise ExtractError(words) from error
    finally:
        _loading.pop()


def _line_of(error: BaseException, file: str) -> str:
    """Return the line of a file in which an error was raised, as ` (line 3)`; else nothing."""
    lines = [line for frame, line in walk_tb(error.__traceback__) if _is_in(frame, file)]
    return f" (line {lines[-1]})" if lines else ""


def _is_in(frame: FrameType, file: str) -> bool:
    return frame.f_code.co_filename == file


# ---------------------------------------------------------------------- in helper processes


def work_on(
    name: str,
    record: PageRecord,
    headers: Mapping[str, str],
    body: bytes,
    carried: Payload | None = None,
    received: Received | None = None,
) -> partial[Answer]:
    """Return the call of a function on a page, as a value for another process."""
    return partial(extracted_by, name, record, headers, body, carried, received)


def prepare(name: str) -> None:
    """Load a function in a new helper. If that fails, it fails again on every page, with words."""
    try:
        _loaded(name)
    except BaseException:  # noqa: BLE001 - whatever the user's module does
        return


def extracted_by(
    name: str,
    record: PageRecord,
    headers: Mapping[str, str],
    body: bytes,
    carried: Payload | None = None,
    received: Received | None = None,
) -> Answer:
    """Return the items of a page and requests, or why there are none. This runs in a helper.

    Raises:
        MemoryError: this process has too little.
    """
    try:
        function = _loaded(name)
        if not is_for(function, record.status):
            return [], None, [], False
        page = Page(record, headers, body, carried=carried, received=received)
        items, asked = results_of(function(page))
        return items, None, [(*each,) for each in asked], False
    except MemoryError:
        raise
    except UnknownLabelError:
        return [], None, [], True
    except BaseException as error:  # noqa: BLE001 - whatever it is, it costs this page only
        return [], f"{_words(error)}{_line_of(error, name.rpartition(':')[0])}", [], False


_loaded = lru_cache(maxsize=None)(load)


def is_for(function: Extract, status: int | None) -> bool:
    """Return whether a function is called for pages with this status."""
    if isinstance(function, Handlers):
        return function.takes(status)
    return status is not None and 200 <= status < 300


def items_of(result: object, record: PageRecord) -> ExtractResult:
    """Return what was made of a page from the result of its `work_on`."""
    if isinstance(result, CodeFailed | ParseFailed):
        return ExtractResult(PageItems([], clean_line(result.reason)))
    answer: Answer = result  # type: ignore[assignment]
    items, error, asked, lacks_handler = answer
    found = _extracted(items, error, [Asked(*each) for each in asked], record)
    return found._replace(lacks_handler=lacks_handler)


def items_here(function: Extract, page: Page) -> ExtractResult:
    """Return what was made of a page. This runs in the crawl's process.

    Raises:
        KeyboardInterrupt: in the main thread, where it is an order of the program's user.
    """
    try:
        items, asked = results_of(function(page))
    except UnknownLabelError:
        return ExtractResult(PageItems([]), lacks_handler=True)
    except BaseException as error:
        is_main = threading.current_thread() is threading.main_thread()
        if is_main and isinstance(error, KeyboardInterrupt):
            raise
        return ExtractResult(PageItems([], _words(error)))
    return _extracted(items, None, asked, page.record)


def _extracted(
    items: list[bytes], error: str | None, asked: list[Asked], record: PageRecord
) -> ExtractResult:
    try:
        return ExtractResult(PageItems(items, error), candidates(record, asked))
    except ValueError as problem:  # the user's code has broken its helper
        return ExtractResult(PageItems([], clean_line(str(problem))))


_encode = msgspec.json.Encoder().encode


def results_of(found: object) -> tuple[list[bytes], list[Asked]]:
    """Return the items and the requests among what a function returned or yields.

    Raises:
        TypeError: it is neither, or cannot be written as JSON.
        ValueError: there are too many requests.
    """
    if found is None:
        return [], []
    each_of = found if isinstance(found, list | tuple | Iterator) else [found]
    items: list[bytes] = []
    asked: list[Asked] = []
    for each in each_of:
        if isinstance(each, PageRequest):
            asked.append(each.asked())
            if len(asked) > MOST:
                raise ValueError(f"more than {MOST:,} requests for one page")
        elif each is not None:
            items.append(_line(each))
    return items, asked


def _line(item: object) -> bytes:
    is_dict = isinstance(item, dict) and all(isinstance(key, str) for key in item)
    if callable(dump := getattr(item, "model_dump", None)) and not isinstance(item, type):
        item, is_dict = dump(mode="json"), True  # a model of pydantic
    is_value = is_dict or isinstance(item, msgspec.Struct) or is_dataclass(item)
    line = _encode(item) if is_value and not isinstance(item, type) else b""
    if not line.startswith(b"{"):  # a Struct may be written as a list
        kind = type(item).__name__
        raise TypeError(
            f"extract returned {kind}: return or yield dict, a dataclass, a msgspec Struct, a "
            "pydantic model, Request or None"
        )
    return line


def _words(error: BaseException) -> str:
    """Return an exception on one line; its text is code of the user, too."""
    kind = type(error).__name__
    try:
        text = str(error)
    except BaseException:  # noqa: BLE001 - see above
        text = ""
    return clean_line(f"{kind}: {text}" if text else kind)


# ---------------------------------------------------------------------- calls of the function


SLOW_S = 1.0  # then it is said, and again after twice as long


class ExtractTimeout(BaseException):
    """The extract function took too long: raised in the function itself."""


class Extracting:
    """The extract function of a crawl. Close it to end what it has started here.

    Attributes:
        name: of the function, by which helpers find it.
        longest_s: seconds for one page.
        version: of its file; empty if it has none.
        here: calls the function in this process; None: helper processes do the `work`.
        prepare: loads the function in a helper.
        work: returns the call on a page, as a value for a helper.
    """

    def __init__(self, name: str, longest_s: float) -> None:
        is_here = is_only_here(name) or not sys.executable  # without it there are no helpers
        self.name = name
        self.longest_s = longest_s
        self.here = ExtractHere(name, longest_s) if is_here else None
        self.version = version_of(name)
        self.prepare = partial(prepare, name)
        self.work = partial(work_on, name)

    def close(self) -> None:
        """End the thread, if there is one."""
        if self.here is not None:
            self.here.close()


class ExtractHere:
    """Calls a function in this process, page by page. Close it to end its thread."""

    def __init__(self, name: str, longest_s: float) -> None:
        self.name = shown(name)
        self._function = load(name)
        self._longest_s = longest_s
        self._thread_id = 0
        # The page that it works on, and since when. Who takes it out decides how the call ends:
        # the caller when the function has returned, or the thread when its time is over.
        self._call: deque[tuple[str, float]] = deque()
        self._is_raised = threading.Event()
        self._is_closed = threading.Event()
        self._watch = threading.Thread(target=self._watched, name="mannerly-extract", daemon=True)
        self._watch.start()

    def __call__(
        self,
        record: PageRecord,
        headers: Mapping[str, str],
        body: bytes,
        carried: Payload | None = None,
        received: Received | None = None,
    ) -> ExtractResult:
        """Return the items of a page and requests, or why there are none."""
        if not is_for(self._function, record.status):
            return ExtractResult(PageItems([]))
        page = Page(record, headers, body, carried=carried, received=received)
        return items_here(self._called, page)

    def close(self) -> None:
        """End the thread."""
        self._is_closed.set()

    def _called(self, page: Page) -> Any:
        self._thread_id = threading.get_ident()
        self._is_raised.clear()
        call = (page.url, time.monotonic())
        self._call.append(call)
        try:
            found = self._function(page)
            return list(found) if isinstance(found, Iterator) else found
        finally:
            if not self._has_ended(call):  # its time is over, even if it has just returned
                self._is_raised.wait()
                _raise_in(self._thread_id, None)  # nothing may be raised after this
                raise TimeoutError(f"took longer than {self._longest_s:g} s")

    def _has_ended(self, call: tuple[str, float]) -> bool:
        """End a call; return False if the other thread has done so before."""
        try:
            self._call.remove(call)
        except ValueError:
            return False
        return True

    def _watched(self) -> None:
        next_s = SLOW_S
        while not self._is_closed.wait(min(SLOW_S, self._longest_s) / 4):
            call = next(iter(self._call.copy()), ("", time.monotonic()))
            took_s = time.monotonic() - call[1]
            if took_s >= self._longest_s:
                if self._has_ended(call):
                    _raise_in(self._thread_id, ExtractTimeout)
                    self._is_raised.set()
            elif took_s < SLOW_S:
                next_s = SLOW_S
            elif took_s >= next_s:
                next_s = 2 * took_s
                text = f"the extract function {self.name} has worked for {took_s:.0f} s on"
                print(  # noqa: T201 - the loop that shows everything else waits
                    f"mannerly: {text} {clean_line(call[0])}; the crawl waits for it",
                    file=sys.stderr,
                    flush=True,
                )


def _raise_in(thread_id: int, exception: type[BaseException] | None) -> None:
    """Raise an exception in a thread; None takes back one that was not raised yet."""
    import ctypes  # rarely needed

    raised = None if exception is None else ctypes.py_object(exception)
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread_id), raised)
