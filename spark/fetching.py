"""The rows of a SELECT as Arrow columns: the driver sends the query, and `spark.text_rows` reads the rows from its socket.

The driver would create a Python object for each value, which takes longer than everything else.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

import pymysql
from pymysql.constants import COMMAND, CR

from streamfrom.spark.endpoint import DEPRECATE_EOF
from streamfrom.spark.text_rows import ROOM_BYTES, MalformedRowsError, TextRows


if TYPE_CHECKING:
    import pyarrow as pa

READ_BYTES: Final = 1 << 18
_LOST: Final = "Lost connection to MySQL server during query"


def fetch_columns(
    connection: Any,
    statement: str,
    values: "Sequence[Any]" = (),
    kinds: "Sequence[pa.DataType | None]" = (),
) -> "Iterator[list[pa.Array]]":
    """Yield the rows of a SELECT in portions, each with one array per column.

    kinds: the number type in which to read each column; None, or a shorter list, for binary as the server wrote it.

    A portion is about 2 MiB, or one larger row. A caller that stops before the end must drop the connection:
    closing it would first read the rest.

    Raises:
        MySQLError: as the driver raises it, possibly after some rows.
    """
    with connection.cursor() as cursor:
        text = cursor.mogrify(statement, tuple(values))
    connection._execute_command(COMMAND.COM_QUERY, text)
    rows = TextRows(_past_definitions(connection))
    has_ended = rows.received(_buffered(connection, rows.room()))
    while True:
        if rows.error is not None:
            # The error packet, in the driver's format.
            pymysql.err.raise_mysql_exception(rows.error)
        if has_ended or rows.bytes_held >= ROOM_BYTES // 2:
            try:
                columns = rows.take(kinds)
            except MalformedRowsError as error:
                raise pymysql.err.InternalError(CR.CR_MALFORMED_PACKET, str(error)) from error
            if len(columns[0]):
                yield columns
        if has_ended:
            return
        has_ended = rows.received(_received(connection._sock.recv_into, rows.room()))


def _past_definitions(connection: Any) -> int:
    """Skip the column definitions and return the number of columns."""
    count: int = connection._read_packet().read_length_encoded_integer()
    for _ in range(count):
        connection._read_packet()
    if not connection.client_flag & connection.server_capabilities & DEPRECATE_EOF:
        connection._read_packet()
    return count


def _buffered(connection: Any, room: memoryview) -> int:
    """Move the bytes that the driver has buffered, or else the next ones from the socket, into *room*; return their number."""

    def move(room: memoryview) -> int:
        data: bytes = connection._rfile.read1(READ_BYTES)  # read more than its buffer holds
        room[: len(data)] = data
        return len(data)

    return _received(move, room)


def _received(read: "Callable[[memoryview], int]", room: memoryview) -> int:
    try:
        size = read(room)
    except OSError as error:
        raise pymysql.err.OperationalError(CR.CR_SERVER_LOST, f"{_LOST} ({error})") from error
    if not size:
        raise pymysql.err.OperationalError(CR.CR_SERVER_LOST, _LOST)
    return size
