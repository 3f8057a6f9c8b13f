"""The differences between the configuration in force and a reloaded one. Pure.

Some keys apply at once, such as limits, users and the shards' addresses; the others, such as the listeners, need a restart.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Final

from streamfrom.proxy.config.file import Config, Server, User


if TYPE_CHECKING:
    from streamfrom.proxy.config.keyspaces import KeyspaceConfig


RESTART: Final = frozenset(
    {"host", "port", "unix_socket", "unix_socket_mode", "transaction_mode"}
)
"""The fields of `Server` that are no limits: what listens, and what transactions under way rely on."""

_RESTART_TABLES: Final = ("fleet", "admin", "grpc", "log")
_KEYS: Final = {"host": "listen", "port": "listen"}


@dataclass(frozen=True, slots=True)
class Changes:
    """The changes of a new configuration."""

    # The configuration in force from now on: the new one, with the old values of the keys that need a restart.
    config: Config
    live: tuple[
        str, ...
    ]  # the keys whose new values apply from now on; users are listed separately
    restart: tuple[str, ...]  # the keys that differ and need a restart
    # The names of users that only the new, or only the old, configuration has.
    added: tuple[str, ...]
    removed: tuple[str, ...]
    rights: tuple[str, ...]  # the names of users whose role or account has changed
    changed: tuple[str, ...]  # the names of users with any change, those in `rights` included

    @property
    def is_nothing(self) -> bool:
        """True if nothing applies from now on that did not before."""
        return not (self.live or self.added or self.removed or self.changed)


def changes(old: Config, new: Config) -> Changes:
    """Return the changes from *old*, which is in force, to *new*."""
    server_old, server_new = old.server, new.server
    differing = [
        each.name
        for each in fields(Server)
        if getattr(server_old, each.name) != getattr(server_new, each.name)
    ]
    kept = {name: getattr(server_old, name) for name in differing if name in RESTART}
    restart = {f"server.{key_of(name)}": None for name in kept}
    # All or none: with some of them, two shards could be one database.
    is_reshaped = _is_reshaped(old.keyspaces, new.keyspaces)
    keyspaces = _differing(old.keyspaces, new.keyspaces)
    if is_reshaped:
        restart |= dict.fromkeys(keyspaces)
    restart |= {
        name: None for name in _RESTART_TABLES if getattr(old, name) != getattr(new, name)
    }
    before = {user.name: user for user in old.accounts}
    after = {user.name: user for user in new.accounts}
    both = sorted(before.keys() & after.keys())
    return Changes(
        config=replace(
            old,
            server=replace(server_new, **kept),
            users=new.users,
            keyspaces=old.keyspaces if is_reshaped else new.keyspaces,
        ),
        live=(
            *(f"server.{key_of(name)}" for name in differing if name not in RESTART),
            *(() if is_reshaped else keyspaces),
        ),
        restart=tuple(restart),
        added=tuple(sorted(after.keys() - before.keys())),
        removed=tuple(sorted(before.keys() - after.keys())),
        rights=tuple(name for name in both if _rights(before[name]) != _rights(after[name])),
        changed=tuple(name for name in both if before[name] != after[name]),
    )


def key_of(field: str) -> str:
    """Return the file's key for a field of `Server`."""
    return _KEYS.get(field, field.removesuffix("_s").removesuffix("_bytes"))


def _rights(user: User) -> User:
    """Return *user* without the fields that do not concern its rights."""
    return replace(user, password=None, password_hash=None, max_connections=None)


def _is_reshaped(old: tuple[KeyspaceConfig, ...], new: tuple[KeyspaceConfig, ...]) -> bool:
    """Return whether a keyspace that stays has other shards, or others of the servers' databases."""
    before, after = _by_name(old), _by_name(new)
    return any(_places(before[name]) != _places(after[name]) for name in before & after.keys())


def _places(keyspace: KeyspaceConfig) -> list[tuple[str, str]]:
    return [(shard.name, shard.primary.database) for shard in keyspace.shards]


def _differing(old: tuple[KeyspaceConfig, ...], new: tuple[KeyspaceConfig, ...]) -> list[str]:
    """Return the keys that differ."""
    before, after = _by_name(old), _by_name(new)
    found = [f"keyspaces.{name}" for name in sorted(before.keys() ^ after.keys())]
    for name in sorted(before.keys() & after.keys()):
        # The text of a vschema is handled separately: `proxy.vschema_files`.
        if before[name].vschema_path != after[name].vschema_path:
            found.append(f"keyspaces.{name}.vschema")
        if before[name].shards != after[name].shards:
            found.append(f"keyspaces.{name}.shards")
    return found


def _by_name(keyspaces: tuple[KeyspaceConfig, ...]) -> Mapping[str, KeyspaceConfig]:
    return {keyspace.name: keyspace for keyspace in keyspaces}
