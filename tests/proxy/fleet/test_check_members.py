"""What the check says of a shard as the directory of a fleet."""

import socket
from types import SimpleNamespace
from typing import Any

from streamfrom.engine.fleet.directory import CREATE
from streamfrom.proxy.backends.shard import ShardRuntime
from streamfrom.proxy.errors import BackendUnavailable
from streamfrom.proxy.fleet.check_members import OWN_CONNECTIONS, ServerLimits, check_members
from streamfrom.proxy.report import CheckReport
from tests.proxy.fake_answers import Error, Rows
from tests.proxy.rigs import shard_config


ABSENT = Error(1146, "Table 'streamfrom.members' doesn't exist")
COLUMNS = ("member", "fleet", "address", "version", "configuration")


def members(*rows):
    return Rows(COLUMNS, tuple(tuple(value.encode() for value in row) for row in rows))


async def lines_of(server):
    lines: list[str] = []
    shard = ShardRuntime("plain", shard_config(server), pool_timeout_s=1)
    await check_members(shard, "0.1.0", "c0ffee", CheckReport(lines.append))
    await shard.stop()
    return lines


async def test_the_directory_and_who_is_there_are_told(server):
    address = f"127.0.0.1:{server.port}"
    server.once("IS_USED_LOCK", members(("aa", "", address, "0.1.0", "c0ffee")))
    assert await lines_of(server) == ["ok       plain/-: database streamfrom, 1 connected"]
    server.on("streamfrom.members", ABSENT)
    (line,) = await lines_of(server)
    assert line.startswith("ok       plain/-: database streamfrom, which the first proxy makes")
    server.stop()
    (line,) = await lines_of(server)
    assert line.startswith("warning  plain/-: the database streamfrom: ")


async def test_members_that_are_not_reached_from_here_are_warnings(server):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with socket.create_server(("::1", 0), family=socket.AF_INET6, backlog=1) as there:
        ways = [f"127.0.0.1:{port}", f"[::1]:{there.getsockname()[1]}", ""]
        same = ("0.1.0", "c0ffee")
        server.once("IS_USED_LOCK", members(*(("aa", "", way, *same) for way in ways)))
        _, *lines = await lines_of(server)
    (line,) = lines
    assert line == (
        f"warning  plain/-, member aa at {ways[0]}: not reached from this machine: Connect call failed"
        f" ('127.0.0.1', {port}); let members reach each other's ports, or name in advertise of [fleet]"
        " where they reach it"
    )


async def test_members_of_another_version_or_configuration_are_warnings(server):
    rows = (("aa", "", "h:1", "0.0.9", "c0ffee"), ("bb", "shop", "", "0.1.0", "tea"))
    server.once("IS_USED_LOCK", members(*rows))
    _, version, configuration, *_ = [
        line for line in await lines_of(server) if "not reached from this machine" not in line
    ]
    assert (
        version
        == "warning  plain/-, member aa at h:1: version 0.0.9, and this is 0.1.0; upgrade one after another"
    )
    assert (
        "member bb at no address of fleet shop: its keyspaces or shards are not"
        in configuration
    )


async def test_a_directory_that_it_may_not_make_or_write_is_a_warning_with_the_grant(server):
    server.once("UPDATE streamfrom.members", Error(1142, "UPDATE command denied"))
    said = "\n".join(await lines_of(server))
    assert said.startswith("warning  plain/-: a proxy works alone here")
    assert "GRANT SELECT, INSERT, UPDATE, DELETE" in said
    server.once("UPDATE streamfrom.members", Error(1665, "BINLOG_FORMAT = STATEMENT"))
    (line,) = await lines_of(
        server
    )  # what is no matter of rights keeps each member from dispatching
    assert line.startswith(
        "error    plain/-: the database streamfrom: BINLOG_FORMAT = STATEMENT; SET"
    )
    server.on("streamfrom.members", ABSENT)
    server.on("CREATE TABLE", Error(1142, "CREATE command denied"))
    server.on("CURRENT_USER()", Rows(("CURRENT_USER()",), ((b"app@%",),)))
    said = "\n".join(await lines_of(server))
    assert said.startswith("warning  plain/-: no database streamfrom")
    assert "CREATE command denied" in said
    assert "; ".join(CREATE) in said
    assert said.endswith("; GRANT SELECT, INSERT, UPDATE, DELETE ON streamfrom.* TO 'app'@'%'")


# What proxies may open at a server beside what it allows: added up over shards and members.
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
