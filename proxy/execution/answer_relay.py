"""Carrying one answer from a backend to a client, with flow control end to end.

The file of a LOAD DATA LOCAL goes the other way in the middle of its answer (`AnswerRelay.file`).

A `AnswerRelay` is the `backend.Reader` of one statement. What `wire.response` says to forward goes
to the client's link; a client that reads slower than the server sends stops the server, not
the proxy's memory. The last piece of the answer is handed to *on_done* instead of being
written, because the session must first decide what the answer means: an error that a restart
caused may be worth another try, and nothing may be sent to the client twice.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from streamfrom.proxy.wire.framing import frames


if TYPE_CHECKING:
    from collections.abc import Callable

    from streamfrom.proxy.backends.backend import Backend
    from streamfrom.proxy.errors import BackendLost
    from streamfrom.proxy.net import Link
    from streamfrom.proxy.wire.response import PassThrough, Resequencer


class AnswerRelay:
    """One answer under way.

    Attributes:
        backend: the connection that answers.
        scanner: the reader of the answer, with its status, rows, OK or error so far.
        held: the last piece of the answer; the session writes it, or drops it to try again.
        failure: set when the backend went away before the answer's end.
        has_written: some of the answer has been written to the client.
    """

    __slots__ = (
        "_client",
        "_file_sequence",
        "_on_done",
        "_on_file",
        "_throttled",
        "backend",
        "failure",
        "has_written",
        "held",
        "scanner",
    )

    def __init__(
        self,
        scanner: PassThrough | Resequencer,
        backend: Backend,
        client: Link,
        on_done: Callable[[AnswerRelay], None],
        on_file: Callable[[int], None] | None = None,
    ) -> None:
        self.scanner = scanner
        self.held = b""
        self.has_written = False
        self.failure: BackendLost | None = None
        self.backend = backend
        self._client = client
        self._on_done = on_done
        self._on_file = on_file
        self._file_sequence = 0
        self._throttled = False

    def data_received(self, data: bytes) -> bytes | None:
        """Forward what *data* holds for the client."""
        scanner = self.scanner
        out = scanner.feed(data)
        if scanner.done:
            self.held = out
            return scanner.rest
        if out:
            self._write(out)
        if scanner.wants_local_infile is not None:
            assert self._on_file is not None, "the scanner allows no file"
            self._file_sequence = scanner.infile_sequence
            self._on_file(scanner.next_sequence)
        return None

    def _write(self, out: bytes) -> None:
        self.has_written = True
        self._client.write(out)
        if self._client.blocked:
            self._throttled = True
            self.backend.link.pause_reading()

    def file(self, piece: bytes) -> None:
        """Pass on a piece of the client's file; an empty one ends it.

        A server that reads slower than the client sends stops the client.
        """
        framed, self._file_sequence = frames([piece], self._file_sequence)
        link = self.backend.link
        link.write(framed)
        if link.blocked:
            self._client.pause_reading()
            self.backend.on_writable = self._client.resume_reading

    def answer_completed(self) -> None:
        """Report the end."""
        if self._throttled:
            self.client_writable()
        self._on_done(self)

    def client_writable(self) -> None:
        """Let the server go on after the client caught up."""
        if self._throttled:
            self._throttled = False
            self.backend.link.resume_reading()

    def connection_lost(self, error: BackendLost) -> None:
        """Report that the backend went away."""
        self.failure = error
        self._on_done(self)
