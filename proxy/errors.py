"""Everything the proxy itself can refuse, as one tree; code and SQLSTATE stand with each class.

    StreamfromError
    └── ProxyError
        ├── WireError              1835/HY000  bad bytes: closes this connection, no other
        │   ├── OutOfOrder         1156/08S01
        │   ├── PacketTooLarge     1153/08S01
        │   └── CannotUnpack       1157/08S01
        ├── LocalDataDisabled      3948/HY000
        ├── TooManyConnections     1040/08004
        ├── UserLimitReached       1226/42000  closes
        ├── IdleTooLong            4031/HY000  closes
        ├── HostNotAllowed         1130/HY000  closes
        ├── AccessDenied           1045/28000  closes
        ├── InsecureTransport      3159/HY000  closes
        ├── ServerShutdown         1053/08S01  closes
        ├── UnknownDatabase        1049/42000
        ├── NoSuchVschemaTable     1146/42S02
        ├── NoHealthyReplica       1105/HY000
        ├── ReplicaTarget          1874/HY000  a write, where `@replica` is the target
        ├── StreamOfReplica        1105/HY000
        ├── DatabaseAccessDenied   1044/42000
        ├── NoDatabaseSelected     1046/3D000
        ├── CommandDenied          1142/42000
        ├── UnknownCommand         1047/08S01
        ├── NoSuchThread           1094/HY000
        ├── QueryInterrupted       1317/70100
        ├── StatementTimedOut      3024/HY000
        ├── BackendError           a backend's own code, state and words
        │   └── CommitRefused      the same, of one shard for all of them
        ├── BackendUnavailable     1105/HY000  no connection to a shard
        ├── BackendLost            1105/HY000  the connection broke while a statement ran
        ├── PoolTimeout            1105/HY000  all connections of a shard are taken
        ├── NotOwner               1095/HY000  KILL of another user's connection
        ├── EmptyQuery             1065/42000
        ├── MissingVindexColumn    1364/HY000  an INSERT that nobody could route
        ├── BadVindexValue         1048/23000 (NULL) or 1366/HY000
        ├── TransactionSpansShards 1105/HY000  transaction_mode = "single" refuses it
        ├── TransactionBroken      1105/HY000  a shard of the transaction was lost
        ├── PartialCommit          1105/HY000  some shards committed, some did not
        ├── NoDecisionTable        1105/HY000  a shard cannot take part in two phases
        ├── CommitUnknown          1105/HY000  prepared; the shard that decides is away
        ├── CommitPending          1105/HY000  committed; a shard still has to follow
        ├── SessionLost            2013/HY000  session state died with its server: closes
        ├── MergeTooLarge          1038/HY001  more groups to sort than there may be
        ├── NotPreparable          1295/HY000
        ├── UnknownStatement       1243/HY000
        ├── NoOpenCursor           1421/HY000
        ├── BadArguments           1210/HY000
        ├── LongDataTooLarge       1105/HY000  as MySQL, at the execution
        ├── TooManyStatements      1461/42000
        └── InternalError          1105/HY000  a fault of the proxy; the log has the trace

Codes are MySQL's own, with its own words where it has words for the case, so that drivers
react as they do to a server.
https://dev.mysql.com/doc/mysql-errors/8.4/en/server-error-reference.html
"""

from __future__ import annotations

from sqlparse_ext.errors import StreamfromError


class ProxyError(StreamfromError):
    """A refusal or failure of the proxy."""


class WireError(ProxyError):
    """The peer broke the protocol; nothing after these bytes can be trusted."""

    mysql_code = 1835  # ER_MALFORMED_PACKET

    def __init__(self, detail: str) -> None:
        super().__init__(f"Malformed communication packet: {detail}")
        self.detail = detail


class OutOfOrder(WireError):
    """A packet carries another sequence number than its turn."""

    mysql_code = 1156  # ER_NET_PACKETS_OUT_OF_ORDER
    sqlstate = "08S01"

    def __init__(self, got: int, expected: int) -> None:
        super().__init__(f"sequence {got} where {expected} was due")
        self.args = ("Got packets out of order",)
        self.got = got
        self.expected = expected


