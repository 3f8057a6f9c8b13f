"""How a process knows itself, and what it withholds; elections of real proxies are in tests/integration/faults."""

import asyncio
from dataclasses import replace

from streamfrom.proxy.app.elections import make_fleet, member_of_config
from streamfrom.proxy.backends.shard import ShardRuntime
from streamfrom.proxy.config.file import load


def config(folder, more=""):
    path = folder / "proxy.toml"
    path.write_text(
        "[keyspaces.ks]\n[[keyspaces.ks.shards]]\nname = '-'\n"
        f"primary = 'mysql://root:secret@127.0.0.1:3306/db'\n{more}"
    )
    return load(path, {})


def test_the_fleet_is_the_configurations_and_its_hash_tells_shards_apart(tmp_path):
    one = config(tmp_path, "[fleet]\nname = 'shop'\n")
    member = member_of_config(one, "a" * 16)
    assert (member.id, member.fleet) == ("a" * 16, "shop")
    shard = replace(one.keyspaces[0].shards[0], name="other")
    other = replace(one, keyspaces=(replace(one.keyspaces[0], shards=(shard,)),))
    assert member_of_config(other, "a" * 16).configuration != member.configuration
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
        member = member_of_config(config(tmp_path), "a" * 16)
        electors = make_fleet(shards, member, None).electors
        assert electors["ks", "-80"] is electors["ks", "80-"]
        assert electors["ks", "-80"] is not electors["ks", "x"]

    asyncio.run(main())
