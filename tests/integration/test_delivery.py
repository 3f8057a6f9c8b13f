"""What a consumer is sent, when, how often, and what an acknowledgement changes.

Vitess's own list (X1-X4, M1-M15, R1-R9 of its tests) restated for this product's promises, from
the outside: statements in, rows out, and the clock. Polls are 30 s apart unless a test is about
them, so what arrives within a second was woken, not found.
"""

import threading
import time
from collections import Counter
from typing import Any

import pymysql
import pytest

from tests.fixtures.fix_streams import (
    Consume,
    Consumer,
    eventually,
    message_table,
    refused,
    rows,
    run,
    value,
)
from tests.integration.conftest import HIGH_IDS, LOW_IDS, CreateTable, House


pytestmark = pytest.mark.db

SECOND_NS = 10**9
# A busy machine delays a timer; an early row is never excused.
LATE_S = 1.0
QUIET_S = 0.4


def insert(connection: Any, ident: Any, table: str = "my_message", **columns: Any) -> None:
    """Insert one message through *connection*."""
    names = ", ".join(["id", *columns])
    marks = ", ".join(["%s"] * (1 + len(columns)))
    with connection.cursor() as cursor:
        cursor.execute(
            f"INSERT INTO {table} ({names}) VALUES ({marks})", (ident, *columns.values())
        )


def insert_all(connection: Any, idents: Any, table: str = "my_message") -> None:
    with connection.cursor() as cursor:
        values = ", ".join(f"({ident})" for ident in idents)
        cursor.execute(f"INSERT INTO {table} (id) VALUES {values}")


# --- from commit to row ------------------------------------------------------------------------


class TestCommit:
    def test_columns_come_before_any_row_and_a_committed_row_at_once(
        self, house: House, create: CreateTable, consume: Consume, keyspace: str
    ) -> None:
        create(keyspace)
        producer = house.proxy.connect(database=keyspace, autocommit=True)
        stream = consume(house.proxy, database=keyspace)
        assert stream.columns == ("id", "tenant_id", "message")
        insert(producer, 1, tenant_id=7, message='{"a": 1}')
        ident, tenant, message = stream.next(LATE_S)
        assert (ident, tenant, message.replace(" ", "")) == (1, 7, '{"a":1}')

    def test_a_row_written_before_the_stream_opened_is_sent_when_it_opens(
        self, house: House, create: CreateTable, consume: Consume, keyspace: str
    ) -> None:
        create(keyspace)
        producer = house.proxy.connect(database=keyspace, autocommit=True)
        insert_all(producer, (4, 1))
        assert sorted(consume(house.proxy, database=keyspace).ids(2, LATE_S)) == [1, 4]

    def test_a_second_first_receiver_sees_the_backlog_at_once(
        self, house: House, create: CreateTable, consume: Consume, keyspace: str
    ) -> None:
        create(keyspace)
        producer = house.proxy.connect(database=keyspace, autocommit=True)
        consume(house.proxy, database=keyspace).close()
        insert_all(producer, (1, 4))
        assert sorted(consume(house.proxy, database=keyspace).ids(2, LATE_S)) == [1, 4]

    def test_rows_of_a_transaction_come_when_it_commits_and_not_before(
        self, house: House, create: CreateTable, consume: Consume, keyspace: str
    ) -> None:
        create(keyspace)
        producer = house.proxy.connect(database=keyspace)
        stream = consume(house.proxy, database=keyspace)
        insert_all(producer, (1, 4))
        stream.nothing(QUIET_S)
        producer.commit()
        assert sorted(stream.ids(2, LATE_S)) == [1, 4]

    def test_a_rollback_reaches_nobody(
        self, house: House, create: CreateTable, consume: Consume, keyspace: str
    ) -> None:
        create(keyspace)
        producer = house.proxy.connect(database=keyspace)
        stream = consume(house.proxy, database=keyspace)
        insert_all(producer, (1, 4))
        producer.rollback()
        insert_all(producer, (2, 6))
        producer.commit()
        assert sorted(stream.ids(2, LATE_S)) == [2, 6]
        stream.nothing(QUIET_S)

    def test_what_a_savepoint_took_back_is_not_sent(
        self, house: House, create: CreateTable, consume: Consume, keyspace: str
    ) -> None:
        create(keyspace)
        producer = house.proxy.connect(database=keyspace)
        stream = consume(house.proxy, database=keyspace)
        insert(producer, 1)
        run(producer, "SAVEPOINT a")
        insert(producer, 2)
        insert(producer, 4)
        run(producer, "ROLLBACK TO SAVEPOINT a")
        producer.commit()
        assert stream.ids(1, LATE_S) == [1]
        stream.nothing(QUIET_S)

    @pytest.mark.parametrize(
        "sql",
        [
            "INSERT INTO my_message SET id = 1",
            "REPLACE INTO my_message (id) VALUES (1)",
            "INSERT INTO my_message (id) VALUES (1) ON DUPLICATE KEY UPDATE tenant_id = 2",
            "INSERT IGNORE my_message (id, priority) VALUES (1, 10 + 5)",
            "INSERT INTO `my_message` (`id`, `time_next`) VALUES (1, NULL)",
            "INSERT INTO my_message (id, time_next) VALUES (1, UNIX_TIMESTAMP() - 5)",
            "INSERT INTO my_message VALUES (1, 50, 0, 0, NULL, 3, NULL)",
            "/* a comment */ insert into my_message(id,message) value (1, '{\"a;b\": \"c''d\"}');",
        ],
    )
    def test_every_form_of_insert_wakes_the_stream(
        self, house: House, create: CreateTable, consume: Consume, keyspace: str, sql: str
    ) -> None:
        create(keyspace)
        stream = consume(house.proxy, database=keyspace)
        run(house.proxy.connect(database=keyspace, autocommit=True), sql)
        assert stream.next(LATE_S)[0] == 1

    @pytest.mark.parametrize(
        "sql",
        [
            "INSERT INTO my_message (id) SELECT 1 UNION SELECT 2",
            "INSERT INTO my_message (id) VALUES (1 + 0), (LENGTH('ab'))",
            "INSERT INTO my_message (id) VALUES (1); INSERT INTO my_message (id) VALUES (2)",
        ],
    )
    def test_rows_whose_ids_the_text_does_not_show_wake_it_too(
        self, house: House, create: CreateTable, consume: Consume, sql: str
    ) -> None:
        create("plain")
        stream = consume(house.proxy, database="plain")
        producer = house.proxy.connect(database="plain", autocommit=True)
        with producer.cursor() as cursor:
            if ";" in sql:
                for part in sql.split("; "):
                    cursor.execute(part)
            else:
                cursor.execute(sql)
        assert sorted(stream.ids(2, LATE_S)) == [1, 2]

    def test_a_row_that_is_inserted_as_acknowledged_is_not_sent(
        self, house: House, create: CreateTable, consume: Consume, keyspace: str
    ) -> None:
        create(keyspace)
        stream = consume(house.proxy, database=keyspace)
        producer = house.proxy.connect(database=keyspace, autocommit=True)
        run(producer, "INSERT INTO my_message (id, time_acked) VALUES (1, 5), (4, 5)")
        stream.nothing(QUIET_S)

    def test_a_row_written_past_the_proxy_is_found_by_the_poller(
        self, house: House, create: CreateTable, consume: Consume, keyspace: str
    ) -> None:
        create(keyspace, poller_interval=0.3)
        stream = consume(house.proxy, database=keyspace)
        house.direct("INSERT INTO my_message (id) VALUES (1)", keyspace=keyspace)
        assert stream.next(0.3 + LATE_S)[0] == 1

    def test_an_open_transaction_of_somebody_else_delays_only_its_own_rows(
        self, house: House, create: CreateTable, consume: Consume
    ) -> None:
        create("plain")
        slow = house.proxy.connect(database="plain")
        quick = house.proxy.connect(database="plain", autocommit=True)
        stream = consume(house.proxy, database="plain")
        insert(slow, 1)
        insert(quick, 2)
        assert stream.next(LATE_S)[0] == 2
        slow.commit()
        assert stream.next(LATE_S)[0] == 1


