"""The links to other members over gRPC, and the service for theirs, both over mutual TLS.

Each side shows the certificate of its row in the directory and accepts exactly those that it reads there. A link is one
call; it breaks when the other side has been silent for KEEPALIVE_MS and does not answer a ping in time. Messages that are queued
while an earlier one is on its way are sent as one: each gRPC message costs both sides about 0.3 ms of processor time, whatever its content.

Messages of `engine.fleet.peer_link` and of ``members.proto`` that have the same name and fields are one (`fields_codec`). Each member
announces its protocol (`PROTOCOL`, one more with each message that comes after release 0.1), so that a later version can keep
unknown messages from it; any that arrive nevertheless are skipped.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar, get_args

import grpc
import grpc.aio
import structlog
from google.protobuf.message import DecodeError

from streamfrom.engine.fleet.peer_link import FromDispatcher, ToDispatcher
from streamfrom.engine.messaging.dispatch.events import TableEvent
from streamfrom.engine.messaging.table.message import MessageKey
from streamfrom.proxy.fleet import members_pb2 as pb
from streamfrom.proxy.fleet.fields_codec import (
    ByFunctions,
    FieldCodec,
    FieldsCodec,
    OneOfCodec,
)
from streamfrom.proxy.fleet.member_certificate import MemberCertificate, TrustedCertificates
from streamfrom.proxy.grpc_port import PING_TIMEOUT_MS, SERVER_OPTIONS, GrpcPort


if TYPE_CHECKING:
    from streamfrom.engine.fleet.directory import Member
    from streamfrom.engine.fleet.fleet import Fleet
    from streamfrom.engine.fleet.peer_link import LinkHearer


PROTOCOL: Final = 1
PeerMessage = TypeVar("PeerMessage")


_NESTED: Final[dict[str, FieldCodec]] = {
    "Held": ByFunctions(
        lambda held, _: pb.Held(shard=held[0], ids=held[1]),
        lambda found, _: (found.shard, tuple(found.ids)),
    ),
    # A message around ids, as an empty repeated field is an absent one, and None is any.
    "Ids": ByFunctions(lambda ids, _: pb.Ids(ids=ids), lambda found, _: tuple(found.ids)),
    "Key": FieldsCodec(MessageKey, pb.Key),
}
# The dispatcher's poll finds effects of a kind that this version does not know.
_NESTED["TableEvent"] = OneOfCodec(pb.TableEvent, get_args(TableEvent), _NESTED)


class LinkCodec(Generic[PeerMessage]):
    """The messages of one direction of a link.

    whole: the message that is one of *classes*, with the messages that follow it.
    """

    def __init__(self, whole: Any, classes: Iterable[type[PeerMessage]]) -> None:
        self._whole = whole
        self._codec: OneOfCodec[Any] = OneOfCodec(whole, classes, _NESTED)

    def encode(self, messages: Sequence[PeerMessage]) -> bytes:
        """Return *messages*, at least one, as bytes."""
        first, *others = map(self._codec.encode, messages)
        first.more.extend(others)
        data: bytes = first.SerializeToString()
        return data

    def decode(self, data: bytes) -> list[PeerMessage | None]:
        """Return the messages in *data*, with None for each that is not known here. Raises DecodeError if there is none."""
        whole = self._whole.FromString(data)
        return [self._codec.decode(each) for each in (whole, *whole.more)]


TO_DISPATCHER: Final[LinkCodec[ToDispatcher]] = LinkCodec(
    pb.ToDispatcher, get_args(ToDispatcher)
)
FROM_DISPATCHER: Final[LinkCodec[FromDispatcher]] = LinkCodec(
    pb.FromDispatcher, get_args(FromDispatcher)
)


log = structlog.get_logger()

MessageT = TypeVar("MessageT")

CONNECT_TIMEOUT_S: Final = 2.0
STOP_S: Final = 0.5
KEEPALIVE_MS: Final = 1000
RECONNECT_MS: Final = 100
# A member that is new to the other side waits for TrustedCertificates; a busy machine is slower still.
HANDSHAKE_MS: Final = 1000
# Messages that go as one. A row may be long, and protobuf takes 2 GiB.
BATCH_MAX: Final = 16
SERVICE: Final = "streamfrom.fleet.v1.Fleet"
# The key of a link's metadata in which the calling member announces its protocol.
PROTOCOL_KEY: Final = "protocol"
OPTIONS: Final = (
    ("grpc.keepalive_time_ms", KEEPALIVE_MS),
    ("grpc.keepalive_timeout_ms", PING_TIMEOUT_MS),
    ("grpc.keepalive_permit_without_calls", 1),
    ("grpc.http2.max_pings_without_data", 0),
    ("grpc.http2.min_ping_interval_without_data_ms", KEEPALIVE_MS // 2),
    ("grpc.http2.max_ping_strikes", 0),
    # A new member is let in once its row was read, which its first try causes.
    ("grpc.initial_reconnect_backoff_ms", RECONNECT_MS),
    ("grpc.min_reconnect_backoff_ms", HANDSHAKE_MS),
    ("grpc.max_reconnect_backoff_ms", RECONNECT_MS),
    # A row may be as long as a packet of the database; credit limits the data on its way.
    ("grpc.max_receive_message_length", -1),
    ("grpc.max_send_message_length", -1),
    ("grpc.enable_http_proxy", 0),
)


class Outbox(Generic[MessageT]):
    """The queue of a link's outgoing messages, in order: `PeerLink`. Its batches end when it is closed."""

    def __init__(self) -> None:
        self.is_closed = False
        self._queue: asyncio.Queue[MessageT | None] = asyncio.Queue()  # None for its end

    def send(self, message: MessageT) -> None:
        """Send *message* in its turn."""
        if not self.is_closed:
            self._queue.put_nowait(message)

    def close(self) -> None:
        """Send the queued messages and nothing more."""
        self.is_closed = True
        self._queue.put_nowait(None)

    async def batches(self) -> AsyncIterator[list[MessageT]]:
        """Yield the messages to send as one, until it is closed."""
        is_over = False
        while not is_over:
            taken = [await self._queue.get()]
            while len(taken) < BATCH_MAX and not self._queue.empty():
                taken.append(self._queue.get_nowait())
            batch = [message for message in taken if message is not None]
            is_over = len(batch) < len(taken)
            if batch:
                yield batch


