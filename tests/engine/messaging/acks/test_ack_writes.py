import pytest

from streamfrom.engine.messaging.acks.ack_writes import WriteAcks
from streamfrom.engine.messaging.store.conversation import At, StoreAnswer
from streamfrom.engine.messaging.table.message import LateWrites
from streamfrom.sqlparse_ext.writes.completion import COUNT_SEND
from tests.engine.messaging.claims.test_claim_writes import BY_ID
from tests.engine.messaging.conversations import answered
from tests.sim.memory_store import DEFAULT_COMMENT, loaded, raw_table


LAZY = loaded(raw_table("msg"))
WRITTEN = loaded(raw_table("msg", DEFAULT_COMMENT + ",vt_lease=written"))
HERE = [((b"1",), b""), ((b"2",), b"")]


def write_acks(table, acks):
    return WriteAcks("0", tuple(acks)).talk(table, At("0", 0, is_elected=False))


@pytest.mark.parametrize(("table", "count_send"), [(LAZY, COUNT_SEND), (WRITTEN, b"")])
def test_acks_are_written_as_their_clients_would_have(table, count_send):
    queries, found = answered(
        write_acks(table, [(b"1", 77), (b"2", 77)]), StoreAnswer(rows=HERE), StoreAnswer()
    )
    assert queries[0].sql == (
        b"SELECT `id` FROM " + BY_ID + b" WHERE `id` IN (1, 2) AND time_acked IS NULL"
        b" FOR UPDATE SKIP LOCKED"
    )
    assert queries[1].sql == (
        b"UPDATE " + BY_ID + b" SET time_acked = 77" + count_send + b", time_next = NULL"
        b" WHERE `id` IN (1, 2)"
    )
    assert queries[1].commits
    assert found == LateWrites()


def test_each_message_has_the_time_of_its_ack():
    queries, _ = answered(
        write_acks(WRITTEN, [(b"2", 88), (b"1", 77)]), StoreAnswer(rows=HERE), StoreAnswer()
    )
    assert (
        b"time_acked = CASE `id` WHEN 2 THEN 88 WHEN 1 THEN 77 ELSE 88 END," in queries[1].sql
    )


def test_who_holds_a_row_is_not_waited_for_and_what_is_gone_is_no_fault():
    queries, found = answered(
        write_acks(WRITTEN, [(b"1", 77), (b"2", 77), (b"3", 77)]),
        StoreAnswer(rows=HERE[:1]),
        StoreAnswer(rows=[((b"3", b"0"), b"")]),  # 2 was deleted
        StoreAnswer(),
    )
    assert queries[2].sql.endswith(b" WHERE `id` IN (1)")
    assert found == LateWrites((b"3",))


def test_where_nothing_is_left_to_write_the_transaction_ends():
    queries, found = answered(
        write_acks(WRITTEN, [(b"1", 77)]), StoreAnswer(), StoreAnswer(), StoreAnswer()
    )
    assert queries[2].sql == b"COMMIT"
    assert found == LateWrites()
