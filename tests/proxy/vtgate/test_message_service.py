import itertools

import grpc
import pytest
from structlog.testing import capture_logs

from streamfrom.proxy.config.file import TlsSettings
from streamfrom.proxy.sessions.session import Session
from streamfrom.proxy.tls import ServerTls
from streamfrom.proxy.vtgate import vtgateservice_pb2 as pb
from streamfrom.proxy.vtgate.message_service import MessageService
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
