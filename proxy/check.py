"""`streamfrom check`: everything that must be right before `serve`, one line each.

`ok` lines say what was found, `warning` lines what would be better, `fault` lines what will
not work. One fault makes the exit code 1.
"""

from __future__ import annotations

import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from engine.clock import SystemClock
from engine.comment import is_message_table
from engine.errors import EngineError, StoreError
from engine.message_table import MessageTable, load
from engine.sequences import resolve
from proxy.backends.shard import ShardRuntime, replicas_of
from proxy.backends.store import ShardStore
from proxy.config.file import TransactionMode
from proxy.config.keyspaces import make_keyspace
from proxy.errors import BackendError, BackendUnavailable
from proxy.twophase.decisions import CREATE, TABLE, read_own_id
from sqlparse_ext.text.identifiers import quote_identifier


if TYPE_CHECKING:
    from engine.keyspace import Keyspace
    from proxy.config.file import Config, KeyspaceConfig, Server


# Statements that touch no row but need every privilege that delivery needs.
_PROBES: Final = (
    "SELECT * FROM {table} WHERE 1 = 0 FOR UPDATE SKIP LOCKED",
    "UPDATE {table} SET epoch = epoch WHERE 1 = 0",
    "DELETE FROM {table} WHERE 1 = 0",
)
_DECISION_PROBES: Final = (
    "INSERT INTO {table} (id, branches, time_created) SELECT * FROM {table} WHERE 1 = 0",
    "SELECT * FROM {table} WHERE 1 = 0 FOR UPDATE NOWAIT",
    "DELETE FROM {table} WHERE 1 = 0",
)
_XA_REFUSED: Final = 1401


class _Report:
    """The lines, and whether one of them is a fault."""

    def __init__(self) -> None:
        self.has_fault = False

    def ok(self, subject: str, text: str) -> None:
        self._line("ok     ", subject, text)

    def warning(self, subject: str, text: str) -> None:
        self._line("warning", subject, text)

    def fault(self, subject: str, text: str) -> None:
        self.has_fault = True
        self._line("fault  ", subject, text)

    @staticmethod
    def _line(level: str, subject: str, text: str) -> None:
        sys.stdout.write(f"{level}  {subject}: {text}\n")


async def check(config: Config) -> int:
    """Check a configuration against its servers and return the exit code, 0 or 1."""
    report = _Report()
    users = _count(len(config.users), "user") or "root from this machine only"
    report.ok("config", f"{_count(len(config.keyspaces), 'keyspace')}, {users}")
    _check_sequences(config, report)
    for keyspace in config.keyspaces:
        await _check_keyspace(keyspace, config.server, report)
    return 1 if report.has_fault else 0


def _count(number: int, noun: str) -> str:
    return "" if not number else f"{number} {noun}" if number == 1 else f"{number} {noun}s"


async def _check_keyspace(config: KeyspaceConfig, server: Server, report: _Report) -> None:
    try:
        keyspace = make_keyspace(config)
    except EngineError as error:
        report.fault(config.name, f"vschema: {error}")
        return
    if keyspace.vschema is not None and config.vschema_path is not None:
        tables = _count(len(keyspace.vschema.tables), "table") or "no tables"
        report.ok(
            config.name,
            f"vschema {config.vschema_path}: {tables}; read again when it changes, or on SIGHUP",
        )
    for shard_config in config.shards:
        shard = ShardRuntime(
            config.name, shard_config, pool_timeout_s=10, on_change=lambda _: None
        )
        try:
            await _check_shard(keyspace, shard, report)
            if server.transaction_mode is TransactionMode.TWOPC and shard.version:
                await _check_two_phases(shard, report)
        finally:
            await shard.stop()
        for replica in replicas_of(
            config.name,
            shard_config,
            pool_timeout_s=10,
            lag_max_s=server.replica_max_lag_s,
        ):
            await replica.probe()
            await replica.stop()
            if replica.trouble is None:
                report.ok(str(replica), f"replica {replica.dsn}: {replica.version}")
            else:
                report.warning(str(replica), f"replica {replica.dsn}: {replica.trouble}")


