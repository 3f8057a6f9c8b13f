import asyncio
from dataclasses import replace

import pytest

from streamfrom.proxy.backends import shard as module
from streamfrom.proxy.backends.account import SHARDS_ACCOUNT
from streamfrom.proxy.backends.session_variables import Settings
from streamfrom.proxy.backends.shard import MOVED
from streamfrom.proxy.backends.shard_servers import ShardServers, stop_retired
from streamfrom.proxy.errors import NoHealthyReplica
from tests.proxy.backends.pools import Tenant
from tests.proxy.fake_answers import until
from tests.proxy.rigs import config_of


@pytest.fixture(autouse=True)
def hasty(monkeypatch):
    """Ask a shard that is down a hundred times a second."""
    monkeypatch.setattr(module, "RETRY_FIRST_S", 0.01)
    monkeypatch.setattr(module, "RETRY_LAST_S", 0.02)


SHARD = "plain", "-"


def servers_of(server, on_change=lambda _: None, replica_user="rep"):
    """The servers of one shard with a replica, both of them on *server*."""
    config = config_of(server)
    (keyspace,) = config.keyspaces
    (shard,) = keyspace.shards
    shard = replace(shard, replicas=(server.dsn(user=replica_user),))
    keyspaces = (replace(keyspace, shards=(shard,)),)
    return ShardServers(replace(config, keyspaces=keyspaces), on_change)


async def test_only_the_primary_reports_a_change(server):
    told = set[object]()
    servers = servers_of(server, told.add)
    for each in servers:
        await each.probe()
        each.pool.close()
        await each.control.close()
    assert told == {servers.primaries[SHARD]}


async def test_a_shard_moves_replicas_come_and_go_and_what_is_as_it_was_stays(
    server, other_server
):
    told: list[str | None] = []
    servers = servers_of(server, lambda shard: told.append(shard.trouble), "root")
    for each in servers:
        await each.start()
    lent, idle = [await servers.primaries[SHARD].pool.acquire(Tenant(), "db") for _ in range(2)]
    servers.primaries[SHARD].pool.release(idle)
    (replica,) = servers.replicas[SHARD]
    held = await replica.pool.acquire(Tenant(), "db")
    replica.pool.release(held)
    (keyspace,) = config_of(server).keyspaces
    (shard,) = keyspace.shards
    place = replace(
        shard,
        primary=other_server.dsn(),
        replicas=(other_server.dsn(), replica.dsn),
        pool_size=9,
        share_reads=False,
    )
    found = await servers.prepare((replace(keyspace, shards=(place,)),))
    assert servers.replicas[SHARD] == (replica,)
    assert servers.publish(found) == []
    assert (idle.is_closed, lent.is_closed, held.is_closed) == (True, False, False)
    added, kept = servers.replicas[SHARD]
    assert kept is replica
    assert added.trouble == "the server is no replica", "it was asked"
    assert [each.pool.size for each in servers] == [9, 9, 9]
    for each in servers:
        settings = Settings()
        assert each.shared_connections.matching(SHARDS_ACCOUNT, settings, 0, "db") is None
    await until(lambda: servers.primaries[SHARD].trouble is None)
    assert told == [None, MOVED, None]
    servers.primaries[SHARD].pool.release(lent)
    assert lent.is_closed
    used = await replica.pool.acquire(Tenant(), "db")
    fewer = replace(place, replicas=place.replicas[:1])
    gone = servers.publish(await servers.prepare((replace(keyspace, shards=(fewer,)),)))
    assert (servers.replicas[SHARD], gone) == ((added,), [replica])
    assert (held.is_closed, used.is_closed) == (True, False)
    with pytest.raises(NoHealthyReplica, match="does not name it any more"):
        await replica.pool.acquire(Tenant(), "db")
    stopping = asyncio.create_task(stop_retired(gone, 60))
    await asyncio.sleep(0)
    assert server.connections, "what is under way may end"
    replica.pool.release(used)
    await stopping
    await until(lambda: not server.connections)
    assert other_server.connections
    for each in servers:
        await each.stop()
