import ast
import asyncio
import socket
import ssl
from contextlib import asynccontextmanager
from unittest.mock import Mock, call

import pytest

from streamfrom.proxy import listening, net
from streamfrom.proxy.net import Link
from tests.cases import cases
from tests.proxy.certificates import write_certificate
from tests.proxy.fake_answers import until
from tests.virtual_loop import run_virtual


pytestmark = pytest.mark.usefixtures("calm")


class Owner:
    """Keeps what its link tells it."""

    def __init__(self, link):
        self.link = link
        self.got = bytearray()
        self.told = []

    def connection_made(self):
        self.told.append("connected")

    def data_received(self, data):
        self.got += data

    def connection_lost(self, error):
        self.told.append("lost")

    def resume_writing(self):
        self.told.append("writable")


@asynccontextmanager
async def pair():
    """An accepted link and the one that connected to it, as owners."""
    accepted = []

    def accept(link):
        accepted.append(Owner(link))
        return accepted[-1]

    bound = listening.bind_tcp("server.listen", "127.0.0.1", 0)
    listener = listening.Listener("test", bound, lambda: Link(accept), backlog=1)
    port = listener.sockets[0].getsockname()[1]
    connected = []

    def owner_of(link):
        connected.append(Owner(link))
        return connected[-1]

    await net.connect(owner_of, host="127.0.0.1", port=port, unix_socket=None, timeout_s=5)
    await until(lambda: accepted and accepted[0].told)
    try:
        yield accepted[0], connected[0]
    finally:
        accepted[0].link.abort()
        connected[0].link.abort()
        listener.close()
        await until(lambda: "lost" in accepted[0].told and "lost" in connected[0].told)


@pytest.fixture
def contexts(tmp_path):
    """The two sides of TLS."""
    certificate, key = write_certificate(tmp_path)
    serving = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    serving.load_cert_chain(certificate, key)
    asking = ssl.create_default_context(cafile=certificate)
    return serving, asking


async def test_bytes_go_both_ways_and_the_end_is_told_once():
    async with pair() as (server, client):
        client.link.write(b"question")
        await until(lambda: server.got == b"question")
        server.link.write(b"answer")
        server.link.close()
        await until(lambda: "lost" in client.told)
        assert client.got == b"answer"
    assert server.told == client.told == ["connected", "lost"]


def mocked():
    """A link on a transport that notes what it is told."""
    link, transport = Link(Owner), Mock()
    transport.get_extra_info.return_value = None
    link.connection_made(transport)
    return link, transport


@pytest.mark.skipif(not hasattr(socket, "TCP_USER_TIMEOUT"), reason="Linux has it")
async def test_a_server_that_confirms_nothing_is_given_up_when_keep_alive_would_and_a_slow_client_is_not(
    monkeypatch,
):
    sockets = []
    connection_made = Link.connection_made

    def made(link, transport):
        sockets.append(transport.get_extra_info("socket"))
        connection_made(link, transport)

    monkeypatch.setattr(Link, "connection_made", made)
    async with pair():
        option = socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT
        assert sorted(each.getsockopt(*option) for each in sockets) == [0, 120_000]


async def test_what_is_written_ahead_leaves_with_what_follows_or_with_the_turn_of_the_loop():
    link, transport = mocked()
    link.write_ahead(b"1")
    link.write_ahead(b"2")
    link.write(b"3")
    link.write_ahead(b"4")
    await asyncio.sleep(0)
    link.write_ahead(b"5")
    link.close()
    link.write_ahead(b"6")
    await asyncio.sleep(0)
    assert transport.mock_calls[-4:] == [
        call.write(b"123"),
        call.write(b"4"),
        call.write(b"5"),
        call.close(),
    ]


def test_what_may_wait_leaves_with_what_follows_or_when_its_time_is_over():
    async def writes():
        link, transport = mocked()
        link.write_ahead(b"1", 2)
        await asyncio.sleep(1)
        link.write(b"2")
        link.write_ahead(b"3", 2)
        await asyncio.sleep(3)
        return transport.write.mock_calls

    assert run_virtual(writes()) == [call(b"12"), call(b"3")]


async def test_what_is_written_to_a_closed_link_vanishes():
    async with pair() as (server, client):
        client.link.close()
        client.link.write(b"late")
        client.link.close()
        client.link.pause_reading()
        client.link.resume_reading()
        await until(lambda: "lost" in server.told)
        assert server.got == b""
        client.link.set_high_water(0)


@pytest.mark.parametrize("high_water", [None, 0])
async def test_a_peer_that_does_not_read_blocks_the_link_until_it_does(high_water):
    async with pair() as (server, client):
        if high_water is not None:
            server.link.set_high_water(high_water)
        client.link.pause_reading()
        client.link.pause_reading()
        writes = 0
        while not server.link.blocked:
            server.link.write(bytes(1 << 16))
            writes += 1
        # With a mark of nothing, any byte that waited before the last write would have blocked it then.
        assert writes > 1
        client.link.resume_reading()
        client.link.resume_reading()
        await until(lambda: "writable" in server.told)
        assert not server.link.blocked


