"""Who holds what, until when; and what a look at the rows changes."""

from streamfrom.engine.messaging.leases.leases import (
    ENDED_MAX,
    LOOK_IDS_MAX,
    STALE_MIN,
    Lease,
    Leases,
)
from streamfrom.engine.messaging.streams.stream_order import NOBODY
from streamfrom.engine.messaging.table.message import ClaimedRow


NOW_NS = 0  # no progress


def row(ident, until_ns):
    return ClaimedRow(b"%d" % ident, "0", 0, 0, until_ns, b"")


def held(*pairs):
    leases = Leases()
    leases.give(1, [row(ident, until_ns) for ident, until_ns in pairs])
    return leases


def test_a_message_that_is_sent_again_is_held_by_the_last_one():
    leases = held((1, 10))
    assert leases.give(2, [row(1, 20)]) == [Lease(10, b"1", 1)]
    assert leases.ended(10) == []
    assert leases.ended(20) == [Lease(20, b"1", 2)]


def test_who_leaves_gives_back_only_what_is_still_its_own():
    leases = held((1, 10), (2, 10))
    leases.give(2, [row(1, 20)])
    leases.give_back_of(1, b"1")
    leases.give_back_of(1, b"2")
    leases.give_back_of(1, b"3")
    assert leases.ended(99) == [Lease(20, b"1", 2)]


def test_what_was_given_back_does_not_gather_until_its_time_has_come():
    leases = Leases()
    for ident in range(10 * STALE_MIN):
        leases.give(1, [row(ident, ident)])
        leases.give_back(b"%d" % ident)
    assert leases.looks <= STALE_MIN
    assert leases.first_look_ns() is None


def test_a_look_gives_back_prolongs_or_changes_nothing():
    leases = held((1, 10), (2, 20), (3, 30), (4, 40))
    leases.suspect(None, keeps_leases=True)
    leases.next_look()
    given_back, prolonged = leases.looked({b"2": 15, b"3": 30, b"4": 99}, NOW_NS)
    assert [lease.id for lease in given_back] == [b"1", b"2"]
    assert prolonged == [Lease(99, b"4", 1)]
    assert leases.ended(50) == [Lease(30, b"3", 1)]
    assert leases.ended(99) == [Lease(99, b"4", 1)]


def test_what_anything_but_a_heartbeat_made_due_later_is_given_back():
    leases = held((1, 10), (2, 10), (3, 10), (4, 10), (5, 10))
    leases.suspect([b"1", b"2", b"3", b"4"], keeps_leases=True)
    leases.suspect([b"2", b"5"])
    leases.suspect([b"2"], keeps_leases=True)
    assert leases.next_look() == (b"1", b"2", b"3", b"4", b"5")
    leases.suspect([b"3"])  # while it is looked at
    leases.suspect([b"4"], keeps_leases=True)
    given_back, prolonged = leases.looked(
        dict.fromkeys([b"1", b"2", b"3", b"4", b"5"], 60), NOW_NS
    )
    assert [lease.id for lease in given_back] == [b"2", b"3", b"5"]
    assert [lease.id for lease in prolonged] == [b"1", b"4"]


def test_what_has_left_is_made_to_end_sooner_once_it_is_known():
    leases = held(*((ident, 50) for ident in range(LOOK_IDS_MAX + 2)), (9999, 20))
    leases.suspect([b"0"])
    found, is_more = leases.left(1, 30)
    assert (len(found), is_more) == (LOOK_IDS_MAX, True)
    leases.shorten([lease.id for lease in found], 30)
    found, is_more = leases.left(1, 30)
    assert ([lease.id for lease in found], is_more) == ([b"501"], True)
    assert len(leases.ended(30)) == LOOK_IDS_MAX + 1
    assert len(leases.ids_of(1)) == 2
    assert leases.left(2, 0) == ([], False)


