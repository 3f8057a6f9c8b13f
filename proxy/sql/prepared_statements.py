"""The prepared statements of one session, under the session's own ids.

A client's statement outlives the backend connection on which it was prepared. So the session keeps its text, the place where
it runs, and the data that a client sends before an execution (parameter types, long data). `proxy.execution.prepared_execution`
finds or makes the statement on whichever connection an execution uses.

Long data is kept here and sent with the execution, so it pins no connection. A cursor
on shards does, until it is read to the end, closed, reset or executed again.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from streamfrom.proxy.backends.statement_ids import StatementKey
from streamfrom.proxy.errors import (
    LongDataTooLarge,
    TooManyStatements,
    UnknownStatement,
    WireError,
)
from streamfrom.proxy.memory import Memory
from streamfrom.proxy.wire.binary_parameters import (
    known_value,
    literal_of,
    read_parameters,
    types_of,
)
from streamfrom.sqlparse_ext.errors import StreamfromError
from streamfrom.sqlparse_ext.session.information_schema import asks_by_parameter
from streamfrom.sqlparse_ext.sql_mode import SqlMode
from streamfrom.sqlparse_ext.statements import OPAQUE, Param, Statement
from streamfrom.sqlparse_ext.text.insert_rows import parameter_places
from streamfrom.sqlparse_ext.writes.completion import is_ack


if TYPE_CHECKING:
    from streamfrom.engine.messaging.shell.registry import Registry
    from streamfrom.engine.sharding.keyspace import Keyspace
    from streamfrom.proxy.backends.session_variables import Settings
    from streamfrom.proxy.backends.shard import ShardRuntime
    from streamfrom.proxy.execution.cursors import OpenCursor
    from streamfrom.proxy.sql.compile.session_target import StatementTarget
    from streamfrom.proxy.sql.compile.statement_compiler import StatementCompiler


# The default of MySQL's max_prepared_stmt_count, which is for a whole server.
STATEMENTS_MAX: Final = 16382
# The id that means the statement prepared last; MariaDB's clients pipeline with it.
LAST_PREPARED: Final = 0xFFFFFFFF

# Bytes per statement in addition to its text and its parameters' types: 12,000 statements took 21 MB.
_STATEMENT_BYTES: Final = 1800
# Bytes per parameter with long data, however short the data is.
_PARAMETER_BYTES: Final = 200


@dataclass(slots=True, eq=False)
class PreparedStatement:
    """One prepared statement."""

    original: Statement  # the statement, with the names of real databases
    # Where the statement runs; None for a statement that the proxy answers itself.
    place: StatementTarget | None
    id: int = 0
    count: int = field(init=False)  # the number of parameters
    types: bytes = b""  # the parameter types of the last execution that sent types
    memory: Memory = field(default_factory=Memory)  # the budget that counts the long data
    # The pieces sent for the next execution's parameters, by place.
    long_data: dict[int, bytearray] = field(default_factory=dict)
    # The error of a piece of long data, reported by the next execution.
    fault: StreamfromError | None = None
    cursor: OpenCursor | None = (
        None  # the rows that the client has still to fetch, if it opened a cursor
    )
    # The statement to prepare on a shard, completed on a message table. None if its text changes with each execution
    # (it contains the time, values of a sequence, or names of schemas) and is sent as text.
    statement: Statement | None = field(init=False)
    touches_messages: bool = False
    is_countable: bool = True  # the proxy knows which parameter is which
    _long_bytes: int = 0
    _ack_at: Param | None = None
    _generation: int = -1
    _keyspace: Keyspace | None = None
    _key: StatementKey | None = None

    def __post_init__(self) -> None:
        self.count = len(parameter_places(self.original.sql, self.original.mode))
        self.statement = self.original

    def settle(self, compiler: StatementCompiler, registry: Registry) -> None:
        """Work out `statement`, again after message tables or the vschema have changed. Raises TableLoadError."""
        assert self.place is not None
        view, original = self.place.view, self.original
        # The hot path: nothing has changed since the last execution.
        if self._generation == registry.generation and self._keyspace is view.keyspace:
            return
        self.statement = original
        self._key = None
        self._ack_at = None
        self.touches_messages = compiler.target.touches_messages(view, original.shape)
        if self.touches_messages:
            self.statement = compiler.standing(view, original, self.count)
            assigned = original.shape.assignments.get("time_acked")
            if isinstance(assigned, Param) and is_ack(original.shape):
                self._ack_at = assigned
        if asks_by_parameter(original.shape, view.database) or (
            compiler.sequence_of(view, original.shape) is not None
        ):
            self.statement = None
        self._generation = registry.generation
        self._keyspace = view.keyspace

    def counted(self, count: int) -> None:
        """Take the server's number of parameters.

        If the text shows another number, because some are in a comment that only some servers read, the proxy cannot know
        which parameter is which.
        """
        self.is_countable = count == self.count
        self.count = count

    def key(self, settings: Settings) -> StatementKey:
        """Return the key of the statement among those of a connection with *settings*."""
        key = self._key
        # Compared by identity: session variables with the same contents are one object.
        if key is None or key.reading is not settings.reading:
            assert self.statement is not None
            assert self.place is not None
            key = StatementKey(self.statement.sql, self.place.database, settings.reading)
            self._key = key
        return key

    def take_types(self, body: bytes) -> None:
        """Remember the types in *body*. Raises WireError if there are none and never were."""
        self.types, _ = types_of(body, self.count, self.types)

    def bind(self, statement: Statement, body: bytes, settings: Settings) -> Statement:
        """Return *statement*, a form of this one, with the values of an execution. Raises WireError if *body* is cut off.

        settings: the session variables under which the values are read.
        """
        parameters = read_parameters(body, self.count, self.types, self.long_data)
        if not self.is_countable:
            return statement
        escapes = SqlMode.NO_BACKSLASH_ESCAPES not in statement.mode
        return statement.bind(
            tuple(known_value(each, is_utf8=settings.is_utf8) for each in parameters),
            lambda place: literal_of(parameters[place], backslash_escapes=escapes),
        )

    def takes_back(self, bound: Statement) -> bool:
        """True if ``time_acked`` is bound to NULL or left out in a possible ack, which makes it none."""
        return self._ack_at is not None and bound.argument(self._ack_at) in (None, OPAQUE)

    def add_long_data(self, parameter: int, data: bytes | memoryview, bytes_max: int) -> None:
        """Keep a piece of a parameter for the next execution."""
        if self.fault is not None:
            return
        if parameter >= self.count:
            self.fault = WireError("long data of a parameter that there is not")
            return
        more_bytes = len(data) + (0 if parameter in self.long_data else _PARAMETER_BYTES)
        try:
            if self._long_bytes + more_bytes > bytes_max + _PARAMETER_BYTES * self.count:
                raise LongDataTooLarge
            self.memory.change(more_bytes)
        except StreamfromError as error:
            self.drop_long_data()
            self.fault = error.with_traceback(None)  # its frames would keep the piece
            return
        self._long_bytes += more_bytes
        self.long_data.setdefault(parameter, bytearray()).extend(data)

    def drop_long_data(self) -> None:
        """Drop the long data."""
        self.long_data = {}
        self.fault = None
        self.memory.change(-self._long_bytes)
        self._long_bytes = 0

    @property
    def kept_bytes(self) -> int:
        """The statement's memory in bytes, without its long data.

        On a message table the text is kept twice: as the client sent it, and completed.
        """
        return _STATEMENT_BYTES + 2 * len(self.original.sql) + 2 * self.count


class PreparedStatements:
    """All prepared statements of one session."""

    def __init__(
        self, memory: Memory | None = None, statements_max: int = STATEMENTS_MAX
    ) -> None:
        self._memory = memory or Memory()
        self._statements: dict[int, PreparedStatement] = {}
        self._statements_max = statements_max
        self._id = 0
        self._last: PreparedStatement | None = None

    def begin(self) -> None:
        """Take an id for a statement to prepare; there is no last statement until `add`. Raises TooManyStatements.

        The id is used up even if preparing fails, as on servers.
        """
        self._last = None
        while True:
            # Ids wrap around. LAST_PREPARED is not used, since MariaDB's drivers use it for the statement prepared last.
            self._id = self._id % (LAST_PREPARED - 1) + 1
            if self._id not in self._statements:
                break
        if len(self._statements) >= self._statements_max:
            raise TooManyStatements(self._statements_max)

    def add(self, prepared: PreparedStatement) -> None:
        """Keep *prepared* under the id that `begin` took. Raises ConnectionMemoryExceeded or UserMemoryExceeded."""
        self._memory.change(prepared.kept_bytes)
        prepared.memory = self._memory
        prepared.id = self._id
        self._statements[self._id] = self._last = prepared

    def get(self, statement_id: int) -> PreparedStatement | None:
        """Return a statement by its id; None if there is none."""
        if statement_id == LAST_PREPARED:
            return self._last
        return self._statements.get(statement_id)

    def find(self, statement_id: int, command: str) -> PreparedStatement:
        """Return a statement by its id. Raises UnknownStatement, which names *command*."""
        found = self.get(statement_id)
        if found is None:
            raise UnknownStatement(statement_id, command)
        return found

    def remove(self, prepared: PreparedStatement) -> None:
        """Remove a statement."""
        if self._statements.pop(prepared.id, None) is not None:
            self._release(prepared)
        if self._last is prepared:
            self._last = None

    def has_cursor(self, shard: ShardRuntime) -> bool:
        """True while a cursor is open on *shard*."""
        return any(
            shard is each
            for prepared in self._statements.values()
            if prepared.cursor is not None
            for each, _ in prepared.cursor.on_shards
        )

    def clear(self) -> None:
        """Remove all statements: the session is reset."""
        for prepared in self._statements.values():
            self._release(prepared)
        self._statements.clear()
        self._last = None

    def _release(self, prepared: PreparedStatement) -> None:
        prepared.drop_long_data()
        if prepared.cursor is not None:
            prepared.cursor.drop()
        self._memory.change(-prepared.kept_bytes)