class PacketTooLarge(WireError):
    """A packet is announced that is larger than this proxy accepts."""

    mysql_code = 1153  # ER_NET_PACKET_TOO_LARGE
    sqlstate = "08S01"

    def __init__(self, bytes_max: int) -> None:
        super().__init__(f"more than {bytes_max} bytes")
        self.args = ("Got a packet bigger than 'max_allowed_packet' bytes",)
        self.bytes_max = bytes_max


class CannotUnpack(WireError):
    """A compressed piece is not what its header says."""

    mysql_code = 1157  # ER_NET_UNCOMPRESS_ERROR
    sqlstate = "08S01"

    def __init__(self) -> None:
        super().__init__("compressed data that cannot be unpacked")
        self.args = ("Couldn't uncompress communication packet",)


class LocalDataDisabled(ProxyError):
    """LOAD DATA LOCAL by a client that said at login that it gives no files."""

    mysql_code = 3948  # ER_CLIENT_LOCAL_FILES_DISABLED

    def __init__(self) -> None:
        super().__init__(
            "Loading local data is disabled; this must be enabled on both the client and"
            " server sides"
        )


class TooManyConnections(ProxyError):
    """The connection limit is reached; told instead of a greeting."""

    mysql_code = 1040  # ER_CON_COUNT_ERROR
    sqlstate = "08004"

    def __init__(self) -> None:
        super().__init__("Too many connections")


class UserLimitReached(ProxyError):
    """A login of a user who has as many connections as the configuration allows."""

    mysql_code = 1226  # ER_USER_LIMIT_REACHED
    sqlstate = "42000"

    def __init__(self, user: str, limit: int) -> None:
        super().__init__(
            f"User '{user}' has exceeded the 'max_connections' resource (current value: {limit})"
        )
        self.user = user
        self.limit = limit


class IdleTooLong(ProxyError):
    """The client has said nothing for `idle_timeout`; told unasked, as MySQL does."""

    mysql_code = 4031  # ER_CLIENT_INTERACTION_TIMEOUT

    def __init__(self) -> None:
        super().__init__(
            "The client was disconnected by the server because of inactivity. See idle_timeout"
            " for configuring this behavior."
        )


class HostNotAllowed(ProxyError):
    """A client from another machine, where the configuration names no users."""

    mysql_code = 1130  # ER_HOST_NOT_PRIVILEGED

    def __init__(self, host: str) -> None:
        super().__init__(
            f"Host '{host}' is not allowed to connect to this server: without [[users]] in its"
            " configuration it serves its own machine only"
        )
        self.host = host


class AccessDenied(ProxyError):
    """The login is refused. Unknown user and wrong password read alike."""

    mysql_code = 1045  # ER_ACCESS_DENIED_ERROR
    sqlstate = "28000"

    def __init__(self, user: str, host: str, *, has_password: bool) -> None:
        using = "YES" if has_password else "NO"
        super().__init__(f"Access denied for user '{user}'@'{host}' (using password: {using})")
        self.user = user
        self.host = host


class InsecureTransport(ProxyError):
    """A login without TLS where TLS is required."""

    mysql_code = 3159  # ER_SECURE_TRANSPORT_REQUIRED

    def __init__(self) -> None:
        super().__init__(
            "Connections using insecure transport are prohibited "
            "while --require_secure_transport=ON."
        )


class ServerShutdown(ProxyError):
    """The proxy is closing down."""

    mysql_code = 1053  # ER_SERVER_SHUTDOWN
    sqlstate = "08S01"

    def __init__(self) -> None:
        super().__init__("Server shutdown in progress")


class UnknownDatabase(ProxyError):
    """No keyspace has this name."""

    mysql_code = 1049  # ER_BAD_DB_ERROR
    sqlstate = "42000"

    def __init__(self, name: str) -> None:
        super().__init__(f"Unknown database '{name}'")
        self.name = name


class NoSuchVschemaTable(ProxyError):
    """The vschema of a keyspace has no such table. The words, with their code, are Vitess's."""

    mysql_code = 1146  # ER_NO_SUCH_TABLE
    sqlstate = "42S02"

    def __init__(self, table: str, keyspace: str) -> None:
        super().__init__(f"VT05005: table '{table}' does not exist in keyspace '{keyspace}'")
        self.table = table
        self.keyspace = keyspace


