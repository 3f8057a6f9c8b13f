"""`[grpc] listen`: MessageStream and MessageAck for clients of Vitess 5, with health and reflection.

Each call is a separate session (`inner_client`): it logs in with the call's metadata, `username` and `password`, as
sent by Vitess's static authentication, and ends with the call.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from typing import TYPE_CHECKING, Any, Final, TypeVar

import grpc
import grpc.aio
from google.protobuf.message import DecodeError
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection

from streamfrom.proxy.errors import BackendError, BadMessageId, WireError
from streamfrom.proxy.fairness import Slices
from streamfrom.proxy.grpc_port import SERVER_OPTIONS, GrpcPort
from streamfrom.proxy.net import is_loopback
from streamfrom.proxy.vtgate import vtgateservice_pb2 as pb
from streamfrom.proxy.vtgate.inner_client import InnerClient
from streamfrom.proxy.wire.constants import BINARY_CHARSET, FieldFlag, FieldType
from streamfrom.proxy.wire.resultset import parse_column_definition, parse_text_row
from streamfrom.sqlparse_ext.text.identifiers import quote_identifier


if TYPE_CHECKING:
    from streamfrom.proxy.tls import ServerTls
    from streamfrom.proxy.vtgate.inner_client import Accept


RequestT = TypeVar("RequestT", pb.MessageStreamRequest, pb.MessageAckRequest)

SERVICE: Final = "vtgateservice.Vitess"
# gRPC's own limit, some 300,000 ids. A request is parsed in one piece, which takes 8 ms per MiB.
REQUEST_BYTES_MAX: Final = 4 << 20
# For a connection without calls.
IDLE_MS: Final = 60_000
# Takes a third of a millisecond.
IDS_AT_ONCE: Final = 256
# After the drain no client has a session any longer; only replies may still be on their way.
STOP_S: Final = 0.5

# gRPC's codes for MySQL's errors, as Vitess returns them; all others are UNKNOWN.
_STATUS: Final = {
    code: status
    for status, codes in {
        grpc.StatusCode.ABORTED: (1317,),
        grpc.StatusCode.INVALID_ARGUMENT: (1064, 1210),
        grpc.StatusCode.NOT_FOUND: (1049, 1146),
        grpc.StatusCode.PERMISSION_DENIED: (1044, 1130, 1142, 1143, 1227),
        grpc.StatusCode.RESOURCE_EXHAUSTED: (1040, 1203, 1226),
        grpc.StatusCode.UNAUTHENTICATED: (1045,),
        grpc.StatusCode.UNAVAILABLE: (1053, 2013),
    }.items()
    for code in codes
}


class MessageService:
    """One listener for gRPC, with TLS if the MySQL port has it.

    accept: makes a session of a link.
    keyspace_of: the one keyspace that has a queue of a name, None if there is none.
    tls: the TLS of `[server.tls]`; None speaks in the clear, to clients on this machine alone.
    message_bytes_max: a longer request is refused, as is one longer than REQUEST_BYTES_MAX.
    shares_port: other processes of this proxy listen there as well.
    """

    def __init__(
        self,
        accept: Accept,
        keyspace_of: Callable[[str], str | None],
        tls: ServerTls | None,
        message_bytes_max: int,
        *,
        shares_port: bool,
    ) -> None:
        self._accept = accept
        self._keyspace_of = keyspace_of
        self._tls = tls
        self._shares_port = shares_port
        self._port: GrpcPort | None = None
        self._server = grpc.aio.server(
            options=(
                ("grpc.max_receive_message_length", min(message_bytes_max, REQUEST_BYTES_MAX)),
                # A row may be as long as a packet of the database.
                ("grpc.max_send_message_length", -1),
                # Only keep-alive detects a client that lost power, as on the wire.
                ("grpc.keepalive_time_ms", 60_000),
                ("grpc.keepalive_timeout_ms", 20_000),
                ("grpc.max_connection_idle_ms", IDLE_MS),
                *SERVER_OPTIONS,
            )
        )
        self._health = health.aio.HealthServicer()
        health_pb2_grpc.add_HealthServicer_to_server(self._health, self._server)
        # The methods parse their requests, so that a malformed one is reported as the caller's error, not as ours.
        handlers: dict[str, grpc.RpcMethodHandler[Any, Any]] = {
            "MessageStream": grpc.unary_stream_rpc_method_handler(
                self._message_stream,
                response_serializer=pb.MessageStreamResponse.SerializeToString,
            ),
            "MessageAck": grpc.unary_unary_rpc_method_handler(
                self._message_ack, response_serializer=pb.MessageAckResponse.SerializeToString
            ),
        }
        self._server.add_generic_rpc_handlers(
            (grpc.method_handlers_generic_handler(SERVICE, handlers),)
        )
        names = (SERVICE, health.SERVICE_NAME, reflection.SERVICE_NAME)
        reflection.enable_server_reflection(names, self._server)

    @property
    def port(self) -> int:
        """The number of the port; 0 before the start."""
        return 0 if self._port is None else self._port.port

    async def start(self, host: str, port: int) -> None:
        """Listen. Raises OSError."""
        self._port = GrpcPort("grpc", host, port, shares_port=self._shares_port)
        if self._tls is None:
            self._server.add_insecure_port(self._port.inner)
        else:
            self._server.add_secure_port(self._port.inner, _credentials(self._tls))
        await self._server.start()
        for name in ("", SERVICE):
            await self._health.set(name, health_pb2.HealthCheckResponse.SERVING)

    async def drain(self) -> None:
        """Report in the health service that no new client is served."""
        await self._health.enter_graceful_shutdown()

    async def stop(self) -> None:
        """Close the listener and the remaining calls."""
        await self._server.stop(STOP_S)
        if self._port is not None:
            self._port.close()

    async def _message_stream(
        self, data: bytes, context: grpc.aio.ServicerContext[Any, Any]
    ) -> None:
        try:
            request = await _read(pb.MessageStreamRequest, data, context)
            # Vitess clients expect no end: without a deadline they wait forever, as a STREAM does.
            statement = b"STREAM * FROM " + quote_identifier(request.name).encode()
            with closing(await self._log_in(context, _target(request))) as client:
                async for rows in client.rows(statement):
                    columns = client.columns
                    result = (
                        pb.QueryResult(rows=rows_of(rows, len(columns)))
                        if rows
                        else pb.QueryResult(fields=list(map(field_of, columns)))
                    )
                    await context.write(pb.MessageStreamResponse(result=result))
        except (BackendError, WireError) as error:
            await _abort(context, error)
        except grpc.aio.InternalError:
            # The client left while a reply was on its way: the call is over.
            return

    async def _message_ack(
        self, data: bytes, context: grpc.aio.ServicerContext[Any, Any]
    ) -> pb.MessageAckResponse:
        acked = 0
        try:
            request = await _read(pb.MessageAckRequest, data, context)
            # An UPDATE needs a database; a STREAM finds its own.
            keyspace = request.keyspace or self._keyspace_of(request.name) or ""
            with closing(await self._log_in(context, keyspace)) as client:
                ids = await literal_list(request.ids)
                if ids:
                    table = quote_identifier(request.name).encode()
                    await _check_ids(client, table, request.ids)
                    acks = b"UPDATE %b SET time_acked = NOW() WHERE id IN (%b)" % (table, ids)
                    acked = (await client.run(acks)).affected_rows
        except (BackendError, BadMessageId, WireError) as error:
            await _abort(context, error)
        return pb.MessageAckResponse(result=pb.QueryResult(rows_affected=acked))

    async def _log_in(
        self, context: grpc.aio.ServicerContext[Any, Any], database: str
    ) -> InnerClient:
        """Return a session for a call. Raises BackendError."""
        assert self._port is not None
        host = self._port.host_of(context.peer())
        if "\0" in database:
            # A NUL would end the name in the login, and the rest would be parsed as another field.
            await context.abort(
                grpc.StatusCode.INVALID_ARGUMENT, "a keyspace's name has no NUL character"
            )
        if self._tls is None and not is_loopback(host):
            # As on the status page: this password travels in clear text.
            await context.abort(
                grpc.StatusCode.UNAUTHENTICATED,
                "a password from another machine takes TLS: see [server.tls]",
            )
        metadata = dict(context.invocation_metadata() or ())
        user, password = (str(metadata.get(key, "")) for key in ("username", "password"))
        return await InnerClient.open(self._accept, host, user or "root", password, database)


async def _read(
    kind: type[RequestT], data: bytes, context: grpc.aio.ServicerContext[Any, Any]
) -> RequestT:
    """Return the parsed request; end the call if it is malformed."""
    try:
        return kind.FromString(data)
    except DecodeError:
        await context.abort(
            grpc.StatusCode.INVALID_ARGUMENT, f"the request is no {kind.DESCRIPTOR.full_name}"
        )


async def _check_ids(client: InnerClient, table: bytes, ids: Sequence[pb.Value]) -> None:
    """Raise BadMessageId for a text that is not a number if the table's ids are numbers.

    A server would use the number at the beginning of the text and acknowledge another message.
    """
    texts = [value for value in ids if is_no_number(value)]
    if not texts:
        return
    async for _ in client.rows(b"SELECT id FROM %b LIMIT 0" % table):
        pass
    if client.columns and field_of(client.columns[0]).type in _WHOLE_NUMBERS:
        kind = pb.Type.Name(texts[0].type)
        raise BadMessageId(kind, texts[0].value, "a whole number, as those of this table")


async def literal_list(ids: Sequence[pb.Value]) -> bytes:
    """Return ids as `literals`, in slices because there may be hundreds of thousands."""
    slices = Slices()
    parts = []
    for at in range(0, len(ids), IDS_AT_ONCE):
        parts.append(literals(ids[at : at + IDS_AT_ONCE]))
        await slices.breathe()
    return b",".join(parts)


def _credentials(tls: ServerTls) -> grpc.ServerCredentials:
    files = tls.contents
    return grpc.ssl_server_credentials(
        [(files["key"], files["cert"])],
        root_certificates=files.get("client_ca"),
        require_client_auth=tls.wants_certificate,
    )


def _target(request: pb.MessageStreamRequest) -> str:
    """Return the target for USE: the keyspace, or the shard, of a request."""
    shard = request.shard
    if not shard and request.HasField("key_range"):
        shard = f"{request.key_range.start.hex()}-{request.key_range.end.hex()}"
    return f"{request.keyspace}:{shard}" if shard and shard != "-" else request.keyspace


async def _abort(
    context: grpc.aio.ServicerContext[Any, Any], error: BackendError | BadMessageId | WireError
) -> None:
    """End a call with an error in Vitess's wording: its clients parse code and state from the text."""
    code, state = error.wire_code()
    status = _STATUS.get(code, grpc.StatusCode.UNKNOWN)
    await context.abort(status, f"{error} (errno {code}) (sqlstate {state})")


