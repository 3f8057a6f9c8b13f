"""KILL and SHOW PROCESSLIST between members: each judges by its own sessions what the asker of another may see and end."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Final, TypeVar

from streamfrom.proxy.errors import MemberUnreachable, NoSuchThread, NotOwner
from streamfrom.proxy.fleet import members_pb2 as pb
from streamfrom.proxy.fleet.member_calls import PresentMembers, answered, ask
from streamfrom.proxy.fleet.sessions_codec import ASKERS, decode_process, encode_process
from streamfrom.proxy.local_statements.show_processlist import Process
from streamfrom.proxy.sessions.connection_ids import first_of, prefix_of
from streamfrom.proxy.sessions.local_sessions import LocalSessions, end


if TYPE_CHECKING:
    import grpc
    import grpc.aio

    from streamfrom.engine.fleet.directory import Member
    from streamfrom.proxy.sessions.services import Asker


AnswerT = TypeVar("AnswerT", pb.KillReply, pb.SessionsReply)

# A list is not waited for as long as a KILL QUERY, which ends when a server has the command.
SESSIONS_TIMEOUT_S: Final = 2.0
KILL_TIMEOUT_S: Final = 5.0


class FleetSessions:
    """The sessions of the other members: `sessions.services.OtherMembers`.

    channel: returns a new channel to a member.
    """

    def __init__(
        self, roster: PresentMembers, channel: Callable[[Member], grpc.aio.Channel]
    ) -> None:
        self._roster = roster
        self._channel = channel

    async def kill(self, asker: Asker, connection_id: int, *, query_only: bool) -> None:
        """End a connection, as `OtherMembers.kill`."""
        prefix = prefix_of(connection_id)
        request = pb.KillRequest(
            asker=ASKERS.encode(asker), connection_id=connection_id, query_only=query_only
        )
        owners = [m for m in await self._roster.present() if m.id_prefix == prefix]
        is_anothers = False
        for answer in await self._kill(owners, request):
            if answer.killed:
                return
            is_anothers = is_anothers or answer.refusal == pb.KillReply.NOT_OWNER
        raise (NotOwner if is_anothers else NoSuchThread)(connection_id)

    async def kill_user(self, asker: Asker, name: str, *, query_only: bool) -> int:
        """End connections of a user, as `OtherMembers.kill_user`."""
        request = pb.KillRequest(asker=ASKERS.encode(asker), user=name, query_only=query_only)
        answers = await self._kill(await self._roster.present(), request)
        return sum(answer.killed for answer in answers)

    async def processes(self, asker: Asker) -> list[Process]:
        """Return lines, as `OtherMembers.processes`."""
        members = await self._roster.present()
        request = pb.SessionsRequest(asker=ASKERS.encode(asker))
        answers = await asyncio.gather(
            *(
                self._ask(member, "Sessions", request, pb.SessionsReply, SESSIONS_TIMEOUT_S)
                for member in members
            )
        )
        found: list[Process] = []
        for member, answer in zip(members, answers, strict=True):
            if isinstance(answer, str):
                found.append(_unreachable(member, answer))
            else:
                found += map(decode_process, answer.sessions)
        return found

    async def _kill(
        self, members: Iterable[Member], request: pb.KillRequest
    ) -> list[pb.KillReply]:
        answers = await asyncio.gather(
            *(
                self._ask(member, "Kill", request, pb.KillReply, KILL_TIMEOUT_S)
                for member in members
            )
        )
        if faults := [answer for answer in answers if isinstance(answer, str)]:
            raise MemberUnreachable(faults)
        return [answer for answer in answers if not isinstance(answer, str)]

    async def _ask(
        self,
        member: Member,
        method: str,
        request: pb.KillRequest | pb.SessionsRequest,
        answer: type[AnswerT],
        timeout_s: float,
    ) -> AnswerT | str:
        """Return what *member* answers, or who it is and why it does not."""
        found = await ask(self._channel, member, method, request, answer, timeout_s)
        if not isinstance(found, str):
            return found
        place = f" at {member.address}" if member.address else ""
        return f"member {member.id}{place}: {found}"


def _unreachable(member: Member, fault: str) -> Process:
    """Return the line of a member whose sessions are not known; its id is one that no client has."""
    where = first_of(member.id_prefix)
    return Process(where, "unreachable member", member.address, None, "Connect", 0, fault, None)


class SessionsForMembers:
    """The sessions of this process, for other members: handlers of the service's methods.

    sessions: those of this process.
    roster: who may ask.
    """

    def __init__(self, sessions: LocalSessions, roster: PresentMembers) -> None:
        self._sessions = sessions
        self._roster = roster

    @property
    def methods(self) -> dict[str, grpc.RpcMethodHandler[Any, Any]]:
        """Return them by their names."""
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
