from dataclasses import replace

from streamfrom.proxy.backends.shard import ReplicaHealth, ShardServers, replicas_of
from tests.proxy.rigs import config_of


SHARD = "plain", "-"


def servers_of(server, on_change=lambda _: None):
    """The servers of one shard with a replica, both of them on *server*."""
    config = config_of(server)
    (keyspace,) = config.keyspaces
    (shard,) = keyspace.shards
    shard = replace(shard, replicas=(server.dsn(user="rep"),))
    keyspaces = (replace(keyspace, shards=(shard,)),)
    return ShardServers(replace(config, keyspaces=keyspaces), on_change)


async def test_every_server_is_there_once(server):
    servers = servers_of(server)
    (replica,) = servers.replicas[SHARD]
    assert list(servers) == [servers.primaries[SHARD], replica]
    assert [each.dsn.user for each in servers] == ["root", "rep"]
    (keyspace,) = config_of(server).keyspaces
    without = replicas_of(
        "plain", keyspace.shards[0], pool_timeout_s=1, health=ReplicaHealth(1)
    )
    assert without == ()


async def test_only_the_primary_reports_a_change(server):
    told = set[object]()
    servers = servers_of(server, told.add)
    for each in servers:
        await each.probe()
        each.pool.close()
        await each.control.close()
    assert told == {servers.primaries[SHARD]}
