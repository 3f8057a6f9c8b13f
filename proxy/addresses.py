"""Client addresses: grouping them and counting connections per address. Pure."""

from __future__ import annotations

import ipaddress
from collections import Counter


class AddressCounts(Counter[str]):
    """Connections per address."""

    def enter(self, address: str) -> None:
        """Count one connection more."""
        self[address] += 1

    def leave(self, address: str) -> None:
        """Count one connection less."""
        self[address] -= 1
        if not self[address]:
            del self[address]


def group(peer: str) -> str:
    """Return the address to count *peer* under: for IPv6 its /64 network, because one host owns all of it."""
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