class NoHealthyReplica(ProxyError):
    """A target `@replica` of a shard whose replicas are all away or behind; Vitess's words first."""

    def __init__(self, keyspace: str, shard: str, reason: str) -> None:
        super().__init__(
            f'no healthy tablet available for \'keyspace:"{keyspace}" shard:"{shard}"'
            f" tablet_type:REPLICA': {reason}"
        )


class ReplicaTarget(ProxyError):
    """A statement that may write, in a target `@replica`. The words are Vitess's."""

    mysql_code = 1874  # ER_INNODB_READ_ONLY

    def __init__(self, verb: str) -> None:
        super().__init__(f"VT09002: {verb} statement with a replica target")


class StreamOfReplica(ProxyError):
    """A STREAM in a target `@replica`: only a primary can be claimed from. Vitess's words."""

    def __init__(self) -> None:
        super().__init__(
            "VT09009: stream is supported only for primary tablet type, current type: REPLICA"
        )


class DatabaseAccessDenied(ProxyError):
    """The keyspace exists, but not for this user."""

    mysql_code = 1044  # ER_DBACCESS_DENIED_ERROR
    sqlstate = "42000"

    def __init__(self, user: str, host: str, database: str) -> None:
        super().__init__(f"Access denied for user '{user}'@'{host}' to database '{database}'")
        self.user = user
        self.database = database


class NoDatabaseSelected(ProxyError):
    """The statement names no keyspace, and the session has none."""

    mysql_code = 1046  # ER_NO_DB_ERROR
    sqlstate = "3D000"

    def __init__(self) -> None:
        super().__init__("No database selected")


class CommandDenied(ProxyError):
    """The user's role does not allow this statement."""

    mysql_code = 1142  # ER_TABLEACCESS_DENIED_ERROR
    sqlstate = "42000"

    def __init__(self, command: str, user: str, host: str, table: str) -> None:
        super().__init__(
            f"{command} command denied to user '{user}'@'{host}' for table '{table}'"
        )
        self.command = command
        self.user = user
        self.table = table


class UnknownCommand(ProxyError):
    """A command byte that the proxy does not serve."""

    mysql_code = 1047  # ER_UNKNOWN_COM_ERROR
    sqlstate = "08S01"

    def __init__(self) -> None:
        super().__init__("Unknown command")


class NoSuchThread(ProxyError):
    """KILL names a connection that does not exist."""

    mysql_code = 1094  # ER_NO_SUCH_THREAD

    def __init__(self, connection_id: int) -> None:
        super().__init__(f"Unknown thread id: {connection_id}")
        self.connection_id = connection_id


class QueryInterrupted(ProxyError):
    """KILL QUERY ended the statement."""

    mysql_code = 1317  # ER_QUERY_INTERRUPTED
    sqlstate = "70100"

    def __init__(self) -> None:
        super().__init__("Query execution was interrupted")


class StatementTimedOut(ProxyError):
    """A statement took longer than `statement_timeout`, and was stopped on its server."""

    mysql_code = 3024  # ER_QUERY_TIMEOUT

    def __init__(self) -> None:
        super().__init__(
            "Query execution was interrupted, maximum statement execution time exceeded"
        )


class BackendError(ProxyError):
    """A backend's own refusal, passed on with its own code and words."""

    def __init__(self, code: int, state: str, text: str) -> None:
        super().__init__(text)
        self.code = code
        self.state = state

    def wire_code(self) -> tuple[int, str]:
        """Return the backend's code and SQLSTATE."""
        return self.code, self.state


class CommitRefused(BackendError):
    """One shard refused to commit in two phases, so all have rolled back; with its code."""

    def __init__(self, shard: str, error: BackendError) -> None:
        super().__init__(
            error.code,
            error.state,
            f"shard '{shard}' refused to commit, and the transaction was rolled back on every"
            f" shard: {error}",
        )


