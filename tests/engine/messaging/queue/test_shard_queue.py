"""Names that begin with k restate tests of the original's cache, for keys that may lie in the future."""

from dataclasses import dataclass, field
from typing import Any

from hypothesis import given, strategies as st

from streamfrom.engine.messaging.queue.poll import PollResult, TierRead, poll
from streamfrom.engine.messaging.queue.shard_queue import (
    LOCKED_PAUSE_FIRST_NS,
    LOCKED_PAUSE_LAST_NS,
    POLL_LEAD_NS,
    REMOVED,
    ShardQueue,
)
from streamfrom.engine.messaging.store.conversation import StoreAnswer
from streamfrom.engine.messaging.table.message import FOREVER_NS, MessageKey
from tests.sim.memory_store import StoredRow, answer, loaded, raw_table


NOW_NS = 10**12
SECOND_NS = 10**9


def key(ident, time_next_ns=0, priority=50):
    return MessageKey(b"%d" % ident, priority, time_next_ns)


def queue(*keys, limit=100, newest=False):
    made = ShardQueue(limit, newest=newest)
    for one in keys:
        made.add(one, NOW_NS)
    return made


def tier(fresh=(), timed=(), *, fresh_more=False, timed_more=False, priority=50, floor_ns=0,
         horizon_ns=FOREVER_NS):  # fmt: skip
    timed = [key(1000 + moment, moment, priority) for moment in timed]
    if timed_more and horizon_ns == FOREVER_NS:
        horizon_ns = timed[-1].time_next_ns
    fresh = [key(ident, 0, priority) for ident in fresh]
    return TierRead(priority, fresh, fresh_more, timed, timed_more, floor_ns, horizon_ns)


def polled(made, *tiers, now_ns=NOW_NS):
    made.poll_started(now_ns)
    made.poll_finished(PollResult(tiers), now_ns)
    return made


def taken(made, rows_max=100, now_ns=NOW_NS):
    return [int(one.id) for one in made.take(rows_max, now_ns)]


# When to poll


def test_the_next_poll_is_wanted_when_half_is_used_up():
    made = polled(queue(), tier(range(1, 11), fresh_more=True))
    taken(made, 4)
    assert made.next_poll_ns() is None
    taken(made, 1)
    assert made.next_poll_ns() == 0


def test_parked_rows_are_wanted_just_before_the_horizon():
    horizon_ns = NOW_NS + SECOND_NS
    made = polled(queue(), tier(timed=[5, horizon_ns], timed_more=True))
    taken(made)
    assert made.next_poll_ns() == horizon_ns - POLL_LEAD_NS


# Flights


def test_a_locked_row_that_a_poll_still_shows_due_waits_for_the_end_of_its_pause():
    made = queue(key(1))
    taken(made)
    made.not_won(key(1), 0, NOW_NS)
    assert taken(made) == []
    polled(made, tier([1]))
    assert taken(made) == []
    assert made.first_ns() == NOW_NS + LOCKED_PAUSE_FIRST_NS
    assert taken(made, now_ns=NOW_NS + LOCKED_PAUSE_FIRST_NS) == [1]


def test_lost_rows_do_not_use_up_the_room_of_a_poll_and_are_not_remembered_for_ever():
    made = queue(*(key(one) for one in range(5)), limit=5)
    taken(made)
    for one in range(5):
        made.not_won(key(one), 0, NOW_NS)
    assert made.poll_started(NOW_NS).extra == 5
    forgotten_ns = NOW_NS + LOCKED_PAUSE_FIRST_NS + LOCKED_PAUSE_LAST_NS
    assert made.poll_started(forgotten_ns).extra == 0


def test_changed_settings_hold_at_once():
    made = queue(key(1), key(2), key(3))
    made.configure(2, newest=False, now_ns=NOW_NS)
    assert len(made) == 2
    made.configure(2, newest=True, now_ns=NOW_NS)
    assert len(made) == 0


# A naive model: all keys in a dict, looked through every time


@dataclass
class Model:
    """What the queue promises when nothing has been left out."""

    newest: bool
    keys: dict[bytes, MessageKey] = field(default_factory=dict)
    in_flight: dict[bytes, MessageKey | None] = field(default_factory=dict)

    def add(self, one):
        (self.in_flight if one.id in self.in_flight else self.keys)[one.id] = one

    def remove(self, ident):
        if ident in self.in_flight:
            self.in_flight[ident] = REMOVED
        self.keys.pop(ident, None)

    def take(self, rows_max, now_ns):
        def order(one):
            moment = one.time_next_ns
            if self.newest:
                return one.priority, moment == 0, -moment, int(one.id) * (-1 if moment else 1)
            return one.priority, moment, int(one.id)

        due = sorted((k for k in self.keys.values() if k.time_next_ns <= now_ns), key=order)
        for one in due[:rows_max]:
            self.in_flight[one.id] = None
            del self.keys[one.id]
        return due[:rows_max]

    def requeue(self, ident, one):
        news = self.in_flight.pop(ident, None)
        if news is not REMOVED:
            self.keys[ident] = news or one


