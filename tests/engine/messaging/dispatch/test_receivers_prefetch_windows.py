"""The windows of a table's streams, as its scheduler feeds them."""

from streamfrom.engine.messaging.dispatch.events import (
    Acked,
    Attached,
    Deposed,
    Elected,
    Reconfigured,
    TakenOver,
)
from streamfrom.engine.messaging.streams.prefetch_window import FIRST
from streamfrom.engine.messaging.table.message import AUTO
from tests.engine.messaging.table_rig import TableRig, table


COLUMNS = ("id", "message")


def rig_of(more=",vt_prefetch=auto", *, first=FIRST, prefetch=None):
    rig = TableRig(cache=1000, batch=200, more=more)
    rig.post(Attached(1, None, COLUMNS, prefetch, window_first=first))
    return rig


def acked(rig, *ids):
    return rig.run(rig.post(Acked("0", tuple(b"%d" % one for one in ids))))


def limit(rig, receiver=1):
    return rig.state.receivers.attached[receiver].limit


def test_a_number_and_auto_follow_the_table_and_a_hint_does_not():
    rig = rig_of()
    assert limit(rig) == FIRST
    rig.post(Reconfigured(table(more=",vt_prefetch=7")))
    assert limit(rig) == 7
    rig.post(Reconfigured(table(more=",vt_prefetch=auto")))
    assert limit(rig) == FIRST
    hinted = rig_of(",vt_prefetch=7", prefetch=AUTO)
    hinted.post(Reconfigured(table(more=",vt_prefetch=3")))
    assert limit(hinted) == FIRST


def test_the_window_of_a_stream_with_other_dispatchers_is_a_part():
    rig = TableRig(shards=("-80", "80-"), more=",vt_prefetch=auto")
    rig.post(Deposed("80-", "another one dispatches it"))
    for receiver, shards in ((1, None), (2, frozenset({"-80"})), (-3, frozenset({"-80"}))):
        rig.post(Attached(receiver, shards, COLUMNS, None))
    assert [limit(rig, receiver) for receiver in (1, 2, -3)] == [1, FIRST, 1]
    rig.post(Elected("80-"))
    windows = [one.window for one in rig.state.receivers.attached.values()]
    assert [window and window.is_part for window in windows] == [False, False, True]
    # Of one dispatcher from now on, it is as if it had always been so.
    assert [limit(rig, receiver) for receiver in (1, 2, -3)] == [FIRST, FIRST, 1]


def test_a_stream_that_brings_what_it_holds_has_room_when_it_has_acked_one():
    rig = TableRig(cache=1000, batch=200, more=",vt_prefetch=auto")
    held = tuple(b"%d" % one for one in range(5))
    rig.post(TakenOver(1, "0", held))
    rig.post(Attached(1, None, COLUMNS, None))
    assert limit(rig) == 5
    rig.run(rig.due(10))
    assert acked(rig, 0) == {1: [10]}
    rig.post(TakenOver(1, "0", tuple(b"%d" % one for one in range(20, 23))))
    assert limit(rig) == 8, "this process was elected"
