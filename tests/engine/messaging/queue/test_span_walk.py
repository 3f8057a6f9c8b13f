"""A large cache is read again in parts: no poll reads much, and what was written past the proxies is found in turn."""

import pytest

from streamfrom.engine.messaging.queue.poll import SPAN_KEYS, poll
from streamfrom.engine.messaging.queue.shard_queue import ShardQueue
from streamfrom.engine.messaging.store.conversation import StoreAnswer
from tests.engine.messaging.conversations import carry_out
from tests.sim.memory_store import StoredRow, answer, loaded, raw_table


NOW_NS = 10**18
TABLE = loaded(raw_table("msg"))


class Rig:
    """A queue and the rows of its shard."""

    def __init__(self, rows, limit=10_000):
        self.rows = {row.id: row for row in rows}
        self.queue = ShardQueue(limit)
        self.read = 0
        self.run(self.queue.poll_started(NOW_NS))

    def run(self, request):
        self.read = 0

        def answer_to(query):
            found = StoreAnswer(answer(TABLE, query.sql, list(self.rows.values())))
            self.read += len(found.rows)
            return found

        result = carry_out(poll(TABLE, request, NOW_NS), answer_to)
        self.queue.poll_finished(result, NOW_NS)

    def check(self):
        """Poll as at the end of an interval."""
        assert self.queue.is_large
        self.run(self.queue.poll_started(NOW_NS, in_spans=True))

    def knows_all(self):
        assert len(self.queue) == len(self.rows)
        for each in self.rows.values():
            known = self.queue.get(each.id)
            assert known is not None
            assert known.time_next_ns == (each.time_next_ns or 0)


def row(number, time_next_ns=0, priority=50):
    return StoredRow(b"%d" % number, priority=priority, time_next_ns=time_next_ns)


ROWS = {
    "never sent": [row(n) for n in range(1, 3001)],
    "never sent, NULL": [row(n, None) for n in range(1, 3001)],
    "scheduled": [row(n, NOW_NS + n) for n in range(1, 3001)],
    "of both kinds and three priorities": [
        row(n, NOW_NS + n if n % 2 else n % 4 or None, priority=n % 3) for n in range(1, 3001)
    ],
}


@pytest.mark.parametrize("rows", ROWS.values(), ids=ROWS)
@pytest.mark.parametrize("known_before", [0, 3])
def test_what_was_written_past_the_proxies_is_found_while_no_poll_reads_much(
    rows, known_before
):
    rig = Rig([*rows])
    rig.knows_all()
    for _ in range(known_before):
        rig.check()
    some = list(rig.rows.values())
    for new in (row(9001), row(9002, NOW_NS + 2), row(9003, NOW_NS + 10**9), row(9004, None)):
        rig.rows[new.id] = new
    rig.rows[b"9005"] = row(9005, 7, priority=99)
    some[10].time_next_ns = NOW_NS + 77
    some[2500].time_next_ns = 0
    reads = []
    for _ in range(2 + 2 * len(rows) // SPAN_KEYS):
        rig.check()
        reads.append(rig.read)
    rig.knows_all()
    assert max(reads) <= 1.2 * SPAN_KEYS
    if known_before == 0:
        assert sum(reads) >= len(rows)


def test_scheduled_messages_that_are_gone_are_forgotten():
    rig = Rig([row(n, NOW_NS + n) for n in range(1, 3001)])
    for ident in (b"1", b"1500", b"3000"):
        del rig.rows[ident]
    for _ in range(4):
        rig.check()
    rig.knows_all()


def test_messages_of_one_moment_do_not_hold_the_turn_up():
    rig = Rig([row(n, NOW_NS + 1) for n in range(1, 2501)] + [row(9999, NOW_NS + 9)])
    rig.rows[b"9998"] = row(9998, NOW_NS + 9)
    reads = []
    for _ in range(6):
        rig.check()
        reads.append(rig.read)
    rig.knows_all()
    assert max(reads) > 2500, "a moment is read whole"
    assert sum(reads) <= 6 * SPAN_KEYS, "and the intervals behind it make up for that"


def test_what_is_set_aside_stays_so_whatever_its_row_shows():
    rig = Rig([row(n, NOW_NS - n) for n in range(1, 1501)])
    (refused,) = rig.queue.take(1, NOW_NS)
    timer = refused._replace(time_next_ns=NOW_NS + 10**9)
    rig.queue.set_aside[refused.id] = timer
    rig.queue.requeue(refused.id, timer, NOW_NS)
    for _ in range(4):
        rig.check()
    assert rig.queue.get(refused.id) == timer
