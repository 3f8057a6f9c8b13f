"""Messages of a key wait for one another, on both servers, over retries, changes and the death of a dispatcher."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.fixtures.database_servers import execute
from tests.fixtures.streams import WAIT_S, eventually, rows, run
from tests.integration.conftest import Queue


pytestmark = pytest.mark.db

QUIET_S = 0.3
ONE_OF_A_KEY = (
    "CREATE QUEUE my_message (id BIGINT NOT NULL, tenant INT)"
    " WITH (key = tenant, max_per_key = 1, ack_wait = 600, poller_interval = 600)"
)


@pytest.fixture
def producer(plain: Queue):
    return plain.connect()


def ack(connection, ident):
    run(connection, f"UPDATE my_message SET time_acked = NOW() WHERE id = {ident}")


def test_a_key_goes_one_by_one_and_a_retry_holds_back_its_successors(plain, producer):
    run(producer, ONE_OF_A_KEY.replace("INT)", "VARCHAR(20))"))
    stream = plain.stream("STREAM id FROM my_message")
    run(
        producer,
        "INSERT INTO my_message (id, tenant) VALUES"
        " (1, 'a'), (2, 'a'), (3, 'b'), (4, 'b'), (5, NULL), (6, NULL), (7, 'a')",
    )
    assert sorted(stream.ids(4)) == [1, 3, 5, 6]
    assert stream.poll(QUIET_S) is None
    ack(producer, 3)
    assert stream.ids(1) == [4]
    run(producer, "UPDATE my_message SET time_next = 0 WHERE id = 1")
    assert stream.ids(1) == [1]
    run(producer, "INSERT INTO my_message (id, tenant, priority) VALUES (8, 'a', 1)")
    assert stream.poll(QUIET_S) is None
    ack(producer, 1)
    assert stream.ids(1) == [8]
    run(producer, "DELETE FROM my_message WHERE id = 8")
    assert stream.ids(1) == [2]
    # What was to follow is gone: the one behind it follows.
    ack(producer, 7)
    run(producer, "INSERT INTO my_message (id, tenant) VALUES (9, 'a')")
    ack(producer, 2)
    assert stream.ids(1) == [9]


def test_an_ack_that_waits_for_somebody_holds_back_its_key_alone(plain, producer):
    run(producer, ONE_OF_A_KEY)
    stream = plain.stream("STREAM id FROM my_message")
    run(producer, "INSERT INTO my_message (id, tenant) VALUES (1, 7), (2, 7), (3, 8), (4, 8)")
    assert sorted(stream.ids(2)) == [1, 3]
    holder = plain.connect(autocommit=False)
    run(holder, "SELECT id FROM my_message WHERE id = 1 FOR UPDATE")
    waiting = plain.connect()
    with ThreadPoolExecutor(1) as others:
        acking = others.submit(ack, waiting, 1)
        ack(producer, 3)
        assert stream.ids(1) == [4]
        assert stream.poll(QUIET_S) is None
        assert not acking.done()
        holder.rollback()
        acking.result(WAIT_S)
    assert stream.ids(1) == [2]
    # An ack of what is acked already changes nothing, and says so.
    acked = "UPDATE my_message SET time_acked = NOW() WHERE id IN ({})"
    with producer.cursor() as cursor:
        assert cursor.execute(acked.format("1, 2")) == 1
        assert cursor.execute(acked.format("2")) == 0
    assert rows(producer, "SELECT id FROM my_message WHERE time_acked IS NULL") == ((4,),)


def test_the_number_of_a_key_and_strict_order_change_live(plain: Queue, producer) -> None:
    run(
        producer,
        "CREATE QUEUE my_message (id BIGINT NOT NULL, tenant INT) WITH (ack_wait = 600, order = strict)",
    )
    stream = plain.stream("STREAM id FROM my_message")
    for ident in range(1, 9):
        run(producer, f"INSERT INTO my_message (id, tenant) VALUES ({ident}, {ident % 2})")
    assert stream.ids(1) == [1]
    assert stream.poll(QUIET_S) is None
    assert rows(producer, "STREAM id FROM my_message LIMIT 5 WAIT 0") == ()
    ack(producer, 1)
    assert stream.ids(1) == [2]
    run(producer, "ALTER QUEUE my_message SET (order = DEFAULT, key = tenant, max_per_key = 2)")
    assert sorted(stream.ids(3)) == [3, 4, 5]
    assert stream.poll(QUIET_S) is None
    ack(producer, 4)
    assert stream.ids(1) == [6]
    run(producer, "ALTER QUEUE my_message SET (max_per_key = DEFAULT)")
    assert sorted(stream.ids(2)) == [7, 8]


@pytest.mark.one_server
@pytest.mark.parametrize("acks_with", ["the dispatcher", "the other member"])
def test_no_order_is_broken_when_the_dispatcher_is_killed(
    acks_with, server, database, fleet, consume
):
    first, second = fleet()
    producer = second.connect(database=database, autocommit=True)
    run(
        producer,
        "CREATE QUEUE my_message (id BIGINT NOT NULL, tenant INT)"
        " WITH (key = tenant, max_per_key = 1, ack_wait = 2, max_backoff = 2, poller_interval = 1)",
    )
    keys, each = 5, 40
    values = [f"({ident}, {ident % keys})" for ident in range(1, keys * each + 1)]
    run(producer, f"INSERT INTO my_message (id, tenant) VALUES {', '.join(values)}")
    acker = (first if acks_with == "the dispatcher" else second).connect(
        database=database, autocommit=True
    )
    acked: list[int] = []
    stream = consume(second, "STREAM id FROM my_message", database=database)
    unacked = {ident % keys: 0 for ident in range(keys)}
    while len(acked) < keys * each:
        ident = stream.next()[0]
        # All before it of its key are acked, and it is the next one, or a retry.
        expected = unacked[ident % keys] * keys + (ident % keys or keys)
        assert ident == expected or ident in acked, f"{ident} before {expected}"
        if ident in acked:
            continue
        ack(acker, ident)
        acked.append(ident)
        unacked[ident % keys] += 1
        if len(acked) == keys * each // 2:
            first.kill()
            acker = second.connect(database=database, autocommit=True)
    assert sorted(acked) == list(range(1, keys * each + 1))
    left = f"SELECT COUNT(*) FROM {database}.my_message WHERE time_acked IS NULL"
    eventually(lambda: execute(server, left) == ((0,),), "all are acked")
