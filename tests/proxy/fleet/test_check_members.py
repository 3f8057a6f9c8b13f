"""What the check says of a shard as the directory of a fleet."""

from streamfrom.engine.fleet.directory import CREATE_TEXT
from streamfrom.proxy.backends.shard import ShardRuntime
from streamfrom.proxy.fleet.check_members import check_members
from streamfrom.proxy.report import CheckReport
from tests.proxy.fake_answers import Error, Rows
from tests.proxy.rigs import shard_config


ABSENT = Error(1146, "Table 'db.streamfrom_members' doesn't exist")
COLUMNS = ("member", "fleet", "address", "version", "configuration")


def members(*rows):
    return Rows(COLUMNS, tuple(tuple(value.encode() for value in row) for row in rows))


async def lines_of(server):
    lines: list[str] = []
    shard = ShardRuntime("plain", shard_config(server), pool_timeout_s=1)
    await check_members(shard, "0.1.0", "c0ffee", CheckReport(lines.append))
    await shard.stop()
    return lines


async def test_the_table_and_who_is_there_are_told(server):
    server.once("IS_USED_LOCK", members(("aa", "", "h:1", "0.1.0", "c0ffee")))
    assert await lines_of(server) == ["ok       plain/-: table streamfrom_members, 1 connected"]


async def test_members_of_another_version_or_configuration_are_warnings(server):
    rows = (("aa", "", "h:1", "0.0.9", "c0ffee"), ("bb", "shop", "", "0.1.0", "tea"))
    server.once("IS_USED_LOCK", members(*rows))
    _, version, configuration, *_ = await lines_of(server)
    assert version == "warning  plain/-, member aa at h:1: version 0.0.9, and this is 0.1.0"
    assert (
        "member bb at no address of fleet shop: its keyspaces or shards are not"
        in configuration
    )


async def test_a_table_that_the_first_proxy_makes_is_nothing_to_mend(server):
    server.on("streamfrom_members", ABSENT)
    (line,) = await lines_of(server)
    assert line.startswith(
        "ok       plain/-: table streamfrom_members, which the first proxy makes"
    )


async def test_a_table_that_it_may_not_make_is_printed(server):
    server.on("streamfrom_members", ABSENT)
    server.on("CREATE TABLE", Error(1142, "CREATE command denied"))
    said = "\n".join(await lines_of(server))
    assert said.startswith("warning  plain/-: no table streamfrom_members")
    assert "CREATE command denied" in said
    assert CREATE_TEXT in said


async def test_rights_that_lack_on_it_are_a_warning(server):
    server.once("UPDATE streamfrom_members", Error(1142, "UPDATE command denied"))
    said = "\n".join(await lines_of(server))
    assert said.startswith("warning  plain/-: a proxy works alone here")
    assert "GRANT SELECT, INSERT, UPDATE, DELETE" in said


async def test_a_server_that_hangs_up_is_a_warning(server):
    server.stop()
    (line,) = await lines_of(server)
    assert line.startswith("warning  plain/-: streamfrom_members: ")
