import asyncio
import socket
import stat

import pytest

from streamfrom.proxy import listening
from streamfrom.proxy.net import Link


class Owner:
    """Who has a link that came."""

    def __init__(self, link: Link) -> None:
        self.link = link

    def connection_made(self):
        self.link.write(b"hello")

    def data_received(self, data):
        pass

    def connection_lost(self, error):
        pass

    def resume_writing(self):
        pass


async def greeting(port):
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    said = await reader.readexactly(5)
    writer.close()
    return said


async def test_several_share_a_port_that_is_held():
    (held,) = await listening.hold_port("127.0.0.1", 0)
    port = held.getsockname()[1]
    listeners = [
        await listening.listen_tcp(Owner, "127.0.0.1", port, backlog=1, shares_port=True)
        for _ in range(2)
    ]
    assert await greeting(port) == b"hello"
    for listener in listeners:
        listener.close()
    with pytest.raises(ConnectionRefusedError):
        await greeting(port)
    held.close()


async def test_a_port_is_held_on_each_address_of_a_name():
    held = await listening.hold_port("localhost", 0)
    assert len({each.getsockname()[1] for each in held}) == 1
    for each in held:
        each.close()


async def test_a_port_that_others_share_is_not_ours():
    with socket.create_server(("127.0.0.1", 0), reuse_port=True) as other:
        port = other.getsockname()[1]
        with pytest.raises(OSError, match=f"cannot listen on 127.0.0.1 port {port}: "):
            await listening.hold_port("127.0.0.1", port)


async def test_an_address_of_another_machine_is_refused():
    with pytest.raises(OSError, match=r"cannot listen on 192\.0\.2\.1 port 0: "):
        await listening.hold_port("192.0.2.1", 0)


async def test_a_unix_socket_replaces_a_stale_one_and_has_its_mode(tmp_path):
    path = tmp_path / "s"
    with socket.socket(socket.AF_UNIX) as stale:
        stale.bind(str(path))
    bound = listening.bind_unix(str(path), mode=0o640)
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    with pytest.raises(ConnectionRefusedError):
        await asyncio.open_unix_connection(path)
    listener = await listening.listen_unix(Owner, bound, backlog=1)
    reader, writer = await asyncio.open_unix_connection(path)
    assert await reader.readexactly(5) == b"hello"
    writer.close()
    listener.close()
    listening.remove_socket(str(path))
    listening.remove_socket(str(path))
    assert not path.exists()


async def test_what_is_no_socket_is_not_replaced(tmp_path):
    path = tmp_path / "s"
    path.write_text("precious")
    with pytest.raises(OSError, match="in use"):
        listening.bind_unix(str(path), mode=0o600)
    assert path.read_text() == "precious"
