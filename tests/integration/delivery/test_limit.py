"""STREAM … LIMIT n [WAIT s]: an answer that ends, for any driver and over one connection."""

import time
from contextlib import suppress
from typing import Any

import pymysql
import pytest
from pymysql.constants import SERVER_STATUS

from tests.cases import cases, in_turn
from tests.fixtures.streams import change_user, eventually, reset, rows, run
from tests.integration.conftest import Queue
from tests.integration.delivery.producing import insert_all


def taken(connection: Any, limit: int, wait: str = " WAIT 0") -> list[int]:
    return sorted(
        i for (i,) in rows(connection, f"STREAM id FROM my_message LIMIT {limit}{wait}")
    )


def test_one_connection_takes_acks_and_takes_again(queue: Queue) -> None:
    connection = queue.create()
    assert taken(connection, 5) == []
    insert_all(connection, range(1, 31))
    first = taken(connection, 12)
    assert len(first) == 12
    run(connection, f"UPDATE my_message SET time_acked=NOW() WHERE id IN ({str(first)[1:-1]})")
    second = taken(connection, 100)
    assert sorted(first + second) == list(range(1, 31))
    assert taken(connection, 5) == []
    assert rows(connection, "SELECT 1") == ((1,),)


@pytest.mark.parametrize(
    "emptied",
    [
        "DELETE FROM my_message",
        "TRUNCATE my_message",
        "ALTER TABLE my_message TRUNCATE PARTITION ALL",
    ],
)
def test_an_emptied_queue_takes_the_same_ids_again(queue: Queue, emptied: str) -> None:
    connection = queue.create(more=",vt_ack_wait=600,vt_lease_delay=60")
    if "PARTITION" in emptied:
        run(connection, "ALTER TABLE my_message PARTITION BY KEY (id) PARTITIONS 2")
    insert_all(connection, range(1, 4))
    assert taken(connection, 3) == [1, 2, 3]
    run(connection, emptied)
    insert_all(connection, range(1, 4))
    again: set[int] = set()

    def is_whole() -> bool:
        again.update(taken(connection, 3))
        return again == {1, 2, 3}

    eventually(is_whole)


@pytest.mark.parametrize(
    "sql", ["BEGIN; DELETE FROM my_message; ROLLBACK", "ALTER TABLE my_message ADD id INT"]
)
def test_rows_show_their_leases_before_their_ids_may_come_again(queue: Queue, sql: str) -> None:
    connection = queue.create(more=",vt_ack_wait=600,vt_lease_delay=60")
    insert_all(connection, range(1, 4))
    assert taken(connection, 3) == [1, 2, 3]
    with suppress(pymysql.err.OperationalError):  # a column twice: the queue is not read again
        for each in sql.split("; "):
            run(connection, each)
    assert rows(connection, "SELECT epoch FROM my_message") == ((1,),) * 3


def test_it_waits_for_the_first_message_and_no_longer(queue: Queue) -> None:
    connection = queue.create()
    began_s = time.monotonic()
    assert taken(connection, 5, " WAIT 0.5") == []
    assert time.monotonic() - began_s >= 0.5
    moment = "INSERT INTO my_message (id, time_next) VALUES (1, NOW() + INTERVAL 1 SECOND)"
    run(connection, moment)
    assert taken(connection, 5, " WAIT 60") == [1]
    run(connection, moment.replace("(1,", "(2,"))
    assert taken(connection, 5, "") == [2]


def test_in_a_transaction_it_is_sent_when_asked_and_acked_by_the_commit(queue: Queue) -> None:
    queue.create()
    connection = queue.connect(autocommit=False)
    other = queue.connect()
    insert_all(other, range(1, 4))
    ack = "UPDATE my_message SET time_acked = NOW() WHERE id IN (1, 2, 3)"
    connection.begin()
    assert taken(connection, 5) == [1, 2, 3]
    assert connection.server_status & SERVER_STATUS.SERVER_STATUS_IN_TRANS
    assert run(connection, ack) == 3
    connection.rollback()
    assert taken(other, 5) == [], "they are sent, and held by their leases"
    connection.begin()
    assert run(connection, ack) == 3
    connection.commit()
    acked = "SELECT COUNT(*) FROM my_message WHERE time_acked IS NOT NULL"
    assert rows(other, acked) == ((3,),)


def test_a_number_counts_however_a_driver_sends_it(queue: Queue) -> None:
    """PHP's mysqli binds strings, and Node's mysql2 doubles."""
    connection = queue.create()
    ends = ("'2' WAIT '0'", "2e0 WAIT 0e0", "2.0 WAIT '0.0'", "99999999999999999999 WAIT 0")
    for number, end in enumerate(ends):
        idents = (10 * number, 10 * number + 1)
        insert_all(connection, idents)
        stream = f"STREAM id FROM my_message LIMIT {end}"
        assert sorted(rows(connection, stream)) == [(ident,) for ident in idents], end
        assert rows(connection, stream) == ()


@pytest.mark.parametrize("end", [reset, change_user, lambda connection: connection.close()])
def test_a_session_that_ends_or_begins_anew_gives_nothing_back(queue: Queue, end: Any) -> None:
    connection = queue.create(more=",vt_release_after=0.2")
    insert_all(connection, range(1, 4))
    assert taken(connection, 3) == [1, 2, 3]
    end(connection)
    queue.stream().nothing(1)


@pytest.mark.parametrize("kill", ["KILL QUERY", "KILL"])
def test_it_is_killed_in_its_wait(queue: Queue, kill: str) -> None:
    connection = queue.create()
    waiting = queue.stream("STREAM * FROM my_message LIMIT 5")
    run(connection, f"{kill} {waiting.id}")
    if kill == "KILL QUERY":
        assert waiting.error()[0] == 1317
        assert rows(waiting.connection, "SELECT 1") == ((1,),)
    else:
        assert waiting.is_closed()
    insert_all(connection, [1])
    assert taken(connection, 5) == [1], "nobody else waits for it"


@pytest.fixture
def created(queue: Queue) -> Any:
    return queue.create()


@in_turn
@cases(end=str, sentence=str)
def test_a_bad_end_is_refused_and_the_connection_goes_on(created, end, sentence):
    with pytest.raises(pymysql.MySQLError, match=sentence):
        rows(created, f"STREAM * FROM my_message {end}")
    assert rows(created, "SELECT 1") == ((1,),)
