"""Stands between a client and a proxy, and writes down what the client asks."""

import re
import socket
import threading
from collections.abc import Iterator


QUERY = 3
ERROR = 0xFF
# In front of the text of MySQL's drivers: no query attributes, one set of them.
NO_ATTRIBUTES = b"\0\1"
DATABASE = re.compile(rb"commerce(?::[0-9a-f-]+)?(?=\0)")


def packets(peer: socket.socket, other: socket.socket) -> Iterator[tuple[int, bytes]]:
    """Pass on all that *peer* sends, and yield each packet's sequence number and payload."""
    buffer = b""
    try:
        while data := peer.recv(65536):
            buffer += data
            while len(buffer) >= 4 and len(buffer) >= 4 + (
                size := int.from_bytes(buffer[:3], "little")
            ):
                yield buffer[3], buffer[4 : 4 + size]
                buffer = buffer[4 + size :]
            other.sendall(data)
        other.shutdown(socket.SHUT_WR)
    except OSError:
        pass  # either side hung up


class Recorder:
    """queries: (database, text) in the order of arrival. errors: the packets of refusals."""

    def __init__(self, port: int) -> None:
        self._to = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self.queries: list[tuple[str, str]] = []
        self.errors: list[bytes] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with client, socket.create_connection(("127.0.0.1", self._to)) as server:
            answers = threading.Thread(target=self._told, args=(server, client), daemon=True)
            answers.start()
            self._asked(client, server)
            answers.join()

    def _asked(self, client: socket.socket, server: socket.socket) -> None:
        database = ""
        for sequence, payload in packets(client, server):
            if not database and (found := DATABASE.search(payload)):
                database = found[0].decode()
            if sequence == 0 and payload[:1] == bytes([QUERY]):
                text = payload[1:].removeprefix(NO_ATTRIBUTES)
                self.queries.append((database, text.decode()))

    def _told(self, server: socket.socket, client: socket.socket) -> None:
        for _, payload in packets(server, client):
            # No row, column or OK begins with this byte.
            if payload[:1] == bytes([ERROR]):
                self.errors.append(payload)
