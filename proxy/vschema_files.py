"""The vschema files of a running proxy, reread when they change, and the additions from message tables' comments (`vt_shard_by`).

The status of each file is checked every second; SIGHUP has all files read at once. A new vschema
is in force for the next statement of every session. A vschema that cannot be used changes nothing:
the log and SHOW VSCHEMA KEYSPACES report the reason, and the one in force stays.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import structlog

from streamfrom.engine.messaging.table.message_table import MessageTable
from streamfrom.engine.sharding.vschema import unknown_keys, with_queues
from streamfrom.proxy.config.keyspaces import KeyspaceConfig, make_keyspace, reread_vschema
from streamfrom.proxy.config.toml_values import ConfigError


if TYPE_CHECKING:
    from pathlib import Path

    from streamfrom.engine.errors import TableLoadError
    from streamfrom.engine.sharding.keyspace import Keyspace
    from streamfrom.sqlparse_ext.stored_forms import ColumnType

    _ShardBy = Mapping[str, tuple[str, str]]
    _Types = Mapping[str, Mapping[str, ColumnType]]


log = structlog.get_logger()

LOOK_EVERY_S: Final = 1.0


class VschemaFiles:
    """The files that the vschemas of *keyspaces* came from.

    asked: set when all files shall be read now.
    apply: puts a keyspace into force, with a new vschema or with the fault of a refused one.
    """

    def __init__(
        self,
        keyspaces: Iterable[KeyspaceConfig],
        asked: asyncio.Event,
        apply: Callable[[Keyspace], None],
        *,
        look_every_s: float = LOOK_EVERY_S,
    ) -> None:
        self._apply = apply
        self._asked = asked
        self._look_every_s = look_every_s
        self._files = self._files_of(keyspaces)

    def _files_of(
        self, keyspaces: Iterable[KeyspaceConfig]
    ) -> dict[tuple[str, Path | None], _File]:
        return {(k.name, k.vschema_path): _File(k, self._apply) for k in keyspaces}

    def replace(self, keyspaces: Sequence[KeyspaceConfig]) -> None:
        """Watch the files of *keyspaces* from now on, and put into force the keyspaces that are new or have another file."""
        new = [k for k in keyspaces if (k.name, k.vschema_path) not in self._files]
        files = self._files | self._files_of(new)
        self._files = {
            (k.name, k.vschema_path): files[k.name, k.vschema_path] for k in keyspaces
        }
        for each in new:
            self._apply(make_keyspace(each))

    async def watch(self) -> None:
        """Check the files repeatedly, until cancelled."""
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(self._look_every_s):
                    await self._asked.wait()
            is_asked = self._asked.is_set()
            self._asked.clear()
            for file in list(self._files.values()):
                file.look(is_asked=is_asked)


class _File:
    """The vschema file of a keyspace, or its absence."""

    def __init__(self, config: KeyspaceConfig, apply: Callable[[Keyspace], None]) -> None:
        self._config = config
        self._path = path = config.vschema_path
        self._apply = apply
        self._keyspace = make_keyspace(config)
        # The file may have changed since the configuration was read, so the first look reads it.
        self._status: tuple[int, int, int] | None = (0, 0, 0)
        self._log = log.bind(keyspace=config.name, path=str(path))
        self._warn()

    def look(self, *, is_asked: bool) -> None:
        """Read the file if it has changed, or if *is_asked*."""
        if self._path is None:
            return
        status = _status(self._path)
        if status == self._status and not is_asked:
            return
        self._status = status
        try:
            config = reread_vschema(self._config)
        except ConfigError as error:
            self._log.warning(
                "vschema not reloaded, the old one is still used", reason=error.problem
            )
            self._keyspace = replace(self._keyspace, vschema_fault=error.problem)
            self._apply(self._keyspace)
            return
        is_new = config.vschema_text != self._config.vschema_text
        if is_new or self._keyspace.vschema_fault:
            self._config = config
            self._keyspace = make_keyspace(config)
            self._apply(self._keyspace)
        if is_new:
            vschema = self._keyspace.vschema
            tables = 0 if vschema is None else len(vschema.tables)
            self._log.info("vschema reloaded", tables=tables)
            self._warn()
        elif is_asked:
            self._log.info("vschema unchanged")

    def _warn(self) -> None:
        for each in unknown_keys(self._config.vschema_text or "{}"):
            self._log.warning("vschema has a key that means nothing", reason=each)


def _status(path: Path) -> tuple[int, int, int] | None:
    """Return values that change with the file's contents; None while the file does not exist."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino


class QueueSharding:
    """Adds facts of the tables to keyspaces' vschemas: the queues that their comments shard, and columns' types.

    keyspaces: with the vschemas of their files.
    tables: returns the message tables of a keyspace.
    types: returns the types of the columns of a keyspace's tables.
    apply: puts a keyspace into force.
    """

    def __init__(
        self,
        keyspaces: Iterable[Keyspace],
        tables: Callable[[str], Mapping[str, MessageTable | TableLoadError]],
        types: Callable[[str], Mapping[str, Mapping[str, ColumnType]]],
        apply: Callable[[Keyspace], None],
    ) -> None:
        self._keyspaces = {keyspace.name: keyspace for keyspace in keyspaces}
        self._tables = tables
        self._types = types
        self._apply = apply
        # The inputs of the vschema in force, besides its file.
        self._in_force: dict[str, tuple[_ShardBy, _Types]] = {}

    def vschema_changed(self, keyspace: Keyspace) -> None:
        """Apply *keyspace*, perhaps a new one, as its file now defines it."""
        self._keyspaces[keyspace.name] = keyspace
        self._in_force[keyspace.name] = known = self._known(keyspace)
        self._put(keyspace, *known)

    def forget(self, keyspace: str) -> None:
        """Remove a keyspace."""
        del self._keyspaces[keyspace]
        self._in_force.pop(keyspace, None)

    def tables_changed(self, name: str) -> None:
        """Note that tables of keyspace *name* have changed; it may be one that is not in force."""
        keyspace = self._keyspaces.get(name)
        if keyspace is None:
            return
        known = self._known(keyspace)
        if known != self._in_force.get(name, ({}, {})):
            self._in_force[name] = known
            self._put(keyspace, *known)

    def _known(self, keyspace: Keyspace) -> tuple[_ShardBy, _Types]:
        name = keyspace.name
        shard_by = {
            table: loaded.properties.shard_by
            for table, loaded in self._tables(name).items()
            if isinstance(loaded, MessageTable) and loaded.properties.shard_by is not None
        }
        placed = shard_by.keys() | (keyspace.vschema.tables if keyspace.vschema else {})
        types = {table: each for table, each in self._types(name).items() if table in placed}
        return shard_by, types

    def _put(self, keyspace: Keyspace, shard_by: _ShardBy, types: _Types) -> None:
        vschema = keyspace.vschema
        if vschema is not None and vschema.sharded:
            keyspace = replace(keyspace, vschema=with_queues(vschema, shard_by, types))
        self._apply(keyspace)
