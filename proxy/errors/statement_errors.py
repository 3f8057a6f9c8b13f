"""Commands and prepared statements that cannot be run or routed, or were stopped."""

from __future__ import annotations

from typing import ClassVar

from streamfrom.proxy.errors.base import ProxyError


class UnknownCommand(ProxyError):
    """A command byte that the proxy does not serve."""

    mysql_code = 1047  # ER_UNKNOWN_COM_ERROR
    sqlstate = "08S01"
    remedy = "the driver sent a command that is not served: configure the driver"
    sentence = "Unknown command"


class EmptyQuery(ProxyError):
    """A statement consists of blanks and comments only."""

    mysql_code = 1065  # ER_EMPTY_QUERY
    sqlstate = "42000"
    remedy = "send a statement"
    sentence = "Query was empty"


class SeveralStatements(ProxyError):
    """A command holds several statements and takes one."""

    mysql_code = 1064  # ER_PARSE_ERROR
    sqlstate = "42000"
    remedy = "send one at a time, or enable your driver's multi-statements"
    sentence = "You have an error in your SQL syntax; the command takes one statement"


class RoundedId(ProxyError):
    """An ack with an id that a driver has rounded: no row matched, and the id of a message in flight rounds to the same double."""

    mysql_code = 1690  # ER_DATA_OUT_OF_RANGE
    sqlstate = "22003"

    def __init__(self, rounded: int, ident: str) -> None:
        super().__init__(
            f"no message has the id {rounded}, and {ident} is in flight: the driver has rounded it, as it makes doubles of"
            " numbers above 2^53. Set supportBigNumbers and bigNumberStrings (Node's mysql2 and mysql), or read ids as text,"
            " CAST(id AS CHAR)"
        )


class BadStreamArgument(ProxyError):
    """A STREAM's LIMIT or WAIT, or its hint PREFETCH, is not a valid number."""

    mysql_code = 1210  # ER_WRONG_ARGUMENTS

    def __init__(self, name: str, expected: str, text: str) -> None:
        shown = text[:40].encode("ascii", "replace").decode()
        super().__init__(f"{name} must be {expected}, not '{shown}'")


class BadStreamKey(ProxyError):
    """The WHERE of a STREAM names no key of its table."""

    mysql_code = 1210  # ER_WRONG_ARGUMENTS
    remedy = "name values of the table's key"


class ColumnTypeChanged(ProxyError):
    """A prepared STREAM whose columns no longer have the types that its client received."""

    mysql_code = 1412  # ER_TABLE_DEF_CHANGED

    def __init__(self, column: str, table: str) -> None:
        super().__init__(
            f"column '{column}' of message table '{table}' has changed its type;"
            " send STREAM again"
        )


class BadMessageId(ProxyError):
    """An id to ack that no message can have."""

    mysql_code = 1210  # ER_WRONG_ARGUMENTS

    def __init__(
        self, kind: str, value: bytes, wanted: str = "a whole number, a text or bytes"
    ) -> None:
        shown = value[:40].decode("ascii", "replace")
        super().__init__(f"an id must be {wanted}, not {kind} '{shown}'")


class QueryInterrupted(ProxyError):
    """KILL QUERY ended the statement."""

    mysql_code = 1317  # ER_QUERY_INTERRUPTED
    sqlstate = "70100"
    remedy = "a `KILL QUERY` stopped it"
    sentence = "Query execution was interrupted"


class ConnectionKilled(ProxyError):
    """A client ended its own connection by KILL."""

    remedy = "a `KILL` ended it: connect again; on MariaDB it is error 1927"

    def __init__(self, *, on_mariadb: bool) -> None:
        super().__init__(
            "Connection was killed" if on_mariadb else "Query execution was interrupted"
        )
        self.on_mariadb = on_mariadb

    def wire_code(self) -> tuple[int, str]:
        """Return MariaDB's own ER_CONNECTION_KILLED; on MySQL the statement is interrupted."""
        return 1927 if self.on_mariadb else 1317, "70100"