def test_the_ends_of_a_great_many_are_taken_in_slices():
    leases = held(*((ident, 10) for ident in range(3 * ENDED_MAX // 2)))
    leases.give(2, [row(10**6 + ident, 20) for ident in range(ENDED_MAX)])
    assert len(leases.ended(99)) == 3 * ENDED_MAX // 2, "a batch is taken whole"
    assert leases.first_look_ns() == 15
    assert len(leases.ended(99)) == ENDED_MAX


def test_a_look_that_fails_lets_leases_end_by_their_time():
    leases = held((1, 10))
    leases.suspect([b"1"])
    leases.next_look()
    assert leases.ended(11) == []
    leases.look_failed(now_ns=5)
    assert leases.ended(12) == [Lease(10, b"1", 1)]


def test_all_are_looked_at_but_those_of_who_has_left():
    leases = held((1, 10), (2, 20))
    leases.give(2, [row(3, 30)])
    leases.suspect_all_but({1})
    assert leases.next_look() == (b"3",)


def test_what_a_former_dispatcher_sent_to_a_receiver_is_held_until_its_row_says():
    leases = held((1, 10))
    leases.found({b"2": 50}, now_ns=5)
    assert leases.take_over(7, [b"1", b"2", b"3", b"4", b"5", b"2"], now_ns=5) == 4, (
        "1 is sent again"
    )
    assert set(leases.ids_of(7)) == {b"2", b"3", b"4", b"5"}
    assert not leases.ids_of(NOBODY)
    assert leases.ended(9) == [], "their ends are not known yet"
    assert leases.left(7, due_ns=30) == ([], True)
    leases.suspect(None)  # as news of any commit does
    assert set(leases.next_look()) == {b"2", b"3", b"4", b"5"}
    # 3 is acked, and 4 was given back.
    given_back, prolonged = leases.looked({b"2": 50, b"4": 0, b"5": 40}, NOW_NS)
    assert {lease.id for lease in given_back} == {b"3", b"4"}
    assert prolonged == [Lease(40, b"5", 7)]
    assert set(leases.next_look()) == {b"1", b"2", b"5"}
    assert leases.looked({b"1": 10, b"2": 50, b"5": 40}, NOW_NS) == ([], [])
    assert leases.ended(49) == [Lease(10, b"1", 1), Lease(40, b"5", 7)]
    assert leases.ended(50) == [Lease(50, b"2", 7)], "its end was known"


def test_what_a_former_dispatcher_sent_is_held_though_its_row_was_asked_for_before():
    leases = held((2, 30))
    leases.found({b"1": 50}, now_ns=5)
    leases.suspect(None)
    assert set(leases.next_look()) == {b"1"}
    assert leases.give_back(b"2")
    assert leases.take_over(7, [b"1", b"2"], now_ns=6) == 2
    leases.suspect(None)
    assert leases.looked({b"1": 50}, NOW_NS) == ([], [])
    assert set(leases.next_look()) == {b"1", b"2"}
    assert leases.looked({b"1": 50, b"2": 40}, NOW_NS) == ([], [Lease(40, b"2", 7)])
    assert leases.ended(39) == []


def test_what_a_former_dispatcher_sent_is_held_and_looked_at_until_its_row_says():
    leases = Leases()
    leases.take_over(7, [b"1"], now_ns=5)
    assert leases.next_look()
    leases.look_failed(now_ns=5)
    assert not leases.next_look(), "not at once again"
    assert leases.left(7, due_ns=0) == ([], True)
    again_ns = leases.first_look_ns()
    assert again_ns is not None
    assert leases.ended(again_ns) == []
    assert leases.next_look() == (b"1",)
    given_back, _ = leases.looked({}, NOW_NS)
    assert [lease.id for lease in given_back] == [b"1"]
    assert len(leases) == 0


def test_a_reading_of_what_is_in_flight_says_when_what_was_taken_over_ends():
    leases = Leases()
    leases.take_over(7, [b"1"], now_ns=5)
    assert leases.next_look()
    leases.found({b"1": 50}, now_ns=6)
    assert leases.looked({}, NOW_NS) == ([], []), "read before"
    assert leases.next_look() == (b"1",)
    assert leases.looked({b"1": 50}, NOW_NS) == ([], [])
    assert leases.ended(49) == []
    assert leases.ended(50) == [Lease(50, b"1", 7)]
