"""Every commit is news: however rows of a queue were written and committed, its stream hears of them at once.

Polls are ten minutes apart, so what arrives was woken, not found.
"""

from dataclasses import dataclass, field
from typing import Any

import pytest

from streamfrom.proxy.embedded.servers import Family
from tests.fixtures.database_servers import execute
from tests.fixtures.streams import Consumer, message_table, run
from tests.integration.conftest import Queue


pytestmark = pytest.mark.db

QUIET_S = 0.4
INSERT = "INSERT INTO my_message (id) VALUES ({id})"


@dataclass(frozen=True)
class Commit:
    """A way to write the message {id} of my_message and to commit it. The keyspace with shards has `customer` and `item`, too.

    made: what there is beforehand.
    gone: how that is dropped.
    on: the families that know such statements.
    """

    statements: tuple[str, ...]
    made: tuple[str, ...] = ()
    gone: tuple[str, ...] = ()
    on: frozenset[Family] = field(default=frozenset(Family))


MARIADB = frozenset({Family.MARIADB})
WITHOUT_AUTOCOMMIT = "SET autocommit = 0"
PROCEDURE = "CREATE PROCEDURE enqueue(n BIGINT) INSERT INTO my_message (id) VALUES (n)"
FUNCTION = (
    "CREATE FUNCTION enqueue(n BIGINT) RETURNS BIGINT DETERMINISTIC MODIFIES SQL DATA"
    " BEGIN INSERT INTO my_message (id) VALUES (n); RETURN n; END"
)
OUTBOX = (
    "CREATE TABLE customer (id BIGINT PRIMARY KEY, note VARCHAR(20))",
    "CREATE TRIGGER publish AFTER INSERT ON customer FOR EACH ROW"
    " INSERT INTO my_message (id) VALUES (NEW.id)",
)
NO_OUTBOX = ("DROP TABLE customer",)

