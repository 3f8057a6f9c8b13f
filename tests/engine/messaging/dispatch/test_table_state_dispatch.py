"""A shard that another process dispatches, or that this one is not sure to dispatch."""

from streamfrom.engine.errors import StreamLost
from streamfrom.engine.messaging.dispatch.events import (
    Attached,
    Deposed,
    End,
    ShardUp,
)
from tests.engine.messaging.table_rig import TableRig, only


def deposed(**settings):
    rig = TableRig(**settings)
    assert rig.post(Deposed("0", "nobody dispatches it")) == []
    return rig


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
