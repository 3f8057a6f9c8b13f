"""STREAM … WHERE key: a stream is given messages of the keys that it names, on both servers, through any member."""

import pytest

from tests.fixtures.streams import rows, run
from tests.integration.conftest import Queue, SharedCluster


pytestmark = pytest.mark.db

QUIET_S = 0.3
MAKE = (
    "CREATE QUEUE my_message (id BIGINT NOT NULL, tenant VARCHAR(20), n INT)"
    " WITH (key = tenant, ack_wait = 600, poller_interval = 600, cache_size = 50)"
)


@pytest.fixture
def producer(plain: Queue):
    connection = plain.connect()
    run(connection, MAKE)
    return connection


def insert(connection, *messages):
    values = ", ".join(f"({ident}, {key!r})" for ident, key in messages)
    run(connection, f"INSERT INTO my_message (id, tenant) VALUES {values}")


def test_it_gets_messages_of_its_keys_and_others_get_theirs(plain, producer, consume):
    one = plain.stream("STREAM id FROM my_message WHERE tenant = 'a'")
    two = consume(
        plain.proxy,
        "STREAM /*vt+ PREFETCH=2 */ id, tenant FROM my_message WHERE Tenant IN ('b', 'it''s')",
        database="plain",
    )
    insert(producer, (1, "a"), (2, "b"), (3, "c"), (4, "it's"), (5, "b"), (6, "a"))
    assert sorted(one.ids(2)) == [1, 6]
    assert sorted(two.ids(2)) == [2, 4]
    assert two.poll(QUIET_S) is None
    run(producer, "UPDATE my_message SET time_acked = NOW() WHERE id = 2")
    assert two.next() == (5, "b")
    assert one.poll(QUIET_S) is None
    # Whoever names no key takes all.
    rest = plain.stream("STREAM id FROM my_message")
    assert rest.ids(1) == [3]


def test_a_flood_of_other_keys_does_not_hide_its_messages(plain, producer, consume):
    flood = ", ".join(f"({ident}, 'flood')" for ident in range(1, 5001))
    run(producer, f"INSERT INTO my_message (id, tenant) VALUES {flood}")
    insert(producer, (9001, "a"), (9002, "a"))
    other = plain.stream("STREAM /*vt+ PREFETCH=1 */ id FROM my_message")
    assert other.ids(1) == [1]
    one = plain.stream("STREAM id FROM my_message WHERE tenant = 'a'")
    assert one.ids(2) == [9001, 9002]
    insert(producer, (9003, "a"))
    assert one.ids(1) == [9003]
    # And its messages block nobody: it is full, and the flood goes on.
    full = consume(
        plain.proxy,
        "STREAM /*vt+ PREFETCH=1 */ id FROM my_message WHERE tenant = 'b'",
        database="plain",
    )
    insert(producer, *((9100 + number, "b") for number in range(200)))
    assert full.ids(1) == [9100]
    run(producer, "UPDATE my_message SET time_acked = NOW() WHERE id = 1")
    assert other.next()


def test_prepared_and_with_an_end(cluster: SharedCluster, producer) -> None:
    insert(producer, (1, "a"), (2, "b"), (3, "b"), (4, "c"))
    client = cluster.proxy.connector("plain")
    cursor = client.cursor(prepared=True)
    sql = "STREAM id, tenant FROM my_message WHERE tenant IN (%s, %s) LIMIT %s WAIT 0"
    cursor.execute(sql, ("b", "c", 2))
    # Its keys take turns.
    assert sorted(cursor.fetchall()) == [(2, "b"), (4, "c")]
    cursor.execute(sql, ("b", "c", 10))
    assert cursor.fetchall() == [(3, "b")]
    cursor.execute(sql, ("b", "c", 10))
    assert cursor.fetchall() == []
    client.close()
    waited = "STREAM id FROM my_message WHERE tenant = 'a' LIMIT 3 WAIT 30"
    assert rows(producer, waited) == ((1,),)


def test_a_member_that_does_not_dispatch_gives_them_as_well(server, database, fleet, consume):
    _, second = fleet()
    producer = second.connect(database=database, autocommit=True)
    run(producer, MAKE)
    insert(producer, (1, "a"), (2, "b"))
    one = consume(second, "STREAM id FROM my_message WHERE tenant = 'b'", database=database)
    assert one.ids(1) == [2]
    insert(producer, (3, "a"), (4, "b"))
    assert one.ids(1) == [4]
    assert one.poll(QUIET_S) is None
    ended = "STREAM id FROM my_message WHERE tenant IN ('a', 'b') LIMIT 9 WAIT 0"
    assert sorted(rows(producer, ended)) == [(1,), (3,)]
