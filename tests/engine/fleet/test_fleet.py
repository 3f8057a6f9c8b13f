"""A fleet as one: streams, news, and who dispatches; its histories are in tests/sim/fleet_world.py."""

import asyncio

from streamfrom.engine.fleet.fleet import ElectedShard
from streamfrom.engine.sharding.keyspace import Keyspace, Shard
from tests.engine.fleet.members import COMMENT, STOPPED, Client, Members
from tests.sim.memory_store import raw_table
from tests.sim.servers import nobody_watches


async def test_a_stream_survives_a_broken_way_and_ends_after_the_grace_with_the_address():
    async with Members() as fleet:
        client = fleet.attach(1, Client())
        await asyncio.sleep(0.1)
        fleet.ways.cut("m0")
        await asyncio.sleep(20)
        fleet.ways.cut_off.clear()
        await asyncio.sleep(4)
        fleet.insert(1, via=0)
        await asyncio.sleep(0.1)
        assert client.payloads == [b"1"]
        fleet.ways.cut("m0")
        await asyncio.sleep(29)
        assert not client.ended
        await asyncio.sleep(3)
        (error,) = client.ended
        assert "m0:1: connection timed out" in str(error)


async def test_a_member_that_closes_ends_the_links_of_others_to_it():
    async with Members() as fleet:
        fleet.attach(1, Client())
        await asyncio.sleep(0.1)
        assert fleet.ways.pairs
        fleet.fleets[0].close()
        await asyncio.sleep(0.1)
        assert not fleet.ways.pairs


async def test_the_roster_knows_the_others_and_who_is_present_when_it_is_asked_for():
    async with Members() as fleet:
        first, second = fleet.fleets
        assert await first.present() == [second.own]
        assert await second.present() == [first.own]
        assert list(first.members()) == ["m1"]
        assert first.trusts("PEM m1") == second.own
        assert first.trusts("PEM m2") is None
        await second.stop()
        await asyncio.sleep(1)
        assert await first.present() == []


async def test_a_stream_ends_with_who_dispatches_where_there_is_no_way_to_it():
    async with Members(1) as fleet:
        await fleet.start(1, has_ways=False)
        await asyncio.sleep(1)
        client = fleet.attach(1, Client())
        await asyncio.sleep(29)
        assert not client.ended
        await asyncio.sleep(2)
        assert "member m0 dispatches it, at m0:1" in str(client.ended[0])


async def test_a_stream_ends_with_why_no_member_is_elected_now():
    async with Members(1) as fleet:
        client = fleet.attach(0, Client())
        await asyncio.sleep(0.1)
        fleet.servers["0"].crash()  # of the election; the store answers
        await asyncio.sleep(32)
        assert "connection refused" in str(client.ended[0])


async def test_a_definition_that_changes_through_one_member_is_read_by_the_others():
    async with Members() as fleet:
        # At once, though the first member has not heard of the second yet.
        for name in ("new", "newer"):
            fleet.store.create("ks", raw_table(name, COMMENT))
            await fleet.registries[0].definitions_changed("ks", (name,))
            assert name in fleet.registries[1].tables("ks")


async def test_a_shard_whose_server_turned_read_only_is_left():
    async with Members(1) as fleet:
        elector = fleet.fleets[0].elector("ks", "0")
        assert elector is not None
        elector.turned_read_only()
        assert not fleet.fleets[0].may_send("ks", "0")


async def test_a_stream_with_an_end_waits_at_another_member_until_it_shall_not():
    async with Members() as fleet:
        client = fleet.attach(1, Client(rows_max=2))
        await asyncio.sleep(5)
        assert not client.is_finished
        fleet.registries[1].streams.wait_over(client)
        await asyncio.sleep(0.1)
        assert (client.rows, client.is_finished) == ([], True)
        second = fleet.attach(1, Client(2, rows_max=2))
        await asyncio.sleep(5)
        fleet.insert(1, via=1)
        await asyncio.sleep(0.1)
        assert (second.payloads, second.is_finished) == ([b"1"], True)


async def stop(fleet, number, grace_s=5.0):
    """Stop a member as the proxy does."""
    fleet.registries[number].here.end_streams(STOPPED)
    await fleet.registries[number].here.hand_over(grace_s)
    await fleet.fleets[number].stop()
    await fleet.registries[number].stop(STOPPED)


