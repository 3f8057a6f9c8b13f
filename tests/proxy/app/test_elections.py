"""How a process knows itself, and what it withholds; elections of real proxies are in tests/integration/faults."""

from dataclasses import replace

from streamfrom.proxy.app.elections import Elections, member_of_config
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


def test_what_nobody_elects_is_dispatched(tmp_path):
    elections = Elections({}, member_of_config(config(tmp_path), "a" * 16))
    assert elections.may_send("ks", "-")
    assert elections.electors == {}
