"""Stands between a client and a proxy, and writes down what the client asks."""

import re
import socket
import threading


QUERY = 3
ERROR = b"\xff"  # no row, column or OK begins with it
# In front of the text of MySQL's drivers: no query attributes, one set of them.
NO_ATTRIBUTES = b"\0\1"
DATABASE = re.compile(rb"commerce(?::[0-9a-f-]+)?(?=\0)")


def packets(peer, other):
    """Pass on all that *peer* sends, and yield each packet's sequence number and payload."""
    buffer = b""
    try:
        while data := peer.recv(65536):
            buffer += data
            while len(buffer) >= (end := 4 + int.from_bytes(buffer[:3], "little")):
                yield buffer[3], buffer[4:end]
                buffer = buffer[end:]
            other.sendall(data)
        other.shutdown(socket.SHUT_WR)
    except OSError:
        pass  # either side hung up


class Recorder:
    """queries: (database, text) in the order of arrival. errors: the packets of refusals."""

    def __init__(self, port):
        self._to, self._listener = port, socket.create_server(("127.0.0.1", 0))
        self.port, self.close = self._listener.getsockname()[1], self._listener.close
        self.queries, self.errors = [], []
        self._start(self._accept)

    def _start(self, work, *given):
        threading.Thread(target=work, args=given, daemon=True).start()

    def _accept(self):
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            server = socket.create_connection(("127.0.0.1", self._to))
            self._start(self._asked, client, server)
            self._start(self._told, server, client)

    def _asked(self, client, server):
        database = ""
        for sequence, payload in packets(client, server):
            if not database and (found := DATABASE.search(payload)):
                database = found[0].decode()
            if sequence == 0 and payload[:1] == bytes([QUERY]):
                text = payload[1:].removeprefix(NO_ATTRIBUTES)
                self.queries.append((database, text.decode()))

    def _told(self, server, client):
        for _, payload in packets(server, client):
            if payload[:1] == ERROR:
                self.errors.append(payload)