class StatementTimedOut(ProxyError):
    """A statement took longer than `statement_timeout`, and was stopped on its server."""

    mysql_code = 3024  # ER_QUERY_TIMEOUT
    remedy = "make it faster, or raise `statement_timeout`"
    sentence = "Query execution was interrupted, maximum statement execution time exceeded"


class MergeTooLarge(ProxyError):
    """Groups of several shards, in an order other than the grouping's, take more memory than allowed for sorting."""

    mysql_code = 1038  # ER_OUT_OF_SORTMEMORY
    sqlstate = "HY001"
    words: ClassVar[str] = (
        "Out of sort memory: the groups of all shards take more than {} bytes in"
        " this order; add a LIMIT, ORDER BY what is grouped, or raise merge_memory"
    )

    def __init__(self, bytes_max: int) -> None:
        super().__init__(self.words.format(bytes_max))


class ReturningTooLarge(MergeTooLarge):
    """The RETURNING rows of several shards take more memory than may be held until all shards have written."""

    words = (
        "Out of sort memory: the rows of RETURNING of all shards take more than {}"
        " bytes, so nothing was written; write fewer rows at once, or raise merge_memory"
    )


class NotPreparable(ProxyError):
    """A client prepared a statement that can only be sent as text."""

    mysql_code = 1295  # ER_UNSUPPORTED_PS

    def __init__(self, what: str) -> None:
        super().__init__(
            f"This command is not supported in the prepared statement protocol yet: {what};"
            " send it as text"
        )


class UnknownStatement(ProxyError):
    """No prepared statement of this session has this id, or this name."""

    mysql_code = 1243  # ER_UNKNOWN_STMT_HANDLER
    remedy = "prepare it again"

    def __init__(self, statement_id: int | str, command: str) -> None:
        super().__init__(
            f"Unknown prepared statement handler ({statement_id}) given to {command}"
        )


class NoOpenCursor(ProxyError):
    """Rows are requested from a statement that has no cursor, or whose server is gone."""

    mysql_code = 1421  # ER_STMT_HAS_NO_OPEN_CURSOR
    remedy = "execute it again"

    def __init__(self, statement_id: int) -> None:
        super().__init__(f"The statement ({statement_id}) has no open cursor.")


class BadArguments(ProxyError):
    """The parameters of an execution do not fit the statement."""

    mysql_code = 1210  # ER_WRONG_ARGUMENTS
    remedy = "give a value for each parameter of the statement"

    def __init__(self, command: str) -> None:
        super().__init__(f"Incorrect arguments to {command}")


class LongDataTooLarge(ProxyError):
    """More long data than fits in a packet; sent when the statement is executed."""

    remedy = "send less, or raise `max_allowed_packet`"
    sentence = (
        "Parameter of prepared statement which is set through mysql_send_long_data() is"
        " longer than 'max_allowed_packet' bytes"
    )


class TooManyStatements(ProxyError):
    """A session holds the maximum number of prepared statements."""

    mysql_code = 1461  # ER_MAX_PREPARED_STMT_COUNT_REACHED
    sqlstate = "42000"

    def __init__(self, statements_max: int) -> None:
        super().__init__(
            "Can't create more than max_prepared_stmt_count statements"
            f" (current value: {statements_max}); close some first"
        )


class BadQueue(ProxyError):
    """A queue statement names a setting, column or table that is invalid."""

    mysql_code = 1210  # ER_WRONG_ARGUMENTS
    remedy = "correct what the error names"


class QueueExists(ProxyError):
    """CREATE QUEUE of a table that exists on every shard."""

    mysql_code = 1050  # ER_TABLE_EXISTS_ERROR
    sqlstate = "42S01"
    remedy = "every shard has it; `IF NOT EXISTS` accepts that"

    def __init__(self, name: str) -> None:
        super().__init__(f"Table '{name}' already exists")