class BackendUnavailable(ProxyError):
    """No connection to a shard can be had. Nothing was sent: the statement may be repeated."""

    def __init__(self, keyspace: str, shard: str, reason: str) -> None:
        super().__init__(
            f"shard {shard!r} of keyspace {keyspace!r} is not available ({reason}); "
            "nothing was executed there: try again once the shard is back"
        )
        self.keyspace = keyspace
        self.shard = shard
        self.reason = reason


class BackendLost(ProxyError):
    """The connection to a shard broke after a statement had been sent."""

    def __init__(self, keyspace: str, shard: str) -> None:
        super().__init__(
            f"lost the connection to shard {shard!r} of keyspace {keyspace!r} during the "
            "statement; whether it took effect is unknown: check before you repeat it"
        )
        self.keyspace = keyspace
        self.shard = shard


class PoolTimeout(ProxyError):
    """Every connection to a shard stayed taken for the whole wait."""

    def __init__(self, keyspace: str, shard: str, waited_s: float) -> None:
        super().__init__(
            f"no free connection to shard {shard!r} of keyspace {keyspace!r} within "
            f"{waited_s:g} s; nothing was executed there: try again, or raise pool_size"
        )
        self.keyspace = keyspace
        self.shard = shard
        self.waited_s = waited_s


class NotOwner(ProxyError):
    """KILL names a connection of another user."""

    mysql_code = 1095  # ER_KILL_DENIED_ERROR

    def __init__(self, connection_id: int) -> None:
        super().__init__(f"You are not owner of thread {connection_id}")
        self.connection_id = connection_id


class EmptyQuery(ProxyError):
    """A statement holds nothing but blanks and comments."""

    mysql_code = 1065  # ER_EMPTY_QUERY
    sqlstate = "42000"

    def __init__(self) -> None:
        super().__init__("Query was empty")


class MissingVindexColumn(ProxyError):
    """An INSERT into a sharded table does not name the column that decides the shard."""

    mysql_code = 1364  # ER_NO_DEFAULT_FOR_FIELD

    def __init__(self, table: str, column: str) -> None:
        super().__init__(
            f"Field '{column}' doesn't have a default value: table '{table}' is sharded by it,"
            " so every INSERT must give it"
        )
        self.table = table
        self.column = column


class BadVindexValue(ProxyError):
    """The value of a vindex column is NULL or nothing that the vindex can map."""

    mysql_code = 1366  # ER_TRUNCATED_WRONG_VALUE_FOR_FIELD

    def __init__(self, table: str, column: str, value: object) -> None:
        super().__init__(
            f"Column '{column}' cannot be null: table '{table}' is sharded by it"
            if value is None
            else f"Incorrect value for column '{column}', by which table '{table}' is sharded"
        )
        self.table = table
        self.column = column
        self.is_null = value is None

    def wire_code(self) -> tuple[int, str]:
        """Return what MySQL answers for NULL in a NOT NULL column, else its 1366."""
        return (1048, "23000") if self.is_null else (self.mysql_code, self.sqlstate)


class TransactionSpansShards(ProxyError):
    """A second shard in one transaction where the configuration forbids it."""

    def __init__(self, first: str, second: str) -> None:
        super().__init__(
            f"this transaction already uses shard '{first}' and may not use '{second}':"
            ' transaction_mode is "single"; roll back, or keep to one shard'
        )


class PartialCommit(ProxyError):
    """A commit over several shards took effect on some of them only."""

    def __init__(self, committed: list[str], failed: list[str], reason: str) -> None:
        super().__init__(
            f"partial commit: committed on {', '.join(committed)};"
            f" not on {', '.join(failed)} ({reason})"
        )
        self.committed = committed
        self.failed = failed


class NoDecisionTable(ProxyError):
    """A shard has no place for the outcome of a transaction over several shards."""

    def __init__(self, table: str, shard: str, reason: str) -> None:
        super().__init__(
            f"a transaction over several shards needs table '{table}' on shard '{shard}', as"
            f' transaction_mode is "twopc": {reason}; `streamfrom check` says what is missing'
        )


