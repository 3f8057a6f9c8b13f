"""A shard that another process dispatches, or that this one is not sure to dispatch."""

import pytest

from streamfrom.engine.errors import StreamLost
from streamfrom.engine.messaging.claims.ordered_claim import Claim
from streamfrom.engine.messaging.dispatch.events import (
    Attached,
    Changed,
    Deposed,
    Detached,
    Elected,
    End,
    JobDone,
    Left,
    ShardUp,
)
from streamfrom.engine.messaging.leases.lease_rows import Shorten
from tests.engine.messaging.table_rig import TableRig, only


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


def test_a_server_that_is_healthy_does_not_end_the_trouble_of_nobody_serving():
    rig = deposed(grace_s=30)
    rig.post(Attached(1, None, ("id",)))
    rig.post(ShardUp("0"))
    only(rig.later(30), End)
