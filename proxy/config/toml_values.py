"""Typed values from a TOML table; every fault names the key's full path.

`proxy.config.file` defines the parts of a configuration, this module how one value of it is read:
`TomlTable.integer("pool_size", ...)` returns an int within its bounds or raises a `ConfigError` that reads
`keyspaces.commerce.shards[0].pool_size: expected an integer ≥ 1, got "x"`.

Two promises hold for every value. A `TomlTable` remembers which keys were requested, so that `close`
finds the misspelt ones; and text from the environment or from a secret key is never
repeated in an error.

All faults of a file are found at once: a table with a list of faults notes each one and continues with the key's default. A fault
of a key without a default ends the reading of its dependants (`attempt`), so none of its consequences is reported.
"""

import difflib
import json
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeVar, cast, final


C = TypeVar("C", bound=StrEnum)
T = TypeVar("T")

NAME_OF_VARIABLE: Final = r"[A-Za-z_][A-Za-z0-9_]*"
VARIABLE: Final = re.compile(r"\$\{(" + NAME_OF_VARIABLE + r")\}")
BARE_KEY: Final = re.compile(r"[A-Za-z0-9_-]+")

REQUIRED: Final = object()  # the default of a key that has none
# Stands for a refused value. It is never used, because a noted fault means that there is no configuration.
REFUSED: Final[Any] = None
# The name of a named item of each array in a fault, because `users[3]` means little to an operator.
_ITEMS: Final = {"users": "user", "shards": "shard"}


class ConfigError(Exception):
    """A configuration cannot be used: `key` is the full path, `problem` the expected value."""

    others: "tuple[ConfigError, ...]" = ()  # the other faults of the same file

    def __init__(self, key: str, problem: str) -> None:
        super().__init__(f"{key}: {problem}" if key else problem)
        self.key = key
        self.problem = problem


def joined(faults: "list[ConfigError]") -> ConfigError:
    """Return the first of *faults*, which has the others."""
    first, *others = faults
    first.others = tuple(others)
    return first


