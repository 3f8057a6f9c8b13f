import pytest

from streamfrom.proxy.sessions.addresses import Addresses, group


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


@pytest.mark.parametrize(
    ("peer", "counted_as"),
    [
        ("10.0.0.1", "10.0.0.1"),
        ("localhost", "localhost"),
        ("::1", "::1"),
        ("::ffff:10.0.0.1", "10.0.0.1"),
        ("2001:db8::1", "2001:db8::/64"),
        ("2001:db8::ffff", "2001:db8::/64"),
        ("fe80::1%eth0", "fe80::/64"),
    ],
)
def test_what_counts_as_one_address(peer, counted_as):
    assert group(peer) == counted_as
