"""Path (b): the packets of one or several backends, renumbered for one client."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from functools import lru_cache
from typing import Final

from streamfrom.proxy.errors import WireError
from streamfrom.proxy.wire.constants import (
    EOF_HEADER,
    FRAME_BYTES_MAX,
    HEADER_BYTES,
    LOCAL_INFILE,
    Status,
)
from streamfrom.proxy.wire.framing import frame, frames
from streamfrom.proxy.wire.response_reader import (
    COLUMNS,
    DEPRECATE_EOF,
    DONE,
    FIRST,
    INFILE,
    ROWS,
    Forwarder,
    head,
    warnings_in,
    whole,
)
from streamfrom.proxy.wire.resultset import EOF_BYTES, eof_packet, parse_ok


_MORE_RESULTS: Final = Status.MORE_RESULTS_EXISTS


@dataclass(slots=True, eq=False)
class Resequencer(Forwarder):
    """Path (b): renumbers the packets of backends, and joins several answers into one.

    A client without DEPRECATE_EOF gets its EOF packets back.

    Measured on CPython 3.11: 0.11 µs a row, 4.5 µs for a whole small answer in one chunk.
    """

    _: KW_ONLY
    # The number of the first packet, then that after the last packet handed out, at any time.
    next_sequence: int = 1
    # False drops the column definitions, because an earlier shard has sent them.
    columns: bool = True
    # False drops the last OK, because a later shard follows; an ERR is never dropped.
    final: bool = True
    # The flags of the EOF after the columns, which a backend with DEPRECATE_EOF never sends.
    columns_status: int = Status.AUTOCOMMIT
    # The answer is one to a CALL. Then the flags of that EOF distinguish rows from OUT parameters, and show whether more results
    # follow. They are at the result's end, so the first row is held back until it is known whether the end follows it.
    call: bool = False
    # The EOF behind the columns waits for the packet that follows it.
    _eof_due: bool = False
    # How far the client's numbers are ahead of the backend's while a file is sent.
    _infile_shift: int | None = None

    def __post_init__(self) -> None:
        Forwarder.__post_init__(self)
        self.next_sequence &= 0xFF
        if self.call:
            self.columns_status |= _MORE_RESULTS

    def feed(self, chunk: bytes) -> bytes:
        """Accept bytes in pieces of any size; return the bytes to forward to the client now.

        When ``wants_local_infile`` is set, the client's data goes to the backend before the
        next call.
        """
        if self._state == DONE:
            raise WireError("the server speaks out of turn")
        self.wants_local_infile = None
        if self._held:
            chunk = self._held + chunk
            self._held = b""
        if self._infile_shift is not None and len(chunk) >= HEADER_BYTES:
            # The packets of the file have advanced both counts.
            self.next_sequence = chunk[3] + self._infile_shift & 0xFF
            self._infile_shift = None
        # Sequence bytes are overwritten in a copy: one copy of the chunk is cheaper than a piece for each row.
        out = bytearray(chunk)
        pieces: list[bytes | bytearray] = []
        start = 0  # earlier bytes are in `pieces`, or dropped
        pos = self._skip
        end = len(chunk)
        last = end - HEADER_BYTES
        state = self._state
        left = self._left
        rows = self.rows
        sequence = self.next_sequence
        while True:
            # The two inner loops are also in `PassThrough.feed`, without the numbers. They are
            # written out twice because a call for each row would cost about as much as the row
            # itself.
            if state == COLUMNS and self.columns:
                while left and pos < last:
                    word, first = head(chunk, pos)
                    if first >= EOF_HEADER:
                        break
                    out[pos + 3] = sequence
                    sequence = sequence + 1 & 0xFF
                    pos += (word & 0xFFFFFF) + HEADER_BYTES
                    left -= 1
                if not left:
                    state = ROWS
                    self._eof_due = not self._capabilities & DEPRECATE_EOF
            if state == ROWS and not self._continues and not self._eof_due:
                while pos < last:
                    word, first = head(chunk, pos)
                    size = word & 0xFFFFFF
                    if first >= EOF_HEADER or size == FRAME_BYTES_MAX:
                        break
                    out[pos + 3] = sequence
                    sequence = sequence + 1 & 0xFF
                    pos += size + HEADER_BYTES
                    rows += 1
            if pos + HEADER_BYTES > end:
                break
            # The rest of a payload of 16 MiB or more: its bytes may look like anything.
            if self._continues:
                size = int.from_bytes(chunk[pos : pos + 3], "little")
                self._continues = size == FRAME_BYTES_MAX
                out[pos + 3] = sequence
                sequence = sequence + 1 & 0xFF
                pos += size + HEADER_BYTES
                continue
            if pos >= last:
                break
            word, first = head(chunk, pos)
            size = word & 0xFFFFFF
            stop = pos + HEADER_BYTES + size
            if state == FIRST and size == 1 and 0 < first < LOCAL_INFILE and self.columns:
                # A column count of one byte begins nearly all answers with rows.
                state = COLUMNS
                left = first
                out[pos + 3] = sequence
                sequence = sequence + 1 & 0xFF
                pos = stop
                continue
            if state == ROWS and (
                first < EOF_HEADER or (first == EOF_HEADER and size == FRAME_BYTES_MAX)
            ):
                # An older client gets an EOF between columns and rows. Its flags are those of
                # the whole result, which the first row alone does not show: hence the look
                # ahead.
                if self._eof_due:
                    status = self._status_ahead(chunk, stop)
                    if status is None:
                        break
                    self._eof_due = False
                    pieces += (out[start:pos], _framed_eof(status, 0, sequence))
                    sequence = sequence + 1 & 0xFF
                    start = pos
                rows += 1
                self._continues = size == FRAME_BYTES_MAX
                out[pos + 3] = sequence
                sequence = sequence + 1 & 0xFF
                pos = stop
                continue
            whole(size)
            if stop > end:
                break
            payload = chunk[pos + HEADER_BYTES : stop]
            if state == COLUMNS and first < EOF_HEADER:
                # A definition that an earlier shard has sent.
                pieces.append(out[start:pos])
                start = stop
                left -= 1
                if not left:
                    state = ROWS
                    self.columns = True
            else:
                self._state = state
                state = self._special(payload)
                left = self._left
                framed, sequence = self._for_client(payload, state, sequence)
                pieces += (out[start:pos], framed)
                start = stop
                if state == INFILE:
                    if stop != end:
                        raise WireError("the server speaks out of turn")
                    self.infile_sequence = chunk[pos + 3] + 1 & 0xFF
                    self._infile_shift = sequence - self.infile_sequence
                    state = FIRST
            pos = stop
            if state == DONE:
                self.done = True
                self.rest = chunk[stop:]
                end = stop
                break
        self._state = state
        self._left = left
        self.rows = rows
        self.next_sequence = sequence
        if pos < end:
            self._held = chunk[pos:]
            self._skip = 0
            end = pos
        else:
            self._skip = pos - end
        if start < end:
            pieces.append(out[start:end])
        return b"".join(pieces)

    def _status_ahead(self, chunk: bytes, pos: int) -> int | None:
        """Return the flags of a result whose first row ends at *pos*; None if it takes more bytes."""
        if not self.call:
            return self.columns_status
        start = pos + HEADER_BYTES
        if len(chunk) <= start:
            return None
        stop = start + int.from_bytes(chunk[pos : pos + 3], "little")
        if chunk[start] != EOF_HEADER or stop - start == FRAME_BYTES_MAX:
            return self.columns_status
        return parse_ok(chunk[start:stop]).status if stop <= len(chunk) else None

    def _for_client(self, payload: bytes, state: int, sequence: int) -> tuple[bytes, int]:
        """Return the client's form of a packet that is no row and no definition.

        Framed, with the number that follows.
        """
        if state == COLUMNS:
            return frames([payload] if self.columns else [], sequence)
        is_ok = self._ok_payload is payload
        ends = self.final or state != DONE
        framed = b""
        if self._eof_due:
            self._eof_due = False
            status = self.status if self.call else self.columns_status
            # Without rows both ends are one moment, and report the same warnings.
            warnings = warnings_in(payload) if is_ok and ends else 0
            framed = _framed_eof(status, warnings, sequence)
            sequence = sequence + 1 & 0xFF
        if is_ok:
            if not ends:
                return framed, sequence
            if payload[0] == EOF_HEADER and not self._capabilities & DEPRECATE_EOF:
                if framed and len(payload) == EOF_BYTES:
                    # The one behind the columns, which only this client should get.
                    return framed, sequence
                status = self.status
                if state == DONE and self.more_results:
                    status |= _MORE_RESULTS
                warnings = warnings_in(payload) + self.earlier_warnings
                framed += _framed_eof(status, warnings, sequence)
                return framed, sequence + 1 & 0xFF
            payload = self._terminator(payload, state)
        return framed + frame(payload, sequence), sequence + 1 & 0xFF


@lru_cache(maxsize=4096)  # the same few in every answer to an older client
def _framed_eof(status: int, warnings: int, sequence: int) -> bytes:
    return frame(eof_packet(status, warnings), sequence)