@cases(peername=ast.literal_eval, peer=str, is_near=ast.literal_eval)
def test_only_this_machines_addresses_are_loopback(peername, peer, is_near):
    link, transport = Link(Owner), Mock()
    transport.get_extra_info = {"peername": peername}.get
    link.connection_made(transport)
    assert (link.peer, link.is_loopback) == (peer, is_near)


async def test_tls_begins_in_the_middle_and_what_was_written_waits_for_it(contexts):
    async with pair() as (server, client):
        client.link.write(b"plain.")
        await until(lambda: server.got == b"plain.")
        serving, asking = contexts
        server.link.start_tls(serving, server_side=True, hostname=None, early=b"")
        client.link.start_tls(asking, server_side=False, hostname="localhost", early=b"")
        client.link.write(b"first.")
        server.link.write(b"greeting.")
        client.link.write(b"second.")
        await until(lambda: server.got == b"plain.first.second.")
        cipher, version = server.link.tls
        assert cipher
        assert version.startswith("TLSv1.")
        await until(lambda: client.got == b"greeting.")
        client.link.write(b"")
        client.link.write(bytes(1 << 20))
        await until(lambda: len(server.got) > 1 << 20)


async def test_a_hello_that_came_early_is_not_lost_and_the_end_of_tls_is_that_of_the_link(
    contexts,
):
    serving, asking = contexts
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    hello = asking.wrap_bio(incoming, outgoing, server_hostname="localhost")
    with pytest.raises(ssl.SSLWantReadError):
        hello.do_handshake()
    async with pair() as (server, client):
        server.link.start_tls(serving, server_side=True, hostname=None, early=outgoing.read())
        await until(lambda: client.got)
        incoming.write(bytes(client.got))
        hello.do_handshake()
        hello.write(b"secret")
        client.link.write(outgoing.read())
        await until(lambda: server.got == b"secret")
        with pytest.raises(ssl.SSLWantReadError):
            hello.unwrap()
        client.link.write(outgoing.read())
        await until(lambda: "lost" in server.told)
        assert server.got == b"secret"


@pytest.mark.parametrize("is_noise", [True, False])
async def test_noise_instead_of_tls_and_a_certificate_of_another_host_end_the_link(
    contexts, is_noise
):
    async with pair() as (server, client):
        serving, asking = contexts
        server.link.start_tls(serving, server_side=True, hostname=None, early=b"")
        if not is_noise:
            client.link.start_tls(asking, server_side=False, hostname="example.com", early=b"")
        client.link.write(b"\x03SELECT 1 in the clear")
        client.link.write(b"and more")
        await until(lambda: "lost" in (server if is_noise else client).told)
        assert server.got == b""


@pytest.mark.parametrize("tls", [True, False])
async def test_what_is_written_is_packed_before_it_is_encrypted(tls, contexts):
    async with pair() as (server, client):
        if tls:
            serving, asking = contexts
            server.link.start_tls(serving, server_side=True, hostname=None, early=b"")
            client.link.start_tls(asking, server_side=False, hostname="localhost", early=b"")
        server.link.write(b"plain ")
        server.link.start_packing(bytes.upper)
        server.link.write(b"packed")
        await until(lambda: client.got == b"plain PACKED")


async def test_who_has_much_packed_goes_on_in_the_next_turn():
    async with pair() as (server, client):
        server.link.start_packing(lambda data: data[:1])
        server.link.write(bytes(64 << 10))
        assert not server.link.blocked
        server.link.write(bytes(65 << 10))
        assert server.link.blocked
        assert "writable" not in server.told
        await until(lambda: "writable" in server.told)
        assert not server.link.blocked
        await until(lambda: len(client.got) == 2)


async def test_what_is_packed_waits_for_a_peer_that_does_not_read():
    async with pair() as (server, client):
        client.link.pause_reading()
        server.link.start_packing(bytes)
        while not server.link.blocked:
            server.link.write(bytes(65 << 10))
            # The turn of its own is over: what still blocks it is that nobody reads.
            await asyncio.sleep(0)
            await asyncio.sleep(0)
        client.link.resume_reading()
        await until(lambda: not server.link.blocked)


async def test_a_link_that_passes_its_turn_reads_on_unless_it_is_paused_and_calls_once():
    link, transport = mocked()
    link.pass_turn()
    assert transport.method_calls[-1] == call.pause_reading()
    await asyncio.sleep(0)
    assert transport.method_calls[-1] == call.resume_reading()
    link.pass_turn()
    link.pause_reading()
    await asyncio.sleep(0)
    assert transport.method_calls[-1] == call.pause_reading()
    states = [link.is_paused]
    resumed = link.on_resumed = Mock()
    link.resume_reading()
    assert transport.method_calls[-1] == call.resume_reading()
    states.append(link.is_paused)
    assert states == [True, False]
    await asyncio.sleep(0)
    link.resume_reading()
    await asyncio.sleep(0)
    resumed.assert_called_once_with()
