import asyncio
import errno
import socket
import stat
from contextlib import asynccontextmanager, suppress
from unittest.mock import Mock

import pytest
from structlog.testing import capture_logs

from streamfrom.proxy import listening
from streamfrom.proxy.net import Link
from tests.proxy.fake_answers import until


def owner(link):
    made = Mock()
    made.connection_made = lambda: link.write(b"hello")
    return made


async def greeting(port):
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    said = await reader.readexactly(5)
    writer.close()
    return said


def listener_of(*bound):
    return listening.Listener("test", bound, lambda: Link(owner), backlog=1)


async def test_several_share_a_port_that_is_held():
    (held,) = listening.bind_tcp("server.listen", "127.0.0.1", 0, for_others=True)
    port = held.getsockname()[1]
    listeners = [
        listener_of(*listening.bind_tcp("server.listen", "127.0.0.1", port, shares_port=True))
        for _ in range(2)
    ]
    assert await greeting(port) == b"hello"
    for listener in listeners:
        listener.close()
    with pytest.raises(ConnectionRefusedError):
        await greeting(port)
    held.close()


def test_a_port_is_held_on_each_address_of_a_name_and_on_no_other_machine():
    held = listening.bind_tcp("server.listen", "localhost", 0, for_others=True)
    assert len({each.getsockname()[1] for each in held}) == 1
    for each in held:
        each.close()
    with pytest.raises(
        OSError, match=r"^server\.listen: cannot listen on 192\.0\.2\.1 port 0: "
    ):
        listening.bind_tcp("server.listen", "192.0.2.1", 0, for_others=True)
    with pytest.raises(OSError, match=r"cannot listen on no\.host\.invalid port 7: "):
        listening.bind_tcp("server.listen", "no.host.invalid", 7)


async def test_a_unix_socket_replaces_a_stale_one_and_has_its_mode(tmp_path):
    path = tmp_path / "s"
    with socket.socket(socket.AF_UNIX) as stale:
        stale.bind(str(path))
    bound = listening.bind_unix(str(path), mode=0o640)
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    with pytest.raises(ConnectionRefusedError):
        await asyncio.open_unix_connection(path)
    listener = listener_of(bound.socket)
    reader, writer = await asyncio.open_unix_connection(path)
    assert await reader.readexactly(5) == b"hello"
    writer.close()
    with pytest.raises(
        OSError, match=f"server.unix_socket: cannot listen on {path}: .* in use"
    ):
        listening.bind_unix(str(path), mode=0o600)
    listener.close()
    bound.remove()
    assert not path.exists()
    bound.remove()


def test_a_unix_socket_leaves_every_other_file_alone(tmp_path):
    path = tmp_path / "s"
    path.write_text("precious")
    with pytest.raises(OSError, match=f"cannot listen on {path}: .* in use"):
        listening.bind_unix(str(path), mode=0o600)
    path.rename(tmp_path / "kept")
    bound = listening.bind_unix(str(path), mode=0o600)
    bound.socket.close()
    path.unlink()
    (tmp_path / "kept").rename(path)
    bound.remove()
    assert path.read_text() == "precious"
    with pytest.raises(OSError, match=f"cannot listen on {path}/s: "):
        listening.bind_unix(f"{path}/s", mode=0o600)


@asynccontextmanager
async def limited(limits, **options):
    """A port of a protocol that answers each piece with what it got."""

    class Echo(asyncio.Protocol):
        def connection_made(self, transport):
            self.transport = transport

        def data_received(self, data):
            self.transport.write(data)

    listener = listening.Listener(
        "test",
        listening.bind_tcp("server.listen", "127.0.0.1", 0),
        Echo,
        backlog=16,
        limits=limits,
        **options,
    )
    yield listener, listener.sockets[0].getsockname()[1]
    listener.close()


async def ends(reader):
    """Return once the connection has ended."""
    with suppress(ConnectionError):
        assert await reader.read() == b""


@pytest.mark.parametrize("limits", [(2, 9), (9, 2)])
async def test_more_connections_than_the_limit_are_turned_away_with_a_line_in_the_log(limits):
    with capture_logs() as logs:
        async with limited(listening.PortLimits(*limits)) as (_, port):
            first = [await asyncio.open_connection("127.0.0.1", port) for _ in range(2)]
            for reader, writer in first:
                writer.write(b"x")
                assert await reader.readexactly(1) == b"x"
            for _ in range(5):
                reader, writer = await asyncio.open_connection("127.0.0.1", port)
                await ends(reader)
                writer.close()
            first[0][1].close()
            while True:  # its place is free once the end is known
                reader, writer = await asyncio.open_connection("127.0.0.1", port)
                with suppress(ConnectionError):
                    writer.write(b"x")
                    if await reader.read(1) == b"x":
                        break
                writer.close()
            writer.close()
            first[1][1].close()
    told = [each for each in logs if each["event"] == "connections turned away"]
    assert [(each["port"], each["address"], each["count"]) for each in told] == [
        ("test", "127.0.0.1", 1)
    ]


async def test_who_says_nothing_is_disconnected(monkeypatch):
    monkeypatch.setattr(listening, "FIRST_BYTES_S", 0.01)
    async with limited(listening.PortLimits(9, 9)) as (_, port):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        await ends(reader)
        writer.close()


@pytest.mark.parametrize("piece", [b"hello", b"\r", b"\n\r"])
async def test_who_does_not_finish_its_opening_is_disconnected(monkeypatch, piece):
    monkeypatch.setattr(listening, "FIRST_BYTES_S", 0.05)
    limits = listening.PortLimits(9, 9)
    async with limited(limits, opening=b"\r\n\r") as (_, port):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(piece)
        assert await reader.readexactly(len(piece)) == piece
        await ends(reader)
        writer.close()


async def test_who_has_finished_its_opening_may_be_silent(monkeypatch):
    loop = asyncio.get_running_loop()
    async with limited(listening.PortLimits(9, 9), opening=b"\r\n\r") as (_, port):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for one in (b"\r", b"\n\r"):
            writer.write(one)
            assert await reader.readexactly(len(one)) == one
        now_s = loop.time() + 2 * listening.FIRST_BYTES_S
        monkeypatch.setattr(loop, "time", lambda: now_s)
        await asyncio.sleep(0)
        writer.write(b"go on")
        assert await reader.readexactly(5) == b"go on"
        writer.close()


async def test_without_a_descriptor_the_log_says_so_and_clients_wait(monkeypatch):
    monkeypatch.setattr(listening, "_PAUSE_S", 0.01)
    is_full = True

    class Full(socket.socket):
        def accept(self):
            if is_full:
                raise OSError(errno.EMFILE, "Too many open files")
            return super().accept()

    (bound,) = listening.bind_tcp("server.listen", "127.0.0.1", 0)
    with capture_logs() as logs:
        listener = listening.Listener(
            "test", [Full(fileno=bound.detach())], lambda: Link(owner), backlog=16
        )
        coming = asyncio.ensure_future(greeting(listener.sockets[0].getsockname()[1]))
        await until(lambda: bool(logs))
        is_full = False
        assert await coming == b"hello"
        listener.close()
    assert [(each["event"], each["port"], each["log_level"]) for each in logs] == [
        ("no file descriptor left for a client", "test", "warning")
    ]
