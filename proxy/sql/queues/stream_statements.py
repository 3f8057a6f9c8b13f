"""STREAM: from the statement to an open stream, its columns, and the keys whose messages it takes."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Sequence
from math import isfinite
from operator import is_not
from typing import TYPE_CHECKING, Final, NamedTuple

from streamfrom.engine.errors import ReceiverGone
from streamfrom.engine.messaging.streams.prefetch_window import FIRST, FIRST_WATCHED
from streamfrom.engine.messaging.table.message import RowOfStream, receiver_numbers
from streamfrom.engine.messaging.table.sql_names import columns_query
from streamfrom.engine.messaging.table.table_settings import COUNT_MAX, read_prefetch
from streamfrom.proxy import net
from streamfrom.proxy.errors import (
    BadStreamArgument,
    BadStreamKey,
    ColumnTypeChanged,
    ProxyError,
    ValueOfOtherType,
)
from streamfrom.proxy.rights.questions import take
from streamfrom.proxy.wire.binary_rows import TEXT_OR_BYTES, BinaryRows, row_types
from streamfrom.proxy.wire.commands import query
from streamfrom.proxy.wire.constants import BINARY_CHARSET, STRING_TYPES, FieldType
from streamfrom.proxy.wire.framing import frames
from streamfrom.proxy.wire.resultset import parse_column_definition, parse_text_row, text_row
from streamfrom.sqlparse_ext.literal_values import Number
from streamfrom.sqlparse_ext.statements import OPAQUE, Operand, Shape, Statement, Value
from streamfrom.sqlparse_ext.text.identifiers import literal


if TYPE_CHECKING:
    from streamfrom.engine.messaging.table.message_table import MessageTable
    from streamfrom.engine.sharding.keyspace import ShardName
    from streamfrom.proxy.backends.session_variables import Settings
    from streamfrom.proxy.backends.shard import ShardRuntime
    from streamfrom.proxy.execution.reply import Reply
    from streamfrom.proxy.net import Link
    from streamfrom.proxy.sql.compile.catalog import View
    from streamfrom.proxy.sql.session_context import SessionContext
    from streamfrom.proxy.wire.resultset import ColumnDefinition
    from streamfrom.sqlparse_ext.errors import StreamfromError


# A batch of small rows is one write; a large row is a separate write.
_WRITE_BYTES: Final = 64 << 10
# A stream with a limit that has its rows at once is one write, not three, each of which wakes the client.
JOINED_WITHIN_S: Final = 0.002


class MessageStream:
    """`engine.messaging.table.message.Receiver` over a client's link, with the attributes that the engine reads.

    The link's high-water mark is zero while a stream is open, so `blocked` means that the socket has not taken everything. The client
    then gets no more rows until it has. If the client leaves first, the rows that were not handed to its socket return to the queue at
    once. After a connection is lost, it is unknown how much of a write the socket had taken; this concerns at most one write.

    encode: turns the text rows that the engine delivers into rows for this client.
    """

    def __init__(
        self,
        link: Link,
        *,
        shards: frozenset[ShardName] | None,
        keys: frozenset[bytes] | None = None,
        columns: tuple[str, ...],
        sequence: int,
        prefetch: int | None = None,
        window_first: int = FIRST,
        rows_max: int | None = None,
        connection_id: int = 0,
        encode: Callable[[Sequence[RowOfStream]], list[bytes]] | None = None,
    ) -> None:
        self.id = next(receiver_numbers)
        self.shards = shards
        self.keys = keys
        self.columns = columns
        self.prefetch = prefetch
        self.window_first = window_first
        self.rows_max = rows_max
        self.connection_id = connection_id
        self.sequence = sequence  # the number of the next packet
        loop = asyncio.get_running_loop()
        # Done when the stream ends, with its error, or None once it has its rows.
        self.ended: asyncio.Future[StreamfromError | None] = loop.create_future()
        self._link = link
        self._encode = encode
        self._waiting: Sequence[RowOfStream] = ()
        self._rows_left = rows_max
        link.set_high_water(0)

    def deliver(self, rows: Sequence[RowOfStream]) -> bool:
        """Write a batch; False if the socket did not take all of it at once. Raises ReceiverGone if the client has left."""
        if self._link.is_gone:
            raise ReceiverGone
        self._waiting = [*self._waiting, *rows]
        return self.resume()

    def resume(self) -> bool:
        """Write the waiting rows, as far as the socket takes them; True if it could take more."""
        while self._waiting and not self._link.blocked and not self._link.is_gone:
            count = size = 0
            while count < len(self._waiting) and size < _WRITE_BYTES:
                size += len(self._waiting[count].payload)
                count += 1
            now, self._waiting = self._waiting[:count], self._waiting[count:]
            if self._encode is None:
                payloads = [row.payload for row in now]
            else:
                try:
                    payloads = self._encode(now)
                except ProxyError as error:
                    # The error belongs to this stream alone, and must not reach the engine or other streams.
                    self._waiting = [*now, *self._waiting]
                    self.end(error)
                    return False
            framed, self.sequence = frames(payloads, self.sequence)
            if self._rows_left is not None:
                self._rows_left -= count
            if self._rows_left == 0:
                self._link.write_ahead(framed, JOINED_WITHIN_S)  # the end follows
            else:
                self._link.write(framed)
        return not self._waiting and not self._link.blocked

    def end(self, error: StreamfromError) -> None:
        """End the stream with *error*."""
        if not self.ended.done():
            self.ended.set_result(error)

    def finish(self) -> None:
        """End the stream, which has its rows."""
        if not self.ended.done():
            self.ended.set_result(None)

    def close(self) -> Sequence[RowOfStream]:
        """Give the link back and return the rows that were not handed to it."""
        self._link.set_high_water(net.WRITE_HIGH_WATER_BYTES)
        return self._waiting


_NUMBER: Final = re.compile(rb"-?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")

# Command-line clients, by the name that they send at login: a person watches.
_WATCHED: Final = frozenset({"mysql", "mariadb"})
# A year, which is endless for a client.
WAIT_MAX_S: Final = 365 * 86_400.0
# A poll queries each key separately.
KEYS_MAX: Final = 100
# A server reads these types by session settings, and shows a value as another text.
_MANY_SPELLINGS: Final = frozenset({"date", "datetime", "timestamp", "time", "enum", "set"})
_KEY_NUMBER: Final = re.compile(rb"-?[0-9]{1,65}(?:\.[0-9]{1,30})?")
# For a client that requests one message after another, the columns are read from a server once in this time.
COLUMNS_KNOWN_S: Final = 1.0


class _Columns(NamedTuple):
    """The column definitions of a stream of these columns, and until when they are valid, by the loop's clock."""

    # The stream's view, table and settings. A table whose definition was read again, after an ALTER through any proxy,
    # is another object.
    of: tuple[View, MessageTable, Settings]
    names: tuple[str, ...]
    until_s: float
    definitions: list[bytes]


