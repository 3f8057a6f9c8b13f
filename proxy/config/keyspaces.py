"""The keyspaces of a configuration: their shards, in order, and their vschemas.

A keyspace from here is complete: its shards own every keyspace id exactly once, each
has its own database, and its vschema can be parsed.

Keys of former configurations about users' rights raise errors that name the GRANT to use instead.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Final

from streamfrom.engine.errors import KeyspaceError, VindexError, VschemaError
from streamfrom.engine.fleet.directory import SCHEMA
from streamfrom.engine.sharding.keyspace import Keyspace, Shard, check_partition
from streamfrom.engine.sharding.vschema import parse_vschema
from streamfrom.proxy.config.dsn import FORM, Dsn, parse
from streamfrom.proxy.config.toml_values import (
    REFUSED,
    REQUIRED,
    ConfigError,
    TomlTable,
    read_bytes,
    shown,
)
from streamfrom.sqlparse_ext.session.information_schema import SYSTEM_SCHEMAS
from streamfrom.sqlparse_ext.text.identifiers import quote_identifier


if TYPE_CHECKING:
    from pathlib import Path


_WHY: Final = "the server's grants decide what the user's own account may do"
_GRANTS: Final = {
    "readwrite": "SELECT, INSERT, UPDATE, DELETE, CREATE, ALTER, DROP ON `database`.*",
    "readonly": "SELECT ON `database`.*",
    "producer": "INSERT (columns) ON `database`.`queue`",
    "consumer": "SELECT (columns), UPDATE (`time_next`, `time_acked`) ON `database`.`queue`",
}
# The commands that print the whole statement.
_COMMANDS: Final = {"readonly": "reader", "producer": "producer", "consumer": "consumer"}


def refuse_walls(table: TomlTable, user: str) -> None:
    """Note a former role of *user* as a fault, and lists of what it may see."""
    who = quote_identifier(user)
    role = table.raw("role", "", "a role")
    if isinstance(role, str) and role in _GRANTS:
        command = _COMMANDS.get(role)
        printed = "" if command is None else f" (streamfrom grants --for {command} prints it)"
        table.drop(
            "role",
            f'expected "user" or "admin": "{role}" is gone, {_WHY}; leave role out, and run at'
            f" each shard: GRANT {_GRANTS[role]} TO {who}{printed}",
        )
    for key, place in (("keyspaces", "`database`.*"), ("tables", "`database`.`table`")):
        _refuse_former(
            table, key, f"leave it out, and run for each: GRANT SELECT ON {place} TO {who}"
        )


def _refuse_former(table: TomlTable, key: str, instead: str) -> None:
    if table.has_former(key):
        table.drop(key, f"no key any more: {_WHY}; {instead}")


# They part a target as Vitess writes it (`commerce:-80@replica`, `commerce[-80]`) or a quoted name;
# NUL ends the name in a login.
NAME_BYTES_FORBIDDEN: Final = frozenset(":@/[]`\\\0")
# As Vitess calls the one shard of an unsharded keyspace, and the range of all keyspace ids.
UNSHARDED_NAMES: Final = ("0", "-")


@dataclass(frozen=True, slots=True)
class ShardConfig:
    """One shard's servers; pool_size is the backend connections kept for clients."""

    name: str  # "0", "-", or a key range with its hexadecimal digits in lower case
    primary: Dsn
    replicas: tuple[Dsn, ...]
    pool_size: int
    share_reads: bool = True  # quick reads of several clients may share one of the connections


@dataclass(frozen=True, slots=True)
class KeyspaceConfig:
    """One keyspace; its shards are in the order of their key ranges."""

    name: str
    # The JSON's text, which `engine.sharding.vschema` could read; None is unsharded.
    vschema_text: str | None
    shards: tuple[ShardConfig, ...]
    vschema_path: Path | None = None  # the file that it came from, absolute


def hash_of(keyspaces: Iterable[KeyspaceConfig]) -> str:
    """Return a hash of the parts that members with the same shards must share, as they publish it."""
    # A Dsn prints no password, so a changed one makes no member a stranger to the others.
    shards = [
        (keyspace.name, shard.name, str(shard.primary))
        for keyspace in keyspaces
        for shard in keyspace.shards
    ]
    return hashlib.sha256(repr(shards).encode()).hexdigest()


def make_keyspace(config: KeyspaceConfig) -> Keyspace:
    """Return the engine's keyspace for a checked configuration."""
    shards = tuple(Shard.named(shard.name) for shard in config.shards)
    vschema = None
    if config.vschema_text is not None:
        vschema = parse_vschema(config.vschema_text, config.name)
    return Keyspace(config.name, shards, vschema)


def reread_vschema(config: KeyspaceConfig) -> KeyspaceConfig:
    """Return *config* with the present text of its vschema's file; raises ConfigError as at the start."""
    path = config.vschema_path
    if path is None:
        return config
    key = f"keyspaces.{config.name}.vschema"
    text = _read(path, key)
    is_sharded = _is_sharded(text, config.name, key, path)
    if len(config.shards) > 1 and not is_sharded:
        raise ConfigError(
            key, f"expected a sharded vschema for {len(config.shards)} shards, got another"
        )
    return replace(config, vschema_text=text)


