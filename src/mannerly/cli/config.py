"""Which value of an option wins, and where it came from.

    command line  >  environment  >  project file  >  user file  >  the crawl's own  >  default

The project file is `mannerly.toml` in the working directory or `[tool.mannerly]` in its
`pyproject.toml` (not both); the user file is `~/.config/mannerly/config.toml`. Whatever is not an
option, or is not what the option takes, is refused with the place, the name, the value and what is
allowed: a setting that fails in silence is the worst kind.

A strange variable `MANNERLY_…` is refused only if it looks like a slip of the pen: Kubernetes, for
one, makes variables of that name for a service called mannerly.
"""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from .options import ALIASES, OPTIONS, Kind, Option, cores, run_defaults

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mannerly.crawler.settings import CrawlSettings

Value: TypeAlias = "str | int | float | bool | list[str]"

PROJECT_FILE = "mannerly.toml"
_WORDS = {
    **dict.fromkeys(("1", "true", "yes", "on"), True),
    **dict.fromkeys(("0", "false", "no", "off"), False),
}
_POLITENESS = "politeness."
_SAME_PEN = 0.85  # of difflib's likeness, at which a name is taken for a misspelled one


class ConfigError(ValueError):
    """A value that is not allowed, or a name that is none, and where it stands."""


class Given(NamedTuple):
    """A value that somebody gave. `where` names the place as an error would."""

    value: Value
    where: str


class Configuration(NamedTuple):
    """What was given, each by the strongest place."""

    given: dict[str, Given]

    def value(self, name: str) -> object:
        """The value of an option of this run."""
        return self.given[name].value if name in self.given else run_defaults()[name]

    def texts(self, name: str) -> list[str]:
        """The value of an option that is a list of texts."""
        value = self.value(name)
        assert isinstance(value, list)
        return value

    def settings(self, base: CrawlSettings | None = None) -> CrawlSettings:
        """The crawl's settings: what was given, on top of those of `base`.

        Raises:
            ConfigError: one of them is out of its range.
        """
        from mannerly.crawler.settings import CrawlSettings
        from mannerly.politeness import SettingsError

        if base is None:
            base = CrawlSettings(processes=cores())
        try:
            crawl = replace(base, **self._chosen(of_politeness=False))
            politeness = replace(
                base.politeness,
                request_timeout_s=crawl.timeout_s,  # the core has to know our patience
                **self._chosen(of_politeness=True),
            )
            settings = replace(crawl, politeness=politeness)
            settings.check_files()
        except SettingsError as error:
            raise self._placed(error.field, error.value, error.allowed) from error
        return settings

    def _chosen(self, *, of_politeness: bool) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for name, given in self.given.items():
            target = OPTIONS[name].target
            if target is None or target.startswith(_POLITENESS) != of_politeness:
                continue
            value: object = given.value
            if target == "scope":
                value = self._scope(given)
            elif isinstance(value, list):
                value = tuple(value)
            elif OPTIONS[name].kind is Kind.FILE:
                # A crawl may be resumed in another directory.
                value = str(Path(str(value)).expanduser().absolute())
            found[target.removeprefix(_POLITENESS)] = value
        return found

    def _scope(self, given: Given) -> object:
        from mannerly.crawler.web.scope import ScopeMode

        try:
            return ScopeMode(str(given.value))
        except ValueError:
            allowed = "one of " + ", ".join(ScopeMode)
            raise ConfigError(_sentence(given.where, given.value, allowed)) from None

    def _placed(self, field: str, value: object, allowed: str) -> ConfigError:
        """The same complaint, with the place where the value was written."""
        for name, given in self.given.items():
            target = OPTIONS[name].target or ""
            if target.removeprefix(_POLITENESS) == field:
                return ConfigError(_sentence(given.where, printable(name, given.value), allowed))
        return ConfigError(_sentence(field, value, allowed))


def resolve(
    command_line: Mapping[str, Value],
    *,
    environment: Mapping[str, str],
    directory: Path | None,
) -> Configuration:
    """Lay the places on top of each other; without a `directory` no file is read.

    Raises:
        ConfigError: an unknown name, or a value that its option does not take.
        OSError: a file that is there cannot be read.
    """
    given: dict[str, Given] = {}
    if directory is not None:
        given |= _from_file(user_file(environment))
        given |= _from_project(directory)
    given |= _from_environment(environment)
    for name, value in command_line.items():
        given[name] = _read(OPTIONS[name], value, OPTIONS[name].flag)
    return Configuration(given)


