"""Keys: messages of one wait for one another, take turns with those of others (`vt_fair`), and go to the streams that name theirs."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.fixtures.database_servers import execute
from tests.fixtures.streams import WAIT_S, eventually, rows, run
from tests.integration.conftest import Queue, SharedCluster


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
    assert run(producer, acked.format("1, 2")) == 1
    assert run(producer, acked.format("2")) == 0
    assert rows(producer, "SELECT id FROM my_message WHERE time_acked IS NULL") == ((4,),)


def test_the_number_of_a_key_and_strict_order_change_live(plain: Queue, producer) -> None:
    create = "CREATE QUEUE my_message (id BIGINT NOT NULL, tenant INT) WITH (ack_wait = 600, order = strict)"
    run(producer, create)
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
def test_no_order_is_broken_by_a_killed_dispatcher(acks_with, server, database, fleet, consume):
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


FAIR = (
    "CREATE QUEUE my_message (id BIGINT NOT NULL, tenant VARCHAR(20))"
    " WITH (key = tenant, fair = on, ack_wait = 600, poller_interval = 600, cache_size = 200,"
    " batch_size = 5)"
)
STREAM = "STREAM /*vt+ PREFETCH=10 */ id, tenant FROM my_message"


def insert_of_key(connection, key, *ids, priority=50):
    values = ", ".join(f"({ident}, {key}, {priority})" for ident in ids)
    run(connection, f"INSERT INTO my_message (id, tenant, priority) VALUES {values}")


def sent_until(consumer, producer, key, count):
    """Take and ack messages until there are *count* of *key*; return how many others came before."""
    others, left = 0, count
    while left:
        ident, found = consumer.next()
        run(producer, f"UPDATE my_message SET time_acked = NOW() WHERE id = {ident}")
        if found == key:
            left -= 1
        else:
            others += 1
    return others


def test_a_tenant_does_not_wait_for_the_flood_of_another(plain: Queue, producer) -> None:
    run(producer, FAIR)
    insert_of_key(producer, "'flood'", *range(1, 5001), priority=1)
    insert_of_key(producer, "'small'", *range(10_000, 10_010))
    insert_of_key(producer, "NULL", *range(20_000, 20_010))
    consumer = plain.stream(STREAM)
    # Three of each key in nine messages, beside those that are on their way.
    assert sent_until(consumer, producer, "small", 10) <= 2 * 10 + 25
    insert_of_key(producer, "'flood'", *range(5001, 6001))
    insert_of_key(producer, "'new'", 30_000, 30_001)
    assert sent_until(consumer, producer, "new", 2) <= 45
    insert_of_key(producer, "NULL", 40_000, 40_001)
    assert sent_until(consumer, producer, None, 2) <= 60


KEYED = (
    "CREATE QUEUE my_message (id BIGINT NOT NULL, tenant VARCHAR(20), n INT)"
    " WITH (key = tenant, ack_wait = 600, poller_interval = 600, cache_size = 50)"
)


@pytest.fixture
def keyed_producer(producer):
    run(producer, KEYED)
    return producer


def insert_keyed(connection, *messages):
    values = ", ".join(f"({ident}, {key!r})" for ident, key in messages)
    run(connection, f"INSERT INTO my_message (id, tenant) VALUES {values}")


def test_it_gets_messages_of_its_keys_and_others_get_theirs(plain, keyed_producer, consume):
    one = plain.stream("STREAM id FROM my_message WHERE tenant = 'a'")
    sql = "STREAM /*vt+ PREFETCH=2 */ id, tenant FROM my_message WHERE Tenant IN ('b', 'it''s')"
    two = consume(plain.proxy, sql, database="plain")
    insert_keyed(keyed_producer, (1, "a"), (2, "b"), (3, "c"), (4, "it's"), (5, "b"), (6, "a"))
    assert sorted(one.ids(2)) == [1, 6]
    assert sorted(two.ids(2)) == [2, 4]
    assert two.poll(QUIET_S) is None
    run(keyed_producer, "UPDATE my_message SET time_acked = NOW() WHERE id = 2")
    assert two.next() == (5, "b")
    assert one.poll(QUIET_S) is None
    # Whoever names no key takes all.
    rest = plain.stream("STREAM id FROM my_message")
    assert rest.ids(1) == [3]


def test_a_flood_of_other_keys_does_not_hide_its_messages(plain, keyed_producer, consume):
    flood = ", ".join(f"({ident}, 'flood')" for ident in range(1, 5001))
    run(keyed_producer, f"INSERT INTO my_message (id, tenant) VALUES {flood}")
    insert_keyed(keyed_producer, (9001, "a"), (9002, "a"))
    other = plain.stream("STREAM /*vt+ PREFETCH=1 */ id FROM my_message")
    assert other.ids(1) == [1]
    one = plain.stream("STREAM id FROM my_message WHERE tenant = 'a'")
    assert one.ids(2) == [9001, 9002]
    insert_keyed(keyed_producer, (9003, "a"))
    assert one.ids(1) == [9003]
    # And its messages block nobody: it is full, and the flood goes on.
    sql = "STREAM /*vt+ PREFETCH=1 */ id FROM my_message WHERE tenant = 'b'"
    full = consume(plain.proxy, sql, database="plain")
    insert_keyed(keyed_producer, *((9100 + number, "b") for number in range(200)))
    assert full.ids(1) == [9100]
    run(keyed_producer, "UPDATE my_message SET time_acked = NOW() WHERE id = 1")
    assert other.next()


def test_prepared_and_with_an_end(cluster: SharedCluster, keyed_producer) -> None:
    insert_keyed(keyed_producer, (1, "a"), (2, "b"), (3, "b"), (4, "c"))
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
    assert rows(keyed_producer, waited) == ((1,),)
