"""Acknowledgements and other UPDATEs of messages: what they count, what they lock, and which ids they mean."""

import time
from concurrent.futures import ThreadPoolExecutor

import mysql.connector
import pymysql
import pytest

from tests.fixtures.database_servers import root
from tests.fixtures.streams import eventually, refused, refuses, rows, run
from tests.integration.conftest import Queue, SharedCluster
from tests.integration.delivery.producing import insert, insert_all


SECOND_NS = 10**9


@pytest.mark.parametrize(
    "ack",
    [
        "UPDATE my_message SET time_acked = 1800000000000000005 WHERE id IN (1, 4, 99)",
        "UPDATE my_message SET time_acked = NOW() WHERE id IN (1, 4)",
        "UPDATE my_message SET time_acked = UNIX_TIMESTAMP() WHERE id = 1 OR id = 4",
        "UPDATE my_message SET time_acked = CURRENT_TIMESTAMP, time_next = NULL"
        " WHERE id IN (1, 4) AND time_acked IS NULL",
    ],
)
def test_it_counts_each_row_once_and_leaves_the_row_complete(queue: Queue, ack: str) -> None:
    producer, stream = queue.create(ack_wait=0.4), queue.stream()
    insert_all(producer, (1, 4))
    stream.take(2)
    assert run(producer, ack) == 2
    assert run(producer, ack) == 0
    found = rows(producer, "SELECT time_next, time_acked FROM my_message")
    assert [time_next for time_next, _ in found] == [None, None]
    if "1800000000000000005" in ack:
        assert {time_acked for _, time_acked in found} == {1800000000000000005}
    else:
        for _, time_acked in found:
            assert abs(time_acked - time.time_ns()) < 60 * SECOND_NS
    stream.nothing_new(producer)


def test_one_by_a_join_is_refused_and_a_reschedule_heard(plain: Queue) -> None:
    producer, stream = plain.create(ack_wait=600), plain.stream()
    run(producer, "CREATE TABLE done (id BIGINT PRIMARY KEY, time_next INT)")
    run(producer, "INSERT INTO done (id) VALUES (1), (4)")
    insert_all(producer, (1, 2, 4))
    stream.take(3)
    ack = "UPDATE done JOIN my_message m ON m.id = done.id SET time_acked = NOW()"
    code, text = refused(producer, ack)
    assert code == 1235
    assert text.endswith("UPDATE the queue alone, WHERE id IN (SELECT …)")
    ack = "UPDATE my_message SET time_acked = NOW() WHERE id IN (SELECT id FROM done)"
    assert [run(producer, ack) for _ in range(2)] == [2, 0]
    run(producer, "UPDATE done SET id = 2 WHERE id = 1")
    run(
        producer,
        "UPDATE done JOIN my_message m ON m.id = done.id SET m.time_next = 0 WHERE m.id = 2",
    )
    assert stream.ids(1) == [2]


def test_one_that_leaves_a_message_unacked_leaves_its_lease(queue: Queue) -> None:
    """As Django's `bulk_update` writes it."""
    producer, stream = queue.create(ack_wait=600), queue.stream()
    insert_all(producer, (1, 2, 4))
    stream.take(3)
    ack = "UPDATE my_message SET time_acked = CASE WHEN id = 2 THEN NULL ELSE NOW() END WHERE id IN (1, 2, 4)"
    assert run(producer, ack) == 2
    leased = (
        f"SELECT id FROM my_message WHERE time_acked IS NULL AND time_next > {time.time_ns()}"
    )
    assert rows(producer, leased) == ((2,),)
    stream.nothing_new(producer)
    assert run(producer, "UPDATE my_message SET time_acked = NOW() WHERE id = 2") == 1


@pytest.mark.parametrize("undo", ["ROLLBACK", "ROLLBACK TO a"])
def test_it_counts_on_commit(queue: Queue, undo: str) -> None:
    producer, stream = queue.create(ack_wait=0.4, more=",vt_max_backoff=0.4"), queue.stream()
    consumer = queue.connect(autocommit=False)
    insert_all(producer, (1, 4))
    stream.take(2)
    ack = "UPDATE my_message SET time_acked = NOW() WHERE id IN (1, 4)"
    run(consumer, "SAVEPOINT a")
    assert run(consumer, ack) == 2
    run(consumer, undo)
    consumer.commit()
    # A row that was locked when it was due is tried again a second later.
    stream.comes(1, 4)
    assert run(consumer, ack) == 2
    consumer.commit()
    stream.nothing_new(producer)


def test_acked_rows_are_purged_once_they_are_old_enough_and_others_never(queue: Queue) -> None:
    producer = queue.create(purge_after=1, poller_interval=0.3)
    queue.stream()
    insert_all(producer, range(1, 11))
    acked_at = time.monotonic()
    run(producer, "UPDATE my_message SET time_acked = NOW() WHERE id IN (1, 4)")
    remaining = "SELECT id FROM my_message"
    eventually(lambda: len(rows(producer, remaining)) == 8, "two rows purged")
    assert time.monotonic() - acked_at >= 0.9
    assert {1, 4}.isdisjoint(ident for (ident,) in rows(producer, remaining))


DEADLOCK = 1213
# Where as few rows wait as are acked, servers think of the index that begins with time_acked.
ACKS = [
    "UPDATE my_message SET time_acked = NOW() WHERE id IN (1, 3, 5, 98, 99)",
    "UPDATE my_message SET time_acked = 1800000000000000005, time_next = NULL"
    " WHERE id IN (1, 3, 5, 98, 99) AND time_acked IS NULL",
]


