"""`streamfrom check`: everything that must be right before `serve`, one line each.

`ok` lines report findings, `warning` lines possible improvements, `error` lines failures to
come. One error makes the exit code 1. `proxy.report` prints them.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from streamfrom import __version__
from streamfrom.engine.clock import SystemClock
from streamfrom.engine.errors import EngineError, StoreError
from streamfrom.engine.fleet.directory import CREATE
from streamfrom.engine.messaging.table.discovery import discover, sees_triggers
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
from streamfrom.engine.messaging.upkeep.partitions import TakeCensus, late, split
from streamfrom.engine.sharding.sequence_tables import resolve
from streamfrom.engine.sharding.vindex import is_loose
from streamfrom.engine.sharding.vschema import TableRouting, unknown_keys, with_queues
from streamfrom.proxy.accounts.user_logins import login_fix, shared_note, user_logins
from streamfrom.proxy.backends.shard import READ_ONLY, ReplicaHealth, ShardRuntime
from streamfrom.proxy.backends.shard_servers import replica_of
from streamfrom.proxy.backends.shard_store import ShardStore, by_control
from streamfrom.proxy.config.file import Config, KeyspaceConfig, TlsSettings, TransactionMode
from streamfrom.proxy.config.fleet_members import worker_count
from streamfrom.proxy.config.keyspaces import hash_of, make_keyspace
from streamfrom.proxy.config.toml_values import ConfigError
from streamfrom.proxy.errors import BackendError, BackendUnavailable
from streamfrom.proxy.execution.user_variables import NAMES_ON_MYSQL, TABLES_ON_MYSQL
from streamfrom.proxy.fleet.check_members import ServerLimits, check_members, fix_of
from streamfrom.proxy.report import CheckReport, Finding, Level
from streamfrom.proxy.tls import ServerTls, expires_soon, fault_of_time
from streamfrom.proxy.twophase.decisions import TABLE, read_own_id
from streamfrom.sqlparse_ext.stored_forms import folds_case
from streamfrom.sqlparse_ext.text.identifiers import literal, quote_identifier


if TYPE_CHECKING:
    from streamfrom.engine.sharding.keyspace import Keyspace


_WRITABLE_FIX: Final = (
    "SET GLOBAL read_only = 0 there, or let the address lead to the new primary"
)
# A date in winter and one in summer by the server's time zone, its name, and the server's clock.
TIMES: Final = (
    "SELECT UNIX_TIMESTAMP('2026-01-01'), UNIX_TIMESTAMP('2026-07-01'),"
    " REPLACE(@@time_zone, 'SYSTEM', @@system_time_zone), UNIX_TIMESTAMP(NOW(6))"
)
CLOCKS_DIFFER_S: Final = 5
# A commit that does not end: the words of both families, whose binary log waits for its disk or for a replica.
_STUCK: Final = (
    "SELECT state, time FROM information_schema.processlist WHERE time > 5 AND (state IN ('Commit', 'waiting for handler commit')"
    " OR state LIKE 'Waiting for someone to free%' OR state LIKE 'Waiting for semi-sync%') ORDER BY time DESC LIMIT 1"
)
# Statements that touch no row but need every privilege that delivery needs.
PROBES: Final = (
    "SELECT * FROM {table} WHERE 1 = 0 FOR UPDATE SKIP LOCKED",
    "UPDATE {table} SET epoch = epoch WHERE 1 = 0",
    "DELETE FROM {table} WHERE 1 = 0",
)
# Always refused; a missing privilege is reported first.
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
# ER_XAER_RMERR: from MySQL 8.0 on XA RECOVER takes a privilege of its own
_XA_REFUSED: Final = 1401
_NATIVE_FOREIGN_KEYS: Final = "SHOW GLOBAL VARIABLES LIKE 'innodb_native_foreign_keys'"
_CASCADES: Final = (
    "SELECT DISTINCT table_name FROM information_schema.referential_constraints"
    " WHERE constraint_schema = {schema} AND (delete_rule NOT IN ('RESTRICT', 'NO ACTION')"
    " OR update_rule NOT IN ('RESTRICT', 'NO ACTION')) ORDER BY table_name"
)


# Failures of the server, and of the way to it.
_FAILURES: Final = (StoreError, BackendError, BackendUnavailable)


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
    """Report whether the proxy can use the files, and whether the certificate is valid."""
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
    members = worker_count(whole.fleet, None, cores=len(os.sched_getaffinity(0)))
    listed: list[_ShardCheck] = []
    away: list[str] = []
    for shard_config in config.shards:
        shard = ShardRuntime(config.name, shard_config, pool_timeout_s=10)
        try:
            checked = _ShardCheck(keyspace, shard, report)
            await checked.run()
            if checked.is_listed:
                listed.append(checked)
            if not shard.version:
                away.append(str(shard))
            elif server.transaction_mode is TransactionMode.TWOPC:
                await checked.two_phases()
            if shard.version and shard.trouble is None:
                found_members = await check_members(
                    shard, __version__, hash_of(whole.keyspaces), report
                )
                members = max(members, found_members)
            await limits.add(shard, members)
        finally:
            await shard.stop()
        health = ReplicaHealth(server.replica_max_lag_s)
        for dsn in shard_config.replicas:
            replica = replica_of(
                config.name, shard_config, dsn, pool_timeout_s=10, health=health
            )
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
    _check_zones([each for each in listed if each.zone], report)
    _compare(listed, report)
    return away


def _check_families(shards: list[ShardRuntime], report: CheckReport) -> None:
    """Report whether servers of both families share a keyspace."""
    if len({shard.is_mariadb for shard in shards}) > 1:
        versions = ", ".join(f"{shard.name} {shard.version}" for shard in shards)
        report.warning(
            shards[0].keyspace,
            f"its shards are of different servers ({versions}), whose collations, functions and types"
            " differ: what several shards answer may be no order or group of either",
            "have MariaDB on all of them, or MySQL",
        )


def _check_zones(listed: Sequence[_ShardCheck], report: CheckReport) -> None:
    """Report whether a date and a time mean different moments on shards of a keyspace."""
    if len({each.zone[:2] for each in listed}) > 1:
        zones = ", ".join(f"{each.shard.name} {each.zone[2]}" for each in listed)
        report.warning(
            listed[0].shard.keyspace,
            f"its shards have different time zones ({zones}): UNIX_TIMESTAMP of a date in time_next, and TIMESTAMP columns,"
            " differ by hours between them, unless a session sets its time_zone",
            "SET GLOBAL time_zone = '+00:00' on each, and default_time_zone in its configuration",
        )


def _check_sequences(keyspaces: Mapping[str, Keyspace], report: CheckReport) -> None:
    """Report the tables that take ids from a sequence that does not exist."""
    for keyspace in keyspaces.values():
        tables = {} if keyspace.vschema is None else keyspace.vschema.tables
        for table in tables.values():
            if table.auto_increment is not None:
                try:
                    resolve(table.auto_increment.sequence, keyspace, keyspaces)
                except EngineError as error:
                    report.error(f"{keyspace.name}.{table.name}", str(error))


class _ShardCheck:
    """The check of one shard.

    is_listed: its tables could be listed.
    tables: its message tables, and others that the vschema places, by name.
    comments: those of all its tables, by name.
    zone: the first three values of TIMES.
    """

    def __init__(self, keyspace: Keyspace, shard: ShardRuntime, report: CheckReport) -> None:
        self.shard = shard
        self.is_listed = False
        self.tables: dict[str, RawTable] = {}
        self.comments: dict[str, str] = {}
        self.zone: tuple[Any, ...] = ()
        self._keyspace = keyspace
        self._report = report
        self._schema = literal(shard.database.encode()).decode()
        clock = SystemClock()
        self._now_ns = clock.time_ns()
        self._store = ShardStore({(keyspace.name, shard.name): shard}, clock)

    async def run(self) -> None:
        """Check the shard and its tables."""
        shard, report, subject = self.shard, self._report, str(self.shard)
        await shard.probe()
        # A server that answered has a version. Other trouble, such as read_only, leaves its tables readable.
        if not shard.version:
            trouble = shard.with_address(shard.trouble or "not reached")
            report.error(
                subject, trouble, login_fix(trouble, "user and password of the address")
            )
            return
        if shard.trouble is not None:
            fix = _WRITABLE_FIX if shard.trouble == READ_ONLY else None
            report.error(subject, shard.with_address(shard.trouble), fix)
        elif shard.is_too_old:
            text = f"{shard.dsn}: {shard.version} is too old: it has no SKIP LOCKED"
            report.error(subject, text, "use MySQL 8.4 or newer, or MariaDB 10.6 or newer")
        else:
            report.ok(subject, f"{shard.dsn}: {shard.version}")
        with self._reported(subject):
            vschema = self._keyspace.vschema
            placed = {} if vschema is None else vschema.tables
            defined = partial(discover, placed=placed)
            found = await self._store.ask(self._keyspace.name, shard.name, defined)
            rows = await shard.control.rows(_COMMENTS.format(schema=self._schema))
            self.comments = {str(name): str(comment) for name, comment, _ in rows}
            self.is_listed = True
            await self._check_times()
            for state, stuck_s in await shard.control.rows(_STUCK):
                report.error(
                    subject,
                    f"a commit has waited for {stuck_s} s ({state})",
                    "make room if a disk of the server is full, or look for the replica that does not answer; its error log says which",
                )
            await self._check_tables(found, {str(name): str(each) for name, _, each in rows})

    @contextmanager
    def _reported(self, subject: str, what: str = "") -> Iterator[None]:
        """Report a failure of the block."""
        try:
            yield
        except _FAILURES as error:
            self._report.error(subject, f"{what}{error}", fix_of(error))

    async def _check_times(self) -> None:
        """Read the server's time zone, and report whether its clock is off."""
        ((*zone, time_s),) = await self.shard.control.rows(TIMES)
        self.zone = tuple(zone)
        ahead_s = float(time_s) - SystemClock().time_ns() / 10**9
        if abs(ahead_s) > CLOCKS_DIFFER_S:
            side = "ahead of" if ahead_s > 0 else "behind"
            self._report.warning(
                str(self.shard),
                f"its clock is {abs(ahead_s):.0f} s {side} this machine's, by which messages are due: what triggers and"
                " DEFAULTs make of NOW() differs by that",
                "let NTP set both clocks",
            )

    async def _check_tables(
        self, found: Sequence[RawTable], engines: Mapping[str, str]
    ) -> None:
        report, subject = self._report, str(self.shard)
        if any(raw.is_hidden for raw in found):
            text = "a lock hides the definitions of some tables, which are not looked at"
            report.warning(subject, text, "run this again when the DDL or LOCK TABLES is over")
        for name, comment in sorted(self.comments.items()):
            if is_nearly_marked(comment):
                report.warning(
                    f"{subject}.{name}",
                    f"an ordinary table, though its comment looks like a message table's: {comment!r}",
                    f"write {MARK} in its COMMENT if it is to be one",
                )
        for raw in sorted(found, key=lambda raw: raw.name):
            if raw.is_hidden:
                continue
            self.tables[raw.name] = raw
            if is_message_table(raw.comment):
                await self._check_queue(raw, engines[raw.name])
            elif len(self._keyspace.shards) > 1:
                self._check_placing(raw.name, self._routing(raw))
        await self._check_foreign_keys()
        await self._check_triggers()
        await self._check_user_variables()

    async def _check_queue(self, raw: RawTable, engine: str) -> None:
        report, subject = self._report, f"{self.shard}.{raw.name}"
        name = quote_identifier(raw.name)
        loaded = load(self._keyspace.name, raw, len(self._keyspace.shards))
        if isinstance(loaded, MessageTable):
            with self._reported(subject):
                for probe in PROBES:
                    await self.shard.control.rows(probe.format(table=name))
                report.ok(subject, f"message table, streams {', '.join(loaded.streamed)}")
                for advice in loaded.advice:
                    report.warning(subject, advice)
                if self._keyspace.sharded:
                    self._check_sharding(subject, loaded, self._routing(raw, loaded))
            if loaded.is_partitioned:
                await self._check_partitions(loaded, subject)
        else:
            for reason in (str(loaded), *loaded.others):
                report.error(subject, reason)
            for warning in unread_keys(raw.comment):
                report.warning(subject, warning)
        if engine != "InnoDB":
            report.error(
                subject,
                f"its engine {engine} has no transactions and locks no rows as InnoDB does: messages are sent"
                " that were rolled back, and by several proxies twice",
                f"run: ALTER TABLE {name} ENGINE = InnoDB",
            )
        if isinstance(loaded, MessageTable):
            await self._check_dead_letter(loaded, subject)

    def _routing(self, raw: RawTable, queue: MessageTable | None = None) -> TableRouting | None:
        """Return a running proxy's routing of a table: by the vschema, else by the table's own comment."""
        if self._keyspace.vschema is None:
            return None
        shard_by = None if queue is None else queue.properties.shard_by
        by_comment = {} if shard_by is None else {raw.name: shard_by}
        types = {raw.name: {column.name.lower(): column.type for column in raw.columns}}
        return with_queues(self._keyspace.vschema, by_comment, types).tables.get(raw.name)

    def _check_sharding(
        self, subject: str, queue: MessageTable, routing: TableRouting | None
    ) -> None:
        report, shard_by = self._report, queue.properties.shard_by
        if queue.id_auto_increment and (routing is None or routing.auto_increment is None):
            report.warning(
                subject,
                f"{queue.id_column} is AUTO_INCREMENT, which counts on each shard alone: every"
                " INSERT must give it, or a sequence of the vschema",
            )
        if routing is None and shard_by is not None:
            report.error(
                subject,
                f"vt_shard_by: there is no vindex '{shard_by[0]}'",
                "add it to the vschema",
            )
        elif routing is None:
            report.error(
                subject,
                f"not in the vschema of sharded keyspace {self._keyspace.name}",
                "add it there, with its column_vindexes",
            )
        if routing is None:
            return
        shards = len(self._keyspace.shards)
        if shards > 1:
            self._check_placing(queue.name, routing)
        placed_by = None if routing.primary is None else routing.primary.column
        if placed_by != queue.id_column.lower():
            report.warning(
                subject,
                f"its primary vindex is not on {queue.id_column}: acks by id go to every shard",
            )
        apart = placement_fault(queue.groups, placed_by, shards)
        if apart is not None:
            report.error(subject, apart)

    def _check_placing(self, name: str, routing: TableRouting | None) -> None:
        """Report problems with how the rows of a table are placed."""
        if routing is None or routing.primary is None:
            return
        primary, subject = routing.primary, f"{self.shard}.{name}"
        column, kind, fault = primary.column, primary.type, primary.form.fault
        if fault:
            self._report.error(subject, f"column {column}, which places its rows: {fault}")
        elif kind is not None and folds_case(kind) and not is_loose(primary.vindex.vindex):
            self._report.warning(
                subject,
                f"column {column} is placed by its bytes ({primary.vindex.name}), and its collation {kind.collation}"
                " finds more values equal: such rows are on different shards, and a lookup finds one of them",
                f"MODIFY {column} with COLLATE utf8mb4_bin, or write each value in one spelling",
            )

    async def _check_dead_letter(self, queue: MessageTable, subject: str) -> None:
        """Report if the dead letters of a queue have no table, or one that keeps none of their columns."""
        name = queue.properties.dead_letter
        if name is None:
            return
        with self._reported(subject, "vt_dead_letter: "):
            sql = dead_letter_table.columns_of(self.shard.database, name)
            rows = await self.shard.control.rows(sql)
            columns = [(str(column), str(comment)) for column, comment in rows]
            reason = dead_letter_table.fault(name, columns, queue.name, queue.columns)
            if reason is not None:
                lacks = not columns or dead_letter_table.consents(columns[0][1], queue.name)
                fix = f"create {name} with those of its columns that are to be kept"
                self._report.error(subject, reason, fix if lacks else None)

    async def _check_partitions(self, queue: MessageTable, subject: str) -> None:
        """Report why partitions of a queue are kept too long, or that it is not partitioned by HOUR or DAY."""
        with self._reported(subject, "partitions: "):
            census = await self._store.run(queue, self.shard.name, TakeCensus())
            if census is None:
                self._report.warning(
                    subject,
                    "partitioned otherwise than by PARTITION BY HOUR or DAY: it is purged row by row, and no"
                    " partitions are made",
                    "move its messages to a queue that CREATE QUEUE … PARTITION BY makes",
                )
                return
            try:
                probe = PARTITION_PROBE.format(table=quote_identifier(queue.name))
                await self.shard.control.execute(probe)
            except _FAILURES as error:
                if not isinstance(error, BackendError) or error.code != _NO_SUCH_PARTITION:
                    self._report.error(
                        subject,
                        f"its partitions can be neither made nor dropped: {error}",
                        "grant ALTER, CREATE, DROP and LOCK TABLES on it in addition to what delivery needs",
                    )
            partitions, purge_after_ns = census.partitions, queue.properties.purge_after_ns
            for name, reason in late(census, self._now_ns, purge_after_ns).items():
                fix = None
                if name == partitions.rest:
                    missing = partitions.missing(self._now_ns)
                    statement = split(queue, missing, partitions.rest).decode()
                    fix = f"run while no dump or other long transaction is open: {statement}"
                self._report.warning(subject, f"partition {name} is held back: {reason}", fix)

    async def _check_triggers(self) -> None:
        """Report the consequences if the account cannot see triggers."""
        shard = self.shard
        if await by_control(shard, sees_triggers(shard.database)):
            return
        self._report.warning(
            str(shard),
            "its account cannot see triggers, so every write may have put messages into any queue, and causes polls",
            f"GRANT TRIGGER ON {quote_identifier(shard.database)}.* TO the account {shard.dsn.user!r}",
        )

    async def _check_user_variables(self) -> None:
        """Report if the account cannot list the user variables of sessions."""
        shard = self.shard
        if shard.is_mariadb:
            return  # each session lists its own
        try:
            await shard.control.rows(NAMES_ON_MYSQL.format(0))
        except _FAILURES as error:
            user = f"{shard.dsn.user!r}@'…'"
            fix = "; ".join(f"GRANT SELECT ON {table} TO {user}" for table in TABLES_ON_MYSQL)
            text = (
                "a session that has run CALL or EXECUTE cannot take its user variables to another shard, as the"
                f" account of the shard's address cannot list them: {error}"
            )
            self._report.add(Finding(Level.INFO, str(shard), text, fix))

    async def _check_foreign_keys(self) -> None:
        """Report if a foreign key's changes depend on the connection, from MySQL 9.6 on.

        On a new connection the SQL layer cascades, which the binary log and triggers see; on a connection that was
        reset InnoDB cascades, which they do not see. No variable of the session shows the difference.
        """
        control = self.shard.control
        with self._reported(str(self.shard), "foreign keys: "):
            native = await control.rows(_NATIVE_FOREIGN_KEYS)
            if not native or str(native[0][1]).upper() != "OFF":
                return
            for (name,) in await control.rows(_CASCADES.format(schema=self._schema)):
                self._report.warning(
                    f"{self.shard}.{name}",
                    "its rows change with those of another table (ON DELETE, ON UPDATE), and this server does not"
                    " inform its binary log and triggers on connections that were reset, which pooled ones are",
                    "set innodb_native_foreign_keys = ON in the server's configuration: then all connections are alike",
                )

    async def two_phases(self) -> None:
        """Report whatever is missing for a commit in two phases, and for its recovery."""
        shard, report, subject = self.shard, self._report, str(self.shard)
        with self._reported(subject, "commits in two phases: "):
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
        try:
            await shard.control.rows("XA RECOVER")
        except _FAILURES as error:
            fix = None
            if isinstance(error, BackendError) and error.code == _XA_REFUSED:
                fix = f"run: GRANT XA_RECOVER_ADMIN ON *.* TO the account {shard.dsn.user}"
            report.error(subject, f"XA RECOVER, which recovery needs: {error}", fix)


def _compare(listed: list[_ShardCheck], report: CheckReport) -> None:
    """Report how the message tables of a keyspace differ between its shards.

    Each is compared with that of the first shard that has it, whose settings are the ones in use.
    """
    for name in sorted({name for each in listed for name in each.tables}):
        first = next(each for each in listed if name in each.tables)
        place = str(first.shard)
        for each in listed:
            subject, raw = f"{each.shard}.{name}", each.tables.get(name)
            if raw is None and name in each.comments:
                fix = "give it the same columns and comment"
                report.error(subject, f"no message table, which it is on {place}", fix)
            elif raw is None:
                fix = "create it here, as it is there"
                report.error(subject, f"no such table, which {place} has", fix)
            elif each is not first:
                same_kind = each.shard.is_mariadb == first.shard.is_mariadb
                found = differences(raw, first.tables[name], place, same_kind=same_kind)
                for text in found.columns:
                    report.error(subject, text)
                for text in found.others:
                    report.warning(subject, text)
