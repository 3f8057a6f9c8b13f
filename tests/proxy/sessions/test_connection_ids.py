import pytest

from streamfrom.proxy.sessions.connection_ids import (
    NUMBER_BITS,
    ConnectionIds,
    first_of,
    prefix_of,
)


def test_ids_count_up_from_a_random_place_and_wrap_around_past_those_in_use():
    ids = ConnectionIds(5, 77)
    assert [ids.allocate(()) for _ in range(3)] == [5 << NUMBER_BITS | n for n in (78, 79, 80)]
    member = 3 << NUMBER_BITS
    ids = ConnectionIds(3, (1 << NUMBER_BITS) - 2)
    assert ids.allocate(()) == member | (1 << NUMBER_BITS) - 1
    assert ids.allocate({member, member | 1}) == member | 2


@pytest.mark.parametrize("member", [1, 1023])
@pytest.mark.parametrize("dice", [0, 1, (1 << 32) - 1, (1 << NUMBER_BITS) - 1])
def test_ids_fit_the_protocol_and_are_never_0(member, dice):
    ids = ConnectionIds(member, dice)
    taken = [ids.allocate(()) for _ in range(10)]
    assert all(0 < each < 1 << 32 for each in taken)
    assert len(set(taken)) == 10
    assert len({each >> NUMBER_BITS for each in taken}) == 1, "all name the same proxy"


@pytest.mark.parametrize("member", [1, 77, 1023])
def test_an_id_names_its_proxy(member):
    ids = ConnectionIds(member, 5)
    assert {prefix_of(ids.allocate(())) for _ in range(5)} == {ids.member}
    assert prefix_of(first_of(ids.member)) == ids.member
    assert prefix_of(first_of(ids.member) - 1) == ids.member - 1
