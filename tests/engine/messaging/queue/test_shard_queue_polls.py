"""A poll is a few statements long, and the cache hears of changes meanwhile: nothing may fall between."""

from typing import Any

from hypothesis import given, strategies as st

from streamfrom.engine.messaging.queue.poll import poll
from streamfrom.engine.messaging.queue.shard_queue import ShardQueue
from streamfrom.engine.messaging.store.conversation import StoreAnswer
from streamfrom.engine.messaging.table.message import MessageKey
from tests.sim.memory_store import StoredRow, answer, loaded, raw_table


NOW_NS = 10**12
RETRY_NS = NOW_NS + 30


def key(ident, time_next_ns=0, priority=50):
    return MessageKey(b"%d" % ident, priority, time_next_ns)


class Shard:
    """A table, the queue of it, and at most one poll under way, which reads the table as it is."""

    def __init__(self, limit, newest):
        self.table = loaded(raw_table("my_message"))
        self.queue = ShardQueue(limit, newest=newest)
        self.rows = {}
        self.poll: Any = None
        self.query: Any = None

    def write(self, one):
        self.rows[one.id] = StoredRow(one.id, one.priority, time_next_ns=one.time_next_ns)
        self.queue.add(one, NOW_NS)

    def ack(self, ident):
        if self.rows.pop(ident, None):
            self.queue.remove(ident)

    def send(self, rows_max):
        for one in self.queue.take(rows_max, NOW_NS):
            self.rows[one.id].time_next_ns = RETRY_NS
            self.queue.requeue(one.id, one._replace(time_next_ns=RETRY_NS), NOW_NS)

    def poll_on(self):
        """Begin a poll, or let it ask its next question."""
        try:
            if self.poll is None:
                self.poll = poll(self.table, self.queue.poll_started(NOW_NS), NOW_NS)
                self.query = next(self.poll)
            else:
                rows = answer(self.table, self.query.sql, list(self.rows.values()))
                self.query = self.poll.send(StoreAnswer(rows))
        except StopIteration as stop:
            self.poll = None
            self.queue.poll_finished(stop.value, NOW_NS)


keys = st.builds(
    key,
    st.integers(0, 12),
    st.sampled_from([0, 0, 5, 6, NOW_NS + 5, NOW_NS + 50]),
    st.integers(1, 3),
)
steps = st.one_of(
    st.tuples(st.just(Shard.write), keys),
    st.tuples(st.just(Shard.ack), st.integers(0, 12).map(lambda ident: b"%d" % ident)),
    st.tuples(st.just(Shard.send), st.integers(1, 4)),
    st.tuples(st.just(Shard.poll_on)),
)


@given(steps=st.lists(steps, max_size=40), limit=st.integers(1, 6), newest=st.booleans())
def test_what_is_not_in_the_cache_will_be_polled_for(steps, limit, newest):
    shard = Shard(limit, newest)
    for step, *values in steps:
        step(shard, *values)
        assert len(shard.queue) <= limit
    while shard.poll is not None:
        shard.poll_on()
    held = {ident: one for ident in shard.rows if (one := shard.queue.get(ident)) is not None}
    for one in held.values():
        row = shard.rows[one.id]
        assert (one.priority, one.time_next_ns) == (row.priority, row.time_next_ns)
    # What is not here is polled for, at the latest when all that is here is used up.
    left_out = [row for ident, row in shard.rows.items() if ident not in held]
    if left_out:
        while shard.queue.take(5, NOW_NS + 100):
            pass
        wanted_ns = shard.queue.next_poll_ns()
        assert wanted_ns is not None
        assert wanted_ns <= min(row.time_next_ns for row in left_out)
