"""Typed values out of a TOML table; every fault names the key's full path.

`proxy.config.file` says what a configuration consists of, this module how one value of it is taken:
`TomlTable.integer("pool_size", ...)` gives an int within its bounds or raises a `ConfigError` that reads
`keyspaces.commerce.shards[0].pool_size: expected an integer ≥ 1, got "x"`.

Two promises hold for every value. A `TomlTable` remembers which keys were asked for, so that `close`
finds the misspelt ones; and text that came from the environment or from a secret key is never
repeated in an error.
"""

import difflib
import json
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Final, TypeVar, final


C = TypeVar("C", bound=StrEnum)

NAME_OF_VARIABLE: Final = r"[A-Za-z_][A-Za-z0-9_]*"
VARIABLE: Final = re.compile(r"\$\{(" + NAME_OF_VARIABLE + r")\}")
BARE_KEY: Final = re.compile(r"[A-Za-z0-9_-]+")

REQUIRED: Final = object()  # the default of a key that has none
DROPPED: Final = object()  # stands in an array of tables for one that is not to be read


class ConfigError(Exception):
    """A configuration cannot be used: `key` is the full path, `problem` what was expected."""

    others: "tuple[ConfigError, ...]" = ()  # the other faults of the same file

    def __init__(self, key: str, problem: str) -> None:
        super().__init__(f"{key}: {problem}" if key else problem)
        self.key = key
        self.problem = problem


@final
class Secret:
    """Text that is never shown: only `reveal` gives it, every printed form is '***'."""

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
    """What a configuration file may refer to: its folder (relative paths) and the environment."""

    folder: Path
    environ: Mapping[str, str]

    def expand(self, text: str, key: str) -> str:
        """Return *text* with every `${NAME}` replaced by that environment variable."""
        # Passed on as it is, a slip such as ${PASSWORD would be the password that a server refuses.
        if "${" in VARIABLE.sub("", text):
            raise ConfigError(key, "expected a variable's name and } after every ${")
        return VARIABLE.sub(lambda match: self.variable(match[1], key), text)

    def variable(self, name: str, key: str) -> str:
        """Return the environment variable *name*."""
        value = self.environ.get(name)
        if value is None:
            raise ConfigError(
                key, f"expected the environment variable {name}, which is not set"
            )
        return value

    def readable_file(self, text: str, key: str) -> Path:
        """Return the absolute path of an existing file that this process may read."""
        path = self.folder / text
        try:
            # Opened, as os.access answers for the real user, which may not be the effective one.
            with path.open("rb"):
                return path
        except OSError as error:
            raise ConfigError(key, f"cannot read {path}: {reason(error)}") from error


class TomlTable:
    """One TOML table: its keys are taken one by one, then `close` refuses what is left."""

    def __init__(self, value: object, path: str, around: Surroundings) -> None:
        if not isinstance(value, dict):
            raise ConfigError(path, f"expected a table, got {shown(value)}")
        self.path = path
        self.around = around
        self._values: dict[str, object] = value
        self._known: set[str] = set()

    def __contains__(self, key: str) -> bool:
        # To ask is to know the key: `close` proposes it for one that is misspelt.
        self._known.add(key)
        return key in self._values

    def has_former(self, key: str) -> bool:
        """Return whether *key* is there, which is none of the table any more and is proposed for no other one."""
        return key in self._values

    def key(self, name: str) -> str:
        """Return the full path of the key *name* of this table."""
        part = name if BARE_KEY.fullmatch(name) else json.dumps(name, ensure_ascii=False)
        return f"{self.path}.{part}" if self.path else part

    def fault(self, name: str, problem: str) -> ConfigError:
        """Return the error for the key *name* of this table."""
        return ConfigError(self.key(name), problem)

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
            raise self.fault(name, f"expected {expected}, got {shown(value)}")
        return value

    def seconds(self, name: str, default: float, *, zero: bool = False) -> float:
        """Return a duration; 0 is one only if *zero* says so."""
        value = self.raw(name, default, "seconds")
        # bool is an int to Python, and TOML has inf and nan: none of them is a duration.
        if type(value) in (int, float) and isinstance(value, int | float):
            low_enough = value >= 0 if zero else value > 0
            if low_enough and math.isfinite(value):
                return float(value)
        bounds = "≥ 0" if zero else "> 0"
        raise self.fault(name, f"expected a number of seconds {bounds}, got {shown(value)}")

    def boolean(self, name: str, *, default: bool) -> bool:
        """Return true or false."""
        value = self.raw(name, default, "true or false")
        if not isinstance(value, bool):
            raise self.fault(name, f"expected true or false, got {shown(value)}")
        return value

    def written(
        self, name: str, default: object, *, expected: str, secret: bool = False
    ) -> str:
        """Return a string as the file has it, variables not yet expanded."""
        value = self.raw(name, default, expected)
        if not isinstance(value, str):
            got = "another type" if secret else shown(value)
            raise self.fault(name, f"expected {expected}, got {got}")
        return value

    def string(self, name: str, default: object, *, expected: str = "a string") -> str:
        """Return a string with its variables expanded."""
        text = self.written(name, default, expected=expected)
        return self.around.expand(text, self.key(name))

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
            raise self.fault(name, f"expected {expected}, got {shown(text)}") from None

    def strings(
        self, name: str, default: tuple[str, ...], *, secret: bool = False
    ) -> list[str]:
        """Return a list of strings as the file has them, variables not yet expanded."""
        value = self.raw(name, default, "a list of strings")
        if not isinstance(value, list | tuple) or not all(
            isinstance(item, str) for item in value
        ):
            got = "something else" if secret else shown(value)
            raise self.fault(name, f"expected a list of strings, got {got}")
        return list(value)

    def table(self, name: str) -> "TomlTable":
        """Return the table under *name*; absent is empty."""
        return TomlTable(self.raw(name, {}, "a table"), self.key(name), self.around)

    def tables(self, name: str) -> list["TomlTable"]:
        """Return the tables of an array `[[name]]`; absent is none."""
        value = self.raw(name, [], "an array of tables")
        if not isinstance(value, list):
            raise self.fault(name, f"expected [[{self.key(name)}]] tables, got {shown(value)}")
        # Those that are dropped count, so that an index in an error is that of the file.
        return [
            TomlTable(item, f"{self.key(name)}[{index}]", self.around)
            for index, item in enumerate(value)
            if item is not DROPPED
        ]

    def named_tables(self) -> Iterator[tuple[str, "TomlTable"]]:
        """Yield every key of this table with the table it holds."""
        for name in self._values:
            yield name, self.table(name)

    def close(self) -> None:
        """Refuse keys that no caller asked for."""
        for name in self._values:
            if name not in self._known:
                near = difflib.get_close_matches(name, self._known, n=1)
                expected = f"expected one of {', '.join(sorted(self._known))}"
                hint = f"did you mean {near[0]}?" if near else expected
                raise self.fault(name, f"unknown key; {hint}")


def shown(value: object) -> str:
    """Return *value* as a TOML reader would write it, cut to a readable length."""
    if isinstance(value, dict):
        return "a table"
    if isinstance(value, list | tuple):
        return "a list" if value else "an empty list"
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= 60 else text[:57] + "..."


def read_bytes(path: Path, key: str) -> bytes:
    """Return what the file at *path* holds, which the configuration's *key* names. Raises ConfigError."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise ConfigError(key, f"cannot read {path}: {reason(error)}") from error


def reason(error: OSError) -> str:
    """Return why the system refused, without the path and the number that str() adds."""
    return error.strerror or str(error)
