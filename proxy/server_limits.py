"""Whether the servers of a configuration allow as many connections as its proxies may open."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from streamfrom.proxy.backends.control_connection import CONNECTIONS_MAX
from streamfrom.proxy.errors import BackendError, BackendUnavailable


if TYPE_CHECKING:
    from streamfrom.proxy.backends.shard import ShardRuntime
    from streamfrom.proxy.report import CheckReport


# Next to the pool: control connections, and one for the locks.
OWN_CONNECTIONS: Final = CONNECTIONS_MAX + 1
# One server may be reached by several addresses; this names it.
_WHO: Final = "SELECT @@hostname, @@port, @@datadir, @@max_connections"


@dataclass(slots=True)
class _ServerNeeds:
    address: str
    allowed: int
    members: int = 1
    pools: list[int] = field(default_factory=list)
    places: list[str] = field(default_factory=list)


class ServerLimits:
    """Adds up what all proxies of one configuration may open at each server."""

    def __init__(self) -> None:
        self._servers: dict[tuple[object, ...], _ServerNeeds] = {}

    async def add(self, shard: ShardRuntime, members: int) -> None:
        """Count the pool of a server that answers. members: how many processes have such a pool."""
        try:
            rows = await shard.control.rows(_WHO)
        except (BackendError, BackendUnavailable):
            return  # reported as a shard that cannot be used
        for *who, allowed in rows:
            found = self._servers.setdefault(
                tuple(who), _ServerNeeds(shard.dsn.server, int(allowed))
            )
            found.members = max(found.members, members)
            found.pools.append(shard.pool.size)
            found.places.append(str(shard))

    def report(self, report: CheckReport) -> None:
        """Report each server whose limit is lower than what its proxies may open."""
        for server in self._servers.values():
            each = sum(server.pools) + OWN_CONNECTIONS * len(server.pools)
            wanted = server.members * each
            if wanted <= server.allowed:
                continue
            room = server.allowed // server.members // len(server.pools) - OWN_CONNECTIONS
            lower = f", or pool_size to at most {room}" if room > 0 else ""
            proxies = "a proxy" if server.members == 1 else f"{server.members} proxies"
            report.warning(
                ", ".join(server.places),
                f"{proxies} may open {wanted} connections to {server.address} (pool_size"
                f" {' + '.join(map(str, server.pools))}, and {OWN_CONNECTIONS} more for each shard), and its"
                f" max_connections is {server.allowed}",
                f"set max_connections of the server to more than {wanted}{lower}",
            )
