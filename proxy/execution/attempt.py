"""One statement on its way to a shard, and its answer on the way back.

An `Attempt` is made when a statement's route is known. `proxy.execution.executor` finds a connection for it, and the
attempt reads that connection's answer: the forwarded part goes to the client's link, and a client
that reads slower than the server sends stops the server, instead of filling the proxy's memory. The last piece of the answer is
kept until the session has processed the answer; `Attempt.tell` then writes it. After an error that a restart caused,
another attempt may follow, and nothing may be sent to the client twice. The file of a LOAD DATA LOCAL goes the
other way in the middle of an answer (`Attempt.file`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from streamfrom.proxy.execution.reply import INTERRUPTED, Reply
from streamfrom.proxy.execution.retry_rules import Ending, ending_of, is_repeatable
from streamfrom.proxy.wire.constants import HEADER_BYTES
from streamfrom.proxy.wire.framing import frames


if TYPE_CHECKING:
    from streamfrom.proxy.backends.backend import Backend
    from streamfrom.proxy.backends.pooling.multiplexing import LatencyClass
    from streamfrom.proxy.backends.shard import ShardRuntime
    from streamfrom.proxy.errors import BackendLost
    from streamfrom.proxy.execution.prepared_execution import Packet
    from streamfrom.proxy.wire.pass_through import PassThrough
    from streamfrom.proxy.wire.resequencer import Resequencer
    from streamfrom.sqlparse_ext.errors import StreamfromError
    from streamfrom.sqlparse_ext.statements import Shape
    from streamfrom.sqlparse_ext.writes.message_effects import Effect


class SucceedingStep(Protocol):
    """The consequences of a statement that has succeeded."""

    table: str
    # Its effect on the message table `table`; None, and "", for other tables.
    effect: Effect | None
    # The insert id for the client's OK if the server knows of none. The id of own_id, which the client gave, is not
    # LAST_INSERT_ID(). 0 for none.
    insert_id: int
    own_id: int
    has_selected: bool  # it inserts the rows of its SELECT, which have been read


@dataclass(slots=True, eq=False)
class Attempt:
    """One statement under way on one shard; sent again, it is the same attempt."""

    shard: ShardRuntime
    database: str | None  # the default database, by its name in the view
    packet: bytes | Packet
    shape: Shape
    reply: Reply
    # Called with the attempt once its answer is complete or broken off, or with the error that kept it from being sent; None if the
    # client is answered already.
    on_over: Callable[[Attempt | Exception | None], None] = lambda _: None
    # Of the shape; None for a statement that shares no connection
    latency: LatencyClass | None = None
    # The shards that answer alike, `shard` among them; empty where only that can answer.
    any_of: tuple[ShardRuntime, ...] = ()
    step: SucceedingStep | None = None  # the consequences once the statement has succeeded
    backend: Backend = field(init=False)
    # The reader of the answer, with its status, rows, OK or error so far.
    scanner: PassThrough | Resequencer = field(init=False)
    # Called with a packet number when the server asks for the client's file.
    on_file: Callable[[int], None] | None = None
    # The last piece of the answer; the session writes it, or drops it to try again
    held: bytes = b""
    has_written: bool = False
    refusal: StreamfromError | None = None  # the error that the client gets instead of an OK
    failure: BackendLost | None = None  # set when the backend went away before the answer's end
    _throttled: bool = False
    _file_sequence: int = field(init=False)

    # --- called by the backend, as for an `AnswerReader` -------------------------------------

    def data_received(self, data: bytes) -> bytes | None:
        """Forward the part of *data* that is for the client."""
        scanner = self.scanner
        out = scanner.feed(data)
        if scanner.done:
            self.held = out
            return scanner.rest
        if out:
            self.write(out)
        if scanner.wants_local_infile is not None:
            assert self.on_file is not None, "the scanner allows no file"
            self._file_sequence = scanner.infile_sequence
            self.on_file(scanner.next_sequence)
        return None

    def answer_completed(self) -> None:
        """Report that the answer is complete."""
        if self._throttled:
            self.client_writable()
        self.on_over(self)

    def connection_lost(self, error: BackendLost) -> None:
        """Report that the backend went away."""
        self.failure = error
        self.reply.broke_off(self.scanner)
        self.on_over(self)

    # --- the client's side ------------------------------------------------------------------

    def write(self, out: bytes) -> None:
        """Write a piece of the answer; the server waits while the client does not read it."""
        self.has_written = True
        link = self.reply.link
        link.write(out)
        if link.blocked:
            self._throttled = True
            self.backend.link.pause_reading()

    def client_writable(self) -> None:
        """Let the server continue after the client caught up."""
        if self._throttled:
            self._throttled = False
            self.backend.link.resume_reading()

    def file(self, piece: bytes) -> None:
        """Pass on a piece of the client's file; an empty one ends it.

        A server that reads slower than the client sends stops the client.
        """
        framed, self._file_sequence = frames([piece], self._file_sequence)
        link = self.backend.link
        link.write(framed)
        if link.blocked:
            self.reply.link.pause_reading()
            self.backend.on_writable = self.reply.link.resume_reading

    # --- the end ----------------------------------------------------------------------------

    @property
    def ending(self) -> Ending:
        """How the attempt ended, for `retry_rules.decide`."""
        if self.failure is not None:
            return Ending.BROKE_OFF
        error = self.scanner.error
        if error is None:
            return Ending.ANSWERED
        return ending_of(error, is_prepared=not isinstance(self.packet, bytes))

    def tell(self) -> None:
        """Write the end of the statement's answer to the client: the only place that does. Raises BackendLost.

        A statement that the proxy has stopped returns the reason, even if it changes nothing and its server
        answers an interruption with rows, as MySQL's SLEEP does.
        """
        if self.failure is not None:
            raise self.failure
        reply, held, error = self.reply, self.held, self.scanner.error
        if reply.stopped is not None:
            if error is not None and error.code == INTERRUPTED:
                # The error is the last packet: 0xFF, the code, # and the SQLSTATE, the text.
                at = len(held) - HEADER_BYTES - 9 - len(error.message)
                reply.link.write(held[:at])
                reply.sequence = held[at + 3]
                reply.error(reply.stopped)
                return
            if error is None and not self.has_written and is_repeatable(self.shape):
                reply.error(reply.stopped)
                return
        if self.refusal is not None:
            reply.error(self.refusal)
            return
        reply.link.write(held)
        reply.sequence = self.scanner.next_sequence
