"""How long leases are by what their stream does."""

import pytest

from streamfrom.engine.messaging.leases.leases import Leases
from streamfrom.engine.messaging.streams.stream_order import Streams
from streamfrom.engine.messaging.table.message import ClaimedRow


SECOND_NS = 10**9
START_NS = 1_000 * SECOND_NS


class Scene:
    """One table with two shards; a message's wait is 30 s, and 1 s more for each number."""

    def __init__(self):
        self.now_ns = START_NS
        self.streams = Streams(30 * SECOND_NS)
        self.shards = {name: Leases(self.streams, name) for name in ("-80", "80-")}

    def at(self, seconds):
        self.now_ns = START_NS + round(seconds * SECOND_NS)
        return self

    def send(self, *numbers, shard="-80", to=1):
        rows = [
            ClaimedRow(b"%d" % n, shard, 0, 0, self.now_ns + (30 + n) * SECOND_NS, b"")
            for n in numbers
        ]
        self.shards[shard].give(to, rows, self.now_ns)

    def ack(self, *numbers, shard="-80"):
        self.shards[shard].give_back_all([b"%d" % n for n in numbers], self.now_ns)

    def heartbeat(self, number, shard="-80"):
        self.shards[shard].progress([b"%d" % number], self.now_ns)

    def ends(self):
        """Return when the leases of all messages end, in seconds since the start."""
        ends = {}
        for leases in self.shards.values():
            for lease in leases:
                lag_ns = sum(batch.lag_ns for batch in leases.lagging([lease.id]))
                ends[int(lease.id)] = (lease.until_ns + lag_ns - START_NS) / SECOND_NS
        return ends


@pytest.mark.parametrize("in_batches", [False, True])
def test_what_was_overtaken_keeps_the_lease_that_it_had(in_batches):
    scene = Scene()
    if in_batches:
        scene.send(1, 2, 3, 4)
    else:
        for number in (1, 2, 3, 4):
            scene.send(number)
    scene.at(5).ack(1)
    scene.at(10).ack(3)
    assert scene.ends() == {2: 37, 4: 44}, "2 has had its whole wait since 1 was done"
    scene.at(20).ack(4)
    assert scene.ends() == {2: 37}


def test_a_late_heartbeat_of_who_lost_a_message_overtakes_nothing_at_who_has_it_now():
    scene = Scene()
    scene.streams.attached = {1, 2}
    scene.send(2, to=2)
    scene.at(32).shards["-80"].ended(scene.now_ns)
    scene.send(1, 2, 3)
    scene.send(4)
    scene.at(40).heartbeat(2)
    assert scene.ends() == {1: 71, 2: 72, 3: 73, 4: 74}
    leases = scene.shards["-80"]
    leases.suspect([b"2"], by_heartbeat=True)
    assert leases.next_look() == (b"2",)
    _, (prolonged,) = leases.looked({b"2": START_NS + 100 * SECOND_NS}, scene.now_ns)
    assert prolonged.id == b"2"
    scene.at(80).ack(1)
    assert scene.ends() == {2: 112, 3: 113, 4: 114}, "it stands where it stood"
    scene.at(90).ack(3)
    assert scene.ends() == {2: 112, 4: 124}


def test_an_ack_of_what_a_stream_holds_no_more_is_its_progress():
    scene = Scene()
    scene.streams.attached = {1, 2}
    scene.send(1, to=2)
    scene.at(31).shards["-80"].ended(scene.now_ns)
    scene.send(1, 2)
    scene.at(40).ack(1)
    assert scene.ends() == {2: 72}, "perhaps by who lost it"
    scene.at(60).ack(1)
    assert scene.ends() == {2: 92}, "then by who was sent it again"
    scene.at(70).ack(1)
    assert scene.ends() == {2: 92}


def test_what_is_written_is_what_rows_show_until_it_is_longer_again():
    scene = Scene()
    scene.send(1, 2)
    leases = scene.shards["-80"]
    scene.at(10).heartbeat(1)
    (batch,) = leases.lagging(None)
    (first, _) = leases.renew(batch)
    leases.shown_ns[b"1"] = first.before_ns
    write = leases.next_write(b"1", None)
    assert (write.until_ns, write.shown_ns) == (first.until_ns, (first.before_ns,))
    # Its outcome is not known, so the same is tried again.
    scene.at(20).heartbeat(1)
    leases.renew(batch)
    again = leases.next_write(b"1", None)
    assert (again.until_ns, again.shown_ns) == (
        first.until_ns,
        (first.before_ns, first.until_ns),
    )
    assert leases.written([b"1"]) == [b"1"]
    assert leases.shown_ns == {b"1": first.until_ns}
    leases.next_write(b"1", None)
    assert leases.written([b"1"]) == []
    assert not leases.shown_ns
