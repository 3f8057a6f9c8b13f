from dataclasses import fields, replace

import pytest

from streamfrom.proxy.config.changes import RESTART, changes
from streamfrom.proxy.config.dsn import Dsn, SslMode
from streamfrom.proxy.config.file import (
    Config,
    LogLevel,
    LogSettings,
    Role,
    Secret,
    Server,
    TlsSettings,
    User,
)
from streamfrom.proxy.config.fleet_members import FleetConfig
from streamfrom.proxy.config.keyspaces import KeyspaceConfig, ShardConfig
from tests.proxy.rigs import SERVER


APP = User("app", Secret("one"), None, Role.USER)
EVE = User("eve", Secret("sesame"), None, Role.USER)
SHARD_DSN = Dsn("db1", 3306, None, "root", Secret("hunter2"), "shop", SslMode.DISABLED, None)
SHOP = KeyspaceConfig("shop", None, (ShardConfig("-", SHARD_DSN, (), 4),))
OLD = Config(SERVER, (APP, EVE), (SHOP,))


def test_the_same_changes_nothing_nor_does_the_text_of_a_vschema_but_its_file_does(tmp_path):
    found = changes(OLD, OLD)
    assert (found.is_nothing, found.restart, found.config) == (True, (), OLD)
    assert {each.name for each in fields(Server)} >= RESTART
    text = replace(SHOP, vschema_text="{}")
    found = changes(OLD, replace(OLD, keyspaces=(text,)))
    assert (found.is_nothing, found.restart) == (True, ())
    path = replace(SHOP, vschema_path=tmp_path / "v.json")
    found = changes(OLD, replace(OLD, keyspaces=(path,)))
    assert (found.live, found.restart) == (("keyspaces.shop.vschema",), ())


def test_limits_and_certificates_count_at_once_and_are_named_by_their_keys():
    tls = TlsSettings("/a.pem", "/a.key", require=True)
    server = replace(
        SERVER, max_connections=5, idle_timeout_s=9, max_allowed_packet_bytes=2048, tls=tls
    )
    found = changes(OLD, replace(OLD, server=server))
    assert set(found.live) == {
        "server.max_connections",
        "server.idle_timeout",
        "server.max_allowed_packet",
        "server.tls",
    }
    assert found.restart == ()
    assert found.config.server == server


def moved(keyspace, **changes_of_dsn):
    """Return a keyspace whose one shard has another server or account."""
    (shard,) = keyspace.shards
    return replace(
        keyspace,
        shards=(replace(shard, primary=replace(shard.primary, **changes_of_dsn)),),
    )


@pytest.mark.parametrize(
    "place",
    [
        moved(SHOP, host="db2"),
        moved(SHOP, password=Secret("another")),
        replace(SHOP, shards=(replace(SHOP.shards[0], replicas=(SHARD_DSN,)),)),
        replace(SHOP, shards=(replace(SHOP.shards[0], pool_size=5, share_reads=False),)),
    ],
)
def test_shards_may_have_other_servers_and_limits(place):
    found = changes(OLD, replace(OLD, keyspaces=(place,)))
    assert (found.live, found.restart) == (("keyspaces.shop.shards",), ())
    assert found.config.keyspaces == (place,)


def test_keyspaces_come_and_go():
    stock = moved(replace(SHOP, name="stock"), host="db2")
    new = replace(OLD, keyspaces=(stock,))
    found = changes(OLD, new)
    assert (found.live, found.restart) == (("keyspaces.shop", "keyspaces.stock"), ())
    assert found.config == new


def test_keyspaces_change_all_or_none():
    """Else two of them could be one database: here db2's, were only the first to move."""
    stock = moved(replace(SHOP, name="stock"), host="db2")
    old = replace(OLD, keyspaces=(SHOP, stock))
    more = replace(SHOP, name="more")
    new = (moved(SHOP, host="db2"), moved(stock, host="db3", database="other"), more)
    found = changes(old, replace(old, keyspaces=new))
    assert (found.config, found.live) == (old, ())
    assert set(found.restart) == {
        "keyspaces.more",
        "keyspaces.shop.shards",
        "keyspaces.stock.shards",
    }


@pytest.mark.parametrize(
    "shard",
    [
        replace(SHOP.shards[0], primary=replace(SHARD_DSN, database="other")),
        replace(SHOP.shards[0], name="0"),
    ],
)
def test_other_databases_and_shards_need_a_restart(shard):
    found = changes(OLD, replace(OLD, keyspaces=(replace(SHOP, shards=(shard,)),)))
    assert (found.config, found.restart) == (OLD, ("keyspaces.shop.shards",))


def test_what_needs_a_restart_is_named_and_stays_as_it_was():
    server = replace(SERVER, host="0.0.0.0", port=7, unix_socket="/s", idle_timeout_s=9)
    other = replace(SHOP, shards=(replace(SHOP.shards[0], name="0"),))
    more = replace(SHOP, name="more")
    admin, log = ("127.0.0.1", 9), LogSettings(LogLevel.DEBUG)
    found = changes(
        OLD, Config(server, OLD.users, (other, more), FleetConfig("new"), admin, log, admin)
    )
    assert set(found.restart) == {
        "server.listen",
        "server.unix_socket",
        "keyspaces.shop.shards",
        "keyspaces.more",
        "fleet",
        "admin",
        "grpc",
        "log",
    }
    assert found.live == ("server.idle_timeout",)
    assert found.config.server == replace(SERVER, idle_timeout_s=9)
    assert found.config.keyspaces == OLD.keyspaces
    assert found.config == replace(OLD, server=found.config.server)


def test_users_come_go_and_change_and_only_a_role_is_a_right():
    new = User("new", Secret(""), None, Role.USER)
    promoted = replace(EVE, role=Role.ADMIN)
    found = changes(OLD, replace(OLD, users=(new, promoted)))
    assert (found.added, found.removed) == (("new",), ("app",))
    assert (found.rights, found.changed) == (("eve",), ("eve",))
    secret, fewer = replace(APP, password=Secret("two")), replace(EVE, max_connections=1)
    found = changes(OLD, replace(OLD, users=(secret, fewer)))
    assert (found.rights, found.changed) == ((), ("app", "eve"))
    assert "two" not in repr(found)
