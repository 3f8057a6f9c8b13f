"""Questions to another member that are answered once, and who may ask them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar

import grpc
import grpc.aio
import structlog

from streamfrom.engine.fleet.peer_link import Roster
from streamfrom.proxy.fleet.grpc_links import SERVICE


if TYPE_CHECKING:
    from google.protobuf.message import Message

    from streamfrom.engine.fleet.directory import Member


log = structlog.get_logger()

RequestT = TypeVar("RequestT", bound="Message")
AnswerT = TypeVar("AnswerT", bound="Message")

NO_ADDRESS: Final = "no other member can reach it (fleet.listen)"


class PresentMembers(Roster, Protocol):
    """Who the members are, and which are there: `engine.fleet.fleet.Fleet`."""

    async def present(self) -> list[Member]:
        """Return the other members that are there by now."""

    def connected(self) -> list[Member]:
        """Return the other members that were there when the directories were last read."""


async def ask(
    channel: Callable[[Member], grpc.aio.Channel],
    member: Member,
    method: str,
    request: Message,
    answer: type[AnswerT],
    timeout_s: float,
) -> AnswerT | str:
    """Return what *member* answers, or why it does not.

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
            # It may not have heard of us yet, and let us in at the second try.
            return await call(request, timeout=timeout_s, wait_for_ready=True)
    except grpc.aio.AioRpcError as error:
        reason = error.details() or error.code().name
        if error.code() is grpc.StatusCode.UNIMPLEMENTED:
            reason = f"version {member.version} does not know the question"
    log.warning("a member does not answer", member=member.id, method=method, reason=reason)
    return reason


async def ask_all(
    channel: Callable[[Member], grpc.aio.Channel],
    members: Iterable[Member],
    method: str,
    request: Message,
    answer: type[AnswerT],
    timeout_s: float,
) -> list[tuple[Member, AnswerT | str]]:
    """Return each of *members* with what `ask` returns of it; all are asked at once."""

    async def one(member: Member) -> tuple[Member, AnswerT | str]:
        return member, await ask(channel, member, method, request, answer, timeout_s)

    return await asyncio.gather(*map(one, members))


def answered(
    roster: PresentMembers,
    request: type[RequestT],
    reply: type[AnswerT],
    answer: Callable[[RequestT], Awaitable[AnswerT]],
) -> grpc.RpcMethodHandler[Any, Any]:
    """Return the handler of a method that *answer* carries out; the call of a process that is no member by now is refused."""

    async def checked(
        message: RequestT, context: grpc.aio.ServicerContext[RequestT, AnswerT]
    ) -> AnswerT:
        (pem, *_) = context.auth_context().get("x509_pem_cert") or [b""]
        if roster.trusts(pem.decode()) is None:
            await context.abort(grpc.StatusCode.UNAUTHENTICATED, "no member of this fleet")
        return await answer(message)

    return grpc.unary_unary_rpc_method_handler(
        checked, request.FromString, reply.SerializeToString
    )
