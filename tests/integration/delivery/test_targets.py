"""Which stream gets what: keyspaces, shards, forms of the statement, several receivers, and tables that come, change and go."""

from functools import partial
from typing import Any

import pytest

from tests.fixtures.streams import (
    Consumer,
    eventually,
    message_table,
    refused,
    rows,
    run,
    value,
)
from tests.integration.conftest import HIGH_IDS, LOW_IDS, Queue
from tests.integration.delivery.producing import insert, insert_all


QUIET_S = 0.4


def test_a_qualified_or_unique_table_needs_no_database(plain, sharded, consume):
    for queue in (plain, sharded):
        queue.create()
        stream = consume(queue.proxy, f"STREAM * FROM {queue.keyspace}.my_message")
        insert(queue.proxy.connect(autocommit=True), 1, table=f"{queue.keyspace}.my_message")
        assert stream.next()[0] == 1
    assert refused(plain.proxy.connect(), "STREAM * FROM my_message")[0] == 1046
    sharded.create("other_message")
    stream = consume(sharded.proxy, "STREAM * FROM other_message")
    insert(sharded.connect(), 1, table="other_message")
    assert stream.next()[0] == 1


@pytest.mark.parametrize(
    "how", ["STREAM * FROM `commerce:-80`.my_message", "USE `commerce:-80`", "login"]
)
def test_a_narrowed_stream_has_its_shard_only(sharded, consume, how):
    producer = sharded.create()
    insert_all(producer, (*LOW_IDS, *HIGH_IDS))
    if how == "login":
        stream = consume(sharded.proxy, database="commerce:-80")
    elif how.startswith("USE"):
        connection = sharded.connect(autocommit=False)
        run(connection, how)
        stream = Consumer(connection, "STREAM * FROM my_message")
    else:
        stream = sharded.stream(how)
    assert sorted(stream.ids(len(LOW_IDS))) == sorted(LOW_IDS)
    stream.nothing(QUIET_S)
    other = consume(sharded.proxy, "STREAM * FROM `commerce:80-`.my_message")
    assert sorted(other.ids(len(HIGH_IDS))) == sorted(HIGH_IDS)
    stream.nothing(0)


def test_a_changed_comment_takes_effect_at_once_and_streams_survive(queue: Queue) -> None:
    producer, stream = queue.create(), queue.stream()
    insert(producer, 1)
    stream.next()
    stream.nothing(QUIET_S)
    run(
        producer,
        "ALTER TABLE my_message COMMENT 'vitess_message,vt_ack_wait=0.3,vt_purge_after=9,"
        "vt_batch_size=10,vt_cache_size=100,vt_poller_interval=30,vt_max_backoff=0.3,vt_prefetch=100'",
    )
    insert(producer, 4)
    assert stream.ids(3) == [4, 4, 4]


def test_a_new_column_appears_for_new_streams(queue: Queue) -> None:
    queue.create()
    old = queue.stream()
    producer = queue.connect()
    run(producer, "ALTER TABLE my_message ADD COLUMN extra INT DEFAULT 9")
    insert(producer, 1)
    assert len(old.next()) == 3
    old.close()
    new = queue.stream()
    assert new.columns[-1] == "extra"
    insert(producer, 4)
    assert new.next()[-1] == 9


@pytest.mark.parametrize(
    "sql",
    [
        "DROP TABLE my_message",
        "ALTER TABLE my_message COMMENT 'an ordinary table'",
        "RENAME TABLE my_message TO other_message",
    ],
)
def test_a_table_that_goes_ends_its_streams(queue: Queue, sql: str) -> None:
    connection, stream = queue.create(), queue.stream()
    run(connection, sql)
    assert stream.error() == (1146, "message table 'my_message' was dropped; its streams end")
    # The session goes on.
    assert value(stream.connection, "SELECT 1") == 1


def total(streams: list[Consumer]) -> int:
    return sum(len(stream.rows) for stream in streams)


