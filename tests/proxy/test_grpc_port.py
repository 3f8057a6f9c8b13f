"""A gRPC server behind its port, tried by raw HTTP/2: connections that never make a call count as well."""

import asyncio
import tempfile
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import grpc

from streamfrom.proxy.grpc_port import GrpcPort
from tests.proxy.fake_answers import until


# A client's first bytes: the preface, and SETTINGS without any.
HELLO = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes([0, 0, 0, 4, 0, 0, 0, 0, 0])
ECHO = "/test/Echo"


@asynccontextmanager
async def serving():
    """Yield a port, and who has called its one method: as gRPC knows it, and its host."""
    server, callers = grpc.aio.server(), []
    port = GrpcPort("test", "127.0.0.1", 0)

    async def echo(data, context):
        callers.append((context.peer(), port.host_of(context.peer())))
        return data

    method: grpc.RpcMethodHandler[Any, Any] = grpc.unary_unary_rpc_method_handler(echo)
    server.add_generic_rpc_handlers(
        (grpc.method_handlers_generic_handler("test", {"Echo": method}),)
    )
    server.add_insecure_port(port.inner)
    await server.start()
    yield port, callers
    await server.stop(0)
    port.close()


async def served(port, host):
    """Return a connection from *host* that gRPC has answered, None if it was turned away."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port.port, local_addr=(host, 0))
    writer.write(HELLO)
    with suppress(ConnectionError):
        if await reader.read(1):
            return reader, writer
    writer.close()
    return None


async def test_a_call_comes_from_its_clients_host_and_large_messages_pass_both_ways():
    data = bytes(3 << 20)
    async with (
        serving() as (port, callers),
        grpc.aio.insecure_channel(f"127.0.0.1:{port.port}") as channel,
    ):
        call: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes] = channel.unary_unary(ECHO)
        assert await call(data) == data
    assert [host for _, host in callers] == ["127.0.0.1"]


async def test_a_server_that_could_not_be_started_is_started_by_a_later_connection(caplog):
    faults = [RuntimeError("no memory")]

    async def opens():
        if faults:
            raise faults.pop()

    async with serving() as (port, _):
        port.opens = opens
        assert await served(port, "127.0.0.1") is None
        again = await served(port, "127.0.0.1")
        assert again is not None
        again[1].close()


async def test_the_end_of_either_side_is_that_of_the_other():
    async with serving() as (port, callers):
        async with grpc.aio.insecure_channel(f"127.0.0.1:{port.port}") as channel:
            call: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes] = channel.unary_unary(ECHO)
            await call(b"x")
        await until(lambda: port.host_of(callers[0][0]) == "")
        reader, writer = await served(port, "127.0.0.1")
    with suppress(ConnectionError):
        while await reader.read(1 << 10):
            pass
    writer.close()
    assert not Path(port.inner.removeprefix("unix:")).parent.exists()


async def test_a_temporary_folder_with_a_long_name_does_not_keep_it_from_listening(
    tmp_path, monkeypatch
):
    folder = tmp_path / ("long" * 30)
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    async with serving() as (port, _):
        served_one = await served(port, "127.0.0.1")
        assert served_one is not None
        served_one[1].close()
    assert list(folder.iterdir()) == []
