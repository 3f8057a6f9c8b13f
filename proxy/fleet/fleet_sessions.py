"""KILL and SHOW PROCESSLIST between members: each judges by its own sessions what the asker of another may see and end."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Final

from streamfrom.proxy.errors import MemberUnreachable, NoSuchThread, NotOwner
from streamfrom.proxy.fleet import members_pb2 as pb
from streamfrom.proxy.fleet.member_calls import PresentMembers, answered, ask_all
from streamfrom.proxy.fleet.status_codec import ASKERS, decode_process, encode_process
from streamfrom.proxy.local_statements.show_processlist import Process
from streamfrom.proxy.sessions.connection_ids import first_of, prefix_of
from streamfrom.proxy.sessions.process_list import LocalSessions, end


if TYPE_CHECKING:
    import grpc
    import grpc.aio

    from streamfrom.engine.fleet.directory import Member
    from streamfrom.proxy.sessions.services import Asker


# A list is not waited for as long as a KILL QUERY, which ends when a server has the command.
SESSIONS_TIMEOUT_S: Final = 2.0
KILL_TIMEOUT_S: Final = 5.0


class FleetSessions:
    """The sessions of the other members, for this one (`sessions.services.OtherMembers`), and its own for them.

    roster: who the other members are.
    channel: returns a new channel to a member.
    sessions: those of this process.
    """

    def __init__(
        self,
        roster: PresentMembers,
        channel: Callable[[Member], grpc.aio.Channel],
        sessions: LocalSessions,
    ) -> None:
        self._roster = roster
        self._channel = channel
        self._sessions = sessions

    async def kill(self, asker: Asker, connection_id: int, *, query_only: bool) -> None:
        """End a connection, as `OtherMembers.kill`."""
        prefix = prefix_of(connection_id)
        request = pb.KillRequest(
            asker=ASKERS.encode(asker), connection_id=connection_id, query_only=query_only
        )
        owners = [m for m in await self._roster.present() if m.id_prefix == prefix]
        answers = await self._have_killed(owners, request)
        if not any(answer.killed for answer in answers):
            is_anothers = any(each.refusal == pb.KillReply.NOT_OWNER for each in answers)
            raise (NotOwner if is_anothers else NoSuchThread)(connection_id)

    async def kill_user(self, asker: Asker, name: str, *, query_only: bool) -> int:
        """End connections of a user, as `OtherMembers.kill_user`."""
        request = pb.KillRequest(asker=ASKERS.encode(asker), user=name, query_only=query_only)
        answers = await self._have_killed(await self._roster.present(), request)
        return sum(answer.killed for answer in answers)

    async def _have_killed(
        self, members: Iterable[Member], request: pb.KillRequest
    ) -> list[pb.KillReply]:
        answers = await ask_all(
            self._channel, members, "Kill", request, pb.KillReply, KILL_TIMEOUT_S
        )
        if faults := [_said(member, each) for member, each in answers if isinstance(each, str)]:
            raise MemberUnreachable(faults)
        return [answer for _, answer in answers if not isinstance(answer, str)]

    async def processes(self, asker: Asker) -> list[Process]:
        """Return lines, as `OtherMembers.processes`."""
        members = await self._roster.present()
        request = pb.SessionsRequest(asker=ASKERS.encode(asker))
        found: list[Process] = []
        for member, answer in await ask_all(
            self._channel, members, "Sessions", request, pb.SessionsReply, SESSIONS_TIMEOUT_S
        ):
            if isinstance(answer, str):
                # Its sessions are not known; no client has this id.
                place, state = first_of(member.id_prefix), _said(member, answer)
                user = "unreachable member"
                line = Process(place, user, member.address, None, "Connect", 0, state, None)
                found.append(line)
            else:
                found += map(decode_process, answer.sessions)
        return found

    # For the other members

    @property
    def methods(self) -> dict[str, grpc.RpcMethodHandler[Any, Any]]:
        """Return the handlers of the service's methods by their names."""
        return {
            "Kill": answered(self._roster, pb.KillRequest, pb.KillReply, self._kill),
            "Sessions": answered(
                self._roster, pb.SessionsRequest, pb.SessionsReply, self._list
            ),
        }

    async def _kill(self, request: pb.KillRequest) -> pb.KillReply:
        asker = ASKERS.decode(request.asker)
        if request.WhichOneof("whom") == "user":
            if not asker.is_admin and asker.user != request.user:
                return pb.KillReply(refusal=pb.KillReply.NOT_OWNER)
            found = self._sessions.of_user(request.user)
        else:
            try:
                found = [self._sessions.find(asker, request.connection_id)]
            except NoSuchThread:
                return pb.KillReply(refusal=pb.KillReply.NO_SUCH_THREAD)
            except NotOwner:
                return pb.KillReply(refusal=pb.KillReply.NOT_OWNER)
        await end(found, query_only=request.query_only)
        return pb.KillReply(killed=len(found))

    async def _list(self, request: pb.SessionsRequest) -> pb.SessionsReply:
        processes = self._sessions.processes(ASKERS.decode(request.asker))
        return pb.SessionsReply(sessions=map(encode_process, processes))


def _said(member: Member, fault: str) -> str:
    place = f" at {member.address}" if member.address else ""
    return f"member {member.id}{place}: {fault}"
