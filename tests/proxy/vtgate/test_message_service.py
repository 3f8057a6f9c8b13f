import itertools

import grpc
import pytest
from hypothesis import given, strategies as st
from structlog.testing import capture_logs

from streamfrom.proxy.config.file import TlsSettings
from streamfrom.proxy.errors import BadMessageId, WireError
from streamfrom.proxy.sessions.session import Session
from streamfrom.proxy.tls import ServerTls
from streamfrom.proxy.vtgate import vtgateservice_pb2 as pb
from streamfrom.proxy.vtgate.message_service import MessageService, field_of, literals, rows_of
from streamfrom.proxy.wire.constants import (
    BINARY_CHARSET,
    UTF8MB4_CHARSET,
    FieldFlag,
    FieldType,
)
from streamfrom.proxy.wire.resultset import ColumnDefinition, column_definition, text_row
from streamfrom.sqlparse_ext.cache import StatementCache
from tests.cases import cases
from tests.proxy.certificates import issued, write_certificate
from tests.proxy.fake_answers import Ok
from tests.proxy.rigs import add_message_table, running_proxy


Call = grpc.aio.UnaryUnaryMultiCallable[bytes, bytes]


@pytest.fixture
async def proxy(server):
    add_message_table(server)
    async with running_proxy(server) as made:
        yield made


async def service_of(proxy, tls=None, bytes_max=4096):
    services, numbers = proxy.app.services, itertools.count(1 << 20)
    made = MessageService(
        lambda link: Session(services, link, next(numbers)),
        services.registry.keyspace_of,
        tls,
        bytes_max,
        shares_port=False,
    )
    await made.start("127.0.0.1", 0)
    return made


def ack_of(channel):
    return channel.unary_unary(
        "/vtgateservice.Vitess/MessageAck",
        pb.MessageAckRequest.SerializeToString,
        pb.MessageAckResponse.FromString,
    )


ONE = pb.MessageAckRequest(name="msg", ids=[pb.Value(type=pb.INT64, value=b"1")])


@pytest.mark.parametrize("method", ["MessageStream", "MessageAck"])
async def test_a_request_that_cannot_be_read_is_the_callers_fault(proxy, method):
    service = await service_of(proxy)
    with capture_logs() as logs:
        async with grpc.aio.insecure_channel(f"127.0.0.1:{service.port}") as channel:
            call: Call = channel.unary_unary(f"/vtgateservice.Vitess/{method}")
            with pytest.raises(grpc.aio.AioRpcError) as refused:
                await call(b"\xff\xff\xff")
    assert refused.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert refused.value.details() == f"the request is no vtgateservice.{method}Request"
    assert not [each for each in logs if each["log_level"] == "error"]
    await service.stop()


async def test_with_certificates_it_speaks_tls_alone_and_asks_for_one_where_the_wire_does(
    server, proxy, tmp_path
):
    server.on("UPDATE `msg`", Ok(affected_rows=1))
    ca, _ = issued("ca").write(tmp_path, "ca")
    cert, key = write_certificate(tmp_path)
    tls = ServerTls(TlsSettings(cert, key, require=True, client_ca=None))
    service = await service_of(proxy, tls)
    trusted = grpc.ssl_channel_credentials(tls.contents["cert"])
    options = [("grpc.ssl_target_name_override", "localhost")]
    address = f"127.0.0.1:{service.port}"
    async with grpc.aio.secure_channel(address, trusted, options) as channel:
        assert (await ack_of(channel)(ONE)).result.rows_affected == 1
    async with grpc.aio.insecure_channel(address) as channel:
        with pytest.raises(grpc.aio.AioRpcError):
            await ack_of(channel)(ONE)
    await service.stop()

    asks = ServerTls(TlsSettings(cert, key, require=True, client_ca=ca))
    service = await service_of(proxy, asks)
    async with grpc.aio.secure_channel(
        f"127.0.0.1:{service.port}", trusted, options
    ) as channel:
        with pytest.raises(grpc.aio.AioRpcError):
            await ack_of(channel)(ONE)
    await service.stop()


@cases(column_type=FieldType.__getitem__, told=pb.Type.Value, says=str)
def test_a_column_has_the_type_that_vitess_gives_it(column_type, told, says):
    charset = {"binary": BINARY_CHARSET}.get(says, UTF8MB4_CHARSET)
    flags = getattr(FieldFlag, str(says), 0)
    column = ColumnDefinition("c", type=column_type, charset=charset, flags=flags)
    assert field_of(column_definition(column)).type == told


@given(st.lists(st.lists(st.none() | st.binary(max_size=300), min_size=3, max_size=3)))
def test_rows_hold_what_they_held(rows):
    found = []
    for row in rows_of(map(text_row, rows), 3):
        values, place = [], 0
        for length in row.lengths:
            values.append(None if length < 0 else row.values[place : place + length])
            place += max(length, 0)
        assert place == len(row.values)
        found.append(values)
    assert found == rows


def test_a_row_of_another_width_is_no_row():
    with pytest.raises(WireError):
        rows_of([text_row([b"1"])], 2)


@cases(kind=pb.Type.Value, value=str.encode)
def test_what_no_message_has_as_its_id_is_refused(kind, value):
    with pytest.raises(BadMessageId) as refused:
        literals([pb.Value(type=kind, value=value)])
    assert refused.value.wire_code() == (1210, "HY000")


@given(st.lists(st.tuples(st.sampled_from([pb.INT64, pb.VARCHAR, pb.VARBINARY]), st.binary())))
def test_no_value_ends_the_list(values):
    try:
        listed = literals([pb.Value(type=kind, value=value) for kind, value in values])
    except BadMessageId:
        return
    text = b"UPDATE t SET a = 1 WHERE id IN (0," + (listed or b"1") + b") AND b = 2"
    statement = StatementCache().get(text)
    assert "b" in {str(name) for name in statement.shape.conditions}