# https://github.com/vitessio/vitess/blob/v7.0.0/go/sqltypes/type.go: by the type of the wire, then by its flags.
# Many have one name on both sides.
_TYPES: Final = {
    **{
        kind: pb.Type.Value(kind.name)
        for kind in FieldType
        if kind.name in pb.Type.DESCRIPTOR.values_by_name
    },
    FieldType.TINY: pb.INT8,
    FieldType.SHORT: pb.INT16,
    FieldType.LONG: pb.INT32,
    FieldType.FLOAT: pb.FLOAT32,
    FieldType.DOUBLE: pb.FLOAT64,
    FieldType.NULL: pb.NULL_TYPE,
    FieldType.LONGLONG: pb.INT64,
    FieldType.NEWDECIMAL: pb.DECIMAL,
    **dict.fromkeys(
        (FieldType.TINY_BLOB, FieldType.MEDIUM_BLOB, FieldType.LONG_BLOB, FieldType.BLOB),
        pb.TEXT,
    ),
    FieldType.VAR_STRING: pb.VARCHAR,
    FieldType.STRING: pb.CHAR,
    FieldType.VECTOR: pb.BLOB,  # Vitess 5 had none
}
_UNSIGNED: Final = {
    pb.INT8: pb.UINT8,
    pb.INT16: pb.UINT16,
    pb.INT24: pb.UINT24,
    pb.INT32: pb.UINT32,
    pb.INT64: pb.UINT64,
}
_OF_BYTES: Final = {pb.TEXT: pb.BLOB, pb.VARCHAR: pb.VARBINARY, pb.CHAR: pb.BINARY}
_WHOLE_NUMBERS: Final = frozenset({*_UNSIGNED, *_UNSIGNED.values(), pb.YEAR})
_TEXTS: Final = frozenset(_OF_BYTES)


