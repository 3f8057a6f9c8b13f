from streamfrom.proxy.sessions.addresses import Addresses, group
from tests.cases import cases


def test_connections_are_counted_until_they_leave():
    addresses = Addresses()
    addresses.connected("a")
    addresses.connected("a")
    addresses.connected("b")
    assert (addresses.connections("a"), addresses.strangers("a")) == (2, 2)
    addresses.logged_in("a")
    assert (addresses.connections("a"), addresses.strangers("a")) == (2, 1)
    addresses.disconnected("a", was_in=True)
    addresses.disconnected("b", was_in=False)
    assert (addresses.connections("a"), addresses.strangers("a")) == (1, 1)
    addresses.disconnected("a", was_in=False)
    assert len(addresses) == 0
    assert addresses.connections("a") == addresses.strangers("a") == 0


@cases(peer=str, counted_as=str)
def test_what_counts_as_one_address(peer, counted_as):
    assert group(peer) == counted_as
