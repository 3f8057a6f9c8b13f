"""Partitions on real servers: found, dropped behind a check, split, and left alone where something is in the way."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pymysql
import pytest

from streamfrom.engine.messaging.store.conversation import ServerRefused
from streamfrom.engine.messaging.table.discovery import discover
from streamfrom.engine.messaging.table.message_ids import STEP_NS, first_id
from streamfrom.engine.messaging.upkeep.partitions import (
    SECOND_NS,
    SPANS,
    DropPartition,
    MakePartitions,
    Outcome,
    RowsLeft,
    TakeCensus,
    partition_by,
)
from tests.engine.messaging.conversations import at, carry_out
from tests.engine.messaging.sql_client import Client
from tests.engine.messaging.table.test_store_job_servers import COMMENT, CURRENT
from tests.sim.memory_store import loaded


pytestmark = pytest.mark.db

DAY = SPANS["DAY"]
START_NS = DAY.floor_ns(1_800_000_000 * SECOND_NS)
FIRST, SECOND, *_ = (DAY.partition(START_NS + n * DAY.length_ns) for n in range(4))
# The first two partitions are old then.
NOW_NS = SECOND.until_ns + DAY.length_ns
CUTOFF_NS = NOW_NS - DAY.length_ns


class Dispatcher(Client):
    """Carries conversations out, with the server's refusals thrown into them."""

    def run(self, conversation):
        try:
            return carry_out(conversation, self._answer)
        finally:
            if not self.sent[-1].startswith(
                (b"SELECT partition_name", b"EXPLAIN", b"SELECT (")
            ):
                self.execute(b"UNLOCK TABLES")

    def _answer(self, query):
        try:
            return self.execute(query.sql, query.values)
        except pymysql.MySQLError as error:
            raise ServerRefused(*error.args) from None


def dispatching(connect, server, database):
    """Make a connection such as partitions are kept by."""
    connection = connect(server, database=database, charset="utf8mb4", use_unicode=False)
    with connection.cursor() as cursor:
        cursor.execute("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED")
    return Dispatcher(connection)


@pytest.fixture
def dispatcher(connect, server, database):
    found = dispatching(connect, server, database)
    yield found
    found.connection.close()


@pytest.fixture
def second(connect, server, database):
    found = dispatching(connect, server, database)
    yield found
    found.connection.close()


@pytest.fixture
def table(dispatcher, database):
    sql = CURRENT.format(id_type="bigint", comment=COMMENT).encode()
    dispatcher.execute(sql + b" " + partition_by(DAY, START_NS))
    (raw,) = Client.run(dispatcher, discover(database))
    assert raw.is_partitioned
    return loaded(raw)


def insert(client, start_ns, acked_ns, count=3):
    acked = "NULL" if acked_ns is None else acked_ns
    values = ", ".join(f"({first_id(start_ns) + n}, {acked})" for n in range(count))
    client.execute(f"INSERT INTO msg (id, time_acked) VALUES {values}".encode())


def names(dispatcher, table):
    return [
        each.name
        for each in dispatcher.run(TakeCensus().talk(table, at(NOW_NS))).partitions.timed
    ]


def drop(table, name=FIRST.name):
    outcome, _ = yield from DropPartition(name, CUTOFF_NS, 0.1).talk(table, at())
    return outcome


def test_what_is_left_is_counted(dispatcher, table):
    insert(dispatcher, START_NS, 5)
    insert(dispatcher, FIRST.until_ns, None, count=2)
    insert(dispatcher, FIRST.until_ns + STEP_NS, CUTOFF_NS, count=4)
    insert(dispatcher, 2**62, None, count=7)
    found = dispatcher.run(TakeCensus().talk(table, at(NOW_NS)))
    assert found.partitions.span is DAY
    assert found.left == {FIRST.name: RowsLeft(0, 0), SECOND.name: RowsLeft(2, 4)}
    assert found.rest_rows == 7


def test_a_partition_goes_with_its_rows_and_no_others(dispatcher, table):
    insert(dispatcher, START_NS, CUTOFF_NS - 1)
    insert(dispatcher, 7, 1)  # older than all partitions
    insert(dispatcher, FIRST.until_ns, 5)
    outcome, rows = dispatcher.run(DropPartition(FIRST.name, CUTOFF_NS, 0.1).talk(table, at()))
    assert outcome is Outcome.DONE
    assert rows > 0
    assert FIRST.name not in names(dispatcher, table)
    assert len(dispatcher.rows(b"SELECT id FROM msg")) == 3
    assert dispatcher.run(drop(table)) is Outcome.DONE, "another dispatcher did it"
    insert(dispatcher, START_NS, 5)
    assert dispatcher.run(TakeCensus().talk(table, at(NOW_NS))).left == {
        SECOND.name: RowsLeft(0, 0)
    }


