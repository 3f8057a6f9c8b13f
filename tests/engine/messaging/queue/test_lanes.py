from streamfrom.engine.messaging.queue.lanes import Lane, rank
from streamfrom.engine.messaging.queue.poll import NOTHING_NS
from streamfrom.engine.messaging.table.message import MessageKey


def key(ident, time_next_ns=0):
    return MessageKey(b"%d" % ident, 50, time_next_ns)


def test_keys_are_ranked_by_time_then_by_the_number_or_the_bytes_of_their_id():
    keys = [MessageKey(ident, 1, 0) for ident in (b"'a'", b"10", b"9", b"-2", b"1.5", b"-x")]
    assert [one.id for one in sorted(keys, key=rank)] == [
        b"-2", b"9", b"10", b"'a'", b"-x", b"1.5",
    ]  # fmt: skip
    assert rank(key(9, 5)) < rank(key(1, 6))


def test_a_lane_admits_what_lies_in_its_known_part():
    lane = Lane()
    assert lane.admits(key(1, 10**18))
    lane.narrow(5, 10, more=True)
    assert [moment for moment in (4, 5, 10, 11) if lane.admits(key(1, moment))] == [5, 10]


def test_a_lane_is_low_when_rows_are_left_out_and_few_are_left():
    lane = Lane()
    lane.keys.update([key(1), key(2)])
    lane.low = 2
    assert not lane.is_low()
    lane.narrow(0, NOTHING_NS, more=True)
    assert lane.is_low()