class CommitUnknown(ProxyError):
    """The shard that decides was lost in the middle of its commit, and has not come back."""

    def __init__(self, decides: str, prepared: list[str]) -> None:
        super().__init__(
            f"whether the transaction is committed is not known: shard '{decides}' was lost while"
            f" it committed. It is prepared on {', '.join(prepared)} and will be completed or"
            f" rolled back there, as '{decides}' did, once that shard answers: check before you"
            " repeat it"
        )
        self.decides = decides
        self.prepared = prepared


class CommitPending(ProxyError):
    """The transaction is committed, but some shards have not been told so yet."""

    def __init__(self, pending: list[str], reason: str) -> None:
        super().__init__(
            f"the transaction is committed, but not to be seen yet on {', '.join(pending)}"
            f" ({reason}); it is prepared there and will be completed: do not repeat it"
        )
        self.pending = pending


class TransactionBroken(ProxyError):
    """A shard of the transaction was lost, so the transaction is rolled back everywhere."""

    def __init__(self, reason: str, *, ended: bool = False) -> None:
        cure = "nothing was committed" if ended else "send ROLLBACK, then begin again"
        super().__init__(f"the transaction was rolled back because {reason}; {cure}")


class SessionLost(ProxyError):
    """The backend connection with a session's own state (temporary tables, locks) is gone."""

    mysql_code = 2013

    def __init__(self, keyspace: str, shard: str) -> None:
        super().__init__(
            f"lost the connection to shard {shard!r} of keyspace {keyspace!r}, which held state"
            " of this session (variables, temporary tables or locks): connect again"
        )


class MergeTooLarge(ProxyError):
    """Groups of several shards, in an order of their own, are more than may be kept to sort."""

    mysql_code = 1038  # ER_OUT_OF_SORTMEMORY
    sqlstate = "HY001"

    def __init__(self, bytes_max: int) -> None:
        super().__init__(
            f"Out of sort memory: the groups of all shards take more than {bytes_max} bytes in"
            " this order; add a LIMIT, ORDER BY what is grouped, or raise merge_memory"
        )
        self.bytes_max = bytes_max


class NotPreparable(ProxyError):
    """A statement was to be prepared that can only be sent as text."""

    mysql_code = 1295  # ER_UNSUPPORTED_PS

    def __init__(self, what: str) -> None:
        super().__init__(
            f"This command is not supported in the prepared statement protocol yet: {what};"
            " send it as text"
        )


class UnknownStatement(ProxyError):
    """No prepared statement of this session has this id."""

    mysql_code = 1243  # ER_UNKNOWN_STMT_HANDLER

    def __init__(self, statement_id: int, command: str) -> None:
        super().__init__(
            f"Unknown prepared statement handler ({statement_id}) given to {command}"
        )


class NoOpenCursor(ProxyError):
    """Rows are asked of a statement that has no cursor, or whose server is gone."""

    mysql_code = 1421  # ER_STMT_HAS_NO_OPEN_CURSOR

    def __init__(self, statement_id: int) -> None:
        super().__init__(f"The statement ({statement_id}) has no open cursor.")


class BadArguments(ProxyError):
    """The parameters of an execution do not fit the statement."""

    mysql_code = 1210  # ER_WRONG_ARGUMENTS

    def __init__(self, command: str) -> None:
        super().__init__(f"Incorrect arguments to {command}")


class LongDataTooLarge(ProxyError):
    """More long data than a packet may have; told when the statement is executed."""

    def __init__(self) -> None:
        super().__init__(
            "Parameter of prepared statement which is set through mysql_send_long_data() is"
            " longer than 'max_allowed_packet' bytes"
        )


class TooManyStatements(ProxyError):
    """A session holds as many prepared statements as it may."""

    mysql_code = 1461  # ER_MAX_PREPARED_STMT_COUNT_REACHED
    sqlstate = "42000"

    def __init__(self, statements_max: int) -> None:
        super().__init__(
            "Can't create more than max_prepared_stmt_count statements"
            f" (current value: {statements_max}); close some first"
        )


class InternalError(ProxyError):
    """Something unexpected; logged with its trace under the connection id."""

    def __init__(self, connection_id: int) -> None:
        super().__init__(
            f"internal error (connection {connection_id}; the proxy's log says more)"
        )
