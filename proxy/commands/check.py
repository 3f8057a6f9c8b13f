"""`streamfrom check`: everything that must be right before `serve`, one line each.

`ok` lines say what was found, `warning` lines what would be better, `error` lines what will
not work. One error makes the exit code 1. `proxy.report` prints them.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, NamedTuple

from streamfrom import __version__
from streamfrom.engine.clock import SystemClock
from streamfrom.engine.errors import EngineError, StoreError, TableLoadError
from streamfrom.engine.fleet.directory import CREATE
from streamfrom.engine.messaging.table.discovery import sees_triggers
from streamfrom.engine.messaging.table.groups import placement_fault
from streamfrom.engine.messaging.table.message_table import MessageTable, RawTable, load
from streamfrom.engine.messaging.table.table_differences import differences
from streamfrom.engine.messaging.table.table_settings import (
    MARK,
    is_message_table,
    is_nearly_marked,
    unread_keys,
)
from streamfrom.engine.messaging.upkeep import dead_letter_table
from streamfrom.engine.messaging.upkeep.partitions import late, split
from streamfrom.engine.sharding.sequence_tables import resolve
from streamfrom.engine.sharding.vindex import Vindex, is_loose
from streamfrom.engine.sharding.vschema import ColumnVindex, unknown_keys, with_queues
from streamfrom.proxy.accounts.user_logins import shared_note, user_logins
from streamfrom.proxy.backends.shard import ReplicaHealth, ShardRuntime, replicas_of
from streamfrom.proxy.backends.shard_store import ShardStore, by_control
from streamfrom.proxy.config.file import Config, KeyspaceConfig, TlsSettings, TransactionMode
from streamfrom.proxy.config.fleet_members import worker_count
from streamfrom.proxy.config.keyspaces import hash_of, make_keyspace
from streamfrom.proxy.config.toml_values import ConfigError
from streamfrom.proxy.errors import BackendError, BackendUnavailable
from streamfrom.proxy.execution.user_variables import NAMES_ON_MYSQL, TABLES_ON_MYSQL
from streamfrom.proxy.fleet.check_members import ServerLimits, check_members
from streamfrom.proxy.report import CheckReport, Finding, Level
from streamfrom.proxy.status.status_rows import is_own_schema
from streamfrom.proxy.tls import ServerTls, expires_soon, fault_of_time
from streamfrom.proxy.twophase.decisions import TABLE, read_own_id
from streamfrom.sqlparse_ext.stored_forms import folds_case
from streamfrom.sqlparse_ext.text.identifiers import literal, quote_identifier


if TYPE_CHECKING:
    from streamfrom.engine.sharding.keyspace import Keyspace


_DATABASE_FIX: Final = (
    "the login is good: check the database's name in the address, which is the keyspace's if the address names none; create the"
    " database, and grant the account its rights there"
)
# By words of the refusal, the first that fits.
_LOGIN_FIXES: Final = {
    "to database '": _DATABASE_FIX,
    "Unknown database '": _DATABASE_FIX,
    # What refuses the right password of an account as well: a fresh mariadb-install-db makes accounts without a name.
    "Access denied": "check user and password of the address, and the host of the account: SELECT user, host FROM mysql.user;"
    " an account without a name that fits the host better comes first, as mariadb-install-db makes it: DROP USER ''@'localhost'",
}
# Statements that touch no row but need every privilege that delivery needs.
PROBES: Final = (
    "SELECT * FROM {table} WHERE 1 = 0 FOR UPDATE SKIP LOCKED",
    "UPDATE {table} SET epoch = epoch WHERE 1 = 0",
    "DELETE FROM {table} WHERE 1 = 0",
)
# Refused in any case: for want of a privilege first.
PARTITION_PROBE: Final = "ALTER TABLE {table} DROP PARTITION streamfrom_probe"
_NO_SUCH_PARTITION: Final = 1507  # ER_DROP_PARTITION_NON_EXISTENT
_DECISION_PROBES: Final = (
    "INSERT INTO {table} (id, branches, time_created) SELECT * FROM {table} WHERE 1 = 0",
    "SELECT * FROM {table} WHERE 1 = 0 FOR UPDATE NOWAIT",
    "DELETE FROM {table} WHERE 1 = 0",
)
_COMMENTS: Final = (
    "SELECT table_name, table_comment, engine FROM information_schema.tables"
    " WHERE table_schema = {schema} AND table_type = 'BASE TABLE'"
)
_XA_REFUSED: Final = (
    1401  # ER_XAER_RMERR: from MySQL 8.0 on XA RECOVER takes a privilege of its own
)
_NATIVE_FOREIGN_KEYS: Final = "SHOW GLOBAL VARIABLES LIKE 'innodb_native_foreign_keys'"
_CASCADES: Final = (
    "SELECT DISTINCT table_name FROM information_schema.referential_constraints"
    " WHERE constraint_schema = {schema} AND (delete_rule NOT IN ('RESTRICT', 'NO ACTION')"
    " OR update_rule NOT IN ('RESTRICT', 'NO ACTION')) ORDER BY table_name"
)


class _ShardTables(NamedTuple):
    """What a shard has: its message tables, and the comments of all its tables, by name."""

    shard: ShardRuntime
    tables: dict[str, RawTable]
    comments: dict[str, str]


async def check(config: Config, *, as_json: bool = False) -> int:
    """Check a configuration against its servers and return the exit code, 0 or 1."""
    report = CheckReport(None if as_json else _write_line)
    users = _count(len(config.users), "user") or "root from this machine only"
    report.ok("config", f"{_count(len(config.keyspaces), 'keyspace')}, {users}")
    if config.server.tls is not None:
        _check_tls(config.server.tls, datetime.now(UTC), report)
    keyspaces: dict[str, Keyspace] = {}
    for each in config.keyspaces:
        try:
            keyspaces[each.name] = make_keyspace(each)
        except EngineError as error:
            report.error(each.name, f"vschema: {error}")
    _check_sequences(keyspaces, report)
    limits = ServerLimits()
    away: list[str] = []
    for each in config.keyspaces:
        if each.name in keyspaces:
            away += await _check_keyspace(each, keyspaces[each.name], config, limits, report)
    limits.report(report)
    async for finding in user_logins(config, away):
        report.add(finding)
    if (note := shared_note(config.users)) is not None:
        report.add(note)
    report.end()
    if as_json:
        _write_line(report.json())
    return 1 if report.has_errors else 0


def _write_line(line: str) -> None:
    sys.stdout.write(line + "\n")


def _check_tls(tls: TlsSettings, now: datetime, report: CheckReport) -> None:
    """Say whether the proxy can use the files, and whether the certificate is valid."""
    try:
        certificate = ServerTls(tls).certificate
    except ConfigError as error:
        report.error(error.key, error.problem)
        return
    place = "server.tls.cert"
    if (fault := fault_of_time(certificate, now)) is not None:
        report.error(place, f"{tls.cert} {fault}")
    elif (warning := expires_soon(certificate, now)) is not None:
        report.warning(place, f"{tls.cert} {warning}")
    else:
        until = f"{certificate.not_valid_after_utc:%Y-%m-%d}"
        report.ok(place, f"{tls.cert}: valid until {until}")


def _count(number: int, noun: str) -> str:
    return "" if not number else f"{number} {noun}" if number == 1 else f"{number} {noun}s"


async def _check_keyspace(
    config: KeyspaceConfig,
    keyspace: Keyspace,
    whole: Config,
    limits: ServerLimits,
    report: CheckReport,
) -> list[str]:
    """Check a keyspace; return its shards that are not reached."""
    server = whole.server
    if keyspace.vschema is not None and config.vschema_path is not None:
        tables = _count(len(keyspace.vschema.tables), "table") or "no tables"
        report.ok(
            config.name,
            f"vschema {config.vschema_path}: {tables}; read again when it changes, or on SIGHUP",
        )
        for each in unknown_keys(config.vschema_text or "{}"):
            report.warning(config.name, f"vschema {config.vschema_path}: {each}")
    if is_own_schema(config.name):
        report.warning(
            config.name,
            "the proxy's own tables are called streamfrom.queues, .streams, .shards and .members:"
            " tables of these names in this keyspace cannot be read by a qualified name",
        )
    members = worker_count(whole.fleet, None, cores=len(os.sched_getaffinity(0)))
    listed: list[_ShardTables] = []
    away: list[str] = []
    for shard_config in config.shards:
        shard = ShardRuntime(config.name, shard_config, pool_timeout_s=10)
        try:
            found = await _check_shard(keyspace, shard, report)
            if not shard.version:
                away.append(str(shard))
            if found is not None:
                listed.append(found)
            if server.transaction_mode is TransactionMode.TWOPC and shard.version:
                await _check_two_phases(shard, report)
            if shard.version and shard.trouble is None:
                found_members = await check_members(
                    shard, __version__, hash_of(whole.keyspaces), report
                )
                members = max(members, found_members)
            await limits.add(shard, members)
        finally:
            await shard.stop()
        for replica in replicas_of(
            config.name,
            shard_config,
            pool_timeout_s=10,
            health=ReplicaHealth(server.replica_max_lag_s),
        ):
            await replica.probe()
            await limits.add(replica, members)
            await replica.stop()
            if replica.trouble is None:
                report.ok(str(replica), f"replica {replica.dsn}: {replica.version}")
            else:
                report.warning(
                    str(replica), f"replica: {replica.with_address(replica.trouble)}"
                )
    _check_families([each.shard for each in listed], report)
    _compare(listed, report)
    return away


def _check_families(shards: list[ShardRuntime], report: CheckReport) -> None:
    """Say whether servers of both families share a keyspace."""
    if len({shard.is_mariadb for shard in shards}) > 1:
        versions = ", ".join(f"{shard.name} {shard.version}" for shard in shards)
        report.warning(
            shards[0].keyspace,
            f"its shards are of different servers ({versions}), whose collations, functions and types"
            " differ: what several shards answer may be no order or group of either",
            "have MariaDB on all of them, or MySQL",
        )


def _check_engine(subject: str, name: str, engine: str, report: CheckReport) -> None:
    """Say whether a message table lacks what delivery rests on."""
    if engine != "InnoDB":
        report.error(
            subject,
            f"its engine {engine} has no transactions and locks no rows as InnoDB does: messages are sent"
            " that were rolled back, and by several proxies twice",
            f"run: ALTER TABLE {quote_identifier(name)} ENGINE = InnoDB",
        )


async def _check_dead_letter(
    shard: ShardRuntime, loaded: MessageTable | TableLoadError, report: CheckReport
) -> None:
    """Say whether the dead letters of a message table have no table, or one that keeps nothing of them."""
    name = loaded.properties.dead_letter if isinstance(loaded, MessageTable) else None
    if name is None or not isinstance(loaded, MessageTable):
        return
    subject = f"{shard}.{loaded.name}"
    try:
        rows = await shard.control.rows(dead_letter_table.columns_of(shard.database, name))
    except (BackendError, BackendUnavailable) as error:
        report.error(subject, f"vt_dead_letter: {error}")
        return
    columns = [(str(column), str(comment)) for column, comment in rows]
    reason = dead_letter_table.fault(name, columns, loaded.name, loaded.columns)
    if reason is not None:
        lacks_columns = not columns or dead_letter_table.consents(columns[0][1], loaded.name)
        fix = f"create {name} with those of its columns that are to be kept"
        report.error(subject, reason, fix if lacks_columns else None)


def _check_sequences(keyspaces: Mapping[str, Keyspace], report: CheckReport) -> None:
    """Report which tables take ids from a sequence that cannot be found."""
    for keyspace in keyspaces.values():
        tables = {} if keyspace.vschema is None else keyspace.vschema.tables
        for table in tables.values():
            if table.auto_increment is not None:
                try:
                    resolve(table.auto_increment.sequence, keyspace, keyspaces)
                except EngineError as error:
                    report.error(f"{keyspace.name}.{table.name}", str(error))


async def _check_shard(
    keyspace: Keyspace, shard: ShardRuntime, report: CheckReport
) -> _ShardTables | None:
    """Check one shard and its message tables; return them unless they cannot be listed."""
    subject = str(shard)
    await shard.probe()
    # Who answered has a version. What else ails the server, such as read_only, leaves its tables readable.
    if not shard.version:
        trouble = shard.with_address(shard.trouble or "not reached")
        fix = next((fix for words, fix in _LOGIN_FIXES.items() if words in trouble), None)
        report.error(subject, trouble, fix)
        return None
    if shard.trouble is not None:
        report.error(subject, shard.with_address(shard.trouble))
    else:
        report.ok(subject, f"{shard.dsn}: {shard.version}")
    store = ShardStore({(keyspace.name, shard.name): shard}, SystemClock())
    try:
        placed = {} if keyspace.vschema is None else keyspace.vschema.tables
        found = await store.discover(keyspace.name, shard.name, None, placed)
        rows = await shard.control.rows(
            _COMMENTS.format(schema=literal(shard.database.encode()).decode())
        )
    except (StoreError, BackendError, BackendUnavailable) as error:
        report.error(subject, str(error))
        return None
    if any(raw.is_hidden for raw in found):
        text = "a lock hides the definitions of some tables, which are not looked at"
        report.warning(subject, text, "run this again when the DDL or LOCK TABLES is over")
    tables = {
        raw.name: raw for raw in sorted(found, key=lambda raw: raw.name) if not raw.is_hidden
    }
    comments = {str(name): str(comment) for name, comment, _ in rows}
    engines = {str(name): str(engine) for name, _, engine in rows}
    for name, comment in sorted(comments.items()):
        if is_nearly_marked(comment):
            report.warning(
                f"{subject}.{name}",
                f"an ordinary table, though its comment looks like a message table's: {comment!r}",
                f"write {MARK} in its COMMENT if it is to be one",
            )
    for raw in tables.values():
        if not is_message_table(raw.comment):
            _check_placed(keyspace, f"{subject}.{raw.name}", raw, report)
            continue
        loaded = load(keyspace.name, raw, len(keyspace.shards))
        await _check_table(keyspace, shard, raw, loaded, report)
        if isinstance(loaded, MessageTable) and loaded.is_partitioned:
            await _check_partitions(loaded, shard, store, report)
        _check_engine(f"{subject}.{raw.name}", raw.name, engines[raw.name], report)
        await _check_dead_letter(shard, loaded, report)
    await _check_foreign_keys(shard, report)
    await _check_triggers(shard, report)
    await _check_user_variables(shard, report)
    return _ShardTables(shard, tables, comments)


async def _check_partitions(
    table: MessageTable, shard: ShardRuntime, store: ShardStore, report: CheckReport
) -> None:
    """Say what holds partitions of a queue back, or that it has none that are kept."""
    subject = f"{shard}.{table.name}"
    now_ns = SystemClock().time_ns()
    try:
        census = await store.partitions(table, shard.name, now_ns)
    except StoreError as error:
        report.error(subject, f"partitions: {error}")
        return
    if census is None:
        report.warning(
            subject,
            "partitioned otherwise than by PARTITION BY HOUR or DAY: it is purged row by row, and no"
            " partitions are made",
            "move its messages to a queue that CREATE QUEUE … PARTITION BY makes",
        )
        return
    try:
        await shard.control.execute(PARTITION_PROBE.format(table=quote_identifier(table.name)))
    except (BackendError, BackendUnavailable) as error:
        if not isinstance(error, BackendError) or error.code != _NO_SUCH_PARTITION:
            report.error(
                subject,
                f"its partitions can be neither made nor dropped: {error}",
                "grant ALTER, CREATE, DROP and LOCK TABLES on it in addition to what delivery needs",
            )
    partitions = census.partitions
    for name, reason in late(census, now_ns, table.properties.purge_after_ns).items():
        fix = None
        if name == partitions.rest:
            statement = split(table, partitions.missing(now_ns), partitions.rest).decode()
            fix = f"run while no dump or other long transaction is open: {statement}"
        report.warning(subject, f"partition {name} is held back: {reason}", fix)


async def _check_triggers(shard: ShardRuntime, report: CheckReport) -> None:
    """Say what it costs that the account cannot see triggers."""
    if shard.is_mariadb or await by_control(shard, sees_triggers(shard.database)):
        return
    database = quote_identifier(shard.database)
    report.warning(
        str(shard),
        "its account cannot see triggers, so every write may have put messages into any queue, and causes polls",
        f"GRANT TRIGGER ON {database}.* TO the account {shard.dsn.user!r}",
    )


async def _check_user_variables(shard: ShardRuntime, report: CheckReport) -> None:
    """Say if the account cannot list the user variables of sessions."""
    if shard.is_mariadb:
        return  # each session lists its own
    try:
        await shard.control.rows(NAMES_ON_MYSQL.format(0))
    except (BackendError, BackendUnavailable) as error:
        grants = ", ".join(f"GRANT SELECT ON {table}" for table in TABLES_ON_MYSQL)
        text = (
            "a session that has run CALL or EXECUTE cannot take its user variables to another shard, as the"
            f" account of the shard's address cannot list them: {error}"
        )
        fix = f"{grants} TO the account {shard.dsn.user!r}"
        report.add(Finding(Level.INFO, str(shard), text, fix))


async def _check_foreign_keys(shard: ShardRuntime, report: CheckReport) -> None:
    """Say where what a foreign key changes depends on the connection, from MySQL 9.6 on.

    There cascades are SQL's own, which the binary log and triggers see, and on a connection that was
    reset InnoDB's, which they do not. No variable of the session shows it.
    """
    try:
        native = await shard.control.rows(_NATIVE_FOREIGN_KEYS)
        if not native or str(native[0][1]).upper() != "OFF":
            return
        rows = await shard.control.rows(
            _CASCADES.format(schema=literal(shard.database.encode()).decode())
        )
    except (BackendError, BackendUnavailable) as error:
        report.error(str(shard), f"foreign keys: {error}")
        return
    for (name,) in rows:
        report.warning(
            f"{shard}.{name}",
            "its rows change with those of another table (ON DELETE, ON UPDATE), and this server does not"
            " inform its binary log and triggers on connections that were reset, which pooled ones are",
            "set innodb_native_foreign_keys = ON in the server's configuration: then all connections are alike",
        )


def _compare(listed: list[_ShardTables], report: CheckReport) -> None:
    """Say how the message tables of a keyspace differ between its shards.

    Each is compared with that of the first shard that has it, whose settings are the ones in use.
    """
    for name in sorted({name for each in listed for name in each.tables}):
        first = next(each for each in listed if name in each.tables)
        for each in listed:
            subject, place = f"{each.shard}.{name}", f"{first.shard}"
            raw = each.tables.get(name)
            if raw is None and name in each.comments:
                report.error(
                    subject,
                    f"no message table, which it is on {place}",
                    "give it the same columns and comment",
                )
            elif raw is None:
                report.error(
                    subject,
                    f"no such table, which {place} has",
                    "create it here, as it is there",
                )
            elif each is not first:
                found = differences(
                    raw,
                    first.tables[name],
                    place,
                    same_kind=each.shard.is_mariadb == first.shard.is_mariadb,
                )
                for text in found.columns:
                    report.error(subject, text)
                for text in found.others:
                    report.warning(subject, text)


async def _check_two_phases(shard: ShardRuntime, report: CheckReport) -> None:
    """Say what a commit in two phases lacks on a shard, and its recovery."""
    subject = str(shard)
    try:
        if await read_own_id(shard) is None:
            report.warning(
                subject,
                f"no table {TABLE} with this shard yet, which commits in two phases need",
                f"the proxy makes it if it may, else run: {'; '.join(CREATE)}",
            )
        else:
            for probe in _DECISION_PROBES:
                await shard.control.rows(probe.format(table=TABLE))
            report.ok(subject, f"table {TABLE}, for commits in two phases")
    except (BackendError, BackendUnavailable) as error:
        report.error(subject, f"commits in two phases: {error}")
    try:
        await shard.control.rows("XA RECOVER")
    except (BackendError, BackendUnavailable) as error:
        fix = None
        if isinstance(error, BackendError) and error.code == _XA_REFUSED:
            fix = f"run: GRANT XA_RECOVER_ADMIN ON *.* TO the account {shard.dsn.user}"
        report.error(subject, f"XA RECOVER, which recovery needs: {error}", fix)


def _check_placed(keyspace: Keyspace, subject: str, raw: RawTable, report: CheckReport) -> None:
    """Say what is wrong with how the rows of an ordinary table are placed."""
    if keyspace.vschema is None or len(keyspace.shards) == 1:
        return
    types = {raw.name: {column.name.lower(): column.type for column in raw.columns}}
    routing = with_queues(keyspace.vschema, {}, types).tables.get(raw.name)
    if routing is not None and routing.primary is not None:
        _check_placing(subject, routing.primary, report)


def _check_placing(subject: str, primary: ColumnVindex, report: CheckReport) -> None:
    vindex = primary.vindex.vindex
    for name, column, form in zip(primary.columns, primary.types, primary.forms, strict=False):
        if form.fault:
            report.error(subject, f"column {name}, which places its rows: {form.fault}")
        elif (
            column is not None
            and folds_case(column)
            and isinstance(vindex, Vindex)
            and not is_loose(vindex)
        ):
            report.warning(
                subject,
                f"column {name} is placed by its bytes ({primary.vindex.name}), and its collation {column.collation}"
                " finds more values equal: such rows are on different shards, and a lookup finds one of them",
                f"MODIFY {name} with COLLATE utf8mb4_bin, or write each value in one spelling",
            )


async def _check_table(
    keyspace: Keyspace,
    shard: ShardRuntime,
    raw: RawTable,
    loaded: MessageTable | TableLoadError,
    report: CheckReport,
) -> None:
    name = raw.name
    subject = f"{shard}.{name}"
    if not isinstance(loaded, MessageTable):
        report.error(subject, str(loaded))
        for reason in loaded.others:
            report.error(subject, reason)
        for warning in unread_keys(raw.comment):
            report.warning(subject, warning)
        return
    for probe in PROBES:
        try:
            await shard.control.rows(probe.format(table=quote_identifier(name)))
        except (BackendError, BackendUnavailable) as error:
            report.error(subject, str(error))
            return
    report.ok(subject, f"message table, streams {', '.join(loaded.streamed)}")
    for advice in loaded.advice:
        report.warning(subject, advice)
    if keyspace.sharded and loaded.id_auto_increment:
        routing = keyspace.vschema.tables.get(name) if keyspace.vschema else None
        if routing is None or routing.auto_increment is None:
            report.warning(
                subject,
                f"{loaded.id_column} is AUTO_INCREMENT, which counts on each shard alone: every"
                " INSERT must give it, or a sequence of the vschema",
            )
    if keyspace.sharded and keyspace.vschema is not None:
        # Routed as a running proxy would: by the vschema, else by the table's own comment.
        shard_by = loaded.properties.shard_by
        by_comment = {} if shard_by is None else {name: shard_by}
        types = {name: {column.name.lower(): column.type for column in raw.columns}}
        routing = with_queues(keyspace.vschema, by_comment, types).tables.get(name)
        if routing is None and shard_by is not None:
            report.error(
                subject,
                f"vt_shard_by: there is no vindex '{shard_by[0]}' of one column",
                "add it to the vschema",
            )
        elif routing is None:
            report.error(
                subject,
                f"not in the vschema of sharded keyspace {keyspace.name}",
                "add it there, with its column_vindexes",
            )
        if routing is None:
            return
        if routing.primary is not None and len(keyspace.shards) > 1:
            _check_placing(subject, routing.primary, report)
        if routing.primary is None or routing.primary.columns != (loaded.id_column.lower(),):
            report.warning(
                subject,
                f"its primary vindex is not on {loaded.id_column}: acks by id go to every shard",
            )
        placed_by = None if routing.primary is None else routing.primary.columns
        apart = placement_fault(loaded.groups, placed_by, len(keyspace.shards))
        if apart is not None:
            report.error(subject, apart)