def keyspaces_from(table: TomlTable) -> tuple[KeyspaceConfig, ...]:
    """Return the keyspaces of the table `[keyspaces]`; raises ConfigError."""
    places: dict[tuple[str, str], str] = {}
    keyspaces = tuple(table.named_tables(lambda name, inner: _keyspace(name, inner, places)))
    if not keyspaces:
        raise ConfigError("keyspaces", "missing; expected at least one [keyspaces.<name>]")
    return keyspaces


def _keyspace(
    name: str, table: TomlTable, places: dict[tuple[str, str], str]
) -> KeyspaceConfig:
    """Return a keyspace. *places* are the databases of the shards so far, by their own names; its own are added."""
    if not name or NAME_BYTES_FORBIDDEN & set(name):
        raise ConfigError(
            table.path, "expected a keyspace's name without any of : @ / [ ] ` \\"
        )
    if name.lower() in SYSTEM_SCHEMAS | {SCHEMA}:
        raise ConfigError(
            table.path, "expected a name that is not one of the server's or the proxy's schemas"
        )
    vschema: tuple[Path | None, str | None, bool] = None, None, False
    if "vschema" in table:
        vschema = table.attempt(lambda: _vschema(name, table))
    names: set[str] = set()

    def read(inner: TomlTable) -> ShardConfig:
        shard = _shard(inner, keyspace=name)
        if shard.name in names:
            raise inner.fault("name", f'expected each shard once, got "{shard.name}" again')
        names.add(shard.name)
        # Two shards on one database would deliver and count every row twice.
        own = f"{name}/{shard.name}"
        owner = places.setdefault((shard.primary.server, shard.primary.database), own)
        if owner != own:
            raise inner.fault(
                "primary", f"expected a database of its own, got the one of {owner}"
            )
        return shard

    shards = table.tables("shards", read)
    table.close()
    # How many shards there may be, and their names, follow from the vschema and from each other.
    if vschema is REFUSED or REFUSED in shards:
        return REFUSED  # type: ignore[no-any-return]
    vschema_path, vschema_text, is_sharded = vschema
    ordered = _in_order(table.key("shards"), shards, is_sharded=is_sharded)
    return KeyspaceConfig(name, vschema_text, ordered, vschema_path)


def _vschema(keyspace: str, table: TomlTable) -> tuple[Path, str, bool]:
    """Return the vschema's file, its text, and whether it shards the keyspace."""
    key = table.key("vschema")
    path = table.around.readable_file(table.name("vschema", expected="a path"), key)
    text = _read(path, key)
    return path, text, _is_sharded(text, keyspace, key, path)


def _read(path: Path, key: str) -> str:
    try:
        return read_bytes(path, key).decode("utf-8-sig")
    except UnicodeDecodeError:
        raise ConfigError(key, f"expected UTF-8 in {path}") from None


def _is_sharded(text: str, keyspace: str, key: str, path: Path) -> bool:
    try:
        return parse_vschema(text, keyspace).sharded
    except (VschemaError, VindexError) as error:
        raise ConfigError(key, f"{path}: {error}") from error


def _shard(table: TomlTable, keyspace: str) -> ShardConfig:
    written = table.name("name", expected='a shard\'s name such as "-80" or "0"')
    try:
        name = Shard.named(written).name
    except KeyspaceError as error:
        raise table.fault("name", str(error)) from error
    text = table.written("primary", REQUIRED, expected=FORM, secret=True)
    primary = parse(text, table.key("primary"), database=keyspace, around=table.around)
    replicas = []
    for index, text in enumerate(table.strings("replicas", (), secret=True)):
        key = f"{table.key('replicas')}[{index}]"
        read = partial(parse, text, key, database=keyspace, around=table.around)
        replicas.append(table.attempt(read))
    _refuse_former(
        table,
        "readonly",
        "let each reader log in, and run: GRANT SELECT ON"
        f" {quote_identifier(primary.database)}.* TO it",
    )
    pool_size = table.integer("pool_size", 32, least=1)
    share_reads = table.boolean("share_reads", default=True)
    table.close()
    return ShardConfig(name, primary, tuple(replicas), pool_size, share_reads)


def _in_order(
    key: str, shards: list[ShardConfig], *, is_sharded: bool
) -> tuple[ShardConfig, ...]:
    """Return *shards* in the order of their key ranges; refuse gaps, overlaps and lone halves."""
    if not shards:
        raise ConfigError(key, f"missing; expected at least one [[{key}]]")
    if len(shards) > 1 and not is_sharded:
        raise ConfigError(
            key, f"expected one shard without a sharded vschema, got {len(shards)}"
        )
    if len(shards) == 1 and shards[0].name not in UNSHARDED_NAMES:
        raise ConfigError(
            f"{key}[0].name",
            f'expected "0" or "-" for the only shard, got {shown(shards[0].name)}',
        )
    named = {shard.name: shard for shard in shards}
    try:
        ordered = check_partition([Shard.named(name) for name in named])
    except KeyspaceError as error:
        raise ConfigError(key, f"expected all key ranges once: {error}") from error
    return tuple(named[shard.name] for shard in ordered)
