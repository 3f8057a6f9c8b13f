"""The figures of the other members, for SHOW QUEUE STATUS and the tables of the schema `streamfrom`.

All are asked at once. A member that does not answer within STATUS_TIMEOUT_S is reported missing, as is one whose version does
not know the question, so a member that hangs holds up no client.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from streamfrom.proxy.fairness import in_turns
from streamfrom.proxy.fleet import members_pb2 as pb
from streamfrom.proxy.fleet.member_calls import PresentMembers, answered, ask_all
from streamfrom.proxy.fleet.status_codec import (
    ASKERS,
    MEMBERS,
    QUEUES,
    SET_ASIDE,
    SHARDS,
    STREAMS,
    decode_stream,
    encode_queue,
)
from streamfrom.proxy.sessions.services import Asker
from streamfrom.proxy.status.fleet_figures import MemberFigures, MembersFigures
from streamfrom.proxy.status.status_rows import Unanswered


if TYPE_CHECKING:
    import grpc

    from streamfrom.engine.fleet.directory import Member
    from streamfrom.proxy.fleet.grpc_links import GrpcLinks
    from streamfrom.proxy.sessions.process_list import LocalSessions
    from streamfrom.proxy.status.status_source import StatusSource, Viewer


STATUS_TIMEOUT_S: Final = 1.0
# 200 queues on 16 shards that one member dispatches are half a megabyte, 10,000 streams one.
ANSWER_BYTES_MAX: Final = 32 << 20


class FleetStatus:
    """The figures of the other members, for this one (`status.status_source.OtherFigures`), and its own for them.

    roster: who the other members are.
    source: what this process knows.
    sessions: those of this process.
    """

    def __init__(
        self,
        roster: PresentMembers,
        links: GrpcLinks,
        source: StatusSource,
        sessions: LocalSessions,
    ) -> None:
        self._roster = roster
        self._channel = partial(links.channel, answer_bytes_max=ANSWER_BYTES_MAX)
        self._source = source
        self._sessions = sessions

    async def ask(self, tables: Iterable[str], viewer: Viewer | None = None) -> MembersFigures:
        """Return what they report, as `OtherFigures.ask`."""
        members = sorted(self._roster.connected(), key=lambda member: member.id)
        if not members:
            return MembersFigures()
        request = pb.StatusRequest(tables=tables)
        if viewer is not None:
            asker = Asker(viewer.user.name, viewer.is_admin)
            request.asker.CopyFrom(ASKERS.encode(asker))
        answers, unanswered = [], []
        for member, answer in await ask_all(
            self._channel, members, "Status", request, pb.StatusReply, STATUS_TIMEOUT_S
        ):
            if isinstance(answer, str):
                unanswered.append(Unanswered(member.id, member.version, member.address, answer))
            else:
                answers.append(await self._decode(answer, member))
        if unanswered:
            # Who has left since the directories were read is not missing.
            present = {member.id for member in await self._roster.present()}
            unanswered = [one for one in unanswered if one.member in present]
        return MembersFigures(tuple(answers), tuple(unanswered))

    async def _decode(self, answer: pb.StatusReply, member: Member) -> MemberFigures:
        now_ns = self._source.clock.time_ns()
        queues = []
        async for some in in_turns(answer.queues):
            queues += [QUEUES.decode(each, now_ns) for each in some]
        return MemberFigures(
            MEMBERS.decode(answer.member, member=member.id, address=member.address),
            tuple(queues),
            tuple(decode_stream(each, member.id, now_ns) for each in answer.streams),
            tuple(SHARDS.decode(each, member=member.id) for each in answer.shards),
            tuple(SET_ASIDE.decode(each, now_ns) for each in answer.set_aside),
        )

    # For the other members

    @property
    def methods(self) -> dict[str, grpc.RpcMethodHandler[Any, Any]]:
        """Return the handler of the service's method by its name."""
        method = answered(self._roster, pb.StatusRequest, pb.StatusReply, self._status)
        return {"Status": method}

    async def _status(self, request: pb.StatusRequest) -> pb.StatusReply:
        source = self._source
        reply = pb.StatusReply(member=MEMBERS.encode(source.member()))
        if "queues" in request.tables:
            # No server is asked: one that hangs would hold the answer up. How much waits the other asks itself.
            queues = await source.watch.known_queues()
            now_ns = source.clock.time_ns()
            async for some in in_turns(queues):
                reply.queues.extend([encode_queue(each, now_ns) for each in some])
        if "streams" in request.tables:
            now_ns = source.clock.time_ns()
            processes = self._sessions.processes(ASKERS.decode(request.asker))
            async for streams in in_turns(source.stream_status(processes)):
                reply.streams.extend([STREAMS.encode(each, now_ns) for each in streams])
        if "set_aside" in request.tables:
            now_ns = source.clock.time_ns()
            reply.set_aside.extend(
                [SET_ASIDE.encode(one, now_ns) for one in source.watch.set_aside()]
            )
        if "shards" in request.tables:
            reply.shards.extend(map(SHARDS.encode, source.shard_status()))
        return reply
