"""A message whose lease ended goes to another stream than the one that lost it, where one has room within a second."""

from streamfrom.engine.messaging.dispatch.events import Acked
from streamfrom.engine.messaging.streams.attached_receiver import GATHER_NS
from streamfrom.engine.messaging.streams.lost_messages import APART_NS
from tests.engine.messaging.table_rig import SECOND_NS, TableRig


WAIT_S = 30


def streams(*numbers, prefetch=1):
    return TableRig(more=f",vt_prefetch={prefetch}").attach(*numbers)


def test_it_waits_a_second_for_another_stream_to_have_room():
    rig = streams(1, 2)
    (loser,) = rig.run(rig.due(7))
    rig.run(rig.later(20))
    assert rig.run(rig.due(8)) == {3 - loser: [8]}
    assert rig.run(rig.later(10)) == {}
    assert rig.run(rig.post(Acked("0", (b"8",)))) == {3 - loser: [7]}


def test_it_goes_back_where_no_other_has_room_for_a_second():
    rig = streams(1, 2)
    (loser,) = rig.run(rig.due(7))
    rig.run(rig.later(20))
    rig.run(rig.due(8))
    assert rig.run(rig.later(10)) == {}
    assert rig.wake_s() == APART_NS / SECOND_NS
    assert rig.run(rig.later(1)) == {loser: [7]}


def test_of_two_that_lose_each_gets_what_the_other_has_lost():
    rig = streams(1, 2)
    first = rig.run(rig.due(7, 8))
    second = rig.run(rig.later(WAIT_S))
    assert {**first} == {1: second[2], 2: second[1]}


def test_a_stream_that_lost_one_is_served_after_all_others():
    rig = streams(1, 2, prefetch=5)
    assert rig.run(rig.due(1)) == {1: [1]}
    assert rig.run(rig.later(WAIT_S)) == {2: [1]}
    assert rig.run(rig.due(2, 3)) == {2: [2, 3]}
    assert rig.run(rig.due(4, 5, 6)) == {}, "the other one lets room gather"
    assert rig.run(rig.later(GATHER_NS / SECOND_NS)) == {2: [4, 5], 1: [6]}
