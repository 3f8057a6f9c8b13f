"""Requests to other members that have one answer: KILL, SHOW PROCESSLIST, and figures for the status.

Each member decides by its own sessions what another member's user may see and end. All are queried at once. A member that does not answer
within STATUS_TIMEOUT_S is reported missing, as is one whose version does not know the request, so a member that hangs holds up no
client.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

import grpc
import grpc.aio
import structlog

from streamfrom.engine.messaging.figures.figures import (
    QueueFigures,
    SetAsideFigures,
    ShardFigures,
)
from streamfrom.engine.messaging.table.counters import Counters, Histogram
from streamfrom.proxy.errors import MemberUnreachable, NoSuchThread, NotOwner
from streamfrom.proxy.fairness import in_turns
from streamfrom.proxy.fleet import members_pb2 as pb
from streamfrom.proxy.fleet.fields_codec import FieldsCodec
from streamfrom.proxy.fleet.grpc_links import SERVICE, GrpcDoor, GrpcLinks, calling_member
from streamfrom.proxy.local_statements.show_processlist import Process
from streamfrom.proxy.sessions.connection_ids import first_of, prefix_of
from streamfrom.proxy.sessions.process_list import LocalSessions, end
from streamfrom.proxy.sessions.services import Asker
from streamfrom.proxy.status import status_rows
from streamfrom.proxy.status.fleet_figures import MemberFigures, MembersFigures, QueueAtMember


if TYPE_CHECKING:
    from google.protobuf.message import Message

    from streamfrom.engine.fleet.directory import Member
    from streamfrom.engine.fleet.fleet import Fleet
    from streamfrom.proxy.grpc_port import GrpcPort
    from streamfrom.proxy.status.status_source import StatusSource, Viewer


class _HistogramCodec:
    def encode(self, value: Histogram, _now_ns: int) -> pb.Histogram | None:
        if not value.total:
            return None
        return pb.Histogram(counts=value.counts, sum_ns=value.sum_ns)

    def decode(self, found: pb.Histogram, _now_ns: int) -> Histogram | None:
        """Return the times; None for a member with other buckets."""
        histogram = Histogram()
        if len(found.counts) != len(histogram.counts):
            return None
        histogram.counts = list(found.counts)
        histogram.sum_ns = found.sum_ns
        return histogram


class _CountersCodec:
    """The counters; absent if all are zero."""

    def __init__(self) -> None:
        self._fields = FieldsCodec(Counters, pb.Counters, {"Histogram": _HistogramCodec()})

    def encode(self, value: Counters, _now_ns: int) -> pb.Counters | None:
        message = self._fields.encode(value)
        return message if message.ByteSize() else None

    def decode(self, found: pb.Counters, _now_ns: int) -> Counters:
        fields = self._fields.fields(found)
        return Counters(**{name: each for name, each in fields.items() if each is not None})


class _QueueOnShardCodec:
    """A shard of a queue; None if nothing has happened on it and another member dispatches it."""

    def __init__(self) -> None:
        self._counters = _CountersCodec()
        self._gauges = FieldsCodec(ShardFigures, pb.Gauges)

    def encode(self, value: ShardFigures, now_ns: int) -> pb.QueueOnShard | None:
        counters = self._counters.encode(value.counters, now_ns)
        if counters is None and not value.is_dispatched:
            return None
        gauges = None
        if value.is_dispatched:
            # A member that does not hold every message in memory does not know the depth.
            known = value if value.is_whole else replace(value, depth=None)
            gauges = self._gauges.encode(known, now_ns)
        return pb.QueueOnShard(shard=value.shard, counters=counters, gauges=gauges)

    def decode(self, found: pb.QueueOnShard, now_ns: int) -> ShardFigures:
        # If a member does not dispatch, gauges are absent, which protobuf reads as zeros.
        return ShardFigures(
            shard=found.shard,
            counters=self._counters.decode(found.counters, now_ns),
            is_whole=found.gauges.HasField("depth"),
            is_dispatched=found.HasField("gauges"),
            **self._gauges.fields(found.gauges, now_ns),
        )


MEMBERS: Final = FieldsCodec(status_rows.MemberStatus, pb.MemberStatus)
SHARDS: Final = FieldsCodec(status_rows.ShardStatus, pb.ShardStatus)
SET_ASIDE: Final = FieldsCodec(SetAsideFigures, pb.SetAsideRow)
QUEUES: Final = FieldsCodec(
    QueueAtMember, pb.QueueStatus, {"QueueOnShard": _QueueOnShardCodec()}
)
STREAMS: Final = FieldsCodec(
    status_rows.StreamStatus,
    pb.StreamStatus,
    {"Client": FieldsCodec(status_rows.StreamClient, pb.Client)},
)


def encode_queue(queue: QueueFigures, now_ns: int) -> pb.QueueStatus:
    """Return the message of a queue, without shards on which nothing has happened and others dispatch."""
    table = queue.table
    part = QueueAtMember(table.keyspace, table.name, queue.streams, queue.shards)
    return QUEUES.encode(part, now_ns)


def decode_stream(found: pb.StreamStatus, member: str, now_ns: int) -> status_rows.StreamStatus:
    """Return the stream that *member* reports."""
    stream = STREAMS.decode(found, now_ns)
    if stream.client is None:
        return stream
    return replace(stream, client=replace(stream.client, member=member))


# The part of a statement's text that is sent: ten thousand sessions may each run one of 64 MB.
INFO_BYTES_MAX: Final = 64 << 10

ASKERS: Final = FieldsCodec(Asker, pb.Asker)
_PROCESSES: Final = FieldsCodec(Process, pb.Session)


def encode_process(process: Process) -> pb.Session:
    """Return the message of a line."""
    info = process.info
    cut = None if info is None else bytes(info[:INFO_BYTES_MAX])
    return _PROCESSES.encode(replace(process, info=cut))


decode_process: Final = _PROCESSES.decode


log = structlog.get_logger()

RequestT = TypeVar("RequestT", bound="Message")
AnswerT = TypeVar("AnswerT", bound="Message")

NO_ADDRESS: Final = "no other member can reach it (fleet.listen)"


async def ask(
    channel: Callable[[Member], grpc.aio.Channel],
    member: Member,
    method: str,
    request: Message,
    answer: type[AnswerT],
    timeout_s: float,
) -> AnswerT | str:
    """Return the answer of *member*, or the reason for its lack.

    channel: returns a new channel to a member.
    """
    if not member.address:
        return NO_ADDRESS
    try:
        async with channel(member) as way:
            call: grpc.aio.UnaryUnaryMultiCallable[Any, AnswerT] = way.unary_unary(
                f"/{SERVICE}/{method}",
                request_serializer=type(request).SerializeToString,
                response_deserializer=answer.FromString,
            )
            # It may not know this member yet, and let it in at the second try.
            return await call(request, timeout=timeout_s, wait_for_ready=True)
    except grpc.aio.AioRpcError as error:
        reason = error.details() or error.code().name
        if error.code() is grpc.StatusCode.UNIMPLEMENTED:
            reason = f"version {member.version} does not know the question"
    return reason


# A list times out sooner than a KILL QUERY, which ends when a server has the command.
SESSIONS_TIMEOUT_S: Final = 2.0
KILL_TIMEOUT_S: Final = 5.0
STATUS_TIMEOUT_S: Final = 1.0
# 200 queues on 16 shards that one member dispatches are half a megabyte, 10,000 streams one.
ANSWER_BYTES_MAX: Final = 32 << 20


class FleetCalls:
    """The other members of *fleet*, by *links*: their sessions (`sessions.services.OtherMembers`) and figures (`OtherFigures`).

    sessions: those of this process, which others may list and end.
    source: the figures of this process, which others may read.
    """

    def __init__(
        self, fleet: Fleet, links: GrpcLinks, source: StatusSource, sessions: LocalSessions
    ) -> None:
        self._fleet = fleet
        self._door: GrpcDoor | None = None
        self.links = links
        self._source = source
        self._sessions = sessions

    @property
    def methods(self) -> dict[str, grpc.RpcMethodHandler[Any, Any]]:
        """Return the handlers of the service's methods by their names."""
        return {
            "Kill": self._answered(pb.KillRequest, pb.KillReply, self._kill),
            "Sessions": self._answered(pb.SessionsRequest, pb.SessionsReply, self._list),
            "Status": self._answered(pb.StatusRequest, pb.StatusReply, self._status),
        }

    async def open(self, port: GrpcPort) -> None:
        """Let in, by *port*, the members that the fleet knows."""
        self._door = GrpcDoor(self.links.own, port, self._fleet)
        self._door.add(self.methods)
        await self._door.start()

    async def stop(self) -> None:
        """Close all ways to others and from them."""
        await self.links.stop()
        if self._door is not None:
            await self._door.stop()

    async def _ask(
        self,
        members: Iterable[Member],
        method: str,
        request: Message,
        answer: type[AnswerT],
        timeout_s: float,
        answer_bytes_max: int = -1,
    ) -> list[tuple[Member, AnswerT | str]]:
        """Return each of *members* with the result of `ask`; all are queried at once. A member that has left meanwhile is not missing."""

        async def one(member: Member) -> tuple[Member, AnswerT | str]:
            channel = partial(self.links.channel, answer_bytes_max=answer_bytes_max)
            return member, await ask(channel, member, method, request, answer, timeout_s)

        answers = await asyncio.gather(*map(one, members))
        if any(isinstance(each, str) for _, each in answers):
            present = {member.id for member in await self._fleet.present()}
            answers = [
                (m, each) for m, each in answers if m.id in present or not isinstance(each, str)
            ]
        for member, each in answers:
            if isinstance(each, str) and each != NO_ADDRESS:
                # `member` of a line is the member that logs it.
                fields = {"peer": _named(member), "method": method, "reason": each}
                log.warning("a member does not answer", **fields)
        return answers

    def _answered(
        self,
        request: type[RequestT],
        reply: type[AnswerT],
        answer: Callable[[RequestT], Awaitable[AnswerT]],
    ) -> grpc.RpcMethodHandler[Any, Any]:
        """Return the handler of a method that *answer* carries out; the call of a process that is no longer a member is refused."""

        async def checked(
            message: RequestT, context: grpc.aio.ServicerContext[RequestT, AnswerT]
        ) -> AnswerT:
            await calling_member(context, self._fleet)
            return await answer(message)

        return grpc.unary_unary_rpc_method_handler(
            checked, request.FromString, reply.SerializeToString
        )

    # --- sessions -----------------------------------------------------------------------------

    async def kill(self, asker: Asker, connection_id: int, *, query_only: bool) -> None:
        """End a connection, as `OtherMembers.kill`."""
        prefix = prefix_of(connection_id)
        request = pb.KillRequest(
            asker=ASKERS.encode(asker), connection_id=connection_id, query_only=query_only
        )
        owners = [m for m in await self._fleet.present() if m.id_prefix == prefix]
        answers = await self._ask(owners, "Kill", request, pb.KillReply, KILL_TIMEOUT_S)
        if faults := [_said(member, each) for member, each in answers if isinstance(each, str)]:
            raise MemberUnreachable(faults)
        refusals = {each.refusal for _, each in answers if not isinstance(each, str)}
        if pb.KillReply.NONE not in refusals:
            is_anothers = pb.KillReply.NOT_OWNER in refusals
            raise (NotOwner if is_anothers else NoSuchThread)(connection_id)

    async def processes(self, asker: Asker) -> list[Process]:
        """Return lines, as `OtherMembers.processes`."""
        members = await self._fleet.present()
        request = pb.SessionsRequest(asker=ASKERS.encode(asker))
        found: list[Process] = []
        for member, answer in await self._ask(
            members, "Sessions", request, pb.SessionsReply, SESSIONS_TIMEOUT_S
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

    async def _kill(self, request: pb.KillRequest) -> pb.KillReply:
        asker = ASKERS.decode(request.asker)
        try:
            found = self._sessions.find(asker, request.connection_id)
        except NoSuchThread:
            return pb.KillReply(refusal=pb.KillReply.NO_SUCH_THREAD)
        except NotOwner:
            return pb.KillReply(refusal=pb.KillReply.NOT_OWNER)
        await end(found, query_only=request.query_only)
        return pb.KillReply()

    async def _list(self, request: pb.SessionsRequest) -> pb.SessionsReply:
        processes = self._sessions.processes(ASKERS.decode(request.asker))
        return pb.SessionsReply(sessions=map(encode_process, processes))

    # --- figures ------------------------------------------------------------------------------

    async def ask(self, tables: Iterable[str], viewer: Viewer | None = None) -> MembersFigures:
        """Return the members' reports, as `OtherFigures.ask`."""
        members = sorted(self._fleet.connected(), key=lambda member: member.id)
        if not members:
            return MembersFigures()
        request = pb.StatusRequest(tables=tables)
        if viewer is not None:
            asker = Asker(viewer.user.name, viewer.is_admin)
            request.asker.CopyFrom(ASKERS.encode(asker))
        answers, unanswered = [], []
        for member, answer in await self._ask(
            members, "Status", request, pb.StatusReply, STATUS_TIMEOUT_S, ANSWER_BYTES_MAX
        ):
            if isinstance(answer, str):
                unanswered.append(
                    status_rows.Unanswered(member.id, member.version, member.address, answer)
                )
            else:
                answers.append(await self._decode(answer, member))
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

    async def _status(self, request: pb.StatusRequest) -> pb.StatusReply:
        source = self._source
        reply = pb.StatusReply(member=MEMBERS.encode(source.member()))
        if "queues" in request.tables:
            # No server is queried, because one that hangs would hold the answer up. The other member queries depths itself.
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


def _named(member: Member) -> str:
    return (
        f"member {member.id} at {member.address}" if member.address else f"member {member.id}"
    )


def _said(member: Member, fault: str) -> str:
    return f"{_named(member)}: {fault}"
