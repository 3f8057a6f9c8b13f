"""Key ranges, shards, keyspaces, and the target strings that name them.

A keyspace id is a byte string; a shard owns those in ``[start, end)``, where an empty start is
the least and an empty end beyond the greatest. Trailing zero bytes do not count, as in Vitess:
``-80``, ``00-80`` and ``-8000`` are the same range.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from streamfrom.engine.errors import KeyspaceError, TargetError


if TYPE_CHECKING:
    from streamfrom.engine.sharding.vschema import VSchema


ShardName = str

_RANGE = re.compile(r"0|((?:[0-9a-fA-F]{2})*)-((?:[0-9a-fA-F]{2})*)")
_HEX = re.compile(r"(?:[0-9a-fA-F]{2})*")
_ALIAS = re.compile(r".+-\d+", re.ASCII)
_TABLET_TYPES: Final = {
    "primary": "primary",
    "master": "primary",
    "replica": "replica",
    "rdonly": "rdonly",
    "batch": "rdonly",
}


@dataclass(frozen=True, slots=True)
class KeyRange:
    """The keyspace ids in [start, end); an empty end is no end."""

    start: bytes
    end: bytes

    @classmethod
    def parse(cls, text: str) -> KeyRange:
        """Return the range written as *text*: ``-80``, ``40-80``, ``-``, or ``0`` for ``-``."""
        found = _RANGE.fullmatch(text)
        if found is None:
            raise KeyspaceError(f"invalid key range '{text}': expected hex-hex, such as 40-80")
        key_range = cls(bytes.fromhex(found[1] or ""), bytes.fromhex(found[2] or ""))
        if key_range.end and _trimmed(key_range.start) >= _trimmed(key_range.end):
            raise KeyspaceError(f"invalid key range '{text}': its start is not below its end")
        return key_range

    def contains(self, ksid: bytes) -> bool:
        """Return whether *ksid* lies in the range."""
        ident = _trimmed(ksid)
        return _trimmed(self.start) <= ident and (not self.end or ident < _trimmed(self.end))

    def __str__(self) -> str:
        return f"{self.start.hex()}-{self.end.hex()}"


EVERYTHING: Final = KeyRange(b"", b"")


@dataclass(frozen=True, slots=True)
class Shard:
    """One shard. A name without ``-`` has no range: such a shard is the whole keyspace."""

    name: ShardName
    key_range: KeyRange | None

    def __hash__(self) -> int:
        """Return the name's hash, which suffices; each row of a large INSERT needs it."""
        return hash(self.name)

    @classmethod
    def named(cls, name: str) -> Shard:
        """Return the shard that *name* describes; ranges are spelled in lower case."""
        if "-" not in name:
            return cls(name, None)
        return cls(name.lower(), KeyRange.parse(name))


@dataclass(frozen=True, slots=True)
class Keyspace:
    """One logical database.

    shards: the shards in the order of their ranges.
    vschema_fault: the reason why a newer vschema could not be used; empty without one.
    """

    name: str
    shards: tuple[Shard, ...]
    vschema: VSchema | None = None
    vschema_fault: str = ""

    @property
    def sharded(self) -> bool:
        """Return whether tables are spread by vindexes."""
        return self.vschema is not None and self.vschema.sharded

    def shard(self, name: str) -> Shard:
        """Return the shard called *name*."""
        for shard in self.shards:
            if shard.name in (name, name.lower()):
                return shard
        raise KeyspaceError(f"shard '{name}' not found in keyspace '{self.name}'")

    def shard_of(self, ksid: bytes) -> Shard:
        """Return the shard that owns *ksid*."""
        for shard in self.shards:
            if shard.key_range is None or shard.key_range.contains(ksid):
                return shard
        raise KeyspaceError(f"KeyspaceId {ksid.hex()} didn't match any shards of '{self.name}'")

    def shards_matching(self, text: str) -> tuple[Shard, ...]:
        """Return the shards that *text* names: one by its name, or all of a range of whole shards."""
        is_name = any(shard.name in (text, text.lower()) for shard in self.shards)
        if is_name or _RANGE.fullmatch(text) is None:
            return (self.shard(text),)
        return self.shards_in(KeyRange.parse(text))

    def shards_in(self, wanted: KeyRange) -> tuple[Shard, ...]:
        """Return the shards that make up exactly the range *wanted*."""
        found = tuple(
            shard for shard in self.shards if _is_within(shard.key_range or EVERYTHING, wanted)
        )
        # The shards are in order and leave no gap, so only the two outer ends can be wrong.
        ends = [shard.key_range or EVERYTHING for shard in found]
        if (
            not ends
            or _trimmed(ends[0].start) != _trimmed(wanted.start)
            or _trimmed(ends[-1].end) != _trimmed(wanted.end)
        ):
            raise KeyspaceError(f"keyrange {wanted} does not exactly match shards")
        return found


