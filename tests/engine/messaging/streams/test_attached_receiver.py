"""Room, the rule by which it gathers, and equal shares."""

import ast

from streamfrom.engine.messaging.streams.attached_receiver import (
    GATHER_NS,
    UNLIMITED,
    AttachedReceiver,
    shares,
)
from tests.cases import cases


def receiver(limit, held=0):
    return AttachedReceiver(1, None, ("id",), None, limit, held)


@cases(
    limit=ast.literal_eval,
    held=ast.literal_eval,
    rows=ast.literal_eval,
    is_at_once=ast.literal_eval,
)
def test_room_gathers_only_while_there_is_enough_to_work_on(limit, held, rows, is_at_once):
    gathered_ns = receiver(limit, held).gathered_ns(rows, 7)
    assert gathered_ns == (0 if is_at_once else 7 + GATHER_NS)


def test_shares_leave_nothing_over_that_fits_and_level_the_rooms():
    for rooms in ([20, 13, 13, 7, 1], [UNLIMITED, 20, 20, 3], [4, 3, 2, 1]):
        for batch in (1, 2, 5, 100):
            for rows in range(60):
                found = shares(rows, rooms, [batch] * len(rooms))
                assert sum(found) == min(rows, sum(min(batch, room) for room in rooms))
                left = [room - count for room, count in zip(rooms, found, strict=True)]
                assert min(left) >= 0
                # Nobody has less left than another one who could have taken a row more.
                could = [n for n, count in zip(left, found, strict=True) if count < batch]
                served = [n for n, count in zip(left, found, strict=True) if count]
                if could and served:
                    assert max(could) <= min(served) + 1


def test_shares_of_those_that_take_fewer_leave_nothing_over_that_fits():
    assert shares(10, [UNLIMITED, UNLIMITED], [1, 10]) == [1, 9]
    assert shares(10, [UNLIMITED, 50], [3, 10]) == [3, 7]
    assert shares(20, [UNLIMITED, 50], [3, 10]) == [3, 10]


def test_one_that_is_to_end_goes_before_those_with_more_room():
    one = AttachedReceiver(1, None, ("id",), None, limit=5, rows_left=3)
    assert one.room == UNLIMITED
    assert one.at_most(10) == 3
    assert one.at_most(2) == 3
    one.took(3, 0)
    assert one.room == 0
    assert receiver(100).at_most(10) == 10