def field_of(definition: bytes) -> pb.Field:
    """Return the field for the payload of a column definition. Raises WireError."""
    column = parse_column_definition(definition)
    kind = _TYPES.get(FieldType(column.type), pb.VARBINARY)
    if column.flags & FieldFlag.UNSIGNED:
        kind = _UNSIGNED.get(kind, kind)
    if column.charset == BINARY_CHARSET:
        kind = _OF_BYTES.get(kind, kind)
    if column.flags & FieldFlag.ENUM:
        kind = pb.ENUM
    elif column.flags & FieldFlag.SET:
        kind = pb.SET
    return pb.Field(
        name=column.name,
        type=kind,
        table=column.table,
        org_table=column.org_table,
        database=column.schema,
        org_name=column.org_name,
        column_length=column.length,
        charset=column.charset,
        decimals=column.decimals,
        flags=column.flags,
    )


def rows_of(payloads: Iterable[bytes], columns: int) -> list[pb.Row]:
    """Return the messages for text rows with this number of *columns*. Raises WireError."""
    found = []
    for payload in payloads:
        values = parse_text_row(payload, columns)
        found.append(
            pb.Row(
                lengths=[-1 if value is None else len(value) for value in values],
                values=b"".join(value for value in values if value is not None),
            )
        )
    return found


def literals(ids: Sequence[pb.Value]) -> bytes:
    """Return ids as a list of SQL literals, quoted so that no value can end its literal early.

    Raises BadMessageId if one is not a whole number, text or bytes, or does not fit its type.
    """
    return b",".join(map(_literal, ids))


def is_no_number(value: pb.Value) -> bool:
    """Return whether an id is text, or bytes, that a server could use as a number only by cutting it."""
    digits = value.value.removeprefix(b"-")
    return value.type not in _WHOLE_NUMBERS and not (digits.isdigit() and len(digits) <= 20)


def _literal(value: pb.Value) -> bytes:
    if value.type in _WHOLE_NUMBERS:
        digits = value.value.removeprefix(b"-")
        # isdigit of bytes accepts ASCII digits only; a BIGINT UNSIGNED has at most 20 of them.
        if digits.isdigit() and len(digits) <= 20:
            return value.value
    elif value.type in _TEXTS:
        return b"_utf8mb4 X'" + value.value.hex().encode() + b"'"
    elif value.type in _OF_BYTES.values():
        return b"X'" + value.value.hex().encode() + b"'"
    is_known = value.type in pb.Type.values()
    raise BadMessageId(pb.Type.Name(value.type) if is_known else "another type", value.value)
