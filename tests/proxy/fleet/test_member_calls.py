"""Questions to a member over real sockets of this machine: what comes back when there is no answer."""

import socket
from dataclasses import replace

import pytest

from streamfrom.engine.fleet.directory import Member
from streamfrom.proxy.fleet import members_pb2 as pb
from streamfrom.proxy.fleet.grpc_links import GrpcDoor, GrpcLinks
from streamfrom.proxy.fleet.member_calls import NO_ADDRESS, ask
from streamfrom.proxy.fleet.member_certificate import make_certificate
from streamfrom.proxy.grpc_port import fleet_port


class Nobody:
    """A member that knows one other, and no method of the service."""

    def __init__(self, name):
        certificate = make_certificate(name)
        port = fleet_port("127.0.0.1:0")
        self.door = GrpcDoor(certificate, port)
        pem = certificate.certificate.decode()
        self.own = Member(name, "", port.address, pem, 1, "0.9", "c")
        self.channel = GrpcLinks(certificate).channel
        self.known = {}

    def members(self):
        return self.known

    def trusts(self, certificate):
        return next((m for m in self.known.values() if m.certificate == certificate), None)

    def look(self):
        """Nothing is read again here."""

    def accept(self, member, link):
        raise AssertionError("nobody opens a link")


@pytest.fixture
async def asker():
    """One that asks, and a member that it may ask."""
    one, two = Nobody("one"), Nobody("two")
    two.known = {"one": one.own}
    await two.door.start(two)
    yield one, two.own
    await two.door.stop()
    await one.door.stop()


async def asked(one, member, timeout_s):
    request = pb.StatusRequest()
    return await ask(one.channel, member, "Status", request, pb.StatusReply, timeout_s)


async def test_a_version_that_does_not_know_the_question_is_named(asker):
    assert await asked(asker[0], asker[1], 60.0) == "version 0.9 does not know the question"


async def test_who_has_no_address_is_not_asked(asker):
    one, member = asker
    assert await asked(one, replace(member, address=""), 60.0) == NO_ADDRESS


async def test_who_accepts_and_says_nothing_is_given_up(asker):
    one, member = asker
    # The system accepts for it.
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        found = await asked(one, replace(member, address=address), 0.1)
    assert isinstance(found, str)
    assert found
