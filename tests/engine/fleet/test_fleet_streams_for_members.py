"""What a dispatcher does for a member, whose messages the test sends."""

import asyncio
from contextlib import asynccontextmanager
from dataclasses import replace

from streamfrom.engine.fleet.peer_link import (
    AckEarly,
    CloseStream,
    ForgetStream,
    News,
    OpenStream,
    RequestDone,
    RowsSent,
    RowsTaken,
    StreamEnded,
)
from streamfrom.engine.messaging.dispatch.events import (
    AckedUnnamed,
    KeepsShare,
    ShareGiven,
    WantShare,
)
from tests.engine.fleet.members import COMMENT, STOPPED, Client, Members
from tests.engine.fleet.test_streams_elsewhere import Link, member
from tests.sim.memory_store import raw_table


OPEN = OpenStream(1, "ks", "msg", ("0",), ("id", "message"), None, None, 42)


@asynccontextmanager
async def visited(**settings):
    """A fleet, and a guest of its first member with the link to it."""
    async with Members(1, **settings) as fleet:
        link = Link(None)
        yield fleet, fleet.fleets[0].accept(member("m9"), link), link


async def test_a_stream_is_sent_no_more_than_the_share_of_its_prefetch():
    async with visited() as (fleet, guest, link):
        guest.heard(replace(OPEN, share=0))
        fleet.insert(1, 2, via=0)
        await asyncio.sleep(0.1)
        assert link.sent == [RowsSent(1, 0, ()), KeepsShare(1, 0), WantShare(1)]
        guest.heard(ShareGiven(1, 1))
        guest.heard(ShareGiven(2, 1))  # of no stream
        await asyncio.sleep(0.1)
        assert link.sent[3:] == [KeepsShare(1, 1), RowsSent(1, 0, (b"1",)), WantShare(1)]


async def test_what_cannot_be_served_is_refused_with_the_reason():
    async with visited() as (_, guest, link):
        for stream, refused in enumerate(
            [
                replace(OPEN, keyspace="other"),
                replace(OPEN, shards=("0", "1")),
                replace(OPEN, table="none"),
                replace(OPEN, columns=("id", "none")),
            ]
        ):
            guest.heard(replace(refused, receiver=stream))
        assert link.sent == [
            StreamEnded(0, "member m0 does not dispatch other/0", unserved=("0",)),
            StreamEnded(1, "member m0 does not dispatch ks/1", unserved=("1",)),
            StreamEnded(2, "message table 'none' not found in keyspace 'ks'"),
            StreamEnded(3, "table msg has no column none"),
        ]


async def test_a_table_that_another_member_knows_is_looked_for():
    async with visited() as (fleet, guest, link):
        fleet.store.create("ks", raw_table("new", COMMENT))
        guest.heard(replace(OPEN, table="new"))
        assert isinstance(link.sent[0], StreamEnded)
        await asyncio.sleep(2)
        guest.heard(replace(OPEN, table="new", receiver=2))
        assert link.sent[1:] == [RowsSent(2, 0, ())]


async def test_a_member_that_reports_what_it_was_not_sent_is_sent_away():
    for nonsense in (RowsTaken(1, 1), CloseStream(1, 1)):
        async with visited() as (fleet, guest, link):
            guest.heard(OPEN)
            guest.heard(nonsense)
            assert link.is_closed
            assert fleet.registries[0].here.receivers == 0


async def test_messages_about_streams_and_tables_that_are_unknown_do_nothing():
    async with visited() as (_, guest, link):
        for message in (
            RowsTaken(5, 1),
            CloseStream(5, 0),
            ForgetStream(5, has_left=True),
            News("other", "msg", (AckedUnnamed("0"),)),
            News("ks", "none", (AckedUnnamed("0"),)),
            News("ks", "msg", (AckedUnnamed("9"),)),
        ):
            guest.heard(message)
        assert not link.sent
        assert not link.is_closed


