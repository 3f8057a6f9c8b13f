"""All that is between members over gRPC: links, questions, and the door for theirs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from streamfrom.proxy.fleet.grpc_links import GrpcDoor, GrpcLinks
from streamfrom.proxy.fleet.member_calls import FleetSessions, FleetStatus


if TYPE_CHECKING:
    from streamfrom.engine.fleet.fleet import Fleet
    from streamfrom.proxy.fleet.member_certificate import MemberCertificate
    from streamfrom.proxy.grpc_port import GrpcPort
    from streamfrom.proxy.sessions.process_list import LocalSessions
    from streamfrom.proxy.status.status_source import StatusSource


class GrpcMembers:
    """The other members of *fleet*, and what they are served: *sessions* and the figures of *source*."""

    def __init__(
        self,
        own: MemberCertificate,
        fleet: Fleet,
        source: StatusSource,
        sessions: LocalSessions,
    ) -> None:
        self._own = own
        self._fleet = fleet
        self._door: GrpcDoor | None = None
        self.links = GrpcLinks(own)
        self.sessions = FleetSessions(fleet, self.links.channel, sessions)
        self.figures = FleetStatus(fleet, self.links, source, sessions)

    async def open(self, port: GrpcPort) -> None:
        """Let in, by *port*, the members that the fleet knows."""
        self._door = GrpcDoor(self._own, port, self._fleet)
        self._door.add(self.sessions.methods | self.figures.methods)
        await self._door.start()

    async def stop(self) -> None:
        """Close all ways to others and from them."""
        await self.links.stop()
        if self._door is not None:
            await self._door.stop()
