"""How a process knows itself; fleets of real proxies are in tests/integration/faults."""

import asyncio
from dataclasses import replace

import pytest

from streamfrom.proxy.app.membership import (
    MemberNumber,
    Membership,
    databases_of,
    member_of_config,
)
from streamfrom.proxy.backends.shard import ShardRuntime
from streamfrom.proxy.config.file import load
from streamfrom.proxy.config.toml_values import ConfigError


FIVE = MemberNumber("a" * 16, 5)


def config(folder, more=""):
    path = folder / "proxy.toml"
    path.write_text(
        "[keyspaces.ks]\n[[keyspaces.ks.shards]]\nname = '-'\n"
        f"primary = 'mysql://root:secret@127.0.0.1:3306/db'\n{more}"
    )
    return load(path, {})


def test_the_fleet_is_the_configurations_and_its_hash_tells_shards_apart(tmp_path):
    one = config(tmp_path, "[fleet]\nname = 'shop'\n")
    member = member_of_config(one, FIVE, "h:1", "PEM")
    assert (member.id, member.fleet, member.id_prefix) == ("a" * 16, "shop", 5)
    shard = replace(one.keyspaces[0].shards[0], name="other")
    other = replace(one, keyspaces=(replace(one.keyspaces[0], shards=(shard,)),))
    assert member_of_config(other, FIVE, "h:1", "PEM").configuration != member.configuration
    assert "secret" not in str(member)


def test_shards_that_are_one_database_have_one_election(tmp_path):
    async def main():
        shards = {}
        for name, port, database in [("-80", 1, "db"), ("80-", 1, "db"), ("x", 2, "db")]:
            text = f"[keyspaces.ks]\n[[keyspaces.ks.shards]]\nname = '-'\nprimary = 'mysql://root@127.0.0.1:{port}/{database}'\n"
            path = tmp_path / f"{name}.toml"
            path.write_text(text)
            settings = load(path, {}).keyspaces[0].shards[0]
            shards["ks", name] = ShardRuntime("ks", settings, pool_timeout_s=1)
        found = [(database.shards, database.name) for database in databases_of(shards)]
        assert found == [((("ks", "-80"), ("ks", "80-")), "db"), ((("ks", "x"),), "db")]

    asyncio.run(main())


def membership(folder, text):
    async def main():
        made = Membership(config(folder, text), {}, FIVE)
        if made.port is not None:
            made.port.close()
        return made.member.address, made.port is not None

    return asyncio.run(main())


def test_it_listens_where_it_reaches_its_shards_unless_the_configuration_says_otherwise(
    tmp_path,
):
    address, has_port = membership(tmp_path, "[fleet]\nname = 'shop'\n")
    assert has_port
    host, _, port = address.rpartition(":")
    assert (host, int(port) > 0) == ("127.0.0.1", True)
    text = "[fleet]\nadvertise = 'nat.example:7'\n"
    assert membership(tmp_path, text) == ("nat.example:7", True)
    assert membership(tmp_path, "[fleet]\nlisten = ''\n") == ("", False)
    with pytest.raises(ConfigError, match=r"fleet.listen: cannot listen on 192.0.2.1:7"):
        membership(tmp_path, "[fleet]\nlisten = '192.0.2.1:7'\n")
