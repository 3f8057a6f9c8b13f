"""What is written later: acks of `vt_ack = early`, and leases of first deliveries. Nothing is lost by either."""

import os
import signal
import time
from collections.abc import Callable
from typing import Any

import pytest

from tests.fixtures.database_servers import execute
from tests.fixtures.running_proxy import RunningProxy, keyspace_toml
from tests.fixtures.streams import eventually, message_table, refused, rows, run
from tests.integration.conftest import Queue
from tests.integration.delivery.producing import insert_all, locked


EARLY = ",vt_ack=early,vt_release_after=never"
ACK = "UPDATE my_message SET time_acked = NOW(), time_next = NULL WHERE id = {} AND time_acked IS NULL"
HELD = "SELECT id FROM my_message WHERE id = 1 FOR UPDATE"
IS_ACKED = "SELECT time_acked > 0, time_next, epoch FROM my_message WHERE id = {}"


def acked(client: Any, ident: int) -> bool:
    return rows(client, IS_ACKED.format(ident)) == ((1, None, 1),)


def by_text(client: Any) -> Callable[[int], int]:
    return lambda ident: run(client, ACK.format(ident))


def prepared_ack(proxy: RunningProxy, database: str) -> Callable[[int], int]:
    client = proxy.connector(database)

    def ack(ident: int) -> int:
        cursor = client.cursor(prepared=True)
        cursor.execute(ACK.replace("NOW()", "%s").format("%s"), (17 * 10**17, ident))
        return int(cursor.rowcount)

    return ack


@pytest.mark.parametrize("is_prepared", [False, True])
def test_an_ack_is_answered_though_somebody_holds_the_row(plain, is_prepared):
    client = plain.create(ack_wait=600, more=EARLY)
    ack = prepared_ack(plain.proxy, "plain") if is_prepared else by_text(plain.connect())
    insert_all(client, [1, 2])
    stream = plain.stream()
    assert sorted(stream.ids(2)) == [1, 2]
    with locked(plain.cluster.servers[0], plain.cluster.databases["plain"], HELD):
        assert ack(1) == 1
        assert ack(1) == 0, "it is acked"
        assert ack(2) == 1
        eventually(lambda: acked(client, 2), "what nobody holds is written")
        assert rows(client, "SELECT time_acked FROM my_message WHERE id = 1") == ((None,),)
    eventually(lambda: acked(client, 1), "and the other one as soon as it can be")
    assert ack(1) == 0
    in_flight = "SELECT acked, in_flight FROM streamfrom.queues WHERE keyspace = 'plain'"
    assert rows(client, in_flight) == ((2, 0),)


def test_the_rest_of_the_session_sees_a_statement_like_any_other(plain: Queue) -> None:
    client = plain.create(ack_wait=600, more=EARLY)
    insert_all(client, [1, 2, 3])
    assert sorted(plain.stream().ids(3)) == [1, 2, 3]
    cursor = client.cursor()
    with locked(plain.cluster.servers[0], plain.cluster.databases["plain"], HELD):
        assert cursor.execute(ACK.replace("= {}", "IN (1, 2)")) == 2
    assert rows(client, "SELECT ROW_COUNT()") == ((2,),)
    cursor.execute(ACK.format(1))
    assert rows(client, "SHOW WARNINGS") == ()
    # What was never sent, what was acked, and what does not exist are left to the server.
    assert cursor.execute(ACK.replace("= {}", "IN (3, 99)")) == 1
    assert cursor.execute("DELETE FROM my_message WHERE id = 3") == 1
    assert rows(client, "SELECT COUNT(*) FROM my_message") == ((2,),)


def test_the_ack_of_a_transaction_is_never_early_nor_of_who_may_only_read(plain: Queue) -> None:
    client = plain.create(ack_wait=600, more=EARLY)
    worker = plain.connect(autocommit=False)
    insert_all(client, [1, 2])
    assert sorted(plain.stream().ids(2)) == [1, 2]
    for scope in ("SESSION ", ""):  # "": the next transaction alone
        run(client, f"SET {scope}TRANSACTION READ ONLY")
        assert refused(client, ACK.format(1))[0] == 1792
        run(client, "SET SESSION TRANSACTION READ WRITE")
    assert run(worker, ACK.format(1)) == 1
    run(client, "BEGIN")
    assert run(client, ACK.format(2)) == 1
    waiting = "SELECT COUNT(*) FROM my_message WHERE time_acked IS NULL"
    assert plain.cluster.direct(waiting) == ((2,),)
    worker.rollback()
    client.commit()
    assert plain.cluster.direct(waiting) == ((1,),)


