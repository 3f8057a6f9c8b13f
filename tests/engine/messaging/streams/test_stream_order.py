"""How long leases are by what their stream does."""

import pytest

from streamfrom.engine.messaging.leases.leases import Lease, Leases
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

    def longer_than_shown(self):
        """Send two messages, whose leases progress makes longer than their rows say; return the leases."""
        self.send(1, 2)
        leases = self.shards["-80"]
        self.at(10).heartbeat(1)
        (batch,) = leases.lagging(None)
        leases.shown_ns.update((one, before_ns) for one, before_ns, _ in leases.renew(batch))
        return leases

    def ends(self):
        """Return when the leases of all messages end, in seconds since the start."""
        ends = {}
        for leases in self.shards.values():
            for lease in leases:
                lag_ns = sum(batch.lag_ns for batch in leases.lagging([lease.id]))
                ends[int(lease.id)] = (lease.until_ns + lag_ns - START_NS) / SECOND_NS
        return ends


def test_what_was_not_reached_is_leased_until_the_last_progress_and_its_wait():
    scene = Scene()
    scene.send(1, 2, 3)
    assert scene.ends() == {1: 31, 2: 32, 3: 33}
    scene.at(10).ack(1)
    assert scene.ends() == {2: 42, 3: 43}
    scene.at(20).heartbeat(2)
    assert scene.ends() == {2: 52, 3: 53}


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


def test_a_stream_over_shards_has_one_order_and_one_progress():
    scene = Scene()
    scene.send(1, 2, shard="-80")
    scene.send(3, 4, shard="80-")
    scene.send(5, shard="-80")
    scene.at(10).ack(1, shard="-80")
    assert scene.ends() == {2: 42, 3: 43, 4: 44, 5: 45}
    scene.at(20).ack(3, shard="80-")
    assert scene.ends() == {2: 42, 4: 54, 5: 55}


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
    leases.suspect([b"2"], keeps_leases=True)
    assert leases.next_look() == (b"2",)
    _, (prolonged,) = leases.looked({b"2": START_NS + 100 * SECOND_NS}, scene.now_ns)
    assert prolonged.id == b"2"
    scene.at(80).ack(1)
    assert scene.ends() == {2: 112, 3: 113, 4: 114}, "it stands where it stood"
    scene.at(90).ack(3)
    assert scene.ends() == {2: 112, 4: 124}


def test_each_of_several_that_lost_a_message_may_be_late_with_it():
    scene = Scene()
    scene.streams.attached = {1, 2, 3}
    scene.send(5, to=2)
    scene.at(35).shards["-80"].ended(scene.now_ns)
    scene.send(5, to=3)
    scene.at(70).shards["-80"].ended(scene.now_ns)
    scene.send(4)
    scene.send(5)
    scene.streams.attached = {1, 2}
    scene.at(80).ack(5)
    assert scene.ends() == {4: 114}


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


def test_progress_just_before_the_end_brings_leases_up_to_date_at_once():
    scene = Scene()
    scene.send(1, 2)
    leases = scene.shards["-80"]
    assert leases.ended(START_NS + 30 * SECOND_NS) == []
    assert not scene.streams.renewable, "no progress so far"
    scene.at(30.5).ack(1)
    (batch,) = scene.streams.renewable
    leases.renew(batch)
    assert leases.ended(START_NS + 59 * SECOND_NS) == []
    end_ns = START_NS + round(62.5 * SECOND_NS)
    assert leases.ended(end_ns) == [Lease(end_ns, b"2", 1)]


def test_a_stuck_stream_loses_all():
    scene = Scene()
    scene.send(1, 2)
    scene.send(3, shard="80-")
    scene.at(10).ack(1)
    for leases in scene.shards.values():
        leases.ended(START_NS + 32 * SECOND_NS)
    while scene.streams.renewable:
        batch = scene.streams.renewable.pop()
        scene.shards[batch.shard].renew(batch)
    assert not scene.shards["-80"].ended(START_NS + 41 * SECOND_NS)
    assert len(scene.shards["-80"].ended(START_NS + 42 * SECOND_NS)) == 1
    assert len(scene.shards["80-"].ended(START_NS + 43 * SECOND_NS)) == 1
    assert scene.streams.get(1) is None


def test_nothing_follows_who_has_left():
    scene = Scene()
    scene.send(1, 2)
    stream = scene.streams.get(1)
    assert stream is not None
    stream.is_over = True
    scene.shards["-80"].shorten([b"2"], START_NS + 5 * SECOND_NS)
    scene.at(4).ack(1)
    assert scene.ends() == {2: 5}


def test_what_is_written_is_what_rows_show_until_it_is_longer_again():
    scene = Scene()
    scene.send(1, 2)
    leases = scene.shards["-80"]
    scene.at(10).heartbeat(1)
    (batch,) = leases.lagging(None)
    ((_, before_ns, until_ns), _) = leases.renew(batch)
    leases.shown_ns[b"1"] = before_ns
    write = leases.next_write(b"1", None)
    assert (write.until_ns, write.shown_ns) == (until_ns, (before_ns,))
    # Its outcome is not known, so the same is tried again.
    scene.at(20).heartbeat(1)
    leases.renew(batch)
    again = leases.next_write(b"1", None)
    assert (again.until_ns, again.shown_ns) == (
        until_ns,
        (before_ns, until_ns),
    )
    assert leases.written([b"1"]) == [b"1"]
    assert leases.shown_ns == {b"1": until_ns}
    leases.next_write(b"1", None)
    assert leases.written([b"1"]) == []
    assert not leases.shown_ns


def test_a_look_believes_no_row_that_lags_behind():
    scene = Scene()
    leases = scene.longer_than_shown()
    leases.suspect(None)
    leases.next_look()
    seen = {one: START_NS + (31 + i) * SECOND_NS for i, one in enumerate((b"1", b"2"))}
    assert leases.looked(seen, scene.now_ns) == ([], [])
    leases.suspect(None)
    leases.next_look()
    given_back, _ = leases.looked(seen | {b"2": START_NS}, scene.now_ns)
    assert [lease.id for lease in given_back] == [b"2"]


def test_a_heartbeat_on_a_row_that_lags_behind_makes_no_lease_shorter():
    scene = Scene()
    leases = scene.longer_than_shown()
    leases.suspect([b"1"], keeps_leases=True)
    leases.next_look()
    row_ns = START_NS + 32 * SECOND_NS
    given_back, (longer,) = leases.looked({b"1": row_ns}, scene.at(20).now_ns)
    assert (given_back, longer.id) == ([], b"1")
    assert scene.ends() == {1: 51, 2: 52}
    assert leases.shown_ns[b"1"] == row_ns, "which is to be written"
