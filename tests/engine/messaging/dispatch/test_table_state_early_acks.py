"""`vt_ack = early`: what the scheduler believes of a message between the answer of its ack and its row."""

import pytest

from streamfrom.engine.messaging.acks.ack_writes import WriteAcks
from streamfrom.engine.messaging.acks.early_acks import GATHER_NS
from streamfrom.engine.messaging.claims.ordered_claim import Claim
from streamfrom.engine.messaging.dispatch.events import (
    AckedEarly,
    Changed,
    Deposed,
    ReceiverReady,
    Reconfigured,
)
from streamfrom.engine.messaging.table.message import AckWrites
from tests.engine.messaging.job_ends import acks_written
from tests.engine.messaging.table_rig import TableRig, kinds, table


EARLY = ",vt_ack=early"
ACKED_NS = 77


class Rig(TableRig):
    """A table whose acks are answered early, with messages that receiver 1 was sent."""

    def __init__(self, *sent, more=EARLY, **settings):
        super().__init__(more=more, **settings)
        self.attach(1)
        claim = next(action for action in self.due(*sent) if isinstance(action, Claim))
        self.won(claim)
        self.post(ReceiverReady(1))

    def takes(self, *ids):
        return self.state.takes_acks("0", [b"%d" % one for one in ids], self.now_ns)

    def ack(self, *ids):
        taken = self.takes(*ids)
        return self.post(AckedEarly("0", taken, ACKED_NS))

    def write(self):
        """Let the gathering be over; return what is to be written."""
        return kinds(self.later(GATHER_NS / 10**9), WriteAcks)

    def written(self, *locked):
        return self.post(acks_written("0", AckWrites(tuple(b"%d" % one for one in locked))))


def acks(*ids):
    return [WriteAcks("0", tuple((b"%d" % one, ACKED_NS) for one in ids))]


def test_an_ack_gives_room_back_at_once_and_is_written_with_others():
    rig = Rig(1, 2, 3)
    assert rig.takes(1, 2) == (b"1", b"2")
    assert kinds(rig.ack(1, 2), WriteAcks) == []
    assert rig.state.held == 1
    assert rig.wake_s() == GATHER_NS / 10**9
    assert rig.write() == acks(1, 2)
    assert rig.state.awaits_acks("0")
    rig.written()
    assert not rig.state.awaits_acks("0")
    assert rig.state.counters("0").ack_latency.total == 2


@pytest.mark.parametrize(
    "why", ["unknown", "changed", "over", "claimed", "committed", "deposed", "failing"]
)
def test_what_is_not_known_for_sure_is_left_to_the_server(why):
    rig = Rig(1, 2, more="" if why == "committed" else EARLY)
    match why:
        case "unknown":
            assert rig.takes(1, 99) is None
            return
        case "changed":
            rig.post(Changed("0", (b"1",)))
        case "over":
            rig.now_ns += 31 * 10**9
        case "claimed":
            # Its lease was over, and a heartbeat that came meanwhile has made it longer.
            (shard,) = rig.state.shards
            shard.queue.put_in_flight(b"1")
        case "deposed":
            rig.post(Deposed("0", "another one"))
        case "failing":
            rig.ack(2)
            rig.write()
            rig.post(acks_written("0", None))
        case _:
            assert why == "committed"
    assert rig.takes(1) is None


def test_what_was_answered_is_written_by_who_dispatches_no_more_and_after_the_setting_is_off():
    rig = Rig(1, 2)
    rig.ack(1)
    rig.post(Deposed("0", "another one"))
    rig.post(Reconfigured(table()))
    assert rig.write() == acks(1)