def test_whoever_changes_an_acked_message_finds_it_acked(queue: Queue) -> None:
    client = queue.create(ack_wait=600, more=EARLY)
    insert_all(client, range(1, 11))
    stream = queue.stream()
    assert sorted(stream.ids(10)) == list(range(1, 11))
    for ident in range(1, 6):
        assert run(client, ACK.format(ident)) == 1
        again = f"UPDATE my_message SET time_next = 0 WHERE id = {ident} AND time_acked IS NULL"
        assert run(client, again) == 0
    assert run(client, ACK.format(6)) == 1
    client.begin()
    assert run(client, ACK.format(6)) == 0
    client.rollback()
    assert run(client, ACK.format(7)) == 1
    # Revived, it is sent again: no ack that is on its way undoes that.
    revived = "UPDATE my_message SET time_acked = NULL, time_next = 0 WHERE id = 7"
    assert run(client, revived) == 1
    assert stream.ids(1) == [7]
    assert run(client, ACK.format(8)) == 1
    assert run(client, "DELETE FROM my_message WHERE id = 8") == 1
    insert_all(client, [8])
    assert stream.ids(1) == [8]


def test_what_a_dead_proxy_had_not_written_comes_again(server, database, start_proxy, consume):
    execute(server, message_table(ack_wait=600, more=EARLY), database=database)
    proxy = start_proxy(keyspace_toml(database, [server]))
    client = proxy.connect(database=database, autocommit=True)
    insert_all(client, [1, 2])
    assert sorted(consume(proxy, database=database).ids(2)) == [1, 2]
    with locked(server, database, HELD):
        assert run(client, ACK.format(1)) == 1
        assert run(client, ACK.format(2)) == 1
        eventually(lambda: acked(client, 2), "it is written")
        proxy.kill()
    assert consume(start_proxy(keyspace_toml(database, [server])), database=database).ids(
        1
    ) == [1]


def test_an_ack_through_any_member_is_one_of_the_dispatcher(server, database, fleet, consume):
    execute(server, message_table(ack_wait=600, more=EARLY), database=database)
    first, second = fleet()
    stream = consume(second, database=database)
    client = second.connect(database=database, autocommit=True)
    insert_all(client, range(1, 7))
    assert sorted(stream.ids(6)) == [1, 2, 3, 4, 5, 6]
    ack = prepared_ack(second, database)
    with locked(server, database, HELD):
        assert run(client, ACK.format(1)) == 1
        assert run(client, ACK.format(1)) == 0, "it is acked, though its row does not show it"
        assert rows(client, "SELECT ROW_COUNT()") == ((0,),)
        assert ack(2) == 1
        assert rows(client, "SELECT time_acked FROM my_message WHERE id = 1") == ((None,),)
    eventually(lambda: acked(client, 1) and acked(client, 2), "they are written")
    # What the dispatcher does not know to be in flight is committed.
    assert run(client, ACK.replace("= {}", "IN (3, 99)")) == 1
    assert acked(client, 3)
    # A reschedule and a later ack ask the member that dispatches, and find the acks in the rows.
    at_first = first.connect(database=database, autocommit=True)
    assert run(at_first, ACK.format(4)) == 1
    again = "UPDATE my_message SET time_next = 0 WHERE id = 4 AND time_acked IS NULL"
    assert run(client, again) == 0
    assert run(client, ACK.format(5)) == 1
    client.begin()
    assert run(client, ACK.format(5)) == 0
    client.rollback()
    # Its acks are committed as ever once the dispatcher does not answer.
    os.kill(first.pid, signal.SIGSTOP)
    try:
        assert run(client, ACK.format(6)) == 1
        assert acked(client, 6)
    finally:
        os.kill(first.pid, signal.SIGCONT)