class StreamStatements:
    """The streams of one session, one at a time."""

    def __init__(self, context: SessionContext) -> None:
        self.current: MessageStream | None = None  # the open stream, or None
        self._connection_id = context.connection_id
        # Streams that have ended. Their messages are held until the connection ends.
        self._over: list[MessageStream] = []
        self._state = context.state
        self._connections = context.connections
        self._target = context.compiler.target
        self._registry = context.registry
        self._rights = context.rights
        self._known: _Columns | None = None
        login = context.wire.login
        is_watched = login is not None and login.attributes.get("program_name") in _WATCHED
        self._window_first = FIRST_WATCHED if is_watched else FIRST

    async def run(self, statement: Statement, reply: Reply) -> bool:
        """Stream until the client leaves or an error, which is raised, ends the stream."""
        shape = statement.shape.stream
        assert shape is not None
        view, table = self._target.stream_source(shape.table)
        columns = table.project(shape.columns)
        keys = stream_keys(statement, table)
        prefetch = _prefetch(statement.shape)
        rows_max = None if shape.limit is OPAQUE else _limit(statement, shape.limit)
        wait_s = None if shape.wait is OPAQUE else _wait_s(statement, shape.wait)
        rights = await self._rights.check(view.runtimes, take(table, columns))
        definitions = await self._definitions(view, table, columns, statement.shape)
        encode = self._encoder(table, columns, definitions, binary=reply.binary)
        reply.head(definitions, within_s=0 if rows_max is None else JOINED_WITHIN_S)
        stream = MessageStream(
            reply.link,
            shards=frozenset(shard.name for shard in view.shards) if view.is_narrowed else None,
            keys=keys,
            columns=columns,
            sequence=reply.sequence,
            prefetch=prefetch,
            window_first=self._window_first,
            rows_max=rows_max,
            connection_id=self._connection_id,
            encode=encode,
        )
        self.current = stream
        timer = None
        unwatch = self._rights.desk.watch(rights, stream.end)
        try:
            self._registry.streams.attach(stream, view.keyspace.name, table.name)
            if wait_s is not None:
                loop = asyncio.get_running_loop()
                timer = loop.call_later(wait_s, self._registry.streams.wait_over, stream)
            error = await stream.ended
        finally:
            unwatch()
            if timer is not None:
                timer.cancel()
            self._detach()
            reply.sequence = stream.sequence
        if error is not None:
            raise error
        # Only the leases hold its messages, even after the connection ends.
        self._registry.streams.forget(self._over.pop(), has_left=False)
        reply.end_of_rows()
        return True

    def _encoder(
        self,
        table: MessageTable,
        columns: tuple[str, ...],
        definitions: Sequence[bytes],
        *,
        binary: bool,
    ) -> Callable[[Sequence[RowOfStream]], list[bytes]] | None:
        """Return the function that turns rows into payloads for a client that knows *definitions*; None if they stay unchanged.

        It raises ColumnTypeChanged for a binary row that its server describes differently: its bytes may mean something else.
        """
        read = _reader(definitions, self._state.settings)
        if not binary:
            return read and (lambda rows: [text_row(read(row.payload)) for row in rows])
        binary_rows = BinaryRows(definitions)
        encode = (
            binary_rows.from_text
            if read is None
            else lambda payload: binary_rows.encode(read(payload))
        )
        known = row_types(definitions)
        takes_bytes = self._state.settings.values.get("character_set_results") == "binary"
        same = {b"", known}

        def compare(types: bytes) -> None:
            for column, was, now in zip(columns, known, types, strict=False):
                if was != now and not (takes_bytes and {was, now} == TEXT_OR_BYTES):
                    self._known = None  # so that an immediate STREAM reads the columns again
                    raise ColumnTypeChanged(column, table.name)
            same.add(types)

        def encoded(rows: Sequence[RowOfStream]) -> list[bytes]:
            payloads = []
            for row in rows:
                if row.types not in same:
                    compare(row.types)
                try:
                    payloads.append(encode(row.payload))
                except ValueOfOtherType as error:
                    raise ColumnTypeChanged(columns[error.place], table.name) from None
            return payloads

        return encoded

    def _detach(self) -> None:
        stream, self.current = self.current, None
        if stream is not None:
            self._registry.streams.detach(stream, stream.close())
            self._over.append(stream)

    def close(self) -> None:
        """Release the messages of the streams: the client has left, or has become another user."""
        self._detach()
        while self._over:
            self._registry.streams.forget(self._over.pop(), has_left=True)

    async def definitions(self, statement: Statement) -> list[bytes]:
        """Return the columns of a STREAM. Raises as the STREAM would."""
        shape = statement.shape
        assert shape.stream is not None
        view, table = self._target.stream_source(shape.stream.table)
        return await self._definitions(view, table, table.project(shape.stream.columns), shape)

    async def _definitions(
        self, view: View, table: MessageTable, columns: tuple[str, ...], shape: Shape
    ) -> list[bytes]:
        """Return the column definitions of a stream: recent ones, or those from any shard that answers.

        If no shard answers, it waits like any statement outside a transaction.
        """
        of = view, table, self._state.settings
        now_s, known = asyncio.get_running_loop().time(), self._known
        if (
            known is None
            or now_s >= known.until_s
            or known.names != columns
            or any(map(is_not, known.of, of))
        ):
            definitions = await self._connections.ask_any(
                view.runtimes, lambda shard: self._ask(shard, view, table, columns, shape)
            )
            known = self._known = _Columns(of, columns, now_s + COLUMNS_KNOWN_S, definitions)
        return known.definitions

    async def _ask(
        self,
        shard: ShardRuntime,
        view: View,
        table: MessageTable,
        columns: tuple[str, ...],
        shape: Shape,
    ) -> list[bytes]:
        backend = await self._connections.acquire(shard, view.database, shape)
        packets = [query(columns_query(table, columns))]
        if not backend.in_transaction:
            # Without autocommit even this opens a transaction, and an endless one
            # would block every ALTER and the server's own purge.
            packets.append(query(b"ROLLBACK"))
        try:
            answer, *_ = await self._connections.pipeline(shard, backend, packets)
        finally:
            self._connections.release(shard, backend)
        return answer.columns