# --- the moment --------------------------------------------------------------------------------


class TestMoment:
    def test_a_future_row_comes_at_its_moment_and_never_early(
        self, house: House, create: CreateTable, consume: Consume, keyspace: str
    ) -> None:
        create(keyspace)
        stream = consume(house.proxy, database=keyspace)
        producer = house.proxy.connect(database=keyspace, autocommit=True)
        moments = {}
        for ident, ahead_s in ((1, 0.9), (4, 0.3), (2, 0.6)):
            moments[ident] = time.time_ns() + round(ahead_s * SECOND_NS)
            insert(producer, ident, time_next=moments[ident])
        for expected in (4, 2, 1):
            ident = stream.next(LATE_S + 1)[0]
            now_ns = time.time_ns()
            assert ident == expected
            assert moments[ident] <= now_ns <= moments[ident] + LATE_S * SECOND_NS

    def test_a_future_row_written_before_the_stream_opened_keeps_its_moment(
        self, house: House, create: CreateTable, consume: Consume, keyspace: str
    ) -> None:
        create(keyspace)
        producer = house.proxy.connect(database=keyspace, autocommit=True)
        moment_ns = time.time_ns() + SECOND_NS // 2
        insert(producer, 1, time_next=moment_ns)
        stream = consume(house.proxy, database=keyspace)
        stream.next(0.5 + LATE_S)
        assert moment_ns <= time.time_ns() <= moment_ns + LATE_S * SECOND_NS

    def test_time_functions_mean_nanoseconds(
        self, house: House, create: CreateTable, consume: Consume, keyspace: str
    ) -> None:
        create(keyspace)
        stream = consume(house.proxy, database=keyspace)
        producer = house.proxy.connect(database=keyspace, autocommit=True)
        before_ns = time.time_ns()
        run(producer, "INSERT INTO my_message (id, time_next) VALUES (1, NOW())")
        assert stream.next(LATE_S)[0] == 1
        run(producer, "INSERT INTO my_message (id, time_next) VALUES (4, UNIX_TIMESTAMP() + 1)")
        stream.nothing(max(0.0, before_ns / SECOND_NS // 1 + 0.9 - time.time()))
        assert stream.next(1 + LATE_S)[0] == 4
        assert time.time_ns() >= before_ns // SECOND_NS * SECOND_NS + SECOND_NS

    def test_time_next_null_means_now(
        self, house: House, create: CreateTable, consume: Consume, keyspace: str
    ) -> None:
        create(keyspace, time_next="time_next BIGINT")
        producer = house.proxy.connect(database=keyspace, autocommit=True)
        insert(producer, 1)
        insert(producer, 4, time_next=None)
        stream = consume(house.proxy, database=keyspace)
        assert sorted(stream.ids(2, LATE_S)) == [1, 4]
        insert(producer, 2)
        insert(producer, 6, time_next=None)
        assert stream.ids(2, LATE_S) == [2, 6]

    def test_a_moment_before_1970_means_now(
        self, house: House, create: CreateTable, consume: Consume, keyspace: str
    ) -> None:
        create(keyspace)
        producer = house.proxy.connect(database=keyspace, autocommit=True)
        run(producer, "INSERT INTO my_message (id, time_next) VALUES (1, -5), (4, 0), (2, 3)")
        stream = consume(house.proxy, database=keyspace)
        assert sorted(stream.ids(3, LATE_S)) == [1, 2, 4]
        run(producer, "INSERT INTO my_message (id, time_next) VALUES (6, -9)")
        assert stream.ids(1, LATE_S) == [6]

    def test_rescheduling_is_honoured_at_once(
        self, house: House, create: CreateTable, consume: Consume, keyspace: str
    ) -> None:
        create(keyspace)
        stream = consume(house.proxy, database=keyspace)
        producer = house.proxy.connect(database=keyspace, autocommit=True)
        insert(producer, 1, time_next=time.time_ns() + 3600 * SECOND_NS)
        insert(producer, 2)
        assert stream.next(LATE_S)[0] == 2
        where = "WHERE id = 1 AND time_acked IS NULL"
        assert run(producer, f"UPDATE my_message SET time_next = 0 {where}") == 1
        assert stream.next(LATE_S)[0] == 1
        # A nack of what was just sent: once more, now.
        where = "WHERE id IN (1, 2) AND time_acked IS NULL"
        assert run(producer, f"UPDATE my_message SET time_next = 0, epoch = 0 {where}") == 2
        assert sorted(stream.ids(2, LATE_S)) == [1, 2]

    def test_a_row_put_off_does_not_come_at_its_old_moment(
        self, house: House, create: CreateTable, consume: Consume, keyspace: str
    ) -> None:
        create(keyspace)
        stream = consume(house.proxy, database=keyspace)
        producer = house.proxy.connect(database=keyspace, autocommit=True)
        later = time.time_ns() + 3600 * SECOND_NS
        insert(producer, 1, time_next=time.time_ns() + SECOND_NS // 2)
        run(producer, f"UPDATE my_message SET time_next = {later} WHERE id = 1")
        stream.nothing(0.9)

    def test_a_revived_row_is_sent_again(
        self, house: House, create: CreateTable, consume: Consume, keyspace: str
    ) -> None:
        create(keyspace)
        stream = consume(house.proxy, database=keyspace)
        producer = house.proxy.connect(database=keyspace, autocommit=True)
        insert(producer, 1)
        stream.next(LATE_S)
        assert run(producer, "UPDATE my_message SET time_acked = NOW() WHERE id = 1") == 1
        run(producer, "UPDATE my_message SET time_acked = NULL, time_next = 0 WHERE id = 1")
        assert stream.next(LATE_S)[0] == 1


# --- again and again ---------------------------------------------------------------------------


class TestRedelivery:
    def test_epoch_grows_and_time_next_lies_inside_the_backoff_window(
        self, house: House, create: CreateTable, consume: Consume, keyspace: str
    ) -> None:
        wait_s = 0.5
        create(keyspace, ack_wait=wait_s)
        stream = consume(house.proxy, database=keyspace)
        producer = house.proxy.connect(database=keyspace, autocommit=True)
        insert(producer, 1)
        due_ns = 0
        for epoch in range(3):
            before_ns = time.time_ns()
            stream.next(wait_s * 2**epoch * 4 / 3 + LATE_S)
            after_ns = time.time_ns()
            assert after_ns >= due_ns
            ((now_epoch, due_ns),) = rows(
                producer, "SELECT epoch, time_next FROM my_message WHERE id = 1"
            )
            base_ns = round(wait_s * 2**epoch * SECOND_NS)
            assert now_epoch == epoch + 1
            # Counted from the claim, which is between the two: at once, or when it was due.
            assert before_ns + base_ns - LATE_S * SECOND_NS <= due_ns
            assert due_ns <= after_ns + base_ns * 4 // 3

    def test_the_wait_stays_between_its_bounds(
        self, house: House, create: CreateTable, consume: Consume
    ) -> None:
        create("plain", ack_wait=0.2, more=",vt_min_backoff=0.4,vt_max_backoff=0.8")
        stream = consume(house.proxy, database="plain")
        producer = house.proxy.connect(database="plain", autocommit=True)
        run(producer, "INSERT INTO my_message (id, epoch) VALUES (1, 60)")
        stream.next(LATE_S)
        started = time.monotonic()
        stream.next(0.8 + LATE_S)
        assert time.monotonic() - started >= 0.5
        assert value(producer, "SELECT epoch FROM my_message") == 62

    def test_only_what_is_not_acknowledged_comes_again(
        self, house: House, create: CreateTable, consume: Consume, keyspace: str
    ) -> None:
        create(keyspace, ack_wait=0.5, more=",vt_max_backoff=0.5")
        producer = house.proxy.connect(database=keyspace, autocommit=True)
        insert_all(producer, (4, 1))
        stream = consume(house.proxy, database=keyspace)
        assert sorted(stream.ids(2, LATE_S)) == [1, 4]
        assert run(producer, "UPDATE my_message SET time_acked = 123 WHERE id IN (4)") == 1
        assert stream.ids(3, 3 * LATE_S) == [1, 1, 1]
        ack = "UPDATE my_message SET time_acked = 123, time_next = NULL WHERE id IN (1, 4)"
        assert run(producer, ack + " AND time_acked IS NULL") == 1
        stream.nothing(0.8)

    def test_nothing_is_sent_twice_before_its_wait_is_over(
        self, house: House, create: CreateTable, consume: Consume, keyspace: str
    ) -> None:
        create(keyspace, poller_interval=0.1)
        producer = house.proxy.connect(database=keyspace, autocommit=True)
        streams = [consume(house.proxy, database=keyspace) for _ in range(3)]
        insert_all(producer, range(1, 31))
        eventually(lambda: [s.poll(0) for s in streams] and total(streams) == 30)
        for stream in streams:
            stream.nothing(0.2)
        assert sorted(row[0] for s in streams for row in s.rows) == list(range(1, 31))


def total(streams: list[Consumer]) -> int:
    return sum(len(stream.rows) for stream in streams)


# --- acknowledgements --------------------------------------------------------------------------


class TestAck:
    @pytest.mark.parametrize(
        "ack",
        [
            "UPDATE my_message SET time_acked = 123456789 WHERE id IN (1, 4, 99)",
            "UPDATE my_message SET time_acked = NOW() WHERE id IN (1, 4)",
            "UPDATE my_message SET time_acked = UNIX_TIMESTAMP() WHERE id = 1 OR id = 4",
            "UPDATE my_message SET time_acked = CURRENT_TIMESTAMP, time_next = NULL"
            " WHERE id IN (1, 4) AND time_acked IS NULL",
        ],
    )
    def test_it_counts_each_row_once_and_leaves_the_row_complete(
        self, house: House, create: CreateTable, consume: Consume, keyspace: str, ack: str
    ) -> None:
        create(keyspace, ack_wait=0.4)
        producer = house.proxy.connect(database=keyspace, autocommit=True)
        stream = consume(house.proxy, database=keyspace)
        insert_all(producer, (1, 4))
        stream.take(2, LATE_S)
        assert run(producer, ack) == 2
        assert run(producer, ack) == 0
        found = rows(producer, "SELECT time_next, time_acked FROM my_message")
        assert [time_next for time_next, _ in found] == [None, None]
        if "123456789" in ack:
            assert {time_acked for _, time_acked in found} == {123456789}
        else:
            for _, time_acked in found:
                assert abs(time_acked - time.time_ns()) < 3 * SECOND_NS
        stream.nothing(0.8)

    def test_it_counts_on_commit(
        self, house: House, create: CreateTable, consume: Consume, keyspace: str
    ) -> None:
        create(keyspace, ack_wait=0.4, more=",vt_max_backoff=0.4")
        producer = house.proxy.connect(database=keyspace, autocommit=True)
        consumer = house.proxy.connect(database=keyspace)
        stream = consume(house.proxy, database=keyspace)
        insert_all(producer, (1, 4))
        stream.take(2, LATE_S)
        ack = "UPDATE my_message SET time_acked = NOW() WHERE id IN (1, 4)"
        assert run(consumer, ack) == 2
        consumer.rollback()
        # A row that was locked when it was due is tried again a second later.
        assert sorted(stream.ids(2, 2 + LATE_S)) == [1, 4]
        assert run(consumer, ack) == 2
        consumer.commit()
        stream.nothing(0.9)

    def test_one_that_a_savepoint_took_back_delays_nothing(
        self, house: House, create: CreateTable, consume: Consume, keyspace: str
    ) -> None:
        create(keyspace, ack_wait=0.5, more=",vt_max_backoff=0.5")
        producer = house.proxy.connect(database=keyspace, autocommit=True)
        consumer = house.proxy.connect(database=keyspace)
        stream = consume(house.proxy, database=keyspace)
        insert(producer, 1)
        stream.next(LATE_S)
        run(consumer, "SAVEPOINT a")
        run(consumer, "UPDATE my_message SET time_acked = NOW() WHERE id = 1")
        run(consumer, "ROLLBACK TO a")
        consumer.commit()
        assert stream.next(0.7 + LATE_S)[0] == 1

    def test_an_open_ack_transaction_blocks_no_other_message(
        self, house: House, create: CreateTable, consume: Consume, keyspace: str
    ) -> None:
        create(keyspace, ack_wait=0.3, more=",vt_max_backoff=0.3")
        producer = house.proxy.connect(database=keyspace, autocommit=True)
        consumer = house.proxy.connect(database=keyspace)
        stream = consume(house.proxy, database=keyspace)
        insert_all(producer, (1, 2, 4))
        stream.take(3, LATE_S)
        assert run(consumer, "UPDATE my_message SET time_acked = NOW() WHERE id = 1") == 1
        again = stream.ids(4, 2 + LATE_S)
        assert set(again) == {2, 4}
        consumer.commit()

    def test_a_row_that_was_locked_when_it_was_due_is_sent_soon_after(
        self, house: House, create: CreateTable, consume: Consume, keyspace: str
    ) -> None:
        create(keyspace, ack_wait=0.3, more=",vt_max_backoff=0.3")
        producer = house.proxy.connect(database=keyspace, autocommit=True)
        consumer = house.proxy.connect(database=keyspace)
        stream = consume(house.proxy, database=keyspace)
        insert(producer, 1)
        stream.next(LATE_S)
        run(consumer, "UPDATE my_message SET time_acked = NOW() WHERE id = 1")
        stream.nothing(1.0)
        consumer.rollback()
        # A row that could not be had is looked for again a second later, not at the next poll.
        assert stream.next(2 + LATE_S)[0] == 1

    def test_a_condition_beside_the_ids_leaves_the_others_alone(
        self, house: House, create: CreateTable, consume: Consume, keyspace: str
    ) -> None:
        create(keyspace, ack_wait=0.4, more=",vt_max_backoff=0.4")
        producer = house.proxy.connect(database=keyspace, autocommit=True)
        stream = consume(house.proxy, database=keyspace)
        insert(producer, 1, tenant_id=1)
        insert(producer, 4, tenant_id=2)
        stream.take(2, LATE_S)
        ack = "UPDATE my_message SET time_acked = NOW() WHERE id IN (1, 4) AND tenant_id = 1"
        assert run(producer, ack) == 1
        assert stream.next(0.6 + LATE_S)[0] == 4

    def test_a_deleted_row_is_not_sent_again(
        self, house: House, create: CreateTable, consume: Consume, keyspace: str
    ) -> None:
        create(keyspace, ack_wait=0.4)
        producer = house.proxy.connect(database=keyspace, autocommit=True)
        stream = consume(house.proxy, database=keyspace)
        insert_all(producer, (1, 4))
        stream.take(2, LATE_S)
        assert run(producer, "DELETE FROM my_message WHERE id = 1") == 1
        assert run(producer, "DELETE FROM my_message WHERE tenant_id IS NULL") == 1
        stream.nothing(0.8)

    def test_an_ack_past_the_proxy_is_respected(
        self, house: House, create: CreateTable, consume: Consume
    ) -> None:
        create("plain", ack_wait=0.4)
        producer = house.proxy.connect(database="plain", autocommit=True)
        stream = consume(house.proxy, database="plain")
        insert(producer, 1)
        stream.next(LATE_S)
        house.direct("UPDATE my_message SET time_acked = 1, time_next = NULL WHERE id = 1")
        stream.nothing(0.8)

    def test_acked_rows_are_purged_once_they_are_old_enough_and_others_never(
        self, house: House, create: CreateTable, consume: Consume, keyspace: str
    ) -> None:
        create(keyspace, purge_after=1, poller_interval=0.3)
        producer = house.proxy.connect(database=keyspace, autocommit=True)
        consume(house.proxy, database=keyspace)
        insert_all(producer, range(1, 11))
        run(producer, "UPDATE my_message SET time_acked = NOW() WHERE id IN (1, 4)")
        acked_at = time.monotonic()
        remaining = "SELECT id FROM my_message"
        eventually(lambda: len(rows(producer, remaining)) == 8, "two rows purged")
        assert time.monotonic() - acked_at >= 0.9
        assert {1, 4}.isdisjoint(ident for (ident,) in rows(producer, remaining))


# --- who gets what -----------------------------------------------------------------------------


class TestReceivers:
    def test_a_projection_gives_its_columns_in_its_order(
        self, house: House, create: CreateTable, consume: Consume, keyspace: str
    ) -> None:
        create(keyspace)
        whole = consume(house.proxy, database=keyspace)
        producer = house.proxy.connect(database=keyspace, autocommit=True)
        whole.close()
        part = consume(
            house.proxy, "STREAM tenant_id, id, priority FROM my_message", database=keyspace
        )
        assert part.columns == ("tenant_id", "id", "priority")
        insert(producer, 1, tenant_id=7)
        assert part.next(LATE_S) == (7, 1, 50)

    def test_vt_message_cols_says_what_a_star_gives(
        self, house: House, create: CreateTable, consume: Consume, keyspace: str
    ) -> None:
        create(
            keyspace,
            columns="msg1 VARCHAR(20), msg2 BIGINT",
            more=",vt_message_cols=id|msg1",
        )
        stream = consume(house.proxy, database=keyspace)
        assert stream.columns == ("id", "msg1")
        producer = house.proxy.connect(database=keyspace, autocommit=True)
        insert(producer, 1, msg1="x", msg2=5)
        assert stream.next(LATE_S) == (1, "x")

    def test_columns_come_in_the_order_of_the_table_and_the_id_first(
        self, house: House, consume: Consume, keyspace: str
    ) -> None:
        connection = house.proxy.connect(database=keyspace, autocommit=True)
        run(
            connection,
            message_table(
                ident="msg1 VARCHAR(20), id BIGINT NOT NULL", columns="msg2 BIGINT, msg3 DATE"
            ),
        )
        stream = consume(house.proxy, database=keyspace)
        assert stream.columns == ("id", "msg1", "msg2", "msg3")
        run(
            connection,
            "INSERT INTO my_message (id, msg1, msg2, msg3) VALUES (1, 'a', 2, '2024-01-31')",
        )
        assert stream.next(LATE_S) == (1, "a", 2, "2024-01-31")

    def test_two_receivers_take_turns(
        self, house: House, create: CreateTable, consume: Consume, keyspace: str
    ) -> None:
        create(keyspace, batch_size=1)
        streams = [consume(house.proxy, database=keyspace) for _ in range(2)]
        producer = house.proxy.connect(database=keyspace, autocommit=True)
        for ident in range(1, 13):
            insert(producer, ident)
            eventually(lambda: [s.poll(0.01) for s in streams] and total(streams) == ident)  # noqa: B023
        assert [len(stream.rows) for stream in streams] == [6, 6]

    def test_the_rest_goes_to_the_receiver_that_stayed(
        self, house: House, create: CreateTable, consume: Consume, keyspace: str
    ) -> None:
        create(keyspace)
        first, second = (consume(house.proxy, database=keyspace) for _ in range(2))
        producer = house.proxy.connect(database=keyspace, autocommit=True)
        second.close()
        for ident in range(1, 6):
            insert(producer, ident)
        assert sorted(first.ids(5, LATE_S)) == [1, 2, 3, 4, 5]

    def test_receivers_with_different_columns_share_the_messages(
        self, house: House, create: CreateTable, consume: Consume, keyspace: str
    ) -> None:
        create(keyspace, batch_size=2)
        streams = [
            consume(house.proxy, f"STREAM {columns} FROM my_message", database=keyspace)
            for columns in ("*", "id", "id, tenant_id")
        ]
        producer = house.proxy.connect(database=keyspace, autocommit=True)
        insert_all(producer, range(1, 61))
        eventually(lambda: [s.poll(0.01) for s in streams] and total(streams) == 60)
        assert sorted(row[0] for s in streams for row in s.rows) == list(range(1, 61))
        assert [len(s.rows[0]) for s in streams if s.rows] == [
            n for n, s in zip((3, 1, 2), streams, strict=True) if s.rows
        ]

    def test_priority_goes_first_then_the_one_that_was_due_longest(
        self, house: House, create: CreateTable, consume: Consume
    ) -> None:
        create("plain")
        producer = house.proxy.connect(database="plain", autocommit=True)
        run(
            producer,
            "INSERT INTO my_message (id, priority, time_next) VALUES"
            " (1, 9, 10), (2, 1, 30), (3, 1, 20), (4, 5, 0), (5, 5, 1), (6, -3, 99)",
        )
        stream = consume(house.proxy, database="plain")
        assert stream.ids(6, LATE_S) == [6, 3, 2, 4, 5, 1]

    def test_vt_order_newest_turns_it_round(
        self, house: House, create: CreateTable, consume: Consume
    ) -> None:
        create("plain", more=",vt_order=newest")
        producer = house.proxy.connect(database="plain", autocommit=True)
        run(
            producer,
            "INSERT INTO my_message (id, priority, time_next) VALUES"
            " (1, 1, 10), (2, 1, 30), (3, 1, 20), (4, 1, 0), (5, 0, 1)",
        )
        assert consume(house.proxy, database="plain").ids(5, LATE_S) == [5, 2, 3, 1, 4]

    def test_a_cache_of_one_delivers_everything(
        self, house: House, create: CreateTable, consume: Consume, keyspace: str
    ) -> None:
        create(keyspace, cache_size=1, batch_size=1)
        producer = house.proxy.connect(database=keyspace, autocommit=True)
        insert_all(producer, range(1, 21))
        stream = consume(house.proxy, database=keyspace)
        assert sorted(stream.ids(20)) == list(range(1, 21))
        insert_all(producer, range(21, 31))
        assert sorted(stream.ids(10)) == list(range(21, 31))

    def test_a_megabyte_comes_whole(
        self, house: House, create: CreateTable, consume: Consume, keyspace: str
    ) -> None:
        create(keyspace, columns="message LONGTEXT")
        producer = house.proxy.connect(database=keyspace, autocommit=True)
        texts = {ident: f"{ident}" * (1 << 20) for ident in range(1, 10)}
        stream = consume(house.proxy, database=keyspace)
        for ident, text in texts.items():
            insert(producer, ident, message=text)
        received: dict[int, str] = dict(stream.take(9))
        assert received == texts

    def test_a_message_of_several_packets_comes_whole(
        self, house: House, create: CreateTable, consume: Consume
    ) -> None:
        create("plain", columns="message LONGTEXT")
        producer = house.proxy.connect(
            database="plain", autocommit=True, max_allowed_packet=1 << 26
        )
        stream = consume(house.proxy, database="plain")
        # Sixteen mebibytes and one row of exactly that, header included.
        for ident, size in ((1, 17 << 20), (2, 0xFFFFFF - 2 - 4), (3, 5)):
            run(
                producer,
                f"INSERT INTO my_message (id, message) VALUES ({ident}, REPEAT('x', {size}))",
            )
            found, message = stream.next(20)
            assert (found, len(message)) == (ident, size)

    def test_packets_are_numbered_past_the_wrap(
        self, house: House, create: CreateTable, consume: Consume
    ) -> None:
        create("plain")
        producer = house.proxy.connect(database="plain", autocommit=True)
        insert_all(producer, range(1, 701))
        stream = consume(house.proxy, database="plain")
        stream.take(700)
        assert stream.sequences == [n & 0xFF for n in range(1, len(stream.sequences) + 1)]


# --- which stream ------------------------------------------------------------------------------


class TestTargets:
    def test_a_qualified_table_needs_no_database(
        self, house: House, create: CreateTable, consume: Consume, keyspace: str
    ) -> None:
        create(keyspace)
        stream = consume(house.proxy, f"STREAM * FROM {keyspace}.my_message")
        run(
            house.proxy.connect(autocommit=True),
            f"INSERT INTO {keyspace}.my_message (id) VALUES (1)",
        )
        assert stream.next(LATE_S)[0] == 1

    def test_a_table_of_one_keyspace_alone_needs_neither(
        self, house: House, create: CreateTable, consume: Consume, keyspace: str
    ) -> None:
        create(keyspace, "other_message")
        stream = consume(house.proxy, "STREAM * FROM other_message")
        producer = house.proxy.connect(database=keyspace, autocommit=True)
        insert(producer, 1, table="other_message")
        assert stream.next(LATE_S)[0] == 1

    def test_a_table_of_two_keyspaces_needs_a_database(
        self, house: House, create: CreateTable
    ) -> None:
        create("plain")
        create("commerce")
        code, text = refused(house.proxy.connect(), "STREAM * FROM my_message")
        assert code == 1046, text

    @pytest.mark.parametrize(
        "how", ["STREAM * FROM `commerce:-80`.my_message", "USE `commerce:-80`", "login"]
    )
    def test_a_narrowed_stream_has_its_shard_only(
        self, house: House, create: CreateTable, consume: Consume, how: str
    ) -> None:
        create("commerce")
        producer = house.proxy.connect(database="commerce", autocommit=True)
        insert_all(producer, (*LOW_IDS, *HIGH_IDS))
        if how == "login":
            stream = consume(house.proxy, database="commerce:-80")
        elif how.startswith("USE"):
            connection = house.proxy.connect(database="commerce")
            run(connection, how)
            stream = Consumer(connection, "STREAM * FROM my_message")
        else:
            stream = consume(house.proxy, how, database="commerce")
        assert sorted(stream.ids(len(LOW_IDS), LATE_S)) == sorted(LOW_IDS)
        stream.nothing(QUIET_S)
        other = consume(house.proxy, "STREAM * FROM `commerce:80-`.my_message")
        assert sorted(other.ids(len(HIGH_IDS), LATE_S)) == sorted(HIGH_IDS)
        stream.nothing(0)

    @pytest.mark.parametrize(
        ("target", "why"),
        [
            ("commerce:-40", "shard '-40' not found in keyspace 'commerce'"),
            ("commerce[-40]", "keyrange -40 does not exactly match shards"),
        ],
    )
    def test_a_range_that_fits_no_shards_is_refused(
        self, house: House, create: CreateTable, target: str, why: str
    ) -> None:
        create("commerce")
        connection = house.proxy.connect(database="commerce")
        assert refused(connection, f"STREAM * FROM `{target}`.my_message") == (1105, why)
        assert refused(connection, f"USE `{target}`") == (1105, why)

    def test_a_comment_with_directives_is_taken(
        self, house: House, create: CreateTable, consume: Consume
    ) -> None:
        create("plain")
        sql = "stream /*vt+ WORKLOAD=olap QUERY_TIMEOUT_MS=0 */ * from my_message;"
        stream = consume(house.proxy, sql, database="plain")
        insert(house.proxy.connect(database="plain", autocommit=True), 1)
        assert stream.next(LATE_S)[0] == 1


# --- ids and layouts ---------------------------------------------------------------------------


class TestIds:
    @pytest.mark.parametrize(
        ("ident", "ids"),
        [
            (
                "id VARCHAR(40) NOT NULL",
                ["a", "b'c", 'q"r', "back\\slash", "ünïcode ✓", "", "5"],
            ),
            ("id VARBINARY(16) NOT NULL", [b"\x00\xff\x27", b"plain", b"\\", b"'"]),
            ("id BINARY(4) NOT NULL", [b"\x00\x01\x02\x03", b"\xff\x00\xff\x00"]),
            ("id BIGINT NOT NULL", [-(2**63), -1, 0, 2**63 - 1]),
            ("id BIGINT UNSIGNED NOT NULL", [0, 2**64 - 1]),
            ("id DECIMAL(30, 0) NOT NULL", [10**25, -5]),
            ("id CHAR(36) COLLATE utf8mb4_bin NOT NULL", ["A", "a", "b"]),
        ],
    )
    def test_every_type_of_id_is_sent_acknowledged_and_then_left_alone(
        self, house: House, consume: Consume, ident: str, ids: list[Any]
    ) -> None:
        producer = house.proxy.connect(database="plain", autocommit=True)
        run(producer, message_table(ident=ident, ack_wait=0.5, more=",vt_max_backoff=0.5"))
        stream = consume(house.proxy, "STREAM id, epoch FROM my_message", database="plain")
        with producer.cursor() as cursor:
            for number in ids:
                cursor.execute("INSERT INTO my_message (id) VALUES (%s)", (number,))
        wanted = set(map(comparable, ids))
        sends: Counter[Any] = Counter()
        # Every one comes, and comes again, although the first wake-up named it as the client
        # wrote it.  One may be on its third attempt while another waits for its second.
        while len(sends) < len(ids) or min(sends.values()) < 2:
            sent, epoch = stream.next(1 + LATE_S)
            assert epoch == sends[comparable(sent)]
            sends[comparable(sent)] += 1
        assert sends.keys() == wanted
        with producer.cursor() as cursor:
            for number in ids:
                sql = "UPDATE my_message SET time_acked = NOW() WHERE id = %s"
                assert cursor.execute(sql, (number,)) == 1
        stream.nothing(1.0)

    def test_generated_ids(self, house: House, consume: Consume) -> None:
        producer = house.proxy.connect(database="plain", autocommit=True)
        run(producer, message_table(ident="id BIGINT NOT NULL AUTO_INCREMENT"))
        stream = consume(house.proxy, database="plain")
        with producer.cursor() as cursor:
            cursor.execute("INSERT INTO my_message (tenant_id) VALUES (5)")
            assert cursor.lastrowid == 1
            cursor.execute("INSERT INTO my_message (id, tenant_id) VALUES (NULL, 6), (0, 7)")
            assert cursor.lastrowid == 2
        assert [row[:2] for row in stream.take(3, LATE_S)] == [(1, 5), (2, 6), (3, 7)]

    def test_an_id_in_another_case_is_the_same_message(
        self, house: House, consume: Consume
    ) -> None:
        producer = house.proxy.connect(database="plain", autocommit=True)
        run(producer, message_table(ident="id VARCHAR(20) NOT NULL", ack_wait=0.4))
        stream = consume(house.proxy, database="plain")
        insert(producer, "Order-1")
        assert stream.next(LATE_S)[0] == "Order-1"
        sql = "UPDATE my_message SET time_acked = NOW() WHERE id = 'ORDER-1'"
        assert run(producer, sql) == 1
        stream.nothing(0.8)

    def test_a_sharded_keyspace_takes_binary_ids(self, house: House, consume: Consume) -> None:
        producer = house.proxy.connect(database="commerce", autocommit=True)
        run(producer, message_table("named", ident="id VARBINARY(32) NOT NULL"))
        stream = consume(house.proxy, "STREAM * FROM named", database="commerce")
        names = [f"message {n}".encode() for n in range(20)]
        insert_all(producer, (f"'{name.decode()}'" for name in names), table="named")
        assert sorted(stream.ids(20, LATE_S)) == sorted(names)
        shards = [
            len(house.direct("SELECT id FROM named", keyspace="commerce", shard=shard))
            for shard in (0, 1)
        ]
        assert sum(shards) == 20
        assert all(shards)

    def test_the_first_layout(self, house: House, consume: Consume) -> None:
        producer = house.proxy.connect(database="plain", autocommit=True)
        run(
            producer,
            "CREATE TABLE my_message (time_scheduled BIGINT, id BIGINT, time_next BIGINT,"
            " epoch BIGINT, time_created BIGINT, time_acked BIGINT, message VARCHAR(128),"
            " PRIMARY KEY (time_scheduled, id), UNIQUE INDEX id_idx (id),"
            " INDEX next_idx (time_next, epoch)) COMMENT 'vitess_message,vt_ack_wait=0.5,"
            "vt_purge_after=86400,vt_batch_size=10,vt_cache_size=100,vt_poller_interval=30'",
        )
        stream = consume(house.proxy, database="plain")
        assert stream.columns == ("id", "time_scheduled", "message")
        moment_ns = time.time_ns() + SECOND_NS // 2
        run(producer, "INSERT INTO my_message (id, message) VALUES (1, 'a')")
        run(
            producer,
            f"INSERT INTO my_message (time_scheduled, id, message) VALUES ({moment_ns}, 2, 'b')",
        )
        now_ns = time.time_ns()
        ident, scheduled, message = stream.next(LATE_S)
        assert (ident, message) == (1, "a")
        assert abs(scheduled - now_ns) < 3 * SECOND_NS
        assert run(producer, "UPDATE my_message SET time_acked = NOW() WHERE id IN (1)") == 1
        assert stream.next(0.5 + LATE_S) == (2, moment_ns, "b")
        assert time.time_ns() >= moment_ns
        assert stream.next(0.7 + LATE_S)[0] == 2


# --- tables come, change and go ----------------------------------------------------------------


class TestTables:
    def test_a_changed_comment_takes_effect_at_once_and_streams_survive(
        self, house: House, create: CreateTable, consume: Consume, keyspace: str
    ) -> None:
        create(keyspace)
        stream = consume(house.proxy, database=keyspace)
        producer = house.proxy.connect(database=keyspace, autocommit=True)
        insert(producer, 1)
        stream.next(LATE_S)
        stream.nothing(QUIET_S)
        run(
            producer,
            "ALTER TABLE my_message COMMENT 'vitess_message,vt_ack_wait=0.3,vt_purge_after=9,"
            "vt_batch_size=10,vt_cache_size=100,vt_poller_interval=30,vt_max_backoff=0.3'",
        )
        insert(producer, 4)
        assert stream.ids(3, 2 + LATE_S) == [4, 4, 4]

    def test_a_new_column_appears_for_new_streams(
        self, house: House, create: CreateTable, consume: Consume, keyspace: str
    ) -> None:
        create(keyspace)
        old = consume(house.proxy, database=keyspace)
        producer = house.proxy.connect(database=keyspace, autocommit=True)
        run(producer, "ALTER TABLE my_message ADD COLUMN extra INT DEFAULT 9")
        insert(producer, 1)
        assert len(old.next(LATE_S)) == 3
        old.close()
        new = consume(house.proxy, database=keyspace)
        assert new.columns[-1] == "extra"
        insert(producer, 4)
        assert new.next(LATE_S)[-1] == 9

    def test_a_change_past_the_proxy_is_found(
        self, house: House, create: CreateTable, consume: Consume
    ) -> None:
        house.direct(message_table())
        producer = house.proxy.connect(database="plain", autocommit=True)
        insert(producer, 1)

        def opened() -> Consumer | None:
            try:
                return consume(house.proxy, database="plain")
            except pymysql.MySQLError:
                return None

        assert eventually(opened, "the table is found").next(LATE_S)[0] == 1

    def test_a_bad_comment_hurts_its_own_table_only(
        self, house: House, create: CreateTable, consume: Consume, keyspace: str
    ) -> None:
        create(keyspace)
        connection = house.proxy.connect(database=keyspace, autocommit=True)
        run(connection, message_table("other_message", batch_size=0))
        why = (
            "message table 'other_message' failed to load:"
            " vt_batch_size must be a whole number greater than 0, not '0'"
        )
        for sql in (
            "STREAM * FROM other_message",
            "SELECT * FROM other_message",
            "INSERT INTO other_message (id) VALUES (1)",
            "UPDATE other_message SET time_acked = 1 WHERE id = 1",
            "DELETE FROM other_message WHERE id = 1",
        ):
            assert refused(connection, sql) == (1105, why)
        stream = consume(house.proxy, database=keyspace)
        insert(connection, 1)
        assert stream.next(LATE_S)[0] == 1
        run(
            connection,
            "ALTER TABLE other_message COMMENT 'vitess_message,vt_ack_wait=30,vt_batch_size=1,"
            "vt_purge_after=9,vt_cache_size=100,vt_poller_interval=30'",
        )
        mended = consume(house.proxy, "STREAM * FROM other_message", database=keyspace)
        insert(connection, 1, table="other_message")
        assert mended.next(LATE_S)[0] == 1

    @pytest.mark.parametrize(
        "sql",
        [
            "DROP TABLE my_message",
            "ALTER TABLE my_message COMMENT 'an ordinary table'",
            "RENAME TABLE my_message TO other_message",
        ],
    )
    def test_a_table_that_goes_ends_its_streams(
        self, house: House, create: CreateTable, consume: Consume, keyspace: str, sql: str
    ) -> None:
        create(keyspace)
        stream = consume(house.proxy, database=keyspace)
        connection = house.proxy.connect(database=keyspace, autocommit=True)
        run(connection, sql)
        assert stream.error() == (
            1146,
            "message table 'my_message' was dropped; its streams end",
        )
        # The session goes on.
        assert value(stream.connection, "SELECT 1") == 1

    def test_truncate_empties_the_queue(
        self, house: House, create: CreateTable, consume: Consume, keyspace: str
    ) -> None:
        create(keyspace, ack_wait=0.4)
        stream = consume(house.proxy, database=keyspace)
        connection = house.proxy.connect(database=keyspace, autocommit=True)
        insert_all(connection, (1, 4))
        stream.take(2, LATE_S)
        run(connection, "TRUNCATE TABLE my_message")
        stream.nothing(0.8)
        insert(connection, 2)
        assert stream.next(LATE_S)[0] == 2

    def test_a_table_dropped_past_the_proxy_ends_its_streams(
        self, house: House, create: CreateTable, consume: Consume
    ) -> None:
        create("plain")
        stream = consume(house.proxy, database="plain")
        house.direct("DROP TABLE my_message")
        assert stream.error()[0] == 1146


# --- everything, once --------------------------------------------------------------------------


class Worker(threading.Thread):
    """A consumer that acknowledges what it gets, in batches."""

    def __init__(self, house: House, keyspace: str) -> None:
        super().__init__()
        self.received: list[int] = []
        self.acked = 0
        self._stream = Consumer(
            house.proxy.connect(database=keyspace, autocommit=None), "STREAM * FROM my_message"
        )
        self._acks = house.proxy.connect(database=keyspace, autocommit=True)
        self.stopping = threading.Event()

    def run(self) -> None:
        batch: list[int] = []
        while not self.stopping.is_set() or batch:
            row = self._stream.poll(0.05)
            if row is not None:
                self.received.append(row[0])
                batch.append(row[0])
            if batch and (row is None or len(batch) >= 100):
                ids = ", ".join(map(str, batch))
                self.acked += run(
                    self._acks, f"UPDATE my_message SET time_acked = NOW() WHERE id IN ({ids})"
                )
                batch.clear()


def test_a_backlog_is_shared_out_and_each_message_acknowledged_once(
    house: House, create: CreateTable, keyspace: str
) -> None:
    count = 10_000
    create(keyspace, batch_size=100, cache_size=2000)
    producer = house.proxy.connect(database=keyspace, autocommit=True)
    for start in range(1, count + 1, 1000):
        insert_all(producer, range(start, start + 1000))
    workers = [Worker(house, keyspace) for _ in range(2)]
    for worker in workers:
        worker.start()
    try:
        eventually(lambda: sum(w.acked for w in workers) >= count, "all acked", 60)
    finally:
        for worker in workers:
            worker.stopping.set()
        for worker in workers:
            worker.join()
    received = [ident for worker in workers for ident in worker.received]
    assert sorted(received) == list(range(1, count + 1))
    assert sum(worker.acked for worker in workers) == count
    assert all(worker.received for worker in workers)
    assert not rows(producer, "SELECT id FROM my_message WHERE time_acked IS NULL")


def comparable(ident: Any) -> str:
    return str(ident)
