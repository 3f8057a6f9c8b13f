"""Members that talk over real sockets of this machine."""

import asyncio
from dataclasses import dataclass, field, replace
from typing import Any
from unittest.mock import Mock

import grpc
import pytest
from structlog.testing import capture_logs

from streamfrom.engine.fleet.directory import Member
from streamfrom.engine.fleet.peer_link import RowsSent, RowsTaken, StreamEnded
from streamfrom.engine.messaging.dispatch.events import WaitOver
from streamfrom.proxy.fleet import grpc_links
from streamfrom.proxy.fleet.grpc_links import (
    BATCH_MAX,
    SERVICE,
    TO_DISPATCHER,
    GrpcDoor,
    GrpcLinks,
)
from streamfrom.proxy.fleet.member_certificate import make_certificate
from streamfrom.proxy.fleet.members_pb2 import ToDispatcher
from streamfrom.proxy.grpc_port import fleet_port
from tests.proxy.fleet.members import Process, fleet_of


@dataclass
class Hearer:
    """What one end has heard."""

    said: asyncio.Queue[object] = field(default_factory=asyncio.Queue)
    reasons: asyncio.Queue[str] = field(default_factory=asyncio.Queue)

    def heard(self, message):
        self.said.put_nowait(message)

    def lost(self, reason):
        self.reasons.put_nowait(reason)


class Caller(Process):
    """One member that is visited, and notes when it has its directory read again."""

    def __init__(self, name):
        super().__init__(name)
        self.visits: asyncio.Queue[tuple[Member, object, Hearer]] = asyncio.Queue()
        self.knocked = asyncio.Event()

    def look(self):
        self.knocked.set()

    def accept(self, member, link):
        hearer = Hearer()
        self.visits.put_nowait((member, link, hearer))
        return hearer


@pytest.fixture
async def pair(monkeypatch):
    monkeypatch.setattr(grpc_links, "STOP_S", 0.05)  # of links that a test leaves open
    async with fleet_of(Caller("one"), Caller("two")) as two:
        yield two


@pytest.fixture
def impatient(monkeypatch):
    monkeypatch.setattr(grpc_links, "CONNECT_TIMEOUT_S", 0.3)


async def connected(one, two):
    hearer = Hearer()
    link = one.links.connect(two.own, hearer)
    member, back, there = await two.visits.get()
    assert member == one.own
    return link, hearer, back, there


async def test_messages_go_both_ways_in_order_and_what_waits_for_the_way_as_one(
    pair, monkeypatch
):
    encode = Mock(side_effect=TO_DISPATCHER.encode)
    monkeypatch.setattr(TO_DISPATCHER, "encode", encode)
    link, here, back, there = await connected(*pair)
    for rows in range(100):
        link.send(RowsTaken(1, rows))
        back.send(RowsSent(1, rows, (b"x" * rows,)))
    assert [await there.said.get() for _ in range(100)] == [RowsTaken(1, n) for n in range(100)]
    came = [await here.said.get() for _ in range(100)]
    assert came == [RowsSent(1, n, (b"x" * n,)) for n in range(100)]
    assert max(len(each.args[0]) for each in encode.call_args_list) == BATCH_MAX


async def test_what_a_newer_member_says_beyond_this_version_is_skipped_and_told_once(pair):
    one, two = pair
    newer = [b"\xfa\x01\x00"] * 3 + [
        ToDispatcher(wait_over={"receiver": 3}).SerializeToString()
    ]
    async with one.links.channel(two.own) as channel:
        method: Any = channel.stream_stream(f"/{SERVICE}/Link")
        with capture_logs() as logs:
            call = method(iter(newer), metadata=(("protocol", "9"),))
            _, back, there = await two.visits.get()
            assert await there.said.get() == WaitOver(3)
        (told,) = logs
        assert "does not know" in told["event"]
        back.close()
        assert await call.read() == grpc.aio.EOF


async def test_a_row_may_be_as_long_as_a_packet(pair):
    _, here, back, _ = await connected(*pair)
    message = RowsSent(1, 0, (bytes(16 << 20),))
    back.send(message)
    assert await here.said.get() == message


async def test_what_was_sent_before_a_close_still_comes_and_the_other_side_hears_of_it(pair):
    link, here, back, there = await connected(*pair)
    link.send(RowsTaken(1, 1))
    link.close()
    link.send(RowsTaken(1, 2))
    assert await there.reasons.get() == "the other side has closed it"
    assert there.said.qsize() == 1
    back.send(StreamEnded(1, "nobody hears it"))
    assert here.reasons.empty()


async def test_what_was_sent_before_a_stop_still_comes_where_the_way_was_not_there_yet(pair):
    one, two = pair
    two.known = []
    link = one.links.connect(two.own, Hearer())
    link.send(RowsTaken(1, 5))
    link.close()
    stopping = asyncio.create_task(one.links.stop())
    await two.knocked.wait()
    two.known = [one.own]
    _, _, there = await two.visits.get()
    assert await there.said.get() == RowsTaken(1, 5)
    await stopping


async def test_an_outage_of_a_member_is_logged_once_and_so_is_its_end(pair, monkeypatch):
    one, two = pair
    await two.door.stop()
    with capture_logs() as logs:
        with monkeypatch.context() as hasty:
            hasty.setattr(grpc_links, "CONNECT_TIMEOUT_S", 0.02)
            for _ in range(2):
                hearer = Hearer()
                one.links.connect(two.own, hearer)
                await hearer.reasons.get()
        two.door = GrpcDoor(two.certificate, fleet_port(two.own.address), two)
        await two.door.start()
        for _ in range(2):
            await connected(one, two)
    told = [(each["event"], each["peer"], each["address"]) for each in logs]
    assert told == [
        ("a member cannot be reached", "two", two.own.address),
        ("a member is reached again", "two", two.own.address),
    ]


async def test_who_greets_has_the_directory_read_and_is_no_visitor(pair):
    one, two = pair
    two.known = []
    one.links.greet(two.own)
    await two.knocked.wait()
    await one.links.stop()
    assert two.visits.empty()


async def test_somebody_else_with_the_name_or_at_the_address_of_a_member_is_not_let_in(
    pair, impatient, capfd
):
    one, two = pair
    stranger = GrpcLinks(make_certificate("one"))
    other = make_certificate("two").certificate.decode()
    for links, member in (
        (stranger, two.own),
        (one.links, replace(two.own, certificate=other)),
    ):
        hearer = Hearer()
        links.connect(member, hearer)
        assert await hearer.reasons.get()
        assert two.visits.empty()
    await stranger.stop()
    assert not capfd.readouterr().err, "the log is JSON, and gRPC writes none"


async def test_a_message_that_cannot_be_read_ends_the_link(pair):
    one, two = pair
    async with one.links.channel(two.own) as channel:
        method: Any = channel.stream_stream(f"/{SERVICE}/Link")
        call = method(iter([b"\xff"]))
        assert await call.read() == grpc.aio.EOF
    _, _, there = await two.visits.get()
    assert await there.reasons.get() == "a message cannot be read"


async def test_a_caller_without_a_certificate_is_refused(pair):
    _, two = pair
    credentials = grpc.ssl_channel_credentials(two.own.certificate.encode())
    options = [("grpc.ssl_target_name_override", "two")]
    async with grpc.aio.secure_channel(two.own.address, credentials, options) as channel:
        method: Any = channel.stream_stream(f"/{SERVICE}/Link")
        call = method(iter([b""]))
        with pytest.raises(grpc.aio.AioRpcError):
            await call.read()