def _reader(
    definitions: Sequence[bytes], settings: Settings
) -> Callable[[bytes], list[bytes | None]] | None:
    """Return the function that reads a row of UTF-8, its texts in the client's character set; None if the client reads UTF-8."""
    are_texts = list(map(_is_text, map(parse_column_definition, definitions)))
    encode = settings.results_encoder() if any(are_texts) else None
    if encode is None:
        return None

    def read(payload: bytes) -> list[bytes | None]:
        return [
            encode(value.decode("utf-8", "replace")) if is_text and value is not None else value
            for value, is_text in zip(
                parse_text_row(payload, len(are_texts)), are_texts, strict=True
            )
        ]

    return read


def _is_text(column: ColumnDefinition) -> bool:
    # MySQL sends JSON in the client's character set, but with the type of bytes.
    return column.type == FieldType.JSON or (
        column.type in STRING_TYPES and column.charset != BINARY_CHARSET
    )


def _prefetch(shape: Shape) -> int | None:
    """Return how many messages the stream's hint lets it hold, AUTO for a window; None without a hint."""
    text = shape.directives.get("prefetch")
    if text is None:
        return None
    prefetch = read_prefetch(text)
    if prefetch is None:
        raise BadStreamArgument("PREFETCH", "auto or a whole number, 0 for no limit", text)
    return prefetch