COMMITS = {
    "COMMIT": Commit(("BEGIN", INSERT, "COMMIT")),
    "COMMIT WORK": Commit(("BEGIN", INSERT, "COMMIT WORK")),
    "a second BEGIN": Commit(("BEGIN", INSERT, "BEGIN")),
    "START TRANSACTION": Commit(("START TRANSACTION", INSERT, "START TRANSACTION READ ONLY")),
    "BEGIN without autocommit": Commit((WITHOUT_AUTOCOMMIT, INSERT, "BEGIN")),
    "AND CHAIN": Commit(("BEGIN", INSERT, "COMMIT AND CHAIN")),
    "completion_type": Commit(("SET completion_type = CHAIN", "BEGIN", INSERT, "COMMIT")),
    "DDL": Commit(("BEGIN", INSERT, "CREATE TABLE made (a INT)"), gone=("DROP TABLE made",)),
    "DDL that fails": Commit(("BEGIN", INSERT, "CREATE TABLE my_message (a INT)")),
    "autocommit": Commit((WITHOUT_AUTOCOMMIT, INSERT, "SET autocommit = 1")),
    "LOCK TABLES": Commit(("BEGIN", INSERT, "LOCK TABLES my_message READ")),
    "LOCK TABLES without autocommit": Commit(
        (WITHOUT_AUTOCOMMIT, INSERT, "LOCK TABLES my_message READ")
    ),
    "ANALYZE TABLE": Commit(("BEGIN", INSERT, "ANALYZE TABLE my_message")),
    "XA in two phases": Commit(
        (
            "XA START 'x{id}'",
            INSERT,
            "XA END 'x{id}'",
            "XA PREPARE 'x{id}'",
            "XA COMMIT 'x{id}'",
        )
    ),
    "XA in one phase": Commit(
        ("XA START 'x{id}'", INSERT, "XA END 'x{id}'", "XA COMMIT 'x{id}' ONE PHASE")
    ),
    "a view": Commit(
        ("INSERT INTO item (id) VALUES ({id})",),
        ("CREATE VIEW item AS SELECT id, tenant_id FROM my_message",),
        ("DROP VIEW item",),
    ),
    "a view in a transaction": Commit(
        ("BEGIN", "INSERT INTO item (id) VALUES ({id})", "BEGIN"),
        ("CREATE VIEW item AS SELECT id, tenant_id FROM my_message",),
        ("DROP VIEW item",),
    ),
    "a trigger": Commit(("INSERT INTO customer (id) VALUES ({id})",), OUTBOX, NO_OUTBOX),
    "a trigger in a transaction": Commit(
        ("BEGIN", "INSERT INTO customer (id) VALUES ({id})", "COMMIT"), OUTBOX, NO_OUTBOX
    ),
    "a trigger and REPLACE": Commit(
        ("REPLACE INTO customer SET id = {id}",), OUTBOX, NO_OUTBOX
    ),
    "a trigger and UPDATE": Commit(
        ("INSERT INTO plain VALUES ({id})", "UPDATE plain SET id = id + 0 WHERE id = {id}"),
        (
            "CREATE TABLE plain (id BIGINT PRIMARY KEY)",
            "CREATE TRIGGER publish AFTER UPDATE ON plain FOR EACH ROW"
            " INSERT INTO my_message (id) VALUES (NEW.id)",
        ),
        ("DROP TABLE plain",),
    ),
    "a trigger and DELETE": Commit(
        ("INSERT INTO plain VALUES ({id})", "DELETE FROM plain WHERE id = {id}"),
        (
            "CREATE TABLE plain (id BIGINT PRIMARY KEY)",
            "CREATE TRIGGER publish AFTER DELETE ON plain FOR EACH ROW"
            " INSERT INTO my_message (id) VALUES (OLD.id)",
        ),
        ("DROP TABLE plain",),
    ),
    "INSERT … SELECT": Commit(("INSERT INTO my_message (id) SELECT {id} + 0 FROM DUAL",)),
    "a multi-table UPDATE": Commit(
        (
            "INSERT INTO plain VALUES ({id})",
            "INSERT INTO my_message (id, time_next) VALUES ({id}, 9000000000000000000)",
            "UPDATE plain JOIN my_message USING (id) SET my_message.time_next = 0"
            " WHERE my_message.id = {id}",
        ),
        ("CREATE TABLE plain (id BIGINT PRIMARY KEY)",),
        ("DROP TABLE plain",),
    ),
    "a procedure": Commit(("CALL enqueue({id})",), (PROCEDURE,), ("DROP PROCEDURE enqueue",)),
    "a procedure in a transaction": Commit(
        ("BEGIN", "CALL enqueue({id})", "COMMIT"), (PROCEDURE,), ("DROP PROCEDURE enqueue",)
    ),
    "a procedure that commits": Commit(
        ("BEGIN", INSERT, "CALL finish()"),
        ("CREATE PROCEDURE finish() BEGIN COMMIT; START TRANSACTION; END",),
        ("DROP PROCEDURE finish",),
    ),
    "a procedure that fails": Commit(
        ("CALL enqueue({id})",),
        (
            "CREATE PROCEDURE enqueue(n BIGINT) BEGIN"
            " INSERT INTO my_message (id) VALUES (n); SELECT 1 FROM missing; END",
        ),
        ("DROP PROCEDURE enqueue",),
    ),
    "a function in SELECT": Commit(
        ("SELECT enqueue({id})",), (FUNCTION,), ("DROP FUNCTION enqueue",)
    ),
    "a function, its name quoted": Commit(
        ("SELECT `Enqueue` ({id}) AS n",), (FUNCTION,), ("DROP FUNCTION enqueue",)
    ),
    "a function in SET": Commit(
        ("SET @n = enqueue({id})",), (FUNCTION,), ("DROP FUNCTION enqueue",)
    ),
    "a function in DO": Commit(("DO enqueue({id})",), (FUNCTION,), ("DROP FUNCTION enqueue",)),
    "EXECUTE": Commit(
        (
            "PREPARE made FROM 'INSERT INTO my_message (id) VALUES (?)'",
            "SET @id = {id}",
            "EXECUTE made USING @id",
        )
    ),
    "EXECUTE IMMEDIATE": Commit(
        ("EXECUTE IMMEDIATE 'INSERT INTO my_message (id) VALUES ({id})'",), on=MARIADB
    ),
    "a block": Commit(
        ("BEGIN NOT ATOMIC INSERT INTO my_message (id) VALUES ({id}); END",), on=MARIADB
    ),
    "IF": Commit(("IF 1 THEN INSERT INTO my_message (id) VALUES ({id}); END IF",), on=MARIADB),
    "SET STATEMENT": Commit(
        ("SET STATEMENT lock_wait_timeout = 9 FOR INSERT INTO my_message (id) VALUES ({id})",),
        on=MARIADB,
    ),
    "ANALYZE": Commit(("ANALYZE INSERT INTO my_message (id) VALUES ({id})",), on=MARIADB),
}


OVER_SHARDS = (
    "a second BEGIN", "AND CHAIN", "autocommit", "a view", "a trigger", "a trigger in a transaction",
)  # fmt: skip


def carry_out(connection: Any, commit: Commit, ident: int) -> None:
    """Write and commit; a statement that the server refuses is one that the case wants refused."""
    for statement in commit.statements:
        try:
            run(connection, statement.format(id=ident))
        except connection.Error:
            assert statement is commit.statements[-1], statement


