"""A relay before a port that a test may cut for a while: nothing passes, and nothing is told."""

import contextlib
import selectors
import socket
import threading
from typing import Final


LOOK_S: Final = 0.05
BLOCK: Final = 1 << 16


class PartitionedWay:
    """One relay. port: where it listens; it leads to *port_of_target*, as soon as something listens there.

    listener: listens already, on another machine maybe; None for one of this machine.
    """

    def __init__(
        self, port_of_target: int, port: int = 0, listener: socket.socket | None = None
    ) -> None:
        self.port_of_target = port_of_target
        self._listener = listener or socket.create_server(("127.0.0.1", port))
        self.port: int = self._listener.getsockname()[1]
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._listener, selectors.EVENT_READ)
        self._whole = threading.Event()
        self._whole.set()
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._relay, daemon=True)
        self._thread.start()

    def cut(self) -> None:
        """Let nothing pass; what is under way is kept, as TCP does that sends it again."""
        self._whole.clear()

    def mend(self) -> None:
        self._whole.set()

    def close(self) -> None:
        self._closing.set()
        self._whole.set()
        self._thread.join()

    def _relay(self) -> None:
        while not self._closing.is_set():
            if not self._whole.wait(LOOK_S):
                continue
            for key, _ in self._selector.select(LOOK_S):
                end = key.fileobj
                assert isinstance(end, socket.socket)
                if key.data is None:
                    self._accept()
                elif end.fileno() >= 0:  # it has not been closed in this turn
                    self._pass_on(end, key.data)
        for key in list(self._selector.get_map().values()):
            assert isinstance(key.fileobj, socket.socket)
            key.fileobj.close()
        self._selector.close()

    def _accept(self) -> None:
        near, _ = self._listener.accept()
        try:
            far = socket.create_connection(("127.0.0.1", self.port_of_target))
        except OSError:
            near.close()
            return
        self._selector.register(near, selectors.EVENT_READ, far)
        self._selector.register(far, selectors.EVENT_READ, near)

    def _pass_on(self, end: socket.socket, other: socket.socket) -> None:
        with contextlib.suppress(OSError):
            if data := end.recv(BLOCK):
                other.sendall(data)
                return
        for each in (end, other):
            self._selector.unregister(each)
            each.close()
