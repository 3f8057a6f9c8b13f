from dataclasses import replace

import pytest

from streamfrom.engine.messaging.queue.poll import PollPart, PollRequest, poll
from tests.engine.messaging.conversations import from_memory
from tests.engine.messaging.table.test_message_table import FIRST
from tests.sim.memory_store import StoredRow, loaded, raw_table


NOW_NS = 1_000_000
TABLE = loaded(raw_table("m`g"))
OLD = loaded(FIRST)
TEN = PollRequest(10)


def run(rows, request=TEN, table=TABLE):
    """Carry a poll out on *rows*; return its result and the questions it asked."""
    result, asked = from_memory(table, poll(table, request, NOW_NS), rows)
    return result.tiers, asked


def fresh(*ids, priority=50):
    return [StoredRow(b"%d" % one, priority) for one in ids]


def timed(*moments, priority=50):
    return [StoredRow(b"%d" % (1000 + one), priority, time_next_ns=one) for one in moments]


def parts(asked):
    """Return which rows the statements asked for."""
    texts = {
        b" AND time_next = 0 ": PollPart.ZERO,
        b" AND time_next IS NULL ": PollPart.NULL,
        b" AND time_next > 0 ": PollPart.DUE,
    }
    return [
        next((part for text, part in texts.items() if text in query.sql), PollPart.SOONEST)
        for query in asked
        if b"MIN(" not in query.sql
    ]


def ids(keys):
    return [int(key.id) for key in keys]


def test_a_flood_of_new_rows_leaves_room_for_retries():
    ((tier,), asked) = run([*fresh(*range(1, 100)), *timed(*range(10, 100))])
    assert parts(asked) == [PollPart.SOONEST, PollPart.ZERO, PollPart.NULL, PollPart.DUE]
    assert ids(tier.fresh) == [1, 2, 3, 4, 5]
    assert ids(tier.timed) == [1010, 1011, 1012, 1013, 1014]
    assert (tier.fresh_more, tier.timed_more, tier.horizon_ns) == (True, True, 14)


def test_due_rows_get_the_rest_before_parked_rows_of_a_more_urgent_priority():
    parked = timed(*range(NOW_NS + 1, NOW_NS + 50), priority=1)
    tiers, _ = run(
        [*parked, *fresh(*range(1, 50), priority=9), *fresh(99, priority=5)], PollRequest(12)
    )
    assert [len(tier) for tier in tiers] == [4, 1, 7]


def test_the_future_waits_while_much_is_left_of_a_flood():
    request = PollRequest(10, overloaded=frozenset({(b"", 50)}), low=5)
    ((tier,), asked) = run(timed(*range(1, 7), NOW_NS + 9), request)
    assert parts(asked) == [PollPart.ZERO, PollPart.NULL, PollPart.DUE]
    assert (len(tier.timed), tier.timed_more, tier.horizon_ns) == (6, True, NOW_NS)


def test_newest_under_overload_knows_the_latest_due_rows():
    newest = replace(TABLE, properties=replace(TABLE.properties, newest=True))
    ((tier,), _) = run(timed(*range(10, 50)), PollRequest(5), newest)
    assert ids(tier.timed) == [1049, 1048, 1047, 1046, 1045]
    assert (tier.floor_ns, tier.horizon_ns, tier.timed_more) == (45, NOW_NS, True)


def test_the_statements_are_those_that_were_measured():
    _, asked = run([*fresh(*range(1, 100)), *timed(7)])
    m = b"SELECT `id`, time_next FROM `m``g` WHERE time_acked IS NULL AND priority = 50"
    assert [query.sql for query in asked] == [
        b"SELECT MIN(priority) FROM `m``g` WHERE time_acked IS NULL",
        b"SELECT MIN(priority) FROM `m``g` WHERE time_acked IS NULL AND priority > 50",
        m + b" ORDER BY time_next LIMIT 10",
        m + b" AND time_next = 0 ORDER BY `id` LIMIT 10",
        m + b" AND time_next IS NULL ORDER BY `id` LIMIT 10",
        m + b" AND time_next > 0 AND time_next <= 1000000 ORDER BY time_next LIMIT 10",
    ]


def test_a_priority_that_may_be_null_is_looked_for():
    _, asked = run([], table=replace(TABLE, priority_nullable=True))
    assert b"AND priority IS NULL ORDER BY time_next" in asked[-1].sql


class TestFirstLayout:
    START = b"SELECT `id`, time_next FROM `my_message` FORCE INDEX (`next_idx`)"

    def test_one_statement_reads_it_by_its_index_and_leaves_acked_rows_out(self):
        rows = [replace_priority(row) for row in [*fresh(3), *timed(5, 9)]]
        ((tier,), asked) = run(rows, table=OLD)
        assert ids((*tier.fresh, *tier.timed)) == [3, 1005, 1009]
        assert [query.sql for query in asked] == [
            self.START
            + b" WHERE time_acked IS NULL AND time_next >= 0 ORDER BY time_next LIMIT 10"
        ]

    def test_rows_with_null_are_looked_for_where_an_index_finds_them(self):
        _, asked = run([], table=replace(OLD, null_lane=True))
        assert asked[-1].sql == (
            b"SELECT `id`, time_next FROM `my_message`"
            b" WHERE time_acked IS NULL AND time_next IS NULL ORDER BY `id` LIMIT 10"
        )

    def test_never_sent_rows_are_read_without_a_sort(self):
        rows = [replace_priority(row) for row in fresh(*range(1, 100))]
        _, asked = run(rows, table=OLD)
        assert asked[1].sql == (
            self.START + b" WHERE time_acked IS NULL AND time_next = 0 LIMIT 10"
        )


def replace_priority(row):
    return replace(row, priority=0)


@pytest.mark.parametrize("limit", range(1, 8))
@pytest.mark.parametrize("fresh_count", [0, 1, 3, 20])
@pytest.mark.parametrize("due", [0, 1, 3, 20])
def test_the_room_is_used_and_not_exceeded_by_more_than_a_lane_needs(limit, fresh_count, due):
    rows = [*fresh(*range(1, fresh_count + 1)), *timed(*range(10, 10 + due))]
    tiers, _ = run(rows, PollRequest(limit))
    count = sum(len(tier) for tier in tiers)
    assert min(limit, fresh_count + due) <= count <= max(limit, 2)
    for tier in tiers:
        assert tier.fresh_more or len(tier.fresh) == fresh_count
        assert tier.timed_more or len(tier.timed) == due
