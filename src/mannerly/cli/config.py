"""Find the value of every option, and the place where it was set. The first place wins:

    command line  >  environment  >  project file  >  user file  >  the crawl's own  >  default

The project file is `mannerly.toml` in the working directory or `[tool.mannerly]` in its
`pyproject.toml` (not both); the user file is `~/.config/mannerly/config.toml`. Unknown names and
wrong values raise ConfigError with the place, the name, the value and what is allowed; they are
never ignored. A project file may not set every option (`ProjectUse`): it may come with a directory
that was downloaded.

A command may have options of its own, in a file in a table of its name, such as `[serve]`. Here
their keys begin with that name and a point; other commands check these tables and use nothing of
them.

An unknown variable `MANNERLY_…` is an error only if it looks misspelled: Kubernetes, for example,
sets variables of that form for a service called mannerly.

Local files may have been written by others: a file of seeds or a configuration file may come with a
downloaded directory. So only regular files are opened (a pipe would block, a device never ends),
and reading stops at a limit.
"""

from __future__ import annotations

import os
import stat
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, NamedTuple

from mannerly.crawler.options.option import ProjectUse, ValueKind
from mannerly.crawler.options.table import OPTIONS, cores, main_name
from mannerly.crawler.options.values import (
    Given,
    OptionError,
    checked,
    from_entries,
    from_tables,
    from_text,
    nearest,
    option_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from mannerly.crawler.options.option import Option
    from mannerly.crawler.options.values import Value
    from mannerly.crawler.settings import CrawlSettings

PROJECT_FILE = "mannerly.toml"
MAX_BYTES = 1_000_000  # of a configuration file
_MISSPELLED = 0.85  # similarity from which a variable counts as ours, misspelled

ConfigError = OptionError


class Configuration(NamedTuple):
    """The options that were set, each with the value of the strongest place."""

    given: dict[str, Given]

    def value(self, name: str) -> object:
        """Return the value of an option of this run, or its default."""
        return self.given[name].value if name in self.given else OPTIONS[name].default

    def texts(self, name: str) -> list[str]:
        """Return the value of an option that is a list of texts."""
        value = self.value(name)
        assert isinstance(value, list | tuple)
        return list(value)

    def settings(self, base: CrawlSettings | None = None) -> CrawlSettings:
        """Return the crawl's settings: those of `base` with the options that were set.

        Raises:
            ConfigError: a value is not allowed.
        """
        from mannerly.crawler.settings import CrawlSettings, with_options

        return with_options(base or CrawlSettings(processes=cores()), self.given)


def resolve(
    command_line: Mapping[str, Value],
    *,
    environment: Mapping[str, str],
    directory: Path | None,
) -> Configuration:
    """Read all places, the strongest last. Without a `directory` no file is read.

    Raises:
        ConfigError: a name is unknown, or a value is not allowed.
        OSError: a file exists and cannot be read.
    """
    given = _from_files(environment, directory) | _from_environment(OPTIONS, environment)
    for name, value in command_line.items():
        given |= _read(OPTIONS[name], value, OPTIONS[name].flag)
    return Configuration({key: each for key, each in given.items() if not _section_of(key)})


def resolve_own(
    section: str,
    options: Mapping[str, Option],
    command_line: Mapping[str, Value],
    *,
    environment: Mapping[str, str],
    directory: Path | None,
) -> dict[str, Given]:
    """Read all places for the options that a command has for itself.

    Raises:
        ConfigError: a name is unknown, or a value is not allowed.
        OSError: a file exists and cannot be read.
    """
    kept = {name: option for name, option in options.items() if not option.is_order}
    own: dict[str, Given] = {}
    if kept:
        found = _from_files(environment, directory)
        own = {_plain(key): each for key, each in found.items() if _section_of(key) == section}
        own |= _from_environment(kept, environment)
    for name, value in command_line.items():
        own |= _read(options[name], value, options[name].flag)
    return own


def effective(configuration: Configuration, settings: CrawlSettings) -> dict[str, object]:
    """Return every option with the value in force."""
    from mannerly.crawler.settings import in_force

    values: dict[str, object] = {}
    for name, option in OPTIONS.items():
        if option.target is None:
            values[name] = configuration.value(name)
        else:
            values[name] = in_force(settings, option)
    return values


def user_file(environment: Mapping[str, str]) -> Path:
    """Return the path of the user's configuration file."""
    home = environment.get("XDG_CONFIG_HOME") or Path(environment.get("HOME", "~")) / ".config"
    return Path(home) / "mannerly" / "config.toml"


def _section_of(key: str) -> str:
    """Return the command of a key; empty: it is an option of a crawl."""
    section, point, _ = key.partition(".")
    return section if point and section != "host" else ""


def _plain(key: str) -> str:
    return key.partition(".")[2]


def _sections() -> dict[str, dict[str, Option]]:
    """Return the options that commands have for themselves, by the names of their tables."""
    from . import commands

    found: dict[str, dict[str, Option]] = {}
    for each in commands().values():
        own = {name: option for name, option in each.own_options.items() if not option.is_order}
        if own:
            found[each.section] = own
    return found


def _from_files(environment: Mapping[str, str], directory: Path | None) -> dict[str, Given]:
    if directory is None:
        return {}
    user = _from_file(user_file(environment))
    return user | _allowed(_from_project(directory), directory)


def _from_project(directory: Path) -> dict[str, Given]:
    own, pyproject = directory / PROJECT_FILE, directory / "pyproject.toml"
    tool = _read_toml(pyproject).get("tool")
    table = tool.get("mannerly") if isinstance(tool, dict) else None
    if table is None:
        return _from_file(own)
    if own.exists():
        raise ConfigError(
            f"{PROJECT_FILE} and [tool.mannerly] in pyproject.toml both configure mannerly: "
            "keep one of them"
        )
    if not isinstance(table, dict):
        raise ConfigError("pyproject.toml: tool.mannerly is not a table")
    return _from_table(table, "pyproject.toml: tool.mannerly.")


def _allowed(given: dict[str, Given], directory: Path) -> dict[str, Given]:
    """Return the options of a project file, if it may set them; an empty value is harmless."""
    for name, (value, where, _) in given.items():
        section = _section_of(name)
        option = _sections()[section][_plain(name)] if section else option_of(name)
        if not value or option.project_use is ProjectUse.ANY:
            continue
        paths = map(str, value) if isinstance(value, list) else [str(value)]
        if option.project_use is ProjectUse.PATHS_INSIDE:
            if all(path == "-" or _is_inside(path, directory) for path in paths):
                continue
            why = "a project file may only name paths inside its own directory"
        else:
            why = "a project file may not set this option"
        raise ConfigError(
            f"{where} is refused: {why}. Use {option.flag}, {option.variable} or "
            "~/.config/mannerly/config.toml"
        )
    return {name: each._replace(file=each.where.partition(":")[0]) for name, each in given.items()}


def _is_inside(path: str, directory: Path) -> bool:
    """Return whether a path leads to a place below a directory, symbolic links followed."""
    return (directory / path).resolve().is_relative_to(directory.resolve())


def _from_file(path: Path) -> dict[str, Given]:
    name = PROJECT_FILE if path.name == PROJECT_FILE else str(path)
    return _from_table(_read_toml(path), f"{name}: ")


def _read_toml(path: Path) -> dict[str, object]:
    try:
        text = read_text(path, MAX_BYTES)
        import tomllib  # only if there is a file

        return tomllib.loads(text)
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except LocalFileError as error:
        raise ConfigError(f"{path} {error}") from error
    except RecursionError:
        raise ConfigError(f"{path} is not a TOML file: it is nested too deeply") from None
    except ValueError as error:  # TOMLDecodeError, or a number of too many digits
        raise ConfigError(f"{path} is not a TOML file: {error}") from error


def _from_table(table: Mapping[str, object], place: str) -> dict[str, Given]:
    given: dict[str, Given] = {}
    for key, value in table.items():
        name = main_name(key.replace("-", "_"))
        option = OPTIONS.get(name)
        is_named_alike = isinstance(value, dict) and name in _sections()
        if option is None or (is_named_alike and option.kind is not ValueKind.HOSTS):
            given |= _from_section(name, value, place + key)
            continue
        if name in given:
            raise ConfigError(f"{place}{key} is set twice, in two spellings")
        if option.kind is ValueKind.HOSTS:
            given |= from_tables(value, place + key)
        else:
            given[name] = checked(option, value, place + key)
    return given


def _from_section(section: str, table: object, place: str) -> dict[str, Given]:
    """Check the table of a command in a file."""
    sections = _sections()
    if section not in sections:
        raise ConfigError(f"{place} is not an option{nearest(section, (*OPTIONS, *sections))}")
    if not isinstance(table, dict):
        raise ConfigError(f"{place} is not a table: write its options below [{section}]")
    if any(isinstance(each, dict) for each in table.values()):  # such as [hosts."a.example"]
        raise ConfigError(f"{place} is not an option{nearest(section, OPTIONS)}")
    options = sections[section]
    given: dict[str, Given] = {}
    for key, value in table.items():
        name = key.replace("-", "_")
        if name not in options:
            command = section.replace("_", " ")
            guess = nearest(name, options)
            raise ConfigError(f"{place}.{key} is not an option of {command}{guess}")
        given[f"{section}.{name}"] = checked(options[name], value, f"{place}.{key}")
    return given


def _variables(options: Mapping[str, Option]) -> dict[str, str]:
    """Return the options by their environment variables, the stronger ones last."""
    own = {option.variable: name for name, option in options.items()}
    others = {each: name for name, option in options.items() for each in option.all_variables}
    return {each: others[each] for each in others if each not in own} | own


def _from_environment(
    options: Mapping[str, Option], environment: Mapping[str, str]
) -> dict[str, Given]:
    _check_variables(environment)
    given: dict[str, Given] = {}
    for variable, name in _variables(options).items():
        if environment.get(variable):  # an empty variable counts as not set
            given |= _read(options[name], environment[variable], variable)
    return given


def _check_variables(environment: Mapping[str, str]) -> None:
    """Raise ConfigError for a variable that looks like a misspelled one of ours."""
    known = _variables(OPTIONS)
    unknown = [each for each in environment if each.startswith("MANNERLY_") and each not in known]
    if not unknown:
        return
    for own in _sections().values():
        known |= _variables(own)
    for variable in unknown:
        if variable not in known and (guess := nearest(variable, known, alike=_MISSPELLED)):
            raise ConfigError(f"{variable} is not an option{guess}")


def _read(option: Option, value: Value, where: str) -> dict[str, Given]:
    """Convert and check a value from the command line or the environment."""
    read = from_text(option, value) if isinstance(value, str) else value
    if option.kind is ValueKind.HOSTS:
        return from_entries(map(str, read) if isinstance(read, list) else [], where)
    return {option.name: checked(option, read, where)}


class LocalFileError(ValueError):
    """A file that is not read: the message says why, without the name of the file."""


@contextmanager
def opened_regular(path: Path) -> Iterator[BinaryIO]:
    """Open a regular file for reading.

    Raises:
        LocalFileError: it is a pipe, a device or a socket.
        OSError: it cannot be opened; a directory raises IsADirectoryError.
    """
    # Without O_NONBLOCK, opening a pipe that has no writer would wait for one.
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    descriptor = os.open(path, flags)
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise LocalFileError("is a pipe or a device, not a file")
        yield file


def read_text(path: Path, limit: int) -> str:
    """Return the text of a regular file.

    Raises:
        LocalFileError: it is not a regular file, is longer than `limit` bytes, or is not UTF-8.
        OSError: it cannot be read.
    """
    with opened_regular(path) as file:
        content = file.read(limit + 1)
    if len(content) > limit:
        raise LocalFileError(f"is longer than {limit:,} bytes")
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise LocalFileError(f"is not UTF-8 text: {error.reason}") from error