def effective(configuration: Configuration, settings: CrawlSettings) -> dict[str, object]:
    """Every option with the value in force."""
    values = {}
    for name, option in OPTIONS.items():
        if option.kind is Kind.NOT_YET:
            continue
        if option.target is None:
            values[name] = configuration.value(name)
        elif option.target.startswith(_POLITENESS):
            field = option.target.removeprefix(_POLITENESS)
            values[name] = getattr(settings.politeness, field)
        else:
            values[name] = getattr(settings, option.target)
    return values


def printable(name: str, value: object) -> object:
    """Return the value of an option as it may be printed: without the password of a URL."""
    if not OPTIONS[name].has_password or not isinstance(value, str):
        return value
    from mannerly.crawler.fetch.settings import without_password

    return without_password(value)


def user_file(environment: Mapping[str, str]) -> Path:
    """Where a person's own defaults are."""
    home = environment.get("XDG_CONFIG_HOME") or Path(environment.get("HOME", "~")) / ".config"
    return Path(home) / "mannerly" / "config.toml"


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


def _from_file(path: Path) -> dict[str, Given]:
    name = PROJECT_FILE if path.name == PROJECT_FILE else str(path)
    return _from_table(_read_toml(path), f"{name}: ")


def _read_toml(path: Path) -> dict[str, object]:
    import tomllib

    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except ValueError as error:  # TOMLDecodeError, UnicodeDecodeError
        raise ConfigError(f"{path} is not a TOML file: {error}") from error


def _from_table(table: Mapping[str, object], place: str) -> dict[str, Given]:
    given: dict[str, Given] = {}
    for key, value in table.items():
        name = key.replace("-", "_")
        option = OPTIONS.get(name)
        if option is None:
            raise ConfigError(f"{place}{key} is no setting{_guess(name, OPTIONS)}")
        if name in given:
            raise ConfigError(f"{place}{key} is given twice, with - and with _")
        given[name] = _checked(option, value, place + key)
    return given


def _from_environment(environment: Mapping[str, str]) -> dict[str, Given]:
    places = ALIASES | {option.variable: name for name, option in OPTIONS.items()}
    for variable in environment:
        # An option of another command is no slip of the pen, and is nothing to this one.
        is_strange = variable.startswith("MANNERLY_") and variable not in places
        if is_strange and (guess := _guess(variable, places)):
            raise ConfigError(f"{variable} is no setting{guess}")
    return {
        name: _read(OPTIONS[name], environment[variable], variable)
        for variable, name in places.items()
        if environment.get(variable)  # set but empty is the shell's way to say "not set"
    }


def _guess(name: str, names: Mapping[str, object]) -> str:
    from difflib import get_close_matches

    close = get_close_matches(name, names, n=1, cutoff=_SAME_PEN)
    return f"; did you mean {close[0]}?" if close else ""


def _read(option: Option, value: Value, where: str) -> Given:
    """A value from the shell, where everything that is one word is text."""
    return _checked(option, _from_text(option, value) if isinstance(value, str) else value, where)


def _checked(option: Option, value: object, where: str) -> Given:
    """A value of the type that its option takes."""
    if option.kind is Kind.NOT_YET:
        raise ConfigError(f"{where} cannot be used: {option.help}")
    if not _fits(option.kind, value):
        raise ConfigError(_sentence(where, printable(option.name, value), option.kind.value))
    if option.choices and value not in option.choices:
        raise ConfigError(_sentence(where, value, "one of " + ", ".join(option.choices)))
    if option.name == "log_interval" and not 0 < value < math.inf:  # type: ignore[operator]
        raise ConfigError(_sentence(where, value, "a number above 0"))
    return Given(value, where)  # type: ignore[arg-type]


def _from_text(option: Option, text: str) -> object:
    match option.kind:
        case Kind.FLAG:
            return _WORDS.get(text.lower(), text)
        case Kind.LIST:
            return text.split()
        case Kind.INTEGER:
            return int(text) if text.isascii() and text.lstrip("+-").isdigit() else text
        case Kind.NUMBER | Kind.RATE if text != "unlimited":
            try:
                return float(text)
            except ValueError:
                return text
    return text


def _fits(kind: Kind, value: object) -> bool:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    match kind:
        case Kind.FLAG:
            return isinstance(value, bool)
        case Kind.INTEGER:
            return is_number and isinstance(value, int)
        case Kind.NUMBER:
            return is_number and not math.isnan(value)  # type: ignore[arg-type]
        case Kind.RATE:
            return is_number or value == "unlimited"
        case Kind.LIST:
            return isinstance(value, list) and all(isinstance(item, str) for item in value)
    # A line end in a user agent would be a header of its own.
    return isinstance(value, str) and value.isprintable() and bool(value.strip())


def _sentence(where: str, value: object, allowed: str) -> str:
    return f"{where} is {value!r}; allowed: {allowed}"