async def _hear(
    member: Member,
    came: AsyncIterator[bytes],
    codec: LinkCodec[MessageT],
    hearer: LinkHearer[MessageT],
    outbox: Outbox[Any],
) -> str:
    """Pass a link's messages to its hearer until it is over; return the reason. Unknown messages are logged once."""
    is_told = False
    try:
        async for data in came:
            for message in codec.decode(data):
                if outbox.is_closed:
                    break
                if message is not None:
                    hearer.heard(message)
                elif not is_told:
                    is_told = True
                    log.warning(
                        "a member sent fields that this version does not know; they are ignored",
                        member=member.id,
                        version=member.version,
                    )
    except DecodeError:  # the link is of no use
        return "a message cannot be read"
    return "the other side has closed it"


def _end(outbox: Outbox[Any], hearer: LinkHearer[Any], reason: str) -> None:
    """Note that a link is over, unless this side has closed it."""
    if not outbox.is_closed:
        outbox.close()
        hearer.lost(reason)


class GrpcLinks:
    """The links to other members: `PeerTransport`. Belongs to one event loop."""

    def __init__(self, own: MemberCertificate) -> None:
        self.own = own
        self._tasks: dict[asyncio.Task[None], Outbox[ToDispatcher]] = {}
        # A link is retried: each outage is logged once.
        self._unreached: set[str] = set()
        self._greetings: set[asyncio.Task[None]] = set()

    def connect(
        self, member: Member, hearer: LinkHearer[FromDispatcher]
    ) -> Outbox[ToDispatcher]:
        """Return a link, as `PeerTransport.connect`."""
        outbox: Outbox[ToDispatcher] = Outbox()
        task = asyncio.get_running_loop().create_task(self._run(member, hearer, outbox))
        self._tasks[task] = outbox
        task.add_done_callback(self._tasks.pop)
        return outbox

    def greet(self, member: Member) -> None:
        """Make *member* read its directories soon, as `PeerTransport.greet`: by a handshake (`GrpcDoor`)."""
        task = asyncio.get_running_loop().create_task(self._greet(member))
        self._greetings.add(task)
        task.add_done_callback(self._greetings.discard)

    def channel(self, member: Member, answer_bytes_max: int = -1) -> grpc.aio.Channel:
        """Return a channel to *member*, on which each side proves its identity. The caller closes it.

        answer_bytes_max: longer messages of the member are refused; -1 for no limit.
        """
        credentials = grpc.ssl_channel_credentials(
            root_certificates=member.certificate.encode(),
            private_key=self.own.key,
            certificate_chain=self.own.certificate,
        )
        options = dict(OPTIONS) | {
            "grpc.ssl_target_name_override": member.id,
            "grpc.max_receive_message_length": answer_bytes_max,
        }
        return grpc.aio.secure_channel(member.address, credentials, tuple(options.items()))

    async def stop(self) -> None:
        """Let closed links send their queues, including those about to open, and end all."""
        if closed := [task for task, outbox in self._tasks.items() if outbox.is_closed]:
            await asyncio.wait(closed, timeout=CONNECT_TIMEOUT_S)
        tasks = [*self._tasks, *self._greetings]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _greet(self, member: Member) -> None:
        async with self.channel(member) as channel:
            # A member that cannot be reached finds this one when it reads its directories next.
            with suppress(TimeoutError):
                async with asyncio.timeout(CONNECT_TIMEOUT_S):
                    await channel.channel_ready()

    async def _run(
        self, member: Member, hearer: LinkHearer[FromDispatcher], outbox: Outbox[ToDispatcher]
    ) -> None:
        async with self.channel(member) as channel:
            try:
                async with asyncio.timeout(CONNECT_TIMEOUT_S):
                    await channel.channel_ready()
                self._reached(member)
                link: grpc.aio.StreamStreamMultiCallable[list[ToDispatcher], bytes] = (
                    channel.stream_stream(
                        f"/{SERVICE}/Link",
                        request_serializer=TO_DISPATCHER.encode,
                        # Bytes, decoded in the loop's own turn, where an error can be logged.
                        response_deserializer=None,
                    )
                )
                call = link(outbox.batches(), metadata=((PROTOCOL_KEY, str(PROTOCOL)),))
                reason = await _hear(member, aiter(call), FROM_DISPATCHER, hearer, outbox)
            except TimeoutError:
                reason = f"no connection within {CONNECT_TIMEOUT_S:g} s"
                self._not_reached(member, reason)
            except grpc.aio.AioRpcError as error:
                reason = error.details() or error.code().name
        _end(outbox, hearer, f"member {member.id} at {member.address}: {reason}")

    def _reached(self, member: Member) -> None:
        if member.id in self._unreached:
            self._unreached.discard(member.id)
            log.info("a member is reached again", peer=member.id, address=member.address)

    def _not_reached(self, member: Member, reason: str) -> None:
        if member.id not in self._unreached:
            self._unreached.add(member.id)
            log.warning(
                "a member cannot be reached",
                peer=member.id,
                address=member.address,
                reason=reason,
            )


