"""Find a Chromium, and start it where it has no network.

    as root             unshare -n
    other users         unshare -Un --map-current-user; Chromium's own sandbox stays on
    no namespaces       a proxy that refuses everything, no names, no WebRTC (`IsolationKind`)

In a network namespace without a route no packet can leave, whatever a page or Chromium itself
tries: interception alone lets through what is no ordinary request (WebRTC, speculation rules,
connections that are opened ahead). The pipe needs no network. The refusing proxy and the missing
names are given in a namespace, too: a second wall.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import select
import shutil
import signal
import subprocess
import tempfile
import time
from enum import Enum
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from .devtools import BrowserClosed, DevTools

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .devtools import Values

STARTING_S = 30.0  # for a browser to answer
NAMES = ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome", "chrome")
INSTALL = (
    "install one (Debian: apt install chromium), or pip install 'mannerly[browser]' and run "
    "playwright install chromium; --browser PATH names one elsewhere"
)

_ARGUMENTS = (
    "--headless=new",
    "--remote-debugging-pipe",
    "--no-first-run",
    "--no-default-browser-check",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-background-timer-throttling",
    "--disable-backgrounding-occluded-windows",
    "--disable-renderer-backgrounding",
    "--disable-breakpad",
    "--disable-client-side-phishing-detection",
    "--disable-component-extensions-with-background-pages",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-domain-reliability",
    "--disable-extensions",
    "--disable-hang-monitor",
    "--disable-ipc-flooding-protection",
    "--disable-popup-blocking",
    "--disable-prompt-on-repost",
    "--disable-sync",
    "--disable-notifications",
    "--deny-permission-prompts",
    "--no-pings",
    "--mute-audio",
    "--password-store=basic",
    "--use-mock-keychain",
    (
        "--disable-features=HttpsUpgrades,HttpsFirstBalancedModeAutoEnable,MediaRouter,"
        "DialMediaRouteProvider,OptimizationHints,Translate,AutofillServerCommunication,"
        "InterestFeedContentSuggestions,PaintHolding,BackForwardCache,Prerender2,"
        "LocalNetworkAccessChecks"
    ),
    "--js-flags=--max-old-space-size=1024",
    "--host-resolver-rules=MAP * ~NOTFOUND",
    "--proxy-server=socks5://127.0.0.1:9",
    "--proxy-bypass-list=<-loopback>",
    "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--webrtc-ip-handling-policy=disable_non_proxied_udp",
)


class BrowserError(Exception):
    """There is no browser, or it does not start. The text says what to do."""


class IsolationKind(Enum):
    """The way in which a browser is kept from the network."""

    ROOT = ("unshare", "-n")
    USER = ("unshare", "-Un", "--map-current-user")
    PROXY = ()  # no namespace: only Chromium's own switches

    @property
    def is_namespace(self) -> bool:
        """Return whether the system itself keeps it from the network."""
        return bool(self.value)


class Installed(NamedTuple):
    """A browser that can be started."""

    path: str
    isolation: IsolationKind
    has_sandbox: bool  # Chromium's own


def find(path: str | None = None) -> str:
    """Return the path of a Chromium: the one that is named, the system's, or Playwright's.

    Raises:
        BrowserError: there is none.
    """
    if path is not None:
        named = shutil.which(path)
        if named is None:
            raise BrowserError(f"--browser {path}: there is no such program; {INSTALL}")
        return named
    for name in NAMES:
        found = shutil.which(name)
        if found is not None:
            return found
    for downloaded in _downloaded():
        return str(downloaded)
    raise BrowserError(f"--render needs a Chromium, and none was found; {INSTALL}")


def _downloaded() -> Iterator[Path]:
    """Yield the Chromiums that Playwright has downloaded, the newest first."""
    place = os.environ.get("PLAYWRIGHT_BROWSERS_PATH") or "~/.cache/ms-playwright"
    folder = Path(place).expanduser()
    kept = sorted(folder.glob("chromium-*/chrome-linux*/chrome"), key=_revision, reverse=True)
    yield from (each for each in kept if os.access(each, os.X_OK))


def _revision(program: Path) -> int:
    number = program.parts[-3].rpartition("-")[2]
    return int(number) if number.isdigit() else 0


def isolation() -> IsolationKind:
    """Return how a browser can be kept from the network here; it tries it."""
    kinds = (IsolationKind.ROOT,) if os.geteuid() == 0 else (IsolationKind.USER,)
    for kind in kinds:
        with contextlib.suppress(OSError, subprocess.SubprocessError):
            made = subprocess.run(  # noqa: S603 - fixed words
                [*kind.value, "true"], capture_output=True, timeout=10, check=False
            )
            if made.returncode == 0:
                return kind
    return IsolationKind.PROXY


def installed(path: str | None, *, no_sandbox: bool) -> Installed:
    """Return the browser to start.

    Raises:
        BrowserError: there is none, or it would not start as root.
    """
    program = find(path)
    if os.geteuid() == 0 and not no_sandbox:
        raise BrowserError(
            "--render: Chromium's sandbox does not work as root; run the crawl as another user, "
            "or give --browser-no-sandbox if only pages that you trust are rendered"
        )
    return Installed(program, isolation(), not no_sandbox)


@cache
def checked(path: str | None, *, no_sandbox: bool) -> Installed:
    """Return the browser to start, after it was started once.

    Raises:
        BrowserError: there is none, or it does not start.
    """
    browser = installed(path, no_sandbox=no_sandbox)
    chromium = Chromium(browser)
    answers: list[Values | None] = []
    try:
        chromium.devtools.send("Browser.getVersion", then=answers.append)
        patience = time.monotonic() + STARTING_S
        while not answers and time.monotonic() < patience:
            select.select([chromium.devtools.reading], [], [], 0.5)
            chromium.devtools.receive()
    except BrowserClosed:
        answers.clear()
    try:
        if not answers or answers[0] is None:
            said = chromium.last_words()
            raise BrowserError(f"{browser.path} does not start: {said}; {INSTALL}")
    finally:
        chromium.kill()
    return browser


class Chromium:
    """A Chromium that runs. It ends with this process: its pipe is closed then."""

    def __init__(self, browser: Installed) -> None:
        """Start it.

        Raises:
            BrowserError: it cannot be started.
        """
        with contextlib.ExitStack() as opened:
            try:
                self.devtools = self._start(browser, opened)
            except OSError as error:
                raise BrowserError(f"{browser.path} cannot be started: {error}") from None
            opened.pop_all()  # until `kill`
        self._has_ended = False

    def _start(self, browser: Installed, opened: contextlib.ExitStack) -> DevTools:
        """Start the process; `opened` is what it needs for as long as it runs."""
        self._folder = tempfile.TemporaryDirectory(prefix="mannerly-", ignore_cleanup_errors=True)
        opened.callback(self._folder.cleanup)
        words = [
            *browser.isolation.value,
            browser.path,
            *_ARGUMENTS,
            f"--user-data-dir={self._folder.name}",
        ]
        if not browser.has_sandbox:
            words.append("--no-sandbox")
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 - for as long as the browser
        opened.callback(self._log.close)
        with contextlib.ExitStack() as lent:  # the browser's ends of two pipes
            # It reads commands from 3 and writes to 4: these must not be in use for anything else.
            to_read, to_write = os.pipe()
            opened.callback(os.close, to_write)
            lent.callback(os.close, reads := _above(to_read))
            from_read, from_write = os.pipe()
            opened.callback(os.close, from_read)
            lent.callback(os.close, writes := _above(from_write))
            self._pid = os.posix_spawnp(
                words[0],
                words,
                _environment(self._folder.name),
                file_actions=[
                    (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
                    (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
                    (os.POSIX_SPAWN_DUP2, self._log.fileno(), 2),
                    (os.POSIX_SPAWN_DUP2, reads, 3),
                    (os.POSIX_SPAWN_DUP2, writes, 4),
                ],
                setsid=True,
            )
        return DevTools(to_write, from_read)

    @property
    def is_running(self) -> bool:
        """Return whether its first process runs."""
        if not self._has_ended:
            with contextlib.suppress(ChildProcessError):
                self._has_ended = os.waitpid(self._pid, os.WNOHANG)[0] != 0
        return not self._has_ended

    def last_words(self) -> str:
        """Return the last line that it has written to its error output."""
        self._log.seek(0)
        lines = self._log.read()[-4000:].decode("utf-8", "replace").split("\n")
        spoken = [line.strip() for line in lines if line.strip()]
        return spoken[-1][:300] if spoken else "it wrote nothing"

    def processes(self) -> list[tuple[int, int]]:
        """Return its processes with the memory of each, in bytes."""
        found: list[tuple[int, int]] = []
        try:
            entries = list(os.scandir("/proc"))
        except OSError:  # no descriptors are left
            return found
        for entry in entries:
            if not entry.name.isdigit():
                continue
            with contextlib.suppress(OSError, ValueError, IndexError):
                stat = Path(entry.path, "stat").read_text(encoding="latin-1")
                group = int(stat.rpartition(")")[2].split()[2])
                if group == self._pid:
                    pages = Path(entry.path, "statm").read_text(encoding="ascii").split()
                    own = (int(pages[1]) - int(pages[2])) * os.sysconf("SC_PAGESIZE")
                    found.append((int(entry.name), own))
        return found

    def kill(self) -> None:
        """End it at once, with all of its processes."""
        self.devtools.close()
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._pid, signal.SIGKILL)
        if self.is_running:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(self._pid, 0)
            self._has_ended = True
        self._log.close()
        self._folder.cleanup()


def _above(descriptor: int) -> int:
    """Return a descriptor in place of this one that a browser does not use itself."""
    try:
        return fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, 10)
    finally:
        os.close(descriptor)


def _environment(folder: str) -> dict[str, str]:
    """Return its environment: no secret of the crawl, and files only in its own folder."""
    kept = ("PATH", "LANG", "LC_ALL", "TZ", "FONTCONFIG_PATH", "FONTCONFIG_FILE")
    own = {"HOME": folder, "XDG_CONFIG_HOME": folder, "XDG_CACHE_HOME": folder, "TMPDIR": folder}
    return {name: os.environ[name] for name in kept if name in os.environ} | own
