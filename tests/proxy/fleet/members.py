"""One process of a fleet, as far as its door and its callers use it."""

from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any

from streamfrom.engine.fleet.directory import Member
from streamfrom.proxy.config.file import Role, Secret, User
from streamfrom.proxy.fleet.grpc_links import GrpcDoor, GrpcLinks
from streamfrom.proxy.fleet.member_certificate import make_certificate
from streamfrom.proxy.grpc_port import fleet_port
from streamfrom.proxy.local_statements.show_processlist import Process as Line


class Reader:
    """The directories that a member has read: *known*."""

    known: list[Member]

    async def present(self):
        return self.known

    def members(self):
        return {member.id: member for member in self.known}

    def trusts(self, certificate):
        return next((m for m in self.known if m.certificate == certificate), None)


class Process(Reader):
    """A member with a door."""

    def __init__(self, name: str, number: int = 0, version: str = "1") -> None:
        self.name = name
        self.known = []
        self.certificate = make_certificate(name)
        port = fleet_port("127.0.0.1:0")
        fleet: Any = self
        self.door = GrpcDoor(self.certificate, port, fleet)
        self.links = GrpcLinks(self.certificate)
        pem = self.certificate.certificate.decode()
        self.own = Member(name, "", port.address, pem, number, version, "c")

    def connected(self):
        return self.known

    def look(self):
        """Do nothing: nothing is reread here."""

    def accept(self, member, link):
        raise AssertionError("nobody opens a link")


class Session:
    """One session of a member."""

    def __init__(self, number: int, name: str) -> None:
        self.user = User(name, Secret(""), None, Role.USER)
        self.work = self
        self.line = Line(number, name, "10.0.0.9", "shop", "Sleep", 3, "", None)
        self.told: list[str] = []

    def process(self):
        return self.line

    def interrupt(self, error):
        self.told.append(str(error))
        return []

    def end(self):
        self.told.append("end")


def runtime(keyspace):
    """Return a shard with the attributes that its status shows."""
    pool = SimpleNamespace(size=4, connections=3, lent=2, waiting=1)
    dsn = SimpleNamespace(server="h:3306")
    return SimpleNamespace(
        keyspace=keyspace, name="0", dsn=dsn, version="10", trouble=None, pool=pool
    )


@asynccontextmanager
async def fleet_of(*processes):
    """Make *processes* known to each other, and open their doors."""
    for process in processes:
        process.known = [other.own for other in processes if other is not process]
        await process.door.start()
    yield processes
    for process in processes:
        await process.links.stop()
        await process.door.stop()
