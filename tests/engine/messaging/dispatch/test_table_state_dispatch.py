"""A shard that another process dispatches, or that this one is not sure to dispatch."""

import pytest

from streamfrom.engine.errors import StreamLost
from streamfrom.engine.messaging.dispatch.events import (
    Attached,
    Changed,
    Claim,
    Deposed,
    Detached,
    Elected,
    End,
    JobDone,
    Left,
    ReceiverReady,
    ServedElsewhere,
    ShardUp,
)
from streamfrom.engine.messaging.leases.lease_rows import Shorten
from streamfrom.engine.messaging.queue.poll import Poll, PollResult
from streamfrom.engine.messaging.table.message import ClaimResult
from tests.engine.messaging.job_ends import claim_done, poll_failed, polled
from tests.engine.messaging.queue.test_shard_queue import tier
from tests.engine.messaging.table_rig import EMPTY, TableRig, claimed, only


def deposed(**settings):
    rig = TableRig(**settings)
    assert rig.post(Deposed("0", "nobody dispatches it")) == []
    return rig


def test_a_shard_of_somebody_else_is_neither_polled_nor_claimed_from():
    rig = deposed()
    assert rig.post(Attached(1, None, ("id",))) == []
    assert rig.due(1, 2) == []
    assert rig.post(Changed("0")) == []
    assert rig.state.waiting == 0
    assert rig.later(20) == []


def test_an_election_begins_with_a_poll_and_then_serves():
    rig = deposed()
    rig.post(Attached(1, None, ("id",)))
    assert only(rig.post(Elected("0")), Poll).shard == "0"
    rig.post(polled("0", EMPTY))
    assert claimed(rig.due(1)) == [[1]]


def test_who_is_elected_again_sends_nothing_again_that_its_row_does_not_show():
    rig = TableRig(more=",vt_lease=lazy").attach(1)
    claim = only(rig.due(1), Claim)
    row = rig.row(1)._replace(is_written=False)
    rig.post(claim_done(claim.number, "0", ClaimResult((row,))))
    rig.post(ReceiverReady(1))
    rig.post(Deposed("0", "cut off"))
    assert rig.later(5) == []
    written, poll = rig.post(Elected("0"))
    assert isinstance(poll, Poll)
    assert [one.id for one in written.leases] == [b"1"], "the others are to know of it, too"
    assert rig.post(polled("0", PollResult((tier(fresh=[1]),)))) == []


@pytest.mark.parametrize(("receiver", "is_deposed_first"), [(1, False), (1, True), (-1, False)])
def test_who_is_elected_again_knows_who_has_left(receiver, is_deposed_first):
    rig = TableRig().attach(receiver)
    rig.won(only(rig.due(1), Claim))
    events = [Left(receiver), Deposed("0", "cut off")]
    rig.post(Detached(receiver, ()))
    shorten = [*rig.post(events[is_deposed_first]), *rig.post(events[not is_deposed_first])]
    if not is_deposed_first:
        rig.post(JobDone(only(shorten, Shorten), failure="cut off"))
    assert [lease.id for lease in only(rig.post(Elected("0")), Shorten).leases] == [b"1"]


def test_a_client_of_another_member_may_hold_on_when_its_link_is_over():
    rig = TableRig().attach(-1)
    rig.won(only(rig.due(1), Claim))
    rig.post(Detached(-1, ()))
    rig.post(Deposed("0", "another member dispatches it"))
    assert rig.post(Left(-1)) == []
    assert rig.post(Elected("0")) == []


def test_an_election_without_streams_does_nothing():
    assert deposed().post(Elected("0")) == []


def test_a_poll_from_before_is_not_believed():
    rig = TableRig()
    only(rig.post(Attached(1, None, ("id",))), Poll)
    rig.post(Deposed("0", "cut off"))
    assert rig.post(Elected("0")) == [], "one at a time"
    # Its answer may be older than what was told while the shard was withheld.
    assert only(rig.post(polled("0", EMPTY)), Poll)


def test_a_poll_that_fails_meanwhile_is_no_trouble():
    rig = TableRig()
    rig.post(Attached(1, None, ("id",)))
    rig.post(Deposed("0", "cut off"))
    assert rig.post(poll_failed("0", "gone")) == []
    rig.post(ServedElsewhere("0"))
    assert rig.wake_s() is None


def test_a_stream_that_nobody_serves_ends_after_the_grace_and_says_why():
    rig = deposed(grace_s=30)
    rig.later(100)
    rig.post(Attached(1, None, ("id",)))
    assert rig.wake_s() == 30, "it has its whole grace before it"
    assert rig.later(29) == []
    rig.post(Deposed("0", "its dispatcher at 10.0.0.2:4711 cannot be reached"))
    end = only(rig.later(1), End)
    assert isinstance(end.error, StreamLost)
    assert "10.0.0.2:4711 cannot be reached" in str(end.error)


def test_a_stream_that_is_served_elsewhere_lives_on():
    rig = deposed()
    rig.post(Attached(1, None, ("id",)))
    rig.post(ServedElsewhere("0"))
    assert rig.wake_s() is None
    assert rig.later(1000) == []


def test_a_server_that_is_healthy_does_not_end_the_trouble_of_nobody_serving():
    rig = deposed(grace_s=30)
    rig.post(Attached(1, None, ("id",)))
    rig.post(ShardUp("0"))
    only(rig.later(30), End)