def check_partition(shards: Sequence[Shard]) -> tuple[Shard, ...]:
    """Return *shards* in order; KeyspaceError unless they cover all ids without overlap."""
    if not shards:
        raise KeyspaceError("a keyspace needs at least one shard")
    if len(shards) == 1 and shards[0].key_range is None:
        return tuple(shards)
    # A shard without a range owns every id: next to another shard each id would have two owners.
    opaque = [shard.name for shard in shards if shard.key_range is None]
    if opaque:
        raise KeyspaceError(f"shard '{opaque[0]}' is no key range, so it must be the only one")
    owned = [(shard.key_range or EVERYTHING, shard) for shard in shards]
    owned.sort(key=lambda pair: _trimmed(pair[0].start))
    # `at` is the end of the shards so far. Empty it means the lowest id at first, and behind a
    # shard without an end the highest: `previous` distinguishes the two.
    at, previous = b"", ""
    for key_range, shard in owned:
        start = _trimmed(key_range.start)
        if previous and (not at or start < at):
            raise KeyspaceError(f"shards '{previous}' and '{shard.name}' overlap")
        if start != at:
            raise KeyspaceError(f"no shard owns the keyspace ids {at.hex()}-{start.hex()}")
        at, previous = _trimmed(key_range.end), shard.name
    if at:
        raise KeyspaceError(f"no shard owns the keyspace ids {at.hex()}-")
    return tuple(shard for _, shard in owned)


@dataclass(frozen=True, slots=True)
class Target:
    """The target of ``USE``, a login or a qualifier. At most one of the three places is set."""

    keyspace: str
    shard: str | None = None
    key_range: KeyRange | None = None
    keyspace_id: bytes | None = None
    tablet_type: str = "primary"
    alias: str | None = None


def parse_target(text: str) -> Target:
    """Read ``keyspace[:shard | /shard | [range] | [id]][@type[|alias]]``, or raise TargetError.

    An unknown type becomes the type ``unknown``; the caller decides whether it matters.
    """
    # Read from the right, as Vitess does: the type is behind the last @, the shard behind the
    # last separator before it.
    rest, at, typed = text.rpartition("@")
    if not at:
        rest, typed = text, "primary"
    type_name, bar, alias = typed.partition("|")
    if not type_name:
        raise TargetError("empty tablet type after @")
    tablet_type = _TABLET_TYPES.get(type_name.lower(), "unknown")
    shard: str | None = None
    key_range: KeyRange | None = None
    keyspace_id: bytes | None = None
    # The last of either separator, both of which Vitess takes.
    split_at = max(rest.rfind("/"), rest.rfind(":"))
    if split_at >= 0:
        rest, shard = rest[:split_at], rest[split_at + 1 :]
    keyspace, bracket, place = rest.partition("[")
    if bracket:
        place, end, _ = place.rpartition("]")
        if not end:
            raise TargetError("invalid key range provided. Couldn't find range end ']'")
        if "-" in place:
            key_range = _one_range(place)
        elif _HEX.fullmatch(place):
            keyspace_id = bytes.fromhex(place)
        else:
            raise TargetError(f"expected valid hex in keyspace id {place}")
    if bar:
        if shard is None:
            raise TargetError("tablet alias must be used with a shard")
        if tablet_type == "unknown":
            raise TargetError(f"invalid tablet type in target: {type_name}")
        if not _ALIAS.fullmatch(alias):
            raise TargetError(f"invalid tablet alias in target: {alias}")
    return Target(keyspace, shard, key_range, keyspace_id, tablet_type, alias if bar else None)


def _one_range(text: str) -> KeyRange:
    parts = text.split("-")
    if "" in parts[1:-1]:
        raise TargetError(
            f'malformed spec: MinKey/MaxKey cannot be in the middle of the spec: "{text}"'
        )
    if len(parts) != 2:
        raise TargetError(f"single keyrange expected in {text}")
    try:
        return KeyRange.parse(text)
    except KeyspaceError as error:
        raise TargetError(str(error)) from error


def _trimmed(ksid: bytes) -> bytes:
    # Vitess compares keyspace ids without their trailing zero bytes (go/vt/key/key.go,
    # `Normalize`): 80 and 8000 are one bound.
    return ksid.rstrip(b"\0")


def _is_within(owned: KeyRange, wanted: KeyRange) -> bool:
    end = _trimmed(wanted.end)
    return _trimmed(owned.start) >= _trimmed(wanted.start) and (
        not end or (bool(owned.end) and _trimmed(owned.end) <= end)
    )