@final
class Secret:
    """Text that is never shown: only `reveal` returns it, every printed form is '***'."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def reveal(self) -> str:
        """Return the text itself; the caller must not log it."""
        return self._text

    def __repr__(self) -> str:
        return "***"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and other._text == self._text

    def __hash__(self) -> int:
        return hash(self._text)


@dataclass(frozen=True, slots=True)
class Surroundings:
    """The surroundings that a configuration file may refer to: its folder (relative paths) and the environment."""

    folder: Path
    environ: Mapping[str, str]

    def expand(self, text: str, key: str, written: Callable[[str], str] = str) -> str:
        """Return *text* with every `${NAME}` replaced by that environment variable, as *written*."""
        # Passed on as it is, a slip such as ${PASSWORD would be the password that a server refuses.
        if "${" in VARIABLE.sub("", text):
            raise ConfigError(key, "expected a variable's name and } after every ${")
        return VARIABLE.sub(lambda match: written(self.variable(match[1], key)), text)

    def variable(self, name: str, key: str) -> str:
        """Return the environment variable *name*."""
        try:
            value = self.environ[name]
            value.encode()
        except KeyError:
            problem = f"expected the environment variable {name}, which is not set"
            raise ConfigError(key, problem) from None
        except UnicodeEncodeError:
            problem = f"expected UTF-8 in the environment variable {name}"
            raise ConfigError(key, problem) from None
        return value

    def readable_file(self, text: str, key: str) -> Path:
        """Return the absolute path of an existing file that this process may read."""
        path = self.folder / text
        try:
            # Opened, because os.access answers for the real user, which may not be the effective one.
            with path.open("rb"):
                return path
        except OSError as error:
            raise ConfigError(key, f"cannot read {path}: {reason(error)}") from error


class TomlTable:
    """One TOML table: its keys are taken one by one, then `close` refuses the rest.

    faults: where faults are noted; without it the first one is raised.
    """

    def __init__(
        self,
        value: object,
        path: str,
        around: Surroundings,
        faults: list[ConfigError] | None = None,
    ) -> None:
        if not isinstance(value, dict):
            raise ConfigError(path, f"expected a table, got {shown(value)}")
        self.path = path
        self.around = around
        self._values: dict[str, object] = value
        self._known: set[str] = set()
        self._faults = faults
        self._item = ""  # the kind of an array's item, for faults

    def __contains__(self, key: str) -> bool:
        # A requested key is a known one: `close` proposes it for a misspelt one.
        self._known.add(key)
        return key in self._values

    def has_former(self, key: str) -> bool:
        """Return whether *key* exists, a former key of the table that is not proposed for a misspelt one."""
        return key in self._values

    def key(self, name: str) -> str:
        """Return the full path of the key *name* of this table."""
        part = name if BARE_KEY.fullmatch(name) else json.dumps(name, ensure_ascii=False)
        return f"{self.path}.{part}" if self.path else part

    def fault(self, name: str, problem: str) -> ConfigError:
        """Return the error for the key *name* of this table."""
        return ConfigError(self.key(name), problem)

    def note(self, fault: ConfigError) -> None:
        """Note *fault* and continue; raise it if faults are not noted."""
        if self._faults is None:
            raise fault
        for each in (fault, *fault.others):
            is_named = self._item and each.key != self.key("name")
            self._faults.append(
                ConfigError(each.key, f"{each.problem} ({self._item})") if is_named else each
            )

    def refused(self, name: str, problem: str, instead: object) -> Any:
        """Note a fault of the key *name*, and return *instead*; raise it for REQUIRED."""
        if instead is REQUIRED:
            raise self.fault(name, problem)
        self.note(self.fault(name, problem))
        return instead

    def drop(self, name: str, problem: str) -> None:
        """Note a fault of the key *name*, which counts as absent."""
        self.note(self.fault(name, problem))
        del self._values[name]

    def attempt(self, read: Callable[[], T]) -> T:
        """Return the result of *read*, REFUSED if it raises ConfigError."""
        try:
            return read()
        except ConfigError as fault:
            self.note(fault)
            return REFUSED  # type: ignore[no-any-return]

    def raw(self, name: str, default: object, expected: str) -> object:
        """Return the value as TOML has it; a key without value and default is a fault."""
        self._known.add(name)
        value = self._values.get(name, default)
        if value is REQUIRED:
            raise self.fault(name, f"missing; expected {expected}")
        return value

    def integer(
        self, name: str, default: object, *, least: int, most: int | None = None
    ) -> int:
        """Return an integer in [*least*, *most*]."""
        bounds = f"≥ {least}" if most is None else f"from {least} to {most}"
        expected = f"an integer {bounds}"
        value = self.raw(name, default, expected)
        # By its type: to Python true is the integer 1.
        if type(value) is not int or value < least or (most is not None and value > most):
            value = self.refused(name, f"expected {expected}, got {shown(value)}", default)
        return cast("int", value)

    def seconds(self, name: str, default: float, *, zero: bool = False) -> float:
        """Return a duration; 0 is allowed only with *zero*."""
        value = self.raw(name, default, "seconds")
        # bool is an int to Python, and TOML has inf and nan: none of them is a duration.
        if type(value) in (int, float) and isinstance(value, int | float):
            low_enough = value >= 0 if zero else value > 0
            if low_enough and math.isfinite(value):
                return float(value)
        bounds = "≥ 0" if zero else "> 0"
        problem = f"expected a number of seconds {bounds}, got {shown(value)}"
        return float(self.refused(name, problem, default))

    def boolean(self, name: str, *, default: bool) -> bool:
        """Return true or false."""
        value = self.raw(name, default, "true or false")
        if not isinstance(value, bool):
            problem = f"expected true or false, got {shown(value)}"
            return bool(self.refused(name, problem, default))
        return value

    def written(
        self, name: str, default: object, *, expected: str, secret: bool = False
    ) -> str:
        """Return a string as the file has it, variables not yet expanded."""
        value = self.raw(name, default, expected)
        if not isinstance(value, str):
            got = "another type" if secret else shown(value)
            return str(self.refused(name, f"expected {expected}, got {got}", default))
        return value

    def string(self, name: str, default: object, *, expected: str = "a string") -> str:
        """Return a string with its variables expanded."""
        text = self.written(name, default, expected=expected)
        try:
            return self.around.expand(text, self.key(name))
        except ConfigError as fault:
            return str(self.refused(name, fault.problem, default))

    def name(self, name: str, *, expected: str) -> str:
        """Return a string that is not empty."""
        text = self.string(name, REQUIRED, expected=expected)
        if not text:
            raise self.fault(name, f'expected {expected}, got ""')
        return text

    def choice(self, name: str, default: C) -> C:
        """Return a member of the enumeration that *default* is one of."""
        kind = type(default)
        expected = " or ".join(map(json.dumps, kind))
        text = self.written(name, default, expected=expected)
        try:
            return kind(text)
        except ValueError:
            return kind(self.refused(name, f"expected {expected}, got {shown(text)}", default))

    def strings(
        self, name: str, default: tuple[str, ...], *, secret: bool = False
    ) -> list[str]:
        """Return a list of strings as the file has them, variables not yet expanded."""
        value = self.raw(name, default, "a list of strings")
        if not isinstance(value, list | tuple) or not all(
            isinstance(item, str) for item in value
        ):
            got = "something else" if secret else shown(value)
            value = self.refused(name, f"expected a list of strings, got {got}", default)
        return list(value)

    def table(self, name: str, read: "Callable[[TomlTable], T]") -> T:
        """Return the result of *read* for the table under *name*, an empty one if it is absent; REFUSED if it raises ConfigError."""
        value, path = self.raw(name, {}, "a table"), self.key(name)
        return self.attempt(lambda: read(self._inner(value, path)))

    def tables(self, name: str, read: "Callable[[TomlTable], T]") -> list[T]:
        """Return the same of each table of an array `[[name]]`; absent is none."""
        value = self.raw(name, [], "an array of tables")
        if not isinstance(value, list):
            problem = f"expected [[{self.key(name)}]] tables, got {shown(value)}"
            return [self.refused(name, problem, REFUSED)]

        def item(index: int) -> T:
            inner = self._inner(value[index], f"{self.key(name)}[{index}]")
            called = inner._values.get("name")
            inner._item = f'{_ITEMS[name]} "{called}"' if isinstance(called, str) else ""
            return inner.attempt(lambda: read(inner))

        return [self.attempt(partial(item, index)) for index in range(len(value))]

    def named_tables(self, read: "Callable[[str, TomlTable], T]") -> list[T]:
        """Return the same of the table under each key."""
        return [self.table(name, partial(read, name)) for name in self._values]

    def _inner(self, value: object, path: str) -> "TomlTable":
        return TomlTable(value, path, self.around, self._faults)

    def close(self) -> None:
        """Refuse keys that no caller requested."""
        for name in self._values:
            if name not in self._known:
                near = difflib.get_close_matches(name, self._known, n=1)
                expected = f"expected one of {', '.join(sorted(self._known))}"
                hint = f"did you mean {near[0]}?" if near else expected
                self.note(self.fault(name, f"unknown key; {hint}"))


def shown(value: object) -> str:
    """Return *value* as a TOML reader would write it, cut to a readable length."""
    if isinstance(value, dict):
        return "a table"
    if isinstance(value, list | tuple):
        return "a list" if value else "an empty list"
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= 60 else text[:57] + "..."


def read_bytes(path: Path, key: str) -> bytes:
    """Return the content of the file at *path*, which the configuration's *key* names. Raises ConfigError."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise ConfigError(key, f"cannot read {path}: {reason(error)}") from error


def reason(error: OSError) -> str:
    """Return why the system refused, without the path and the number that str() adds."""
    return error.strerror or str(error)
