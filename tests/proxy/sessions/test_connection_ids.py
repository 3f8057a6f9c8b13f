import pytest

from streamfrom.proxy.sessions.connection_ids import (
    MEMBER_BITS,
    NUMBER_BITS,
    ConnectionIds,
    draw,
    first_of,
    prefix_of,
)


def test_ids_count_up_from_a_random_place():
    ids = ConnectionIds(5 << NUMBER_BITS | 77)
    assert [ids.allocate(()) for _ in range(3)] == [5 << NUMBER_BITS | n for n in (78, 79, 80)]


@pytest.mark.parametrize("dice", [0, 1, (1 << 32) - 1, (1 << NUMBER_BITS) - 1])
def test_ids_fit_the_protocol_and_are_never_0(dice):
    ids = ConnectionIds(dice)
    taken = [ids.allocate(()) for _ in range(10)]
    assert all(0 < each < 1 << 32 for each in taken)
    assert len(set(taken)) == 10
    assert len({each >> NUMBER_BITS for each in taken}) == 1, "all name the same proxy"


def test_numbers_wrap_around_past_those_in_use():
    member = 3 << NUMBER_BITS
    ids = ConnectionIds(member | (1 << NUMBER_BITS) - 2)
    assert ids.allocate(()) == member | (1 << NUMBER_BITS) - 1
    assert ids.allocate({member, member | 1}) == member | 2


def test_proxies_share_no_ids():
    a, b = ConnectionIds(1 << NUMBER_BITS), ConnectionIds(2 << NUMBER_BITS)
    assert not {a.allocate(()) for _ in range(1000)} & {b.allocate(()) for _ in range(1000)}
    assert MEMBER_BITS + NUMBER_BITS == 32


@pytest.mark.parametrize("dice", [0, 77, (1 << 32) - 1])
def test_an_id_names_its_proxy(dice):
    ids = ConnectionIds(dice)
    assert {prefix_of(ids.allocate(())) for _ in range(5)} == {ids.member}
    assert prefix_of(first_of(ids.member)) == ids.member
    assert prefix_of(first_of(ids.member) - 1) == ids.member - 1


def test_a_number_is_drawn_until_it_is_free():
    throws = iter([5 << NUMBER_BITS, 6 << NUMBER_BITS, 7 << NUMBER_BITS])
    assert draw(throws.__next__, lambda number: number == 7).member == 7


def test_where_no_number_is_free_any_will_do():
    assert draw(lambda: 5 << NUMBER_BITS, lambda _: False).member == 5
