"""The addresses of clients: what counts as one, and how many there are of each. Pure."""

from __future__ import annotations

import ipaddress
from collections import Counter


class AddressCounts(Counter[str]):
    """How many there are of each address."""

    def enter(self, address: str) -> None:
        """Count one more."""
        self[address] += 1

    def leave(self, address: str) -> None:
        """Count one less."""
        self[address] -= 1
        if not self[address]:
            del self[address]


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
