"""A blocking client that sends what no driver would: bombs, half commands, long data without end.

It lives in a process of its own (`bench.fleet`), so nothing here waits for anybody else's Python.
"""

import select
import socket
import struct
import zlib
from collections.abc import Callable, Sequence
from typing import Final

from bench.connection import CAPABILITIES, HOST, UTF8MB4


FRAME_BYTES_MAX: Final = 0xFFFFFF
COMPRESS: Final = 0x20
ZSTD: Final = 1 << 26
MARIADB_CLIENT: Final = 1  # CLIENT_MYSQL, whose absence tells that MariaDB's own flags follow
BULK_OPERATIONS: Final = 1 << 2  # of MariaDB's own flags
STRING: Final = b"\xfd\x00"
LONG: Final = b"\x03\x00"
DONE: Final = "done"
CLOSED: Final = "closed"
SILENT: Final = "silent"
_READ_BYTES: Final = 1 << 20
_SWITCH: Final = (
    0xFE  # MySQL asks for its own plugin, to which root says that it has no password
)
_TIMEOUT_S: Final = 120.0


class Attacker:
    """One connection, logged in as root without a password.

    capabilities: flags in addition to those that the usual drivers ask for.
    answers: what its commands were answered, each DONE, an error's code, CLOSED, or SILENT.
    """

    def __init__(self, port: int, database: str, capabilities: int = 0) -> None:
        self._socket = socket.create_connection((HOST, port), _TIMEOUT_S)
        self._buffer = bytearray()
        self._is_packed = False
        self._unpack: Callable[[bytes], bytes] = zlib.decompress
        self.answers: set[str] = set()
        self._payload()
        flags = CAPABILITIES | capabilities
        mariadb = 0
        if capabilities & BULK_OPERATIONS:
            flags &= ~(MARIADB_CLIENT | BULK_OPERATIONS)
            mariadb = BULK_OPERATIONS
        login = struct.pack("<IIB19xI", flags, FRAME_BYTES_MAX, UTF8MB4, mariadb)
        login += b"root\0\0" + database.encode() + b"\0mysql_native_password\0"
        if capabilities & ZSTD:
            login += b"\x03"
        self._socket.sendall(_frames(login, 1))
        while (payload := self._payload())[0] not in (0x00, 0xFF):
            if payload[0] == _SWITCH:
                self._socket.sendall(_frames(b"", 3))
        if payload[0] == 0xFF:
            raise ConnectionError(payload[3:].decode(errors="replace"))
        self._is_packed = bool(capabilities & (COMPRESS | ZSTD))
        if capabilities & ZSTD:
            from backports import zstd

            self._unpack = zstd.decompress

    def send(self, payload: bytes) -> None:
        """Send a command; a connection that the proxy has closed takes it in vain."""
        data = _frames(payload)
        self.send_raw(data if not self._is_packed else packed(data, level=None))

    def send_raw(self, data: bytes) -> None:
        """Send bytes as they are."""
        try:
            self._socket.sendall(data)
        except (BrokenPipeError, ConnectionResetError):
            return

    def query(self, sql: bytes) -> str:
        """Run a text; otherwise as `run`."""
        return self.run(b"\x03" + sql)

    def run(self, command: bytes) -> str:
        """Send a command, read its whole answer and return it as `answer`."""
        self.send(command)
        return self.answer()

    def answer(self) -> str:
        """Read an answer of OK, ERR or one result; return DONE, an error's code, or CLOSED."""
        self.answers.add(found := self._read_answer())
        return found

    def _read_answer(self) -> str:
        try:
            payload = self._payload()
            ends = 2 * (payload[0] == 0x00)
            while ends < 2 and payload[0] != 0xFF:
                payload = self._payload()
                ends += payload[0] == 0xFE and len(payload) < 9
        except ConnectionError:
            return CLOSED
        return DONE if payload[0] != 0xFF else str(int.from_bytes(payload[1:3], "little"))

    def prepare(self, sql: bytes) -> int:
        """Prepare a statement; return its id, 0 where it is refused."""
        self.send(b"\x16" + sql)
        try:
            first = self._payload()
            if first[0] != 0x00:
                self.answers.add(str(int.from_bytes(first[1:3], "little")))
                return 0
            statement_id, columns, parameters = struct.unpack_from("<IHH", first, 1)
            for count in (parameters, columns):
                for _ in range(count + 1 if count else 0):
                    self._payload()
        except ConnectionError:
            self.answers.add(CLOSED)
            return 0
        self.answers.add(DONE)
        return int(statement_id)

    def listen(self, seconds: float) -> None:
        """Read the answer if one comes within so long, else note SILENT."""
        if select.select([self._socket], [], [], seconds)[0]:
            self.answer()
        else:
            self.answers.add(SILENT)

    def close(self) -> None:
        """Hang up."""
        self._socket.close()

    def _payload(self) -> bytes:
        payload = b""
        while True:
            head = self._take(4)
            size = int.from_bytes(head[:3], "little")
            payload += self._take(size)
            if size < FRAME_BYTES_MAX:
                return payload

    def _take(self, size: int) -> bytes:
        while len(self._buffer) < size:
            if self._is_packed:
                head = self._read(7)
                data = self._read(int.from_bytes(head[:3], "little"))
                unpacked_bytes = int.from_bytes(head[4:], "little")
                self._buffer += self._unpack(data) if unpacked_bytes else data
            else:
                data = self._socket.recv(_READ_BYTES)
                if not data:
                    raise ConnectionError("closed by the proxy")
                self._buffer += data
        data = bytes(self._buffer[:size])
        del self._buffer[:size]
        return data

    def _read(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            more = self._socket.recv(size - len(data))
            if not more:
                raise ConnectionError("closed by the proxy")
            data += more
        return data


def _frames(payload: bytes, sequence: int = 0) -> bytes:
    pieces = []
    for start in range(0, len(payload) + 1, FRAME_BYTES_MAX):
        piece = payload[start : start + FRAME_BYTES_MAX]
        pieces.append(len(piece).to_bytes(3, "little") + bytes((sequence & 0xFF,)) + piece)
        sequence += 1
    return b"".join(pieces)


def packed(data: bytes, *, level: int | None, zstd: bool = False) -> bytes:
    """Return *data* in the pieces of a compressed stream; *level* None: as it is.

    zstd: by zstd, otherwise by zlib.
    """
    pieces = []
    for number, start in enumerate(range(0, len(data), FRAME_BYTES_MAX)):
        piece = data[start : start + FRAME_BYTES_MAX]
        body, unpacked_bytes = piece, 0
        if level is not None:
            body, unpacked_bytes = _shrunk(piece, level, zstd=zstd), len(piece)
        pieces.append(len(body).to_bytes(3, "little") + bytes((number & 0xFF,)))
        pieces.append(unpacked_bytes.to_bytes(3, "little") + body)
    return b"".join(pieces)


def _shrunk(data: bytes, level: int, *, zstd: bool) -> bytes:
    if not zstd:
        return zlib.compress(data, level)
    from backports import zstd as algorithm

    return algorithm.compress(data, level)


def execution(statement_id: int, types: bytes, values: Sequence[bytes]) -> bytes:
    """Return COM_STMT_EXECUTE with *values* as they go on the wire, none of them NULL."""
    head = struct.pack("<BIBI", 0x17, statement_id, 0, 1)
    return head + bytes((len(values) + 7) // 8) + b"\x01" + types + b"".join(values)


def bulk_execution(statement_id: int, types: bytes, rows: bytes) -> bytes:
    """Return COM_STMT_BULK_EXECUTE; a byte 0 stands before each value in *rows*."""
    return struct.pack("<BIH", 0xFA, statement_id, 0x80) + types + rows


def long_data(statement_id: int, parameter: int, data: bytes) -> bytes:
    """Return COM_STMT_SEND_LONG_DATA."""
    return struct.pack("<BIH", 0x18, statement_id, parameter) + data


def unfinished(size: int, sent: int) -> bytes:
    """Return the first *sent* bytes of a command of *size* bytes, which goes on in frames."""
    return _frames(b"\x03" + b"x" * (size - 1))[:sent]
