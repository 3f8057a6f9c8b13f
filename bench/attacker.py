"""A blocking client that sends what no driver would: bombs, half commands, endless long data.

It runs in its own process (`bench.fleet`), so it blocks no other client.
"""

import select
import socket
import struct
from collections.abc import Sequence
from typing import Final

from bench.connection import CAPABILITIES, HOST, UTF8MB4
from streamfrom.proxy.wire.compression import Packer, packer_for
from streamfrom.proxy.wire.framing import frame


FRAME_BYTES_MAX: Final = 0xFFFFFF
COMPRESS: Final = 0x20
ZSTD: Final = 1 << 26
STRING: Final = b"\xfd\x00"
LONG: Final = b"\x03\x00"
DONE: Final = "done"
CLOSED: Final = "closed"
SILENT: Final = "silent"
_TIMEOUT_S: Final = 120.0


class Attacker:
    """One connection, logged in as root without a password.

    capabilities: flags in addition to those of the usual drivers.
    answers: the replies to its commands, each DONE, an error's code, CLOSED, or SILENT.
    """

    def __init__(self, port: int, database: str, capabilities: int = 0) -> None:
        self._socket = socket.create_connection((HOST, port), _TIMEOUT_S)
        self._file = self._socket.makefile("rb")
        self._buffer = bytearray()
        self._packer: Packer | None = None
        self.answers: set[str] = set()
        self._payload()
        flags = CAPABILITIES | capabilities
        login = struct.pack("<IIB23x", flags, FRAME_BYTES_MAX, UTF8MB4)
        login += b"root\0\0" + database.encode() + b"\0mysql_native_password\0"
        self._socket.sendall(frame(login + b"\x03" * bool(capabilities & ZSTD), 1))
        while (payload := self._payload())[0] not in (0x00, 0xFF):
            if payload[0] == 0xFE:  # MySQL requests its own plugin: root has no password
                self._socket.sendall(frame(b"", 3))
        if payload[0] == 0xFF:
            raise ConnectionError(payload[3:].decode(errors="replace"))
        self._packer = packer_for(capabilities, 3)

    def send(self, payload: bytes) -> None:
        """Send a command; ignore a connection that the proxy has closed."""
        data = frame(payload, 0)
        self.send_raw(packed(data) if self._packer else data)

    def send_raw(self, data: bytes) -> None:
        """Send raw bytes."""
        try:
            self._socket.sendall(data)
        except (BrokenPipeError, ConnectionResetError):
            return

    def run(self, command: bytes) -> None:
        """Send a command and record its reply."""
        self.send(command)
        self.listen()

    def listen(self, seconds: float = _TIMEOUT_S) -> None:
        """Record a reply of OK, ERR or one result, or SILENT if none begins within *seconds*."""
        if not select.select([self._socket], [], [], seconds)[0]:
            self.answers.add(SILENT)
            return
        try:
            payload = self._payload()
            ends = 2 * (payload[0] == 0x00)
            while ends < 2 and payload[0] != 0xFF:
                payload = self._payload()
                ends += payload[0] == 0xFE and len(payload) < 9
        except ConnectionError:
            self.answers.add(CLOSED)
        else:
            self.answers.add(_outcome(payload))

    def prepare(self, sql: bytes) -> int:
        """Prepare a statement; return its id, or 0 if it is refused."""
        self.send(b"\x16" + sql)
        try:
            first = self._payload()
            self.answers.add(_outcome(first))
            if first[0]:
                return 0
            statement_id, columns, parameters = struct.unpack_from("<IHH", first, 1)
            for _ in range(parameters + bool(parameters) + columns + bool(columns)):
                self._payload()
        except ConnectionError:
            self.answers.add(CLOSED)
            return 0
        return int(statement_id)

    def close(self) -> None:
        """Close the connection."""
        self._file.close()
        self._socket.close()

    def _payload(self) -> bytes:
        payload = b""
        while True:
            size = int.from_bytes(self._take(4)[:3], "little")
            payload += self._take(size)
            if size < FRAME_BYTES_MAX:
                return payload

    def _take(self, size: int) -> bytes:
        if self._packer is None:
            return self._read(size)
        while len(self._buffer) < size:
            head = self._read(7)
            data = self._read(int.from_bytes(head[:3], "little"))
            unpacked_bytes = int.from_bytes(head[4:], "little")
            unpacked = self._packer.unpack(data, unpacked_bytes) if unpacked_bytes else [data]
            self._buffer += b"".join(unpacked)
        data = bytes(self._buffer[:size])
        del self._buffer[:size]
        return data

    def _read(self, size: int) -> bytes:
        if len(data := self._file.read(size)) < size:
            raise ConnectionError("closed by the proxy")
        return data


def _outcome(payload: bytes) -> str:
    return DONE if payload[0] != 0xFF else str(int.from_bytes(payload[1:3], "little"))


def packed(data: bytes, packer: Packer | None = None) -> bytes:
    """Return *data* as the packets of a compressed stream, each compressed by *packer*, or stored if there is none."""
    pieces = []
    for number, start in enumerate(range(0, len(data), FRAME_BYTES_MAX)):
        body = piece = data[start : start + FRAME_BYTES_MAX]
        if packer:
            packing = packer.packing()
            body = packing.compress(piece) + packing.flush()
        unpacked_bytes = len(piece) if packer else 0
        pieces.append(len(body).to_bytes(3, "little") + bytes((number & 0xFF,)))
        pieces.append(unpacked_bytes.to_bytes(3, "little") + body)
    return b"".join(pieces)


def execution(statement_id: int, types: bytes, values: Sequence[bytes]) -> bytes:
    """Return COM_STMT_EXECUTE with *values* in wire format, none of them NULL."""
    head = struct.pack("<BIBI", 0x17, statement_id, 0, 1)
    nulls = bytes((len(values) + 7) // 8)
    return head + nulls + b"\x01" + types + b"".join(values) if values else head
