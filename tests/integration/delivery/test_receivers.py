"""Who gets what: several streams, slow ones, and those that leave."""

import pytest

from tests.fixtures.streams import Consumer, eventually, message_table, run
from tests.integration.conftest import Queue
from tests.integration.delivery.producing import insert, insert_all


pytestmark = pytest.mark.db


def total(streams: list[Consumer]) -> int:
    return sum(len(stream.rows) for stream in streams)


def test_columns_come_in_the_order_of_the_table_the_id_first_or_as_asked_for(
    queue: Queue,
) -> None:
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
        run(
            producer,
            f"INSERT INTO my_message (id, message) VALUES ({ident}, REPEAT('x', {size}))",
        )
        found, message = stream.next()
        assert (found, len(message)) == (ident, size)