class NoSuchQueue(ProxyError):
    """A statement on a queue that exists on no shard."""

    mysql_code = 1051  # ER_BAD_TABLE_ERROR
    sqlstate = "42S02"
    remedy = "no shard has it: check the name and the keyspace"

    def __init__(self, name: str) -> None:
        super().__init__(f"Unknown queue '{name}'")


class UnknownDatabase(ProxyError):
    """No keyspace has this name."""

    mysql_code = 1049  # ER_BAD_DB_ERROR
    sqlstate = "42000"
    remedy = "`SHOW DATABASES` lists the keyspaces"

    def __init__(self, name: str) -> None:
        super().__init__(f"Unknown database '{name}'")


class KeyspaceRemoved(UnknownDatabase):
    """The configuration was reread and no longer names the keyspace."""

    remedy = "put it back into the configuration, or use another"

    def __init__(self, name: str) -> None:
        ProxyError.__init__(
            self, f"Unknown database '{name}': it was removed from the configuration"
        )


class NoDatabaseSelected(ProxyError):
    """The statement names no keyspace, and the session has none."""

    mysql_code = 1046  # ER_NO_DB_ERROR
    sqlstate = "3D000"
    remedy = "`USE` a keyspace, or qualify the name"
    sentence = "No database selected"


class NoSuchVschemaTable(ProxyError):
    """The vschema of a keyspace has no such table. The text and its code are Vitess's."""

    mysql_code = 1146  # ER_NO_SUCH_TABLE
    sqlstate = "42S02"
    remedy = "`SHOW VSCHEMA TABLES` lists them"

    def __init__(self, table: str, keyspace: str) -> None:
        super().__init__(f"VT05005: table '{table}' does not exist in keyspace '{keyspace}'")


class NoHealthyReplica(ProxyError):
    """A target `@replica` of a shard whose replicas are all away or behind; the text begins with Vitess's."""

    remedy = "repeat it without `@replica`, or repair the replicas"

    def __init__(self, keyspace: str, shard: str, reason: str) -> None:
        super().__init__(
            f'no healthy tablet available for \'keyspace:"{keyspace}" shard:"{shard}"'
            f" tablet_type:REPLICA': {reason}"
        )


class ReplicaTarget(ProxyError):
    """A statement that may write, in a target `@replica`. The text is Vitess's."""

    mysql_code = 1874  # ER_INNODB_READ_ONLY
    remedy = "`USE` the keyspace"

    def __init__(self, verb: str) -> None:
        super().__init__(f"VT09002: {verb} statement with a replica target")


class StreamOfReplica(ProxyError):
    """A STREAM in a target `@replica`: messages can be claimed only on a primary. The text is Vitess's."""

    remedy = "`USE` the keyspace"
    sentence = (
        "VT09009: stream is supported only for primary tablet type, current type: REPLICA"
    )


class MissingVindexColumn(ProxyError):
    """An INSERT into a sharded table omits the column that decides the shard."""

    mysql_code = 1364  # ER_NO_DEFAULT_FOR_FIELD

    def __init__(self, table: str, column: str) -> None:
        super().__init__(
            f"Field '{column}' doesn't have a default value: table '{table}' is sharded by it,"
            " so every INSERT must give it"
        )


class BadVindexValue(ProxyError):
    """The value of a vindex column is NULL or cannot be mapped by the vindex."""

    mysql_code = 1366  # ER_TRUNCATED_WRONG_VALUE_FOR_FIELD
    remedy = "give a value as it says; for `NULL` it is error 1048"

    def __init__(self, table: str, column: str, value: object, hint: str) -> None:
        super().__init__(
            f"Column '{column}' cannot be null: table '{table}' is sharded by it"
            if value is None
            else f"Incorrect value for column '{column}', by which table '{table}' is sharded: {hint}"
        )
        self.is_null = value is None

    def wire_code(self) -> tuple[int, str]:
        """Return MySQL's error for NULL in a NOT NULL column if the value is NULL, else 1366."""
        return (1048, "23000") if self.is_null else (self.mysql_code, self.sqlstate)
