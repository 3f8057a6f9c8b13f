"""How many connections each address has, and how many of them have not logged in. Pure."""

from __future__ import annotations

import ipaddress
from collections import Counter


class Addresses:
    """The connections of all addresses. Each is `connected` once, then perhaps `logged_in`, then `disconnected`."""

    def __init__(self) -> None:
        self._all: Counter[str] = Counter()
        self._strangers: Counter[str] = Counter()

    def __len__(self) -> int:
        """Return how many addresses there are."""
        return len(self._all)

    def connections(self, address: str) -> int:
        """Return how many connections *address* has."""
        return self._all[address]

    def strangers(self, address: str) -> int:
        """Return how many connections of *address* have not logged in."""
        return self._strangers[address]

    def connected(self, address: str) -> None:
        """Count a connection before its login."""
        self._all[address] += 1
        self._strangers[address] += 1

    def logged_in(self, address: str) -> None:
        """Count the login of a connection."""
        _less(self._strangers, address)

    def disconnected(self, address: str, *, was_in: bool) -> None:
        """Uncount a connection that is gone; *was_in*: it had logged in."""
        _less(self._all, address)
        if not was_in:
            _less(self._strangers, address)


def _less(counts: Counter[str], address: str) -> None:
    counts[address] -= 1
    if not counts[address]:
        del counts[address]


def group(peer: str) -> str:
    """Return what counts as one address: *peer*, or of IPv6 its network of 64 bits, which one host has."""
    try:
        address = ipaddress.ip_address(peer.partition("%")[0])
    except ValueError:
        return peer
    if isinstance(address, ipaddress.IPv4Address):
        return peer
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return (
        peer if address.is_loopback else str(ipaddress.ip_network((address, 64), strict=False))
    )
