"""What proxies may open at a server beside what it allows: added up over shards and members."""

from types import SimpleNamespace
from typing import Any

from streamfrom.proxy.errors import BackendUnavailable
from streamfrom.proxy.fleet.check_members import OWN_CONNECTIONS, ServerLimits
from streamfrom.proxy.report import CheckReport


class Shard:
    """A shard on a server that allows *allowed* connections; None for one that is away."""

    def __init__(self, name: str, size: int, allowed: int | None, server: str = "db:1") -> None:
        self.name = name
        self.allowed = allowed
        self.pool = SimpleNamespace(size=size)
        self.dsn = SimpleNamespace(server=server)
        self.control = self

    def __str__(self) -> str:
        return self.name

    async def rows(self, _: str) -> list[tuple[object, ...]]:
        if self.allowed is None:
            raise BackendUnavailable("ks", self.name, "gone")
        return [("host", 1, "/data", self.allowed)]


async def found(*shards: Any, members: int = 1) -> list[str]:
    limits, report = ServerLimits(), CheckReport()
    for shard in shards:
        await limits.add(shard, members)
    limits.report(report)
    return [f"{finding.place}: {finding.text}; {finding.fix}" for finding in report.findings]


async def test_a_server_with_room_for_all_is_no_finding_and_one_without_needs_a_higher_limit():
    assert await found(Shard("ks/0", 20, 20 + OWN_CONNECTIONS)) == []
    assert await found(Shard("ks/0", 20, None)) == []
    (line,) = await found(Shard("ks/0", 1, 5))
    assert line.endswith("set max_connections of the server to more than 6")


async def test_all_shards_of_a_server_and_all_members_add_up():
    low, high = Shard("ks/-80", 20, 60), Shard("ks/80-", 20, 60, server="localhost:1")
    assert await found(low, high) == []
    (line,) = await found(low, high, members=2)
    assert line == (
        "ks/-80, ks/80-: 2 proxies may open 100 connections to db:1 (pool_size 20 + 20, and 5 more for each"
        " shard), and its max_connections is 60; set max_connections of the server to more than 100, or"
        " pool_size to at most 10"
    )