@pytest.mark.parametrize("ack", ACKS)
def test_an_open_ack_locks_no_other_message(plain: Queue, ack: str) -> None:
    producer = plain.create(ack_wait=0.3, more=",vt_max_backoff=0.3")
    consumer = plain.connect(autocommit=False)
    stream = plain.stream()
    insert_all(producer, (1, 2, 3))
    stream.take(3)
    assert run(consumer, ack) == 2
    assert stream.next()[0] == 2
    consumer.commit()


@pytest.mark.parametrize("prepared", [False, True])
def test_an_open_ack_lets_others_insert(plain: Queue, *, prepared: bool) -> None:
    plain.create()
    producer = plain.connect(init_command="SET innodb_lock_wait_timeout = 1")
    consumer = plain.connect(autocommit=False)
    stream = plain.stream()
    insert(producer, 1)
    stream.next()
    ack = "UPDATE my_message SET time_acked = {} WHERE id = {}"
    if prepared:
        run(consumer, f"PREPARE ack FROM '{ack.format('NOW()', '?')}'")
        run(consumer, "SET @id = 1")
        assert run(consumer, "EXECUTE ack USING @id") == 1
    else:
        assert run(consumer, ack.format("NOW()", 1)) == 1
    insert(producer, 2)
    assert stream.next()[0] == 2
    consumer.commit()


def lock_waits(cluster: SharedCluster) -> int:
    ((_, waits),) = cluster.direct("SHOW GLOBAL STATUS LIKE 'Innodb_row_lock_waits'")
    return int(waits)


def ack_waits(cluster: SharedCluster) -> bool:
    """Whether an UPDATE of the queue waits for a lock, or did 100 ms ago."""
    asked = "SELECT 1 FROM information_schema.innodb_trx WHERE trx_state = 'LOCK WAIT' AND trx_query LIKE 'UPDATE%my_message%'"
    return bool(cluster.direct(asked))


def deadlocks(cluster: SharedCluster) -> int:
    asked = "SELECT count FROM information_schema.innodb_metrics WHERE name = 'lock_deadlocks'"
    ((count,),) = cluster.direct(asked)
    return int(count)


@pytest.mark.parametrize("opening", ["", "BEGIN", "SET autocommit = 0"])
@pytest.mark.parametrize(
    "ack",
    [
        "UPDATE my_message SET time_acked = NOW() WHERE id IN (1, 2)",
        "UPDATE my_message SET time_acked = 1800000000000000005 WHERE id IN (1, 2) AND epoch < 100",
    ],
)
def test_an_ack_that_a_deadlock_undid_is_sent_again_or_an_error(plain, opening, ack):
    producer = plain.create()
    insert_all(producer, (1, 2, *range(51, 100)))
    consumer = plain.connect()
    before, waits = deadlocks(plain.cluster), lock_waits(plain.cluster)
    server, database = plain.cluster.servers[0], plain.cluster.databases["plain"]
    with (
        root(server, database=database, autocommit=False) as other,
        ThreadPoolExecutor(1) as pool,
    ):
        # It has locked message 2, and changed more than an ack does.
        run(other, "UPDATE my_message SET epoch = epoch + 1 WHERE id = 2 OR id > 50")
        if opening:
            run(consumer, opening)
        acked = pool.submit(run, consumer, ack)
        # Either alone may be about another's wait, or one that is over.
        eventually(lambda: lock_waits(plain.cluster) > waits and ack_waits(plain.cluster))
        run(other, "UPDATE my_message SET epoch = epoch + 1 WHERE id = 1")
        other.commit()
        if opening:
            with pytest.raises(pymysql.err.OperationalError) as caught:
                acked.result()
            assert caught.value.args[0] == DEADLOCK
            run(consumer, "ROLLBACK")
        else:
            assert acked.result() == 2
    assert deadlocks(plain.cluster) == before + 1
    found = rows(producer, "SELECT COUNT(*) FROM my_message WHERE time_acked IS NOT NULL")
    assert found == ((0 if opening else 2,),)


# Rounded they are others, and none of them is what another one is. Of the first JavaScript makes a number with fewer digits than
# the double has.
IDS = (72057594037927943, *(2**60 + 1000 * n + 77 for n in range(1, 8)))
ACK = "UPDATE my_message SET time_acked = NOW() WHERE id IN ({})"


def rounded(ident: int) -> int:
    return 72057594037927940 if ident == IDS[0] else int(float(ident))


def test_a_rounded_id_of_a_message_in_flight_is_refused(queue: Queue) -> None:
    client, stream = queue.create(), queue.stream("STREAM id FROM my_message")
    values = ", ".join(f"({ident}, 1)" for ident in IDS)
    run(client, f"INSERT INTO my_message (id, tenant_id) VALUES {values}")
    assert sorted(row[0] for row in stream.take(len(IDS))) == list(IDS)
    for ident in IDS:
        refuses(
            client,
            ACK.format(rounded(ident)),
            1690,
            f"no message has the id {rounded(ident)}, and {ident} is in flight",
            "supportBigNumbers",
        )
    assert refused(client, ACK.format(", ".join(map(str, map(rounded, IDS)))))[0] == 1690
    assert rows(client, "SELECT COUNT(*) FROM my_message WHERE time_acked IS NULL") == ((8,),)
    with queue.cluster.proxy.connector(queue.keyspace) as connection:
        cursor = connection.cursor(prepared=True)
        with pytest.raises(mysql.connector.Error, match="the driver has rounded it"):
            cursor.execute(ACK.format("%s"), (rounded(IDS[0]),))
        cursor.execute(ACK.format("%s"), (IDS[1],))
        assert cursor.rowcount == 1
    # Right ids, and a second ack by one, are no mistake.
    assert run(client, ACK.format(IDS[0])) == 1
    assert run(client, ACK.format(IDS[0])) == 0
    assert run(client, ACK.format(rounded(IDS[0]))) == 0, "it is no longer in flight"