# Nothing is written by itself for as long as a test takes.
LONG = ",vt_lease_delay=300,vt_release_after=never"
SHOWN = "SELECT epoch, IFNULL(time_next, 0) FROM my_message WHERE id = {}"


def test_an_ack_is_the_one_write_and_counts_the_send(queue: Queue) -> None:
    other = queue.create(ack_wait=600, more=LONG)
    insert_all(other, [1, 2])
    run(other, "INSERT INTO my_message (id, time_next) VALUES (3, NOW() + INTERVAL 1 DAY)")
    stream = queue.stream()
    assert sorted(stream.ids(2)) == [1, 2]
    assert rows(other, SHOWN.format(1)) == ((0, 0),)
    ack = "UPDATE my_message SET time_acked = NOW(), time_next = NULL WHERE id = {}"
    assert run(other, ack.format(1)) == 1
    assert rows(other, SHOWN.format(1)) == ((1, 0),)
    other.begin()
    by_list = "UPDATE my_message SET time_acked = 1800000000000000005 WHERE id IN (2)"
    assert run(other, by_list) == 1
    other.commit()
    assert rows(other, SHOWN.format(2)) == ((1, 0),)
    assert other.cursor().execute(ack.format(3)) == 1
    assert rows(other, SHOWN.format(3)) == ((0, 0),), "it was never sent"
    assert other.cursor().execute(ack.format(3)) == 0


def test_a_reschedule_finds_the_lease_of_its_row_written(queue: Queue) -> None:
    other = queue.create(ack_wait=600, more=LONG)
    insert_all(other, [1, 2])
    stream = queue.stream()
    assert sorted(stream.ids(2)) == [1, 2]
    sent_ns = time.time_ns()
    heartbeat = "UPDATE my_message SET time_next = time_next + INTERVAL 1 DAY WHERE id = 1"
    assert other.cursor().execute(heartbeat) == 1
    ((epoch, until_ns),) = rows(other, SHOWN.format(1))
    assert epoch == 1
    assert until_ns > sent_ns + 86_400 * 10**9
    assert rows(other, SHOWN.format(2)) == ((0, 0),), "nobody has changed it"
    # It is due already as far as its row shows, and yet this changes it and brings it back.
    reject = "UPDATE my_message SET time_next = 0 WHERE id = 2 AND epoch = 1"
    assert other.cursor().execute(reject) == 1
    assert stream.ids(1) == [2]
    assert rows(other, SHOWN.format(2))[0][0] == 2
    run(other, "UPDATE my_message SET priority = priority + 1 WHERE time_acked IS NULL")
    assert rows(other, SHOWN.format(2))[0][0] == 2


def test_a_lease_is_written_when_no_ack_comes_or_before_the_first_send(queue):
    other = queue.create(ack_wait=600, more=",vt_lease_delay=0.2")
    insert_all(other, [1])
    stream = queue.stream()
    assert stream.ids(1) == [1]
    eventually(lambda: rows(other, SHOWN.format(1))[0][0] == 1, "its lease is written")
    assert rows(other, SHOWN.format(1))[0][1] > time.time_ns()
    run(other, "ALTER QUEUE my_message SET (lease = written)")
    assert "vt_lease=written" in rows(other, "SHOW CREATE TABLE my_message")[0][1]
    insert_all(other, [2])
    assert stream.ids(1) == [2]
    assert rows(other, SHOWN.format(2))[0][0] == 1


def test_a_row_that_its_own_transaction_holds_is_rejected_too(queue: Queue) -> None:
    other = queue.create(ack_wait=600, more=LONG)
    insert_all(other, [1])
    stream = queue.stream()
    assert stream.ids(1) == [1]
    other.begin()
    rows(other, "SELECT id FROM my_message WHERE id = 1 FOR UPDATE")
    run(other, "UPDATE my_message SET time_next = 0 WHERE id = 1")
    other.commit()
    assert stream.ids(1) == [1]
    assert rows(other, SHOWN.format(1))[0][0] == 2, "both sends are counted"
