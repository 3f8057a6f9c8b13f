import pytest

from streamfrom.engine.messaging.leases.lease_rows import WriteLeases
from streamfrom.engine.messaging.store.conversation import At, StoreAnswer
from streamfrom.engine.messaging.table.message import LateWrites, LeaseWrite
from tests.engine.messaging.conversations import answered
from tests.sim.memory_store import loaded, raw_table


NOW_NS = 1000 * 10**9
LATER_NS = NOW_NS + 1
LAZY = loaded(raw_table("msg"))
BY_ID = b"`msg` FORCE INDEX (`PRIMARY`)"


def run(leases, *answers):
    return answered(WriteLeases("-", leases).talk(LAZY, At("-", NOW_NS, True)), *answers)


def row(ident, time_next_ns, epoch):
    return (ident, b"%d" % time_next_ns, b"%d" % epoch), b""


def test_rows_that_were_acked_are_left_and_those_that_somebody_holds_are_told():
    queries, result = run(
        [LeaseWrite(b"%d" % one, 77) for one in (1, 2, 3)],
        StoreAnswer(),
        # 1 is acked, 2 is due and so was locked, 3 was claimed by another dispatcher.
        StoreAnswer(rows=[((b"2", b"0"), b""), ((b"3", b"%d" % LATER_NS), b"")]),
        StoreAnswer(),
    )
    assert queries[2].sql == b"COMMIT"
    assert result == LateWrites((b"2",), rescheduled=(b"3",))


@pytest.mark.parametrize("others", [0, 1])
def test_a_row_that_was_rescheduled_is_only_counted(others):
    rows = [row(b"0", LATER_NS, 0), row(b"1", 0, 0)][: others + 1]
    queries, result = run(
        [LeaseWrite(b"%d" % one, 77) for one in range(others + 1)],
        StoreAnswer(rows=rows),
        StoreAnswer(affected=1),
    )
    moved = b"time_next = CASE `id` WHEN 1 THEN 77 ELSE time_next END, " if others else b""
    ids = b"1, 0" if others else b"0"
    assert queries[1].sql == (
        b"UPDATE " + BY_ID + b" SET " + moved + b"epoch = GREATEST(IFNULL(epoch, 0), 1)"
        b" WHERE `id` IN (" + ids + b")"
    )
    assert result == LateWrites(rescheduled=(b"0",))
