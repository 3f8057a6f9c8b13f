"""Keyspaces and shards of a configuration, and every fault with its key."""

import ast
from pathlib import Path

import pytest

from streamfrom.proxy.config.file import ConfigError
from streamfrom.proxy.config.keyspaces import make_keyspace, refuse_walls, reread_vschema
from streamfrom.proxy.config.toml_values import Surroundings, TomlTable
from tests.cases import cases, in_turn
from tests.proxy.config.files import SHARDED, UNSHARDED


def shard(name: str, port: int) -> str:
    return (
        "[[keyspaces.commerce.shards]]\n"
        f'name = "{name}"\nprimary = "mysql://root@127.0.0.1:{port}"\n'
    )


def shards(*names: str) -> str:
    parts = [shard(name, 3307 + index) for index, name in enumerate(names)]
    return '[keyspaces.commerce]\nvschema = "vschema.json"\n' + "".join(parts)


def test_shards_stand_in_the_order_of_their_ranges_wherever_they_were_written(read):
    (keyspace,) = read(shards("8A-", "-4a", "4A-8a")).keyspaces
    assert [shard.name for shard in keyspace.shards] == ["-4a", "4a-8a", "8a-"]
    assert [shard.primary.port for shard in keyspace.shards] == [3308, 3309, 3307]


def test_replicas_are_addresses_like_the_primary(read):
    (keyspace,) = read(
        UNSHARDED + 'replicas = ["mysql://root@127.0.0.1:3309", "mysql://root@db2/x"]'
    ).keyspaces
    assert [str(replica) for replica in keyspace.shards[0].replicas] == [
        "mysql://root@127.0.0.1:3309/commerce",
        "mysql://root@db2:3306/x",
    ]


FAULTS = [
    ("[keyspaces.commerce]", "keyspaces.commerce.shards: missing; expected at least one [[key"),
    ("[keyspaces]\ncommerce = 1", "keyspaces.commerce: expected a table, got 1"),
    (UNSHARDED.replace("commerce", '"a:b"'), 'keyspaces."a:b": expected a keyspace\'s name'),
    (UNSHARDED.replace("commerce", "mysql"), "keyspaces.mysql: expected a name that is not one"),
    (UNSHARDED.replace("commerce", "Streamfrom"), "keyspaces.Streamfrom: expected a name that is not"),
    (UNSHARDED.replace('"0"', '"-80"'), "keyspaces.commerce.shards[0].name: expected"),
    (shard("-80", 1) + shard("80-", 2), "keyspaces.commerce.shards: expected one shard without"),
    (UNSHARDED + "share_reads = 1", "keyspaces.commerce.shards[0].share_reads: expected true or false"),
    (UNSHARDED + 'pool_size = "x"', 'keyspaces.commerce.shards[0].pool_size: expected an integer ≥ 1, got "x"'),
    (
        UNSHARDED + 'readonly = "mysql://reader:hunter2@"',
        "keyspaces.commerce.shards[0].readonly: no key any more: the server's grants decide what the user's own"
        " account may do; let each reader log in, and run: GRANT SELECT ON `commerce`.* TO it",
    ),
    (UNSHARDED + 'replicas = ["hunter2"]', "shards[0].replicas[0]: expected mysql://user:passwo"),
    (SHARDED.replace("vschema.json", "nope.json"), "keyspaces.commerce.vschema: cannot read "),
    (SHARDED.replace("vschema.json", "latin1.json"), "keyspaces.commerce.vschema: expected UTF"),
    (SHARDED.replace("3308", "3307"), "shards[1].primary: expected a database of its own, got t"),
    (
        SHARDED + UNSHARDED.replace("commerce", "other").replace(".1", ".1:3308/commerce"),
        "keyspaces.other.shards[0].primary: expected a database of its own, got the one of commerce/80-",
    ),
    (SHARDED.replace('"mysql://root@127.0.0.1:3308"', "1"), "shards[1].primary: expected mysql:"),
    (shards("-80", "-80"), 'keyspaces.commerce.shards[1].name: expected each shard once, got "-'),
    (shards("-80", "90-"), "keyspaces.commerce.shards: "),
    (shards("-80", "80-zz"), "keyspaces.commerce.shards[1].name: "),
    (shards("-80", "b"), "keyspaces.commerce.shards: expected all key ranges once: shard 'b' is"),
    (shards("-8a", "-8A", "8a-"), "shards[1].name: expected each shard once, got "),
    (SHARDED.replace("vschema.json", "unsharded.json"), "keyspaces.commerce.shards: expected one shard without a sharded vschema, got 2"),
    (SHARDED.replace("vschema.json", "broken.json"), "keyspaces.commerce.vschema: "),
]  # fmt: skip


@in_turn
@pytest.mark.parametrize(("text", "expected"), FAULTS, ids=[fault[1] for fault in FAULTS])
def test_a_fault_names_its_key_and_what_was_expected_but_no_secret(refused, text, expected):
    assert expected in refused(text)[0]


def test_a_vschema_is_read_again_from_where_it_came(read, tmp_path):
    (keyspace,) = read(SHARDED).keyspaces
    (tmp_path / "vschema.json").write_text(
        '{"sharded": true, "tables": {"r": {"type": "reference"}}}'
    )
    again = reread_vschema(keyspace)
    vschema = make_keyspace(again).vschema
    assert vschema is not None
    assert list(vschema.tables) == ["r"]
    assert again.shards is keyspace.shards
    (plain,) = read(UNSHARDED).keyspaces
    assert reread_vschema(plain) is plain


@cases(content=ast.literal_eval, problem=str)
def test_what_is_wrong_with_a_new_vschema_is_told_with_the_key(
    read, tmp_path, content, problem
):
    (keyspace,) = read(SHARDED).keyspaces
    path = tmp_path / "vschema.json"
    path.unlink() if content is None else path.write_bytes(content)
    with pytest.raises(ConfigError, match=problem) as caught:
        reread_vschema(keyspace)
    assert caught.value.key == "keyspaces.commerce.vschema"


WHY = "the server's grants decide what the user's own account may do"


def table(**values):
    return TomlTable(values, "users[0]", Surroundings(Path("/"), {}))


@cases(role=str, grant=str)
def test_a_former_role_names_the_grant(role, grant):
    with pytest.raises(ConfigError) as caught:
        refuse_walls(table(role=role), "o`neil")
    assert str(caught.value) == (
        f'users[0].role: expected "user" or "admin": "{role}" is gone, {WHY}; leave role out, and run'
        f" at each shard: GRANT {grant}"
    )


@pytest.mark.parametrize(
    ("key", "place"), [("keyspaces", "`database`.*"), ("tables", "`database`.`table`")]
)
@pytest.mark.parametrize("value", [["commerce"], [], 5])
def test_a_former_list_names_the_grant(key, place, value):
    with pytest.raises(ConfigError) as caught:
        refuse_walls(table(**{key: value}), "app")
    assert str(caught.value) == (
        f"users[0].{key}: no key any more: {WHY}; leave it out, and run for each: GRANT SELECT ON"
        f" {place} TO `app`"
    )


def test_the_roles_of_today_and_other_values_are_for_others_to_judge():
    for values in ({}, {"role": "admin"}, {"role": "owner"}, {"role": 5}):
        refuse_walls(table(**values), "app")