async def test_a_member_may_serve_a_shard_no_more_and_again():
    async with Members() as fleet:
        client = fleet.attach(1, Client())
        (first, second), registry = fleet.fleets, fleet.registries[0]
        registry.here.end_streams(STOPPED, "ks")
        await registry.here.hand_over(5, "ks")
        await first.remove([("ks", "0")])
        await registry.remove("ks", STOPPED)
        await asyncio.sleep(1)
        assert (first.may_send("ks", "0"), second.may_send("ks", "0")) == (False, True)
        assert first.elector("ks", "0") is None
        assert await second.present() == [], "it has said goodbye"
        fleet.insert(1, via=1)
        await asyncio.sleep(0.1)
        assert client.payloads == [b"1"]
        fleet.leave(1, client)

        registry.add(Keyspace("ks", (Shard.named("0"),)))
        server = fleet.servers["0"]
        shard = ElectedShard(
            "ks", "0", "0", lambda _on_lost: server.open(fleet.networks[0]), nobody_watches
        )
        elector = first.add(shard)
        await registry.reload("ks")
        assert not first.may_send("ks", "0")
        elector.start()
        at_first = fleet.attach(0, Client(2))
        await asyncio.sleep(1)
        fleet.insert(2, via=0)
        await asyncio.sleep(0.1)
        assert at_first.payloads[-1] == b"2"
        await stop(fleet, 1)
        await asyncio.sleep(1)
        fleet.insert(3, via=0)
        await asyncio.sleep(0.1)
        assert at_first.payloads[-1] == b"3"


async def test_what_a_stream_holds_the_next_dispatcher_knows():
    async with Members(3, comment=f"{COMMENT},vt_release_after=2") as fleet:
        clients = [fleet.attach(number, Client(number, prefetch=1)) for number in (1, 2)]
        await asyncio.sleep(0.1)
        fleet.insert(1, 2, via=0)
        await asyncio.sleep(0.1)
        assert sorted(client.payloads for client in clients) == [[b"1"], [b"2"]]
        await stop(fleet, 0)
        await asyncio.sleep(1)
        fleet.insert(3, via=1)
        await asyncio.sleep(1)
        assert not any(b"3" in client.payloads for client in clients), (
            "they hold their prefetch"
        )
        (held,) = clients[0].payloads
        fleet.leave(1, clients[0])
        taker = fleet.attach(2, Client(9))
        await asyncio.sleep(2.5)
        assert taker.payloads == sorted([held, b"3"])
        # And once more: now m2 is left, which may have heard of them as a dispatcher or as a member.
        await stop(fleet, 1)
        await asyncio.sleep(1)
        (held,) = clients[1].payloads
        fleet.leave(2, clients[1])
        await asyncio.sleep(2.5)
        assert taker.payloads == [b"1", b"2", b"3"]


async def test_commits_through_a_member_that_stops_are_told_to_the_next_dispatcher():
    async with Members() as fleet:
        client = fleet.attach(1, Client())
        await asyncio.sleep(0.1)
        for _ in range(2):  # the second look waits for its pause when the member stops
            fleet.fleets[0].look()
            await asyncio.sleep(0.01)
        await fleet.fleets[0].stop()
        fleet.insert(1, via=0)
        await asyncio.sleep(0.5)
        fleet.insert(2, via=0)
        await asyncio.sleep(0.1)
        assert client.payloads == [b"1", b"2"]


async def test_what_clients_of_a_stopping_dispatcher_held_comes_when_they_have_left():
    for leaves, due_s in ((True, 2.5), (False, 7.5)):
        async with Members(comment=f"{COMMENT},vt_release_after=2") as fleet:
            client = fleet.attach(0, Client(1))
            fleet.insert(1, via=0)
            await asyncio.sleep(0.1)
            assert client.payloads == [b"1"]
            if leaves:
                client.end = lambda _, gone=client: asyncio.get_running_loop().call_later(
                    0.05, fleet.leave, 0, gone
                )
            await stop(fleet, 0, grace_s=5)
            taker = fleet.attach(1, Client(2))
            await asyncio.sleep(due_s - 1)
            assert taker.payloads == []
            await asyncio.sleep(1)
            assert taker.payloads == [b"1"]
