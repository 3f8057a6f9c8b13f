"""One process of a fleet, as far as its door and those who call it ask."""

from contextlib import asynccontextmanager

from streamfrom.engine.fleet.directory import Member
from streamfrom.proxy.fleet.grpc_links import GrpcDoor, GrpcLinks
from streamfrom.proxy.fleet.member_certificate import make_certificate
from streamfrom.proxy.grpc_port import fleet_port


class Process:
    """A member with a door; *known* are the members that it has read of."""

    def __init__(self, name: str, number: int = 0, version: str = "1") -> None:
        self.name = name
        self.known: list[Member] = []
        self.certificate = make_certificate(name)
        port = fleet_port("127.0.0.1:0")
        self.door = GrpcDoor(self.certificate, port, self)
        self.links = GrpcLinks(self.certificate)
        pem = self.certificate.certificate.decode()
        self.own = Member(name, "", port.address, pem, number, version, "c")

    async def present(self):
        return self.known

    def connected(self):
        return self.known

    def members(self):
        return {member.id: member for member in self.known}

    def trusts(self, certificate):
        return next((m for m in self.known if m.certificate == certificate), None)

    def look(self):
        """Nothing is read again here."""

    def accept(self, member, link):
        raise AssertionError("nobody opens a link")


@asynccontextmanager
async def fleet_of(*processes):
    """Have *processes* know each other, and their doors open."""
    for process in processes:
        process.known = [other.own for other in processes if other is not process]
        await process.door.start()
    yield processes
    for process in processes:
        await process.links.stop()
        await process.door.stop()
