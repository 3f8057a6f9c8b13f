from dataclasses import replace

import pytest
import structlog

from streamfrom.proxy.backends.health import ReplicaHealth
from streamfrom.proxy.backends.shard_servers import ShardServers, replicas_of
from streamfrom.proxy.errors import BackendError
from tests.proxy.fake_answers import Error
from tests.proxy.rigs import config_of


SHARD = "plain", "-"


def servers_of(server, on_change=lambda _: None):
    """The servers of one shard with a replica and an account for reading, all of them on *server*."""
    config = config_of(server)
    (keyspace,) = config.keyspaces
    (shard,) = keyspace.shards
    shard = replace(shard, replicas=(server.dsn(user="rep"),), readonly=server.dsn(user="app"))
    keyspaces = (replace(keyspace, shards=(shard,)),)
    return ShardServers(replace(config, keyspaces=keyspaces), on_change)


async def test_every_server_is_there_once_for_each_of_its_accounts(server):
    servers = servers_of(server)
    owner, readonly = servers.primaries[SHARD], servers.readonly_primaries[SHARD]
    (replica,), (readonly_replica,) = servers.replicas[SHARD], servers.readonly_replicas[SHARD]
    assert list(servers) == [owner, readonly, replica, readonly_replica]
    assert [each.dsn.user for each in servers] == ["root", "app", "rep", "app"]
    assert owner.same_server == readonly.same_server == [owner, readonly]
    assert replica.same_server == readonly_replica.same_server == [replica, readonly_replica]
    assert [each.is_readonly for each in servers] == [False, True, False, True]
    assert owner.pool is not readonly.pool


async def test_without_an_account_for_reading_nothing_stands_beside_the_primaries(server):
    servers = ShardServers(config_of(server), lambda _: None)
    assert list(servers) == list(servers.primaries.values())
    (keyspace,) = config_of(server).keyspaces
    assert (
        replicas_of("plain", keyspace.shards[0], pool_timeout_s=1, health=ReplicaHealth(1))
        == ()
    )


async def test_only_the_primarys_own_account_tells_of_a_change(server):
    told = set[object]()
    servers = servers_of(server, told.add)
    for each in servers:
        await each.probe()
        each.pool.close()
        await each.control.close()
    assert told == {servers.primaries[SHARD]}


async def test_its_connections_are_opened_only_when_somebody_reads(server):
    primary = servers_of(server).readonly_primaries[SHARD]
    await primary.start()
    assert primary.pool.connections == 0
    backend = await primary.open_backend("db", 0)
    assert len(server.connections) == 2
    backend.close()
    await primary.stop()


async def test_a_readonly_account_that_is_refused_is_told_as_such(server):
    servers = servers_of(server)
    owner, primary = servers.primaries[SHARD], servers.readonly_primaries[SHARD]
    server.refusal = Error(1045, "Access denied for user 'app'", "28000")
    with structlog.testing.capture_logs() as logs:
        await primary.start()
    assert logs[0]["account"] == "readonly"
    assert primary.trouble is not None
    for failing in (primary.open_backend("db", 0), primary.control.rows("SELECT 1")):
        with pytest.raises(BackendError, match=r"^the readonly account of shard '-' of keysp"):
            await failing
    with pytest.raises(
        BackendError, match=r"^shard '-' of keyspace 'plain' at \S+: Access denied"
    ):
        await owner.open_backend("db", 0)
    # Of another database it says what the server says.
    with pytest.raises(
        BackendError, match=r"^shard '-' of keyspace 'plain' at \S+: Access denied"
    ):
        await primary.open_backend("other", 0)
    await primary.stop()