keys = st.builds(
    key,
    st.integers(0, 12),
    st.sampled_from([0, 0, 5, 6, NOW_NS + 5, NOW_NS + 50]),
    st.integers(1, 3),
)
steps = st.lists(
    st.one_of(
        st.tuples(st.just("add"), keys),
        st.tuples(st.just("remove"), st.integers(0, 12)),
        st.tuples(st.just("take"), st.integers(1, 4)),
        st.tuples(st.just("requeue"), keys),
        st.tuples(st.just("wait"), st.integers(1, 30)),
    ),
    max_size=40,
)


@given(steps=steps, newest=st.booleans())
def test_the_queue_behaves_like_the_naive_model(steps, newest):
    made, model, now_ns = ShardQueue(1000, newest=newest), Model(newest), NOW_NS
    for step, value in steps:
        match step:
            case "add":
                made.add(value, now_ns)
                model.add(value)
            case "remove":
                made.remove(b"%d" % value)
                model.remove(b"%d" % value)
            case "take":
                assert made.due(now_ns, at_most=99) == sum(
                    one.time_next_ns <= now_ns for one in model.keys.values()
                )
                assert made.take(value, now_ns) == model.take(value, now_ns)
            case "requeue":
                if value.id in model.in_flight:
                    made.requeue(value.id, value, now_ns)
                    model.requeue(value.id, value)
            case _:
                now_ns += value
        assert len(made) == len(model.keys)
        assert made.in_flight == len(model.in_flight)
        moments = [one.time_next_ns for one in model.keys.values()]
        assert made.first_ns() == min(moments, default=None)


def test_a_lease_that_gets_longer_brings_no_key_to_a_queue_that_was_cleared():
    keys = queue(key(1, NOW_NS))
    keys.unwritten[b"1"] = key(1, NOW_NS)
    keys.clear()
    keys.renew(b"1", NOW_NS + SECOND_NS, NOW_NS)
    assert (len(keys), keys.unwritten) == (0, {b"1": key(1, NOW_NS + SECOND_NS)})
    keys.add(key(1, NOW_NS + SECOND_NS), NOW_NS)
    keys.renew(b"1", NOW_NS + 2 * SECOND_NS, NOW_NS)
    assert keys.get(b"1") == keys.unwritten[b"1"] == key(1, NOW_NS + 2 * SECOND_NS)


# A poll is a few statements long, and the cache hears of changes meanwhile: nothing may fall between

RETRY_NS = NOW_NS + 30


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


writes_and_polls = st.one_of(
    st.tuples(st.just(Shard.write), keys),
    st.tuples(st.just(Shard.ack), st.integers(0, 12).map(lambda ident: b"%d" % ident)),
    st.tuples(st.just(Shard.send), st.integers(1, 4)),
    st.tuples(st.just(Shard.poll_on)),
)


@given(
    rows=st.lists(keys, min_size=7, max_size=20),  # more than fit
    steps=st.lists(writes_and_polls, max_size=40),
    limit=st.integers(1, 6),
    newest=st.booleans(),
)
def test_what_is_not_in_the_cache_will_be_polled_for(rows, steps, limit, newest):
    shard = Shard(limit, newest)
    for step, *values in [*((Shard.write, one) for one in rows), *steps]:
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


# Keys that streams name are read apart, and whoever names them takes their messages alone

A = frozenset({b"'a'"})


def named_queue():
    made = ShardQueue(100)
    assert made.name_keys(A)
    assert not made.name_keys(A)
    assert made.poll_started(NOW_NS).named == (b"'a'",)
    return made


def test_named_keys_that_were_left_out_are_asked_for_by_themselves():
    made = named_queue()
    own = [key(number)._replace(key=b"'a'") for number in (1, 2)]
    read = TierRead(50, own, True, [], False, 0, FOREVER_NS, b"'a'")
    made.poll_finished(PollResult((read, tier([5]))), NOW_NS)
    made.take(1, NOW_NS, A)
    assert made.next_poll_ns(made.named) == 0
    assert made.next_poll_ns() is None


def test_a_follower_has_its_key_where_streams_name_it_though_no_poll_has_found_it():
    made = named_queue()
    made.following[b"7"] = key(7)._replace(key=b"'a'")
    made.following[b"8"] = key(8)._replace(key=b"'b'")
    made.poll_finished(PollResult(()), NOW_NS)
    assert [int(one.id) for one in made.take(9, NOW_NS, A)] == [7]
    assert taken(made, 9) == [8]
