"""All faults of a configuration at once, found by a reader that stops at its first one.

The reader runs again without the key that it refused, until it refuses nothing new. Where the
refused key is required, the table around it is left out as well, and a fault that is only the
consequence of something left out is not reported.
Pure: the document and the reader come from `proxy.config.file`.
"""

import json
import re
from collections.abc import Callable, Mapping
from typing import Final, TypeVar

from streamfrom.proxy.config.toml_values import DROPPED, ConfigError


T = TypeVar("T")
Path = tuple[str | int, ...]

_PART: Final = re.compile(r'\.?([A-Za-z0-9_-]+)|\.?("(?:[^"\\]|\\.)*")|\[([0-9]+)\]')
# What the error calls a named item of each array.
_ITEMS: Final = {"users": "user", "shards": "shard"}


def read_whole(document: dict[str, object], read: Callable[[dict[str, object]], T]) -> T:
    """Return what *read* makes of *document*.

    Raises ConfigError for the first fault, with the others in `others`; *document* has lost what they are about.
    """
    faults: list[ConfigError] = []
    names: dict[Path, str] = {}
    dropped: set[Path] = set()
    # The rounds end: each of them leaves at least one key fewer.
    while True:
        try:
            made = read(document)
        except ConfigError as fault:
            path = _path(fault.key)
            names = names or _names(document)
            if not _is_consequence(path, dropped):
                faults.append(_named(fault, path, names))
            if not _drop(document, path, dropped):
                break
        else:
            if not faults:
                return made
            break
    first, *others = faults
    first.others = tuple(others)
    raise first


def _path(key: str) -> Path:
    """Return the parts of a key's full path, as far as it is one."""
    parts: list[str | int] = []
    at = 0
    while found := _PART.match(key, at):
        at = found.end()
        bare, quoted, index = found.groups()
        parts.append(bare or (json.loads(quoted) if quoted else int(index)))
    return tuple(parts)


def _names(document: Mapping[str, object]) -> dict[Path, str]:
    """Return what the users and shards of *document* are called, by their paths."""
    found: dict[Path, str] = {}
    pending: list[tuple[Path, object]] = [((), document)]
    while pending:
        path, value = pending.pop()
        if isinstance(value, dict):
            pending += [((*path, key), inner) for key, inner in value.items()]
            name = value.get("name")
            if len(path) > 1 and path[-2] in _ITEMS and isinstance(name, str):
                found[path] = f'{_ITEMS[str(path[-2])]} "{name}"'
        elif isinstance(value, list):
            pending += [((*path, index), inner) for index, inner in enumerate(value)]
    return found


def _named(fault: ConfigError, path: Path, names: Mapping[Path, str]) -> ConfigError:
    """Return *fault* with the name of its user or shard, as `users[3]` says nothing to an operator."""
    for size in range(len(path), 0, -1):
        name = names.get(path[:size])
        if name is not None and path[size:] != ("name",):
            return ConfigError(fault.key, f"{fault.problem} ({name})")
    return fault


def _is_consequence(path: Path, dropped: set[Path]) -> bool:
    """True for a fault that was not there before something was dropped."""
    size = len(path)
    # A table whose required key was left out is refused for lacking it.
    if path in dropped or any(
        each[:size] == path and len(each) == size + 1 for each in dropped
    ):
        return True
    # How many shards there may be, and their names, follow from the vschema and from each other.
    if "shards" not in path:
        return False
    at = path.index("shards") + 1
    is_of_all = path[at:] == () or path[at + 1 :] == ("name",)
    return is_of_all and (
        (*path[: at - 1], "vschema") in dropped
        or any(each[:at] == path[:at] and len(each) == at + 1 for each in dropped)
    )


def _drop(document: dict[str, object], path: Path, dropped: set[Path]) -> bool:
    """Take what *path* leads to out of *document*, or what is around it; False at the top."""
    while path:
        holder: object = document
        for part in path[:-1]:
            if isinstance(holder, dict):
                holder = holder.get(str(part))
            elif isinstance(holder, list) and isinstance(part, int) and part < len(holder):
                holder = holder[part]
        last = path[-1]
        if isinstance(holder, dict) and last in holder:
            del holder[str(last)]
            dropped.add(path)
            return True
        if isinstance(holder, list) and isinstance(last, int) and path not in dropped:
            holder[last] = DROPPED  # the others keep their index
            dropped.add(path)
            return True
        path = path[:-1]
    return False