async def calling_member(context: grpc.aio.ServicerContext[Any, Any], fleet: Fleet) -> Member:
    """Return the member whose certificate a call shows; a call of any other process ends."""
    (pem, *_) = context.auth_context().get("x509_pem_cert") or [b""]
    member = fleet.trusts(pem.decode())
    if member is None:
        await context.abort(grpc.StatusCode.UNAUTHENTICATED, "no member of this fleet")
    return member


class GrpcDoor:
    """The service for the links of the members that *fleet* knows, behind *port*."""

    def __init__(self, own: MemberCertificate, port: GrpcPort, fleet: Fleet) -> None:
        self._own = own
        self._port = port
        self._loop = asyncio.get_running_loop()
        self._fleet = fleet
        self._trusted = TrustedCertificates(self._read_trusted)
        self._server = grpc.aio.server(options=(*OPTIONS, *SERVER_OPTIONS))
        link: grpc.RpcMethodHandler[Any, Any] = grpc.stream_stream_rpc_method_handler(
            self._link, response_serializer=FROM_DISPATCHER.encode
        )
        self.add({"Link": link})
        credentials = grpc.dynamic_ssl_server_credentials(
            self._configuration(self._trusted.answered),
            self._knocked,  # type: ignore[arg-type]  # the stubs do not know of None, for no change
            require_client_authentication=True,
        )
        self._server.add_secure_port(port.inner, credentials)

    def add(self, methods: dict[str, grpc.RpcMethodHandler[Any, Any]]) -> None:
        """Serve *methods* of the service as well, by their names; before the start."""
        handler = grpc.method_handlers_generic_handler(SERVICE, methods)
        self._server.add_generic_rpc_handlers((handler,))

    async def start(self) -> None:
        """Accept members from now on."""
        await self._server.start()

    async def stop(self) -> None:
        """Close the service and its links."""
        await self._server.stop(STOP_S)
        self._port.close()

    def _read_trusted(self) -> bytes:
        """Return the certificates to accept, according to the directories."""
        members = self._fleet.members().values()
        # Without any, gRPC would require no certificate from clients. Our own is harmless: no other process has its key.
        return b"".join(
            [self._own.certificate, *(m.certificate.encode() for m in members if m.certificate)]
        )

    def _configuration(self, trusted: bytes) -> grpc.ServerCertificateConfiguration:
        return grpc.ssl_server_certificate_configuration(
            [(self._own.key, self._own.certificate)], trusted
        )

    def _knocked(self) -> grpc.ServerCertificateConfiguration | None:
        """Return the certificates to accept at this handshake, None if they are unchanged; in a thread of gRPC's."""
        # The member may have come since the directory was read: the next try will show.
        self._loop.call_soon_threadsafe(self._fleet.look)
        trusted = self._trusted.changed()
        return None if trusted is None else self._configuration(trusted)

    async def _link(
        self,
        requests: AsyncIterator[bytes],
        context: grpc.aio.ServicerContext[bytes, list[FromDispatcher]],
    ) -> AsyncIterator[list[FromDispatcher]]:
        member = await calling_member(context, self._fleet)
        outbox: Outbox[FromDispatcher] = Outbox()
        hearer = self._fleet.accept(member, outbox)

        async def read() -> None:
            _end(outbox, hearer, await _hear(member, requests, TO_DISPATCHER, hearer, outbox))

        reading = self._loop.create_task(read())
        try:
            async for batch in outbox.batches():
                yield batch
        finally:
            reading.cancel()
            with suppress(asyncio.CancelledError):
                await reading
            _end(outbox, hearer, f"member {member.id}: the link is over")
