"""What an ack locks on a small table, and what becomes of one that a deadlock undid."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import pymysql
import pytest
from pymysql.connections import Connection

from tests.fixtures.database_servers import root
from tests.fixtures.streams import eventually, rows, run
from tests.integration.conftest import Queue, SharedCluster
from tests.integration.delivery.producing import insert, insert_all


pytestmark = pytest.mark.db

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
        run(consumer, f"PREPARE ack FROM '{ack.format('?', '?')}'")
        run(consumer, "SET @acked = 5, @id = 1")
        assert run(consumer, "EXECUTE ack USING @acked, @id") == 1
    else:
        assert run(consumer, ack.format("NOW()", 1)) == 1
    insert(producer, 2)
    assert stream.next()[0] == 2
    consumer.commit()


@contextmanager
def rival(cluster: SharedCluster) -> Iterator["Connection[Any]"]:
    """A transaction past the proxy that has locked message 2, and changed more than an ack does."""
    connection = root(
        cluster.servers_of("plain")[0], database=cluster.databases["plain"], autocommit=False
    )
    try:
        run(connection, "UPDATE my_message SET epoch = epoch + 1 WHERE id = 2 OR id > 50")
        yield connection
    finally:
        connection.close()


def lock_waits(cluster: SharedCluster) -> int:
    # Counted, as a wait of this moment may be another's; innodb_trx tells for 100 ms what it told before.
    ((_, waits),) = cluster.direct("SHOW GLOBAL STATUS LIKE 'Innodb_row_lock_waits'")
    return int(waits)


def deadlocks(cluster: SharedCluster) -> int:
    ((count,),) = cluster.direct(
        "SELECT count FROM information_schema.innodb_metrics WHERE name = 'lock_deadlocks'"
    )
    return int(count)


@pytest.mark.parametrize("opening", ["", "BEGIN", "SET autocommit = 0"])
@pytest.mark.parametrize(
    "ack",
    [
        "UPDATE my_message SET time_acked = NOW() WHERE id IN (1, 2)",
        "UPDATE my_message SET time_acked = 1800000000000000005 WHERE id IN (1, 2) AND epoch < 100",
    ],
)
def test_an_ack_that_a_deadlock_undid_is_sent_again_and_in_a_transaction_an_error(
    plain, opening, ack
):
    producer = plain.create()
    insert_all(producer, (1, 2, *range(51, 100)))
    consumer = plain.connect()
    before, waits = deadlocks(plain.cluster), lock_waits(plain.cluster)
    with rival(plain.cluster) as other, ThreadPoolExecutor(1) as pool:
        if opening:
            run(consumer, opening)
        acked = pool.submit(run, consumer, ack)
        eventually(lambda: lock_waits(plain.cluster) > waits)
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
