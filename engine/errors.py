"""The errors that the engine returns to a client, as one tree.

``ReceiverGone`` is not returned to a client: a receiver raises it when nothing was
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

    remedy = "correct the comment or the columns"

    others: tuple[str, ...] = ()

    def __init__(self, table: str, reason: str) -> None:
        super().__init__(f"message table '{table}' failed to load: {reason}")
        self.table = table
        self.reason = reason


class TableNotFound(EngineError):
    """No message table of this name is known in the keyspace."""

    mysql_code = 1146  # ER_NO_SUCH_TABLE
    sqlstate = "42S02"
    remedy = "check name and comment; a table made directly on the server is found within `schema_reload`"

    def __init__(self, keyspace: str, table: str) -> None:
        super().__init__(f"message table '{table}' not found in keyspace '{keyspace}'")


class TableDropped(EngineError):
    """The table went away, or is no longer a message table, under its open streams."""

    mysql_code = 1146  # ER_NO_SUCH_TABLE
    sqlstate = "42S02"
    remedy = "create it again, then send `STREAM` again"

    def __init__(self, table: str) -> None:
        super().__init__(f"message table '{table}' was dropped; its streams end")


class UnknownColumn(EngineError):
    """A projection names a column that the table does not have (any more)."""

    mysql_code = 1054  # ER_BAD_FIELD_ERROR
    sqlstate = "42S22"
    remedy = "list columns that exist"

    def __init__(self, column: str) -> None:
        super().__init__(f"Unknown column '{column}' in 'field list'")


class StreamLost(EngineError):
    """A shard failed without a break for longer than a stream survives."""

    remedy = "connect again once the shard is back"

    def __init__(self, keyspace: str, shard: str, grace_s: float, cause: str) -> None:
        super().__init__(
            f"message stream from {keyspace}/{shard} has repeatedly failed"
            f" for longer than {grace_s:g}s: {cause}"
        )


class KeyspaceError(EngineError):
    """A key range, shard name or keyspace id that does not fit the keyspace."""


class TargetError(EngineError):
    """A target such as `ks:-80@replica` that does not exist."""

    remedy = "`SHOW VITESS_SHARDS` lists the shards"


class VindexError(EngineError):
    """A vindex of unknown type or with unusable parameters."""


class VschemaError(EngineError):
    """A vschema that cannot be loaded."""


class SequenceError(EngineError):
    """A sequence gives no values. The text is Vitess's."""

    remedy = "its comment must contain `vitess_sequence`, and its row with id 0 a `cache` of 1 or more; or correct `auto_increment` in the vschema"


class StoreError(EngineError):
    """A call of the Store that failed, in the backend or on the way to it."""


class TableGone(StoreError):
    """The server has no such table: it was dropped, and its streams end once the definitions are read again."""


class NotDispatched(StoreError):
    """This member no longer dispatches the shard, so another one does its work; the elector has logged why."""


class PartitionsChanging(StoreError):
    """The partitions of a queue cannot be read at this moment, because a DDL statement is changing them."""


class ReceiverGone(Exception):
    """Raised by ``Receiver.deliver``: nothing was written, and nothing ever will be."""