async def test_a_lost_member_counts_as_clients_that_have_left():
    async with visited(comment=f"{COMMENT},vt_release_after=2") as (fleet, guest, _):
        guest.heard(OPEN)
        fleet.insert(1, via=0)
        await asyncio.sleep(0.1)
        guest.lost("connection reset")
        client = fleet.attach(0, Client())
        await asyncio.sleep(1.5)
        assert not client.rows
        await asyncio.sleep(1)
        assert client.payloads == [b"1"]


async def test_streams_of_a_shard_that_another_member_dispatches_are_ended():
    async with visited() as (fleet, guest, link):
        guest.heard(OPEN)
        fleet.fleets[0].withdraw("ks", "0", "member m1 dispatches it")
        assert link.sent[-1] == StreamEnded(1, "member m1 dispatches it")
        guest.heard(CloseStream(1, 0))
        assert fleet.registries[0].here.receivers == 0


async def test_early_acks_of_what_is_in_flight_are_taken_for_a_member_and_written():
    async with visited(comment=f"{COMMENT},vt_ack=early") as (fleet, guest, link):
        fleet.attach(0, Client())
        fleet.insert(1, 2, 3, via=0)
        await asyncio.sleep(0.1)
        ack = AckEarly(7, "ks", "msg", "0", (b"1", b"2"), 5)
        guest.heard(ack)
        guest.heard(replace(ack, number=8))
        for number, other in enumerate(
            [
                replace(ack, ids=(b"3", b"99")),
                replace(ack, keyspace="none"),
                replace(ack, table="none"),
                replace(ack, shard="none"),
            ]
        ):
            guest.heard(replace(other, number=number))
        taken = [RequestDone(7, 2), RequestDone(8, 0)]
        assert link.sent == taken + [RequestDone(number, None) for number in range(4)]
        await asyncio.sleep(0.1)
        assert [fleet.row(one).time_acked_ns for one in (1, 2, 3)] == [5, 5, None]


async def test_an_ack_through_a_member_that_does_not_dispatch_is_early_as_well():
    async with Members(2, comment=f"{COMMENT},vt_ack=early") as fleet:
        client = fleet.attach(1, Client())
        fleet.insert(1, via=1)
        await asyncio.sleep(0.1)
        assert client.payloads == [b"1"]
        registry = fleet.registries[1]
        assert registry.here.ack_early("ks", "0", "msg", (b"1",), 5) is None
        assert registry.here.awaits_acks("ks", "0", "msg"), (
            "another process may have taken some"
        )
        assert await registry.streams.ack_early_elsewhere("ks", "0", "MSG", (b"1",), 5) == 1
        assert await registry.streams.ack_early_elsewhere("ks", "0", "msg", (b"1",), 5) == 0
        assert await registry.streams.ack_early_elsewhere("ks", "0", "none", (b"1",), 5) is None
        assert (
            await fleet.registries[0].streams.ack_early_elsewhere("ks", "0", "msg", (b"1",), 5)
            is None
        )
        await asyncio.sleep(0.1)
        assert fleet.row(1).time_acked_ns == 5


async def test_a_member_that_stops_gives_back_what_it_was_told():
    async with visited() as (fleet, guest, link):
        fleet.registries[0].here.end_streams(STOPPED)
        guest.heard(replace(OPEN, held={"0": (b"1",)}))
        assert link.sent[-1] == StreamEnded(1, "stopped", {"0": (b"1",)})


async def test_what_a_lost_member_could_not_tell_is_looked_for():
    async with visited() as (fleet, guest, _):
        client = fleet.attach(0, Client())
        guest.heard(News("ks", "msg", (AckedUnnamed("0"),)))
        await asyncio.sleep(0.1)
        fleet.insert(1)
        await asyncio.sleep(5)
        assert client.payloads == []
        guest.lost("connection reset")
        await asyncio.sleep(0.1)
        assert client.payloads == [b"1"]
