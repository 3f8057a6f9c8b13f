"""All that a member is to others, over real sockets of this machine; its parts have tests of their own."""

from types import SimpleNamespace
from typing import Any

from streamfrom.engine.fleet.directory import Member
from streamfrom.proxy.fleet.grpc_links import GrpcLinks
from streamfrom.proxy.fleet.member_calls import FleetCalls
from streamfrom.proxy.fleet.member_certificate import make_certificate
from streamfrom.proxy.grpc_port import fleet_port
from streamfrom.proxy.sessions.process_list import LocalSessions
from streamfrom.proxy.sessions.services import Asker
from tests.proxy.fleet.members import Reader
from tests.virtual_loop import VirtualClock


class OneMember(Reader):
    """One process, and what the others ask of its `Fleet`."""

    def __init__(self, name, number):
        own = make_certificate(name)
        self.port = fleet_port("127.0.0.1:0")
        self.port.opens = self.open
        pem = own.certificate.decode()
        self.own = Member(name, "", self.port.address, pem, number, "1", "c")
        self.known = []
        self.opened = 0
        source: Any = SimpleNamespace(clock=VirtualClock())
        fleet: Any = self
        self.others = FleetCalls(fleet, GrpcLinks(own), source, LocalSessions({}))

    async def open(self):
        self.opened += 1
        await self.others.open(self.port)

    def look(self):
        raise AssertionError("nobody is new")


async def test_the_first_connection_opens_the_door_and_no_other_one():
    one, two = OneMember("one", 1), OneMember("two", 2)
    one.known, two.known = [two.own], [one.own]
    for _ in range(2):
        # A member that cannot be reached would have a line.
        assert await one.others.processes(Asker("root", True)) == []
    assert (one.opened, two.opened) == (0, 1)
    for each in (one, two):
        await each.others.stop()
        each.port.close()
