"""A client that speaks bytes: a socket, a login and as little else as possible."""

import socket
import struct
from collections.abc import Callable

from tests.fixtures.running_proxy import RunningProxy
from tests.fixtures.streams import WAIT_S, value
from tests.integration.conftest import SharedCluster


# PROTOCOL_41, CONNECT_WITH_DB, SECURE_CONNECTION, PLUGIN_AUTH, TRANSACTIONS.
CAPABILITIES = 1 << 9 | 1 << 3 | 1 << 15 | 1 << 19 | 1 << 13


class RawClient:
    def __init__(self, proxy: RunningProxy) -> None:
        self.socket = socket.create_connection(("127.0.0.1", proxy.port), timeout=WAIT_S)

    def send(self, payload: bytes, sequence: int = 0) -> None:
        self.socket.sendall(frame(payload, sequence))

    def read(self) -> tuple[int, bytes]:
        """Return the number and the payload of the next packet; b"" when there is no more."""
        header = self._exactly(4)
        if not header:
            return -1, b""
        return header[3], self._exactly(int.from_bytes(header[:3], "little"))

    def error(self) -> tuple[int, str]:
        """Return code and text of the error packet that is next."""
        _, payload = self.read()
        assert payload[:1] == b"\xff", payload
        text = payload[3:]
        return int.from_bytes(payload[1:3], "little"), text[6 * (text[:1] == b"#") :].decode()

    def is_closed(self) -> bool:
        """Return True once the other side has hung up, whatever it still said."""
        try:
            while self.socket.recv(65536):
                pass
        except ConnectionError:
            pass
        return True

    def log_in(self, database: str = "plain") -> None:
        self.read()
        self.send(login(database), 1)
        _, payload = self.read()
        while payload[:1] in (b"\xfe", b"\x01"):
            # An empty password, whichever plugin is asked for.
            if payload[:1] == b"\xfe":
                self.send(b"", 3)
            _, payload = self.read()
        assert payload[:1] == b"\x00", payload

    def query(self, sql: bytes) -> None:
        self.send(b"\x03" + sql)

    def close(self) -> None:
        self.socket.close()

    def _exactly(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            piece = self.socket.recv(size - len(data))
            if not piece:
                return b""
            data += piece
        return data


def frame(payload: bytes, sequence: int) -> bytes:
    return len(payload).to_bytes(3, "little") + bytes([sequence]) + payload


def login(database: str, user: str = "root", answer: bytes = b"") -> bytes:
    return (
        struct.pack("<IIB23x", CAPABILITIES, 1 << 24, 45)
        + user.encode()
        + b"\0"
        + bytes([len(answer)])
        + answer
        + database.encode()
        + b"\0mysql_native_password\0"
    )


OpenRaw = Callable[[RunningProxy], RawClient]


def works(cluster: SharedCluster) -> bool:
    return bool(value(cluster.proxy.connect(database="plain"), "SELECT 1") == 1)
