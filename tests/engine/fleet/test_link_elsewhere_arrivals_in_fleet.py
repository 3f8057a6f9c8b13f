"""A stream over shards that different members dispatch has one order and one progress."""

import asyncio

import pytest

from tests.engine.fleet.members import COMMENT, Client, Members


ACK_WAIT_S = 2
SHARDS = ("-80", "80-")
SHORT = COMMENT.replace("vt_ack_wait=30", f"vt_ack_wait={ACK_WAIT_S}")
EACH = 12
IDENTS = (*range(0, 2 * EACH, 2), *range(1, 2 * EACH, 2))


async def dispatched_apart(fleet):
    """Let m1 dispatch the second shard, whose lock m0 loses."""
    server = fleet.servers[SHARDS[1]]
    for session in list(server.locks.values()):
        server.end(session)
    await asyncio.sleep(3)
    assert [member.may_send("ks", SHARDS[1]) for member in fleet.fleets[:2]] == [False, True]


def shard_of(ident):
    return SHARDS[ident % 2]


async def with_backlog(fleet, number):
    await dispatched_apart(fleet)
    client = fleet.attach(number, Client(1))
    for ident in IDENTS:
        fleet.insert(ident, via=0, shard=shard_of(ident))
        await asyncio.sleep(0.001)
    await asyncio.sleep(0.01)
    assert len(client.rows) == 2 * EACH
    return client


@pytest.mark.parametrize("number", [0, 2], ids=["at a dispatcher", "at neither"])
@pytest.mark.parametrize("lease", ["lazy", "written"])
async def test_a_serial_consumer_does_nothing_twice(number, lease):
    async with Members(3, SHARDS, f"{SHORT},vt_lease={lease}") as fleet:
        client = await with_backlog(fleet, number)
        # All of one shard first: meanwhile the leases on the other are renewed, too.
        for ident in IDENTS:
            await asyncio.sleep(0.8 * ACK_WAIT_S)
            fleet.ack(ident, via=number, shard=shard_of(ident))
        await asyncio.sleep(2 * ACK_WAIT_S)
        assert len(client.rows) == 2 * EACH, "nothing came twice"
        assert all(fleet.row(one, shard_of(one)).epoch == 1 for one in range(2 * EACH))


async def test_a_stuck_consumer_loses_what_all_dispatchers_sent():
    async with Members(3, SHARDS, SHORT) as fleet:
        client = await with_backlog(fleet, 2)
        await asyncio.sleep(2 * ACK_WAIT_S)
        assert len(client.rows) == 4 * EACH


async def test_what_failed_on_one_shard_is_retried_while_the_work_goes_on_on_the_other():
    async with Members(2, SHARDS, SHORT) as fleet:
        await dispatched_apart(fleet)
        client = fleet.attach(0, Client(1))
        for ident in range(10):
            fleet.insert(ident, via=0, shard=shard_of(ident))
            await asyncio.sleep(0.01)
        # 1 fails, and all others are done.
        for ident in (0, *range(2, 10)):
            await asyncio.sleep(ACK_WAIT_S / 4)
            fleet.ack(ident, via=0, shard=shard_of(ident))
        assert client.payloads.count(b"1") == 2
        assert len(client.rows) == 11
