"""The errors that the engine returns to a client, as one tree.

    StreamfromError
    └── EngineError            1105/HY000
        ├── TableLoadError     1105/HY000  a message table whose definition cannot be used
        ├── TableNotFound      1146/42S02
        ├── TableDropped       1146/42S02  ends the table's streams
        ├── UnknownColumn      1054/42S22
        ├── StreamLost         1105/HY000  a shard failed for longer than the grace period
        ├── KeyspaceError      1105/HY000  key ranges and shard names
        ├── TargetError        1105/HY000  a target such as ``ks:-80@replica``
        ├── VindexError        1105/HY000
        ├── VschemaError       1105/HY000
        ├── SequenceError      1105/HY000  a sequence whose table cannot be used
        └── StoreError         1105/HY000  what the in-memory store raises
            ├── OutcomeUnknown 1105/HY000  the connection broke while the server committed
            ├── TableGone      1105/HY000  the server has no such table any more
            └── PartitionsChanging 1105/HY000  a DDL statement is at work on the partitions of a queue

``ReceiverGone`` is no error of a client's: a receiver raises it to say that nothing was
written because its stream is over.
"""

from __future__ import annotations

from streamfrom.sqlparse_ext.errors import StreamfromError


class EngineError(StreamfromError):
    """A refusal or failure of the engine."""


class TableLoadError(EngineError):
    """A message table whose definition cannot be used; every other table keeps working.

    others: the further reasons, which `streamfrom check` shows.
    """

    others: tuple[str, ...] = ()

    def __init__(self, table: str, reason: str) -> None:
        super().__init__(f"message table '{table}' failed to load: {reason}")
        self.table = table
        self.reason = reason


class TableNotFound(EngineError):
    """No message table of this name is known in the keyspace."""

    mysql_code = 1146  # ER_NO_SUCH_TABLE
    sqlstate = "42S02"

    def __init__(self, keyspace: str, table: str) -> None:
        super().__init__(f"message table '{table}' not found in keyspace '{keyspace}'")
        self.keyspace = keyspace
        self.table = table


class TableDropped(EngineError):
    """The table went away, or is no message table any more, under its open streams."""

    mysql_code = 1146  # ER_NO_SUCH_TABLE
    sqlstate = "42S02"

    def __init__(self, table: str) -> None:
        super().__init__(f"message table '{table}' was dropped; its streams end")
        self.table = table


class UnknownColumn(EngineError):
    """A projection names a column that the table does not have (any more)."""

    mysql_code = 1054  # ER_BAD_FIELD_ERROR
    sqlstate = "42S22"

    def __init__(self, column: str) -> None:
        super().__init__(f"Unknown column '{column}' in 'field list'")
        self.column = column


class StreamLost(EngineError):
    """A shard failed without a break for longer than a stream survives."""

    def __init__(self, keyspace: str, shard: str, grace_s: float, cause: str) -> None:
        super().__init__(
            f"message stream from {keyspace}/{shard} has repeatedly failed"
            f" for longer than {grace_s:g}s: {cause}"
        )
        self.keyspace = keyspace
        self.shard = shard


class KeyspaceError(EngineError):
    """A key range, shard name or keyspace id that does not fit the keyspace."""


class TargetError(EngineError):
    """A target string that cannot be read."""


class VindexError(EngineError):
    """A vindex of unknown type or with unusable parameters."""


class VschemaError(EngineError):
    """A vschema that cannot be loaded."""


class SequenceError(EngineError):
    """A sequence gives no values; the words are Vitess's."""


class StoreError(EngineError):
    """A call of the Store that failed: whatever the backend, or the way to it, did."""


class OutcomeUnknown(StoreError):
    """A transaction whose connection broke, or that got no answer: it may have taken effect."""


class TableGone(StoreError):
    """The server has no such table: it was dropped, and its streams end once the definitions are read again."""


class PartitionsChanging(StoreError):
    """The partitions of a queue cannot be read at this moment: a DDL statement is at work on them."""


class ReceiverGone(Exception):
    """Raised by ``Receiver.deliver``: nothing was written, and nothing ever will be."""
