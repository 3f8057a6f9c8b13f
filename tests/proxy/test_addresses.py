from streamfrom.proxy.addresses import AddressCounts, group
from tests.cases import cases


def test_who_has_left_is_not_counted_and_takes_no_memory():
    crowd = AddressCounts()
    for address in "aab":
        crowd.enter(address)
    crowd.leave("b")
    assert (crowd, crowd["b"]) == ({"a": 2}, 0)


@cases(peer=str, counted_as=str)
def test_what_counts_as_one_address(peer, counted_as):
    assert group(peer) == counted_as