def test_columns_come_in_the_order_of_the_table_or_as_asked_for(queue: Queue) -> None:
    connection = queue.connect()
    ident = "msg1 VARCHAR(20), id BIGINT NOT NULL"
    columns = "msg2 BIGINT, msg3 DATE"
    run(connection, message_table(ident=ident, columns=columns))
    for asked, names, row in (
        ("*", ("id", "msg1", "msg2", "msg3"), (1, "a", 2, "2024-01-31")),
        ("msg2, id, priority", ("msg2", "id", "priority"), (2, 1, 50)),
    ):
        stream = queue.stream(f"STREAM {asked} FROM my_message")
        assert stream.columns == names
        insert(connection, 1, msg1="a", msg2=2, msg3="2024-01-31")
        assert stream.next() == row
        stream.close()
        run(connection, "DELETE FROM my_message")
    run(connection, "ALTER QUEUE my_message SET (message_cols = 'id|msg1')")
    stream = queue.stream()
    assert stream.columns == ("id", "msg1")
    insert(connection, 1, msg1="x", msg2=5)
    assert stream.next() == (1, "x")


def test_receivers_with_different_columns_share_the_messages(queue: Queue) -> None:
    queue.create(batch_size=2)
    streams = [
        queue.stream(f"STREAM {columns} FROM my_message")
        for columns in ("*", "id", "id, tenant_id")
    ]
    producer = queue.connect()
    insert_all(producer, range(1, 61))
    eventually(lambda: [s.poll(0.01) for s in streams] and total(streams) == 60)
    assert sorted(row[0] for s in streams for row in s.rows) == list(range(1, 61))
    assert [len(s.rows[0]) for s in streams if s.rows] == [
        n for n, s in zip((3, 1, 2), streams, strict=True) if s.rows
    ]


@pytest.mark.parametrize("charset", ["latin1", "gbk", "cp1251"])
def test_texts_come_in_the_character_set_that_the_client_reads(plain, charset):
    columns = "word VARCHAR(20), choice ENUM('é'), document JSON, raw VARBINARY(20)"
    producer = plain.create(ident="id VARCHAR(20) NOT NULL", columns=columns)
    insert(producer, "1§", word="é€я", choice="é", document='"é"', raw=b"\xc3")
    consumer = plain.connect(charset=charset)
    prepared = plain.proxy.connector("plain", charset=charset).cursor(prepared=True)

    def ask_prepared(sql: str) -> tuple[Any, ...]:
        prepared.execute(sql)
        return tuple(prepared.fetchall())

    selected = "id, word, choice, document, raw FROM my_message"
    for ask in (partial(rows, consumer), ask_prepared):
        expected = ask(f"SELECT {selected}")
        assert ask(f"STREAM {selected} LIMIT 1") == expected
        by_id = f"WHERE id = '{expected[0][0]}'"
        assert run(consumer, f"UPDATE my_message SET time_next = 0 {by_id}") == 1


@pytest.mark.parametrize(
    ("more", "order"), [("", [6, 3, 2, 4, 5, 1]), (",vt_order=newest", [6, 2, 3, 5, 4, 1])]
)
def test_priority_goes_first_then_the_one_that_was_due_longest_or_last(plain, more, order):
    producer = plain.create(more=more)
    values = "(1, 9, 10), (2, 1, 30), (3, 1, 20), (4, 5, 0), (5, 5, 1), (6, -3, 99)"
    run(producer, f"INSERT INTO my_message (id, priority, time_next) VALUES {values}")
    assert plain.stream().ids(6) == order


def test_a_message_of_several_packets_comes_whole(plain: Queue) -> None:
    plain.create(columns="message LONGTEXT")
    producer = plain.connect(autocommit=True, max_allowed_packet=1 << 26)
    stream = plain.stream()
    # Sixteen mebibytes and one row of exactly that, header included.
    for ident, size in ((1, 17 << 20), (2, 0xFFFFFF - 2 - 4), (3, 5)):
        sql = f"INSERT INTO my_message (id, message) VALUES ({ident}, REPEAT('x', {size}))"
        run(producer, sql)
        found, message = stream.next()
        assert (found, len(message)) == (ident, size)