def _check_sequences(config: Config, report: _Report) -> None:
    """Say which tables take ids from a sequence that nobody can find."""
    keyspaces: dict[str, Keyspace] = {}
    for each in config.keyspaces:
        with suppress(EngineError):  # told with its keyspace
            keyspaces[each.name] = make_keyspace(each)
    for keyspace in keyspaces.values():
        tables = {} if keyspace.vschema is None else keyspace.vschema.tables
        for table in tables.values():
            if table.auto_increment is not None:
                try:
                    resolve(table.auto_increment.sequence, keyspace, keyspaces)
                except EngineError as error:
                    report.fault(f"{keyspace.name}.{table.name}", str(error))


async def _check_shard(keyspace: Keyspace, shard: ShardRuntime, report: _Report) -> None:
    subject = str(shard)
    await shard.probe()
    if not shard.version:
        report.fault(subject, shard.trouble or "not reached")
        return
    if shard.trouble is not None:
        report.fault(subject, f"{shard.dsn}: {shard.trouble}")
    else:
        report.ok(subject, f"{shard.dsn}: {shard.version}")
    store = ShardStore({(keyspace.name, shard.name): shard}, SystemClock())
    try:
        tables = await store.discover(keyspace.name, shard.name)
    except StoreError as error:
        report.fault(subject, str(error))
        return
    for raw in tables:
        if is_message_table(raw.comment):
            loaded = load(keyspace.name, raw)
            await _check_table(keyspace, shard, raw.name, loaded, report)


async def _check_two_phases(shard: ShardRuntime, report: _Report) -> None:
    """Say what a commit in two phases lacks on a shard, and its recovery."""
    subject = str(shard)
    try:
        if await read_own_id(shard) is None:
            report.warning(
                subject,
                f"no table {TABLE} yet, which commits in two phases need; the proxy makes it if"
                f" it may, else run: {CREATE}",
            )
        else:
            for probe in _DECISION_PROBES:
                await shard.control.rows(probe.format(table=TABLE))
            report.ok(subject, f"table {TABLE}, for commits in two phases")
    except (BackendError, BackendUnavailable) as error:
        report.fault(subject, f"commits in two phases: {error}")
    try:
        await shard.control.rows("XA RECOVER")
    except (BackendError, BackendUnavailable) as error:
        cure = ""
        if isinstance(error, BackendError) and error.code == _XA_REFUSED:
            cure = f"; run: GRANT XA_RECOVER_ADMIN ON *.* TO the account {shard.dsn.user}"
        report.fault(subject, f"XA RECOVER, which recovery needs: {error}{cure}")


async def _check_table(
    keyspace: Keyspace,
    shard: ShardRuntime,
    name: str,
    loaded: MessageTable | EngineError,
    report: _Report,
) -> None:
    subject = f"{shard}.{name}"
    if not isinstance(loaded, MessageTable):
        report.fault(subject, str(loaded))
        return
    for probe in _PROBES:
        try:
            await shard.control.rows(probe.format(table=quote_identifier(name)))
        except (BackendError, BackendUnavailable) as error:
            report.fault(subject, str(error))
            return
    report.ok(subject, f"message table, streams {', '.join(loaded.streamed)}")
    for advice in loaded.advice:
        report.warning(subject, advice)
    if keyspace.sharded and keyspace.vschema is not None:
        routing = keyspace.vschema.tables.get(name)
        if routing is None:
            report.fault(subject, f"not in the vschema of sharded keyspace {keyspace.name}")
        elif routing.primary is None or routing.primary.columns != (loaded.id_column.lower(),):
            report.warning(
                subject,
                f"its primary vindex is not on {loaded.id_column}: acks by id go to every shard",
            )