def test_two_dispatchers_at_once_do_no_harm(dispatcher, second, table):
    """One that was deposed, and has not yet noticed, works beside its successor."""
    later_ns = START_NS + 10 * DAY.length_ns
    for start_ns in (START_NS, FIRST.until_ns):
        insert(dispatcher, start_ns, 5)
    insert(dispatcher, SECOND.until_ns, None)
    found = dispatcher.run(TakeCensus().talk(table, at(later_ns)))
    missing = found.partitions.missing(later_ns)

    def work(each):
        made = each.run(MakePartitions(missing, found.partitions.rest, 0.1).talk(table, at()))
        return made, *(each.run(drop(table, one.name)) for one in (FIRST, SECOND))

    with ThreadPoolExecutor(2) as threads:
        outcomes = [*threads.map(work, [dispatcher, second])]
    for pair in zip(*outcomes, strict=True):
        assert Outcome.DONE in pair
        assert Outcome.KEPT not in pair
    after = dispatcher.run(TakeCensus().talk(table, at(later_ns)))
    assert after.partitions.missing(later_ns) == ()
    assert not {FIRST, SECOND} & {*after.partitions.timed}
    assert len(dispatcher.rows(b"SELECT id FROM msg")) == 3


@pytest.mark.parametrize("acked_ns", [None, CUTOFF_NS])
def test_a_row_that_is_not_done_keeps_it(dispatcher, table, acked_ns):
    insert(dispatcher, START_NS, 5)
    insert(dispatcher, START_NS + STEP_NS, acked_ns, count=1)
    assert dispatcher.run(drop(table)) is Outcome.KEPT
    assert FIRST.name in names(dispatcher, table)


@pytest.mark.parametrize("sql", ["SELECT 1 FROM msg", "UPDATE msg SET time_acked = NULL"])
def test_an_open_transaction_keeps_it(dispatcher, table, other, sql):
    insert(dispatcher, START_NS, 5)
    with other.cursor() as cursor:
        cursor.execute(sql)
    assert dispatcher.run(drop(table)) is Outcome.HELD
    other.rollback()
    assert dispatcher.run(drop(table)) is Outcome.DONE


@pytest.mark.parametrize(
    "sql",
    [
        f"UPDATE msg SET time_acked = NULL WHERE id = {first_id(START_NS)}",
        f"UPDATE msg SET time_acked = {CUTOFF_NS + 1} WHERE id = {first_id(START_NS)}",
        f"INSERT INTO msg (id) VALUES ({first_id(START_NS) + 9})",
    ],
)
def test_a_prepared_transaction_whose_connection_has_ended_keeps_it(
    dispatcher, table, connect, server, database, sql
):
    """MariaDB keeps no lock on the table for it, only on its rows."""
    insert(dispatcher, START_NS, 5)
    branch = connect(server, database=database)
    name = database.encode().hex()
    with branch.cursor() as cursor:
        for each in (f"XA START X'{name}'", sql, f"XA END X'{name}'", f"XA PREPARE X'{name}'"):
            cursor.execute(each)
    branch.close()
    try:
        assert dispatcher.run(drop(table)) is Outcome.HELD
    finally:
        dispatcher.execute(f"XA COMMIT X'{name}'".encode())
    assert dispatcher.run(drop(table)) is Outcome.KEPT


def test_the_check_reads_two_ends_of_an_index(dispatcher, table):
    insert(dispatcher, START_NS, 5, count=5000)
    insert(dispatcher, START_NS + STEP_NS, CUTOFF_NS, count=1)
    dispatcher.sent.clear()
    assert dispatcher.run(drop(table)) is Outcome.KEPT
    checks = [sql for sql in dispatcher.sent if b"NOWAIT" in sql]
    assert len(checks) == 2
    for sql in checks:
        dispatcher.execute(b"FLUSH STATUS")
        dispatcher.execute(sql)
        read = dispatcher.rows(b"SHOW SESSION STATUS LIKE 'Handler_read%'")
        assert sum(int(count) for _, count in read) < 10


def test_rows_are_not_copied_and_a_transaction_is_not_waited_for(dispatcher, table, other):
    missing = [DAY.partition(START_NS + 8 * DAY.length_ns)]
    with other.cursor() as cursor:
        cursor.execute("SELECT 1 FROM msg")
    assert (
        dispatcher.run(MakePartitions(missing, "prest", 0.1).talk(table, at())) is Outcome.HELD
    )
    other.commit()
    insert(dispatcher, 2**62, None, count=1)
    assert (
        dispatcher.run(MakePartitions(missing, "prest", 0.1).talk(table, at())) is Outcome.KEPT
    )
    assert missing[0].name not in names(dispatcher, table)
