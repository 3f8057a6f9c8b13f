"""Members that talk over real sockets of this machine."""

import asyncio
from dataclasses import dataclass, field, replace
from typing import Any

import grpc
import pytest

from streamfrom.engine.fleet.directory import Member
from streamfrom.engine.fleet.peer_link import RowsSent, RowsTaken, StreamEnded
from streamfrom.proxy.fleet import grpc_links
from streamfrom.proxy.fleet.grpc_links import SERVICE, GrpcDoor, GrpcLinks
from streamfrom.proxy.fleet.member_certificate import make_certificate


@dataclass
class Hearer:
    """What one end has heard."""

    said: asyncio.Queue[object] = field(default_factory=asyncio.Queue)
    reasons: asyncio.Queue[str] = field(default_factory=asyncio.Queue)

    def heard(self, message):
        self.said.put_nowait(message)

    def lost(self, reason):
        self.reasons.put_nowait(reason)


class Process:
    """One member: `Fleet`, as far as its door asks."""

    def __init__(self, name):
        self.certificate = make_certificate(name)
        self.door = GrpcDoor(self.certificate, "127.0.0.1:0")
        pem = self.certificate.certificate.decode()
        self.own = Member(name, "", self.door.address, pem, 0, "1", "c")
        self.links = GrpcLinks(self.certificate)
        self.known: list[Member] = []
        self.visits: asyncio.Queue[tuple[Member, object, Hearer]] = asyncio.Queue()
        self.knocked = asyncio.Event()

    def members(self):
        return {member.id: member for member in self.known}

    def trusts(self, certificate):
        return next((m for m in self.known if m.certificate == certificate), None)

    def look(self):
        self.knocked.set()

    def accept(self, member, link):
        hearer = Hearer()
        self.visits.put_nowait((member, link, hearer))
        return hearer


@pytest.fixture
async def pair(monkeypatch):
    monkeypatch.setattr(grpc_links, "STOP_S", 0.05)  # of links that a test leaves open
    one, two = Process("one"), Process("two")
    one.known, two.known = [two.own], [one.own]
    for process in (one, two):
        await process.door.start(process)
    yield one, two
    for process in (one, two):
        await process.links.stop()
        await process.door.stop()


@pytest.fixture
def impatient(monkeypatch):
    monkeypatch.setattr(grpc_links, "CONNECT_TIMEOUT_S", 0.3)


async def connected(one, two):
    hearer = Hearer()
    link = one.links.connect(two.own, hearer)
    member, back, there = await two.visits.get()
    assert member == one.own
    return link, hearer, back, there


async def test_messages_go_both_ways_in_order(pair):
    link, here, back, there = await connected(*pair)
    for rows in range(100):
        link.send(RowsTaken(1, rows))
        back.send(RowsSent(1, rows, (b"x" * rows,)))
    assert [await there.said.get() for _ in range(100)] == [RowsTaken(1, n) for n in range(100)]
    came = [await here.said.get() for _ in range(100)]
    assert came == [RowsSent(1, n, (b"x" * n,)) for n in range(100)]


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
    assert await there.reasons.get() == "the member has closed the link"
    assert there.said.qsize() == 1
    back.send(StreamEnded(1, "nobody hears it"))
    assert here.reasons.empty()


async def test_a_door_that_closes_ends_its_links_and_the_address_is_told(pair):
    one, two = pair
    _, here, _, there = await connected(one, two)
    await two.door.stop()
    assert f"member two at {two.own.address}: " in await here.reasons.get()
    assert await there.reasons.get()


async def test_where_nobody_listens_the_address_is_told(pair, impatient):
    one, two = pair
    await two.door.stop()
    hearer = Hearer()
    one.links.connect(two.own, hearer)
    reason = await hearer.reasons.get()
    assert reason == f"member two at {two.own.address}: no connection within 0.3 s"


async def test_a_newcomer_is_let_in_once_the_directory_was_read_again(pair):
    one, two = pair
    two.known = []
    hearer = Hearer()
    one.links.connect(two.own, hearer)
    await two.knocked.wait()
    two.known = [one.own]
    member, _, _ = await two.visits.get()
    assert member == one.own
    assert hearer.reasons.empty(), "the same link tries again"


async def test_somebody_else_with_the_name_of_a_member_is_not_let_in(pair, impatient):
    _, two = pair
    stranger = GrpcLinks(make_certificate("one"))
    hearer = Hearer()
    stranger.connect(two.own, hearer)
    assert await hearer.reasons.get()
    assert two.visits.empty()
    await stranger.stop()


async def test_somebody_else_at_the_address_of_a_member_hears_nothing(pair, impatient):
    one, two = pair
    other = make_certificate("two").certificate.decode()
    hearer = Hearer()
    one.links.connect(replace(two.own, certificate=other), hearer)
    assert await hearer.reasons.get()
    assert two.visits.empty()


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


async def test_a_door_serves_what_is_added_before_it_opens():
    process = Process("one")

    async def echo(request, _context):
        return request

    process.door.add({"Echo": grpc.unary_unary_rpc_method_handler(echo)})
    process.known = [process.own]
    await process.door.start(process)
    async with process.links.channel(process.own) as channel:
        method: Any = channel.unary_unary(f"/{SERVICE}/Echo")
        assert await method(b"hello") == b"hello"
    await process.door.stop()