def woken(stream: Consumer, commit: Commit, connect: Any, ident: int) -> None:
    """Assert that *stream* hears of a message that is written and committed so."""
    for statement in commit.made:
        run(connect(), statement)
    connection = connect()
    carry_out(connection, commit, ident)
    assert stream.next()[0] == ident, commit
    connection.close()
    for statement in commit.gone:
        run(connect(), statement)


def test_each_commit_wakes_the_stream(plain: Queue, family: Family) -> None:
    plain.create()
    stream = plain.stream()
    for ident, commit in enumerate(COMMITS.values(), 1):
        if family in commit.on:
            woken(stream, commit, plain.connect, ident)


def test_a_commit_over_shards_wakes_the_stream(sharded: Queue) -> None:
    sharded.create()
    stream = sharded.stream()
    for ident, name in enumerate(OVER_SHARDS, 1):
        woken(stream, COMMITS[name], sharded.connect, ident)


def test_a_commit_through_a_member_that_does_not_dispatch_wakes_the_stream(
    server, family, database, fleet, consume
):
    execute(server, message_table(ack_wait=600), database=database)
    first, second = fleet()
    stream = consume(first, database=database)

    def connect() -> Any:
        return second.connect(database=database, autocommit=True)

    for ident, commit in enumerate(COMMITS.values(), 1):
        if family in commit.on:
            woken(stream, commit, connect, ident)


def test_a_prepared_call_wakes_the_stream(plain: Queue) -> None:

    run(plain.create(), PROCEDURE)
    stream = plain.stream()
    client = plain.proxy.connector("plain")
    cursor = client.cursor(prepared=True)
    cursor.execute("CALL enqueue(?)", (1,))
    assert stream.next()[0] == 1
    client.close()
    run(plain.connect(), "DROP PROCEDURE enqueue")


def test_what_a_cascade_makes_ready_wakes_the_stream(plain: Queue) -> None:
    producer = plain.connect()
    run(producer, "CREATE TABLE gate (opens BIGINT PRIMARY KEY)")
    run(producer, "INSERT INTO gate VALUES (9000000000000000000)")
    table = message_table(
        columns="FOREIGN KEY (time_next) REFERENCES gate (opens) ON DELETE SET NULL, message TEXT",
        time_next="time_next BIGINT DEFAULT 9000000000000000000",
    )
    run(producer, table)
    stream = plain.stream("STREAM id FROM my_message")
    run(producer, INSERT.format(id=1))
    stream.nothing(QUIET_S)
    run(producer, "DELETE FROM gate")
    assert stream.next() == (1,)
    run(producer, "DROP TABLE my_message, gate")


@pytest.mark.parametrize("ack", ["committed", "early"])
def test_what_a_trigger_makes_of_an_ack_wakes_the_stream_of_the_next_queue(plain, ack):
    producer = plain.create(more=f",vt_ack={ack}")
    plain.create("other_message")
    run(
        producer,
        "CREATE TRIGGER hand_on AFTER UPDATE ON my_message FOR EACH ROW"
        " IF NEW.time_acked IS NOT NULL THEN INSERT INTO other_message (id) VALUES (NEW.id); END IF",
    )
    first, second = plain.stream(), plain.stream("STREAM id FROM other_message")
    run(producer, "INSERT INTO my_message (id) VALUES (1), (2), (3)")
    for ident in sorted(first.ids(3)):
        run(producer, f"UPDATE my_message SET time_acked = NOW() WHERE id = {ident}")
        assert second.next() == (ident,)


@pytest.mark.parametrize(
    "statements",
    [
        ("BEGIN", INSERT, "ROLLBACK AND CHAIN", "COMMIT"),
        ("BEGIN", INSERT, "ROLLBACK"),
        ("SET completion_type = CHAIN", "BEGIN", INSERT, "ROLLBACK", "COMMIT"),
        ("BEGIN", "SAVEPOINT a", INSERT, "ROLLBACK TO a", "COMMIT AND CHAIN"),
        ("BEGIN", "INSERT INTO item (id) VALUES ({id})", "ROLLBACK"),
        ("XA START 'x'", INSERT, "XA END 'x'", "XA ROLLBACK 'x'"),
    ],
)
def test_a_rollback_reaches_nothing(plain: Queue, statements: tuple[str, ...]) -> None:
    run(plain.create(), "CREATE VIEW item AS SELECT id FROM my_message")
    stream = plain.stream()
    connection = plain.connect()
    for statement in statements:
        run(connection, statement.format(id=1))
    stream.nothing(QUIET_S)
    connection.close()
    run(plain.connect(), INSERT.format(id=2))
    assert stream.next()[0] == 2
    run(plain.connect(), "DROP VIEW item")
