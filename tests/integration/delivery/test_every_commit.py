"""Every commit is news: however rows of a queue were written and committed, its stream hears of them at once.

Polls are ten minutes apart, so what arrives was woken, not found.
"""

import contextlib
import re
from pathlib import Path
from typing import Any

import pytest

from streamfrom.proxy.embedded.servers import Family
from tests.cases import sections
from tests.fixtures.database_servers import execute
from tests.fixtures.streams import Consumer, message_table, run
from tests.integration.conftest import Queue


QUIET_S = 0.4
INSERT = "INSERT INTO my_message (id) VALUES ({id})"
PROCEDURE = "CREATE PROCEDURE enqueue(n BIGINT) INSERT INTO my_message (id) VALUES (n)"
# What stands for what in the cases.
WORDS = {
    "insert": INSERT,
    "procedure": PROCEDURE,
    "function": "CREATE FUNCTION enqueue(n BIGINT) RETURNS BIGINT DETERMINISTIC MODIFIES SQL DATA"
    " BEGIN INSERT INTO my_message (id) VALUES (n); RETURN n; END",
    "plain": "CREATE TABLE plain (id BIGINT PRIMARY KEY)",
    "outbox": "CREATE TABLE customer (id BIGINT PRIMARY KEY, note VARCHAR(20)) | CREATE TRIGGER publish"
    " AFTER INSERT ON customer FOR EACH ROW INSERT INTO my_message (id) VALUES (NEW.id)",
}
COMMITS = sections(Path(__file__).with_suffix(".txt"))
MADE = re.compile(r"CREATE (TABLE|VIEW|PROCEDURE|FUNCTION) (?!my_message)(\w+)")


def each_wakes(stream: Consumer, section: str, connect: Any, family: Family) -> None:
    """Assert that *stream* hears of a message that is written and committed in each way."""
    for ident, row in enumerate(COMMITS[section], 1):
        commit, made, of = (*row, *("-", "")[len(row) - 1 :])
        if of not in ("", family.value):
            continue
        for word, text in WORDS.items():
            commit, made = (each.replace(f"{{{word}}}", text) for each in (commit, made))
        for statement in made.split(" | ") if made != "-" else ():
            run(connect(), statement)
        connection = connect()
        *statements, last = commit.replace("{id}", str(ident)).split(" | ")
        for statement in statements:
            run(connection, statement)
        with contextlib.suppress(connection.Error):  # it fails where the case wants it
            run(connection, last)
        assert stream.next()[0] == ident, row
        connection.close()
        for kind, name in MADE.findall(f"{made} {last}"):
            run(connect(), f"DROP {kind} {name}")


def test_each_commit_wakes_the_stream(plain: Queue, family: Family) -> None:
    plain.create()
    each_wakes(plain.stream(), "test_each_commit_wakes_the_stream", plain.connect, family)


def test_a_commit_over_shards_wakes_the_stream(sharded: Queue, family: Family) -> None:
    sharded.create()
    section = "test_a_commit_over_shards_wakes_the_stream"
    each_wakes(sharded.stream(), section, sharded.connect, family)


@pytest.mark.one_server
def test_a_commit_at_another_member_wakes_the_stream(server, family, database, fleet, consume):
    execute(server, message_table(ack_wait=600), database=database)
    first, second = fleet()
    stream = consume(first, database=database)

    def connect() -> Any:
        return second.connect(database=database, autocommit=True)

    each_wakes(stream, "test_each_commit_wakes_the_stream", connect, family)


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