def _limit(statement: Statement, operand: Operand) -> int:
    value = _value(statement, operand)
    number = _number(value)
    if number is not None and number > 0 and number == int(number):
        return min(int(number), COUNT_MAX)
    raise BadStreamArgument("LIMIT", "a whole number greater than 0", _shown(value))


def _wait_s(statement: Statement, operand: Operand) -> float:
    value = _value(statement, operand)
    seconds = _number(value)
    if seconds is not None and seconds >= 0:
        return float(min(seconds, WAIT_MAX_S))
    raise BadStreamArgument("WAIT", "a number of seconds, 0 for not at all", _shown(value))


def _value(statement: Statement, operand: Operand) -> Value:
    values = statement.values((operand,))
    return None if values is None else values[0]


def _number(value: Value) -> int | float | None:
    """Return the value of a number, sent in any type; None if the value is no finite number.

    PHP's mysqli binds its arguments as strings, and Node's mysql2 every number as a DOUBLE.
    """
    if isinstance(value, int):
        return value
    text = value.text.encode() if isinstance(value, Number) else value
    if text is None or _NUMBER.fullmatch(text) is None:
        return None
    number = float(text)
    return number if isfinite(number) else None


def _shown(value: Value) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    return value.text if isinstance(value, Number) else str(value)


def stream_keys(statement: Statement, table: MessageTable) -> frozenset[bytes] | None:
    """Return the literals of the keys that a STREAM on *table* names, None for all. Raises BadStreamKey."""
    shape = statement.shape.stream
    if shape is None or shape.key is None:
        return None
    column = table.key_column
    if column is None:
        raise BadStreamKey(
            f"STREAM … WHERE takes the key of a table, and {table.name} has none:"
            f" ALTER QUEUE {table.name} SET (`key` = column), vt_key in a table's comment"
        )
    if shape.key.lower() != column.lower():
        raise BadStreamKey(
            f"STREAM … WHERE takes {column}, the key of {table.name} (vt_key), and no other column:"
            " acknowledge or reschedule what you do not want"
        )
    if table.key_type in _MANY_SPELLINGS:
        raise BadStreamKey(
            f"STREAM … WHERE takes no key of the type {table.key_type.upper()}, whose values can be written in more than one way:"
            f" stream all keys, or let another column that holds {column} as VARCHAR or as a number be the key"
        )
    if not table.has_priority:
        raise BadStreamKey("STREAM … WHERE needs a table with the column priority")
    values = statement.values(shape.key_values) or ()
    found = {_literal(table, value) for value in values}
    literals = frozenset(each for each in found if each is not None)
    if not 0 < len(values) <= KEYS_MAX or None in found:
        kinds = "numbers" if table.has_number_keys else "strings in quotes"
        raise BadStreamKey(
            f"STREAM … WHERE takes up to {KEYS_MAX} values of {column}, {kinds}; all messages, also those"
            " without a key, go to streams without WHERE"
        )
    return literals


def _literal(table: MessageTable, value: Value) -> bytes | None:
    """Return the SQL text of a key; None for a value that no key can have."""
    if not table.has_number_keys:
        return literal(value) if isinstance(value, bytes) else None
    text = literal(value) if isinstance(value, int | Number) else value or b""
    return text if _KEY_NUMBER.fullmatch(text) else None
