"""The prepared statements of one session, under ids of its own.

A client's statement outlives the backend connection it was prepared on: what is kept here is
the text, the place where it runs, and what the protocol lets a client say once and use later
(parameter types, long data). `proxy.execution.prepared_execution` finds or makes the statement on whichever
connection an execution lands on.

Long data is kept here and sent with the execution, so it pins no connection. An open cursor
does, until it is read to the end, closed, reset or executed again.
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
from streamfrom.sqlparse_ext.statements import OPAQUE, Param
from streamfrom.sqlparse_ext.text.parameters import parameter_places
from streamfrom.sqlparse_ext.writes.completion import is_ack


if TYPE_CHECKING:
    from streamfrom.engine.messaging.registry import Registry
    from streamfrom.engine.sharding.keyspace import Keyspace
    from streamfrom.proxy.backends.session_variables import Settings
    from streamfrom.proxy.backends.shard import ShardRuntime
    from streamfrom.proxy.execution.prepared_execution import CursorExecution
    from streamfrom.proxy.sql.session_target import StatementTarget
    from streamfrom.proxy.sql.statement_compiler import StatementCompiler
    from streamfrom.sqlparse_ext.statements import Statement


# As many as MySQL's max_prepared_stmt_count lets a whole server have by default.
STATEMENTS_MAX: Final = 16382
# The id by which a client means the statement it prepared last, MariaDB's way to pipeline.
LAST_PREPARED: Final = 0xFFFFFFFF

# What a statement costs beside its text and its parameters' types: 12,000 took 21 MB.
_STATEMENT_BYTES: Final = 1800
# And a piece of long data, however short, of one more parameter.
_PARAMETER_BYTES: Final = 200


@dataclass(slots=True, eq=False)
class PreparedStatement:
    """One prepared statement.

    Attributes:
        id: the statement id that the client sends.
        original: the statement, with the names of real databases.
        place: where the statement runs; None for a statement that the proxy answers itself.
        count: the number of parameters.
        types: the parameter types of the last execution that sent them.
        long_data: the pieces sent for the next execution's parameters, by place.
        fault: the error of a piece, which the next execution answers with.
        cursor, cursor_shard: the execution whose rows are being fetched, and its shard.
        statement: what is prepared on a shard, completed on a message table; None when that
            text changes from call to call (it holds the time, values of a sequence, or names of
            schemas) and is sent as text.
        touches_messages: the statement names a message table.
        is_countable: the proxy can tell which parameter is which.
        memory: the budget that counts the long data.
    """

    original: Statement
    place: StatementTarget | None
    id: int = 0
    count: int = field(init=False)
    types: bytes = b""
    memory: Memory = field(default_factory=Memory)
    long_data: dict[int, bytearray] = field(default_factory=dict)
    fault: StreamfromError | None = None
    cursor: CursorExecution | None = None
    cursor_shard: ShardRuntime | None = None
    statement: Statement | None = field(init=False)
    touches_messages: bool = False
    is_countable: bool = True
    _long_bytes: int = 0
    _ack_at: Param | None = None
    _generation: int = -1
    _keyspace: Keyspace | None = None
    _key: StatementKey | None = None

    def __post_init__(self) -> None:
        self.count = len(parameter_places(self.original.sql, self.original.mode))
        self.statement = self.original

    def settle(self, compiler: StatementCompiler, registry: Registry) -> None:
        """Work out what is sent, anew when message tables or the vschema changed.

        Raises:
            TableLoadError: it names a message table that failed to load.
        """
        assert self.place is not None
        view, original = self.place.view, self.original
        # The hot path: nothing has changed since the last execution.
        if self._generation == registry.generation and self._keyspace is view.keyspace:
            return
        self.statement = original
        self._key = None
        self._ack_at = None
        self.touches_messages = compiler.touches_messages(view, original.shape)
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
        """Take the number of parameters that the server sees.

        Another number than the text shows (some are in a comment that only some servers read)
        means that the proxy cannot tell which is which.
        """
        self.is_countable = count == self.count
        self.count = count

    def key(self, settings: Settings) -> StatementKey:
        """Return what the statement is on a connection with *settings*."""
        key = self._key
        # By identity: session variables are one object for the same contents.
        if key is None or key.reading is not settings.reading:
            assert self.statement is not None
            key = self._key = self.key_of(self.statement, settings)
        return key

    def key_of(self, statement: Statement, settings: Settings) -> StatementKey:
        """Return what *statement*, a form of this one, is on a connection with *settings*."""
        assert self.place is not None
        return StatementKey(statement.sql, self.place.database, settings.reading)

    def take_types(self, body: bytes) -> None:
        """Remember the types in *body*. WireError when there are none and never were."""
        self.types, _ = types_of(body, self.count, self.types)

    def bind(self, statement: Statement, body: bytes, settings: Settings) -> Statement:
        """Return *statement*, a form of this one, with the values of an execution.

        settings: those that the values are read under.

        Raises:
            WireError: *body* is cut.
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
        """True when what would be an ack is bound to NULL, or left out: then it is none."""
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
            self.fault = error.with_traceback(None)  # whose frames hold the piece
            return
        self._long_bytes += more_bytes
        self.long_data.setdefault(parameter, bytearray()).extend(data)

    def drop_long_data(self) -> None:
        """Forget what was sent ahead."""
        self.long_data = {}
        self.fault = None
        self.memory.change(-self._long_bytes)
        self._long_bytes = 0

    @property
    def kept_bytes(self) -> int:
        """What it costs to keep it, long data apart.

        On a message table its text is kept twice, as it came and completed.
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
        """Begin to prepare: nothing is the last one until that is done.

        It takes an id, as on servers, also where nothing comes of it.

        Raises:
            TooManyStatements: the session holds all it may.
        """
        self._last = None
        while True:
            # Ids go round, and LAST_PREPARED itself means the last one to MariaDB's drivers.
            self._id = self._id % (LAST_PREPARED - 1) + 1
            if self._id not in self._statements:
                break
        if len(self._statements) >= self._statements_max:
            raise TooManyStatements(self._statements_max)

    def add(self, prepared: PreparedStatement) -> None:
        """End what `begin` began: *prepared* gets the id.

        Raises:
            ConnectionMemoryExceeded, UserMemoryExceeded: it is too much to keep.
        """
        self._memory.change(prepared.kept_bytes)
        prepared.memory = self._memory
        prepared.id = self._id
        self._statements[self._id] = self._last = prepared

    def get(self, statement_id: int) -> PreparedStatement | None:
        """Return a statement, None where there is none."""
        if statement_id == LAST_PREPARED:
            return self._last
        return self._statements.get(statement_id)

    def find(self, statement_id: int, command: str) -> PreparedStatement:
        """Return a statement. Raises UnknownStatement, which names *command*."""
        found = self.get(statement_id)
        if found is None:
            raise UnknownStatement(statement_id, command)
        return found

    def remove(self, prepared: PreparedStatement) -> None:
        """Forget a statement."""
        if self._statements.pop(prepared.id, None) is not None:
            self._release(prepared)
        if self._last is prepared:
            self._last = None

    def has_cursor(self, shard: ShardRuntime) -> bool:
        """True while a cursor is open on *shard*."""
        return any(each.cursor_shard is shard for each in self._statements.values())

    def clear(self) -> None:
        """Forget all of them: the session begins anew."""
        for prepared in self._statements.values():
            self._release(prepared)
        self._statements.clear()
        self._last = None

    def _release(self, prepared: PreparedStatement) -> None:
        prepared.drop_long_data()
        self._memory.change(-prepared.kept_bytes)
