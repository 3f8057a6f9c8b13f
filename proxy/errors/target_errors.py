"""Where a statement cannot go: keyspaces, replicas, and values that name no shard."""

from __future__ import annotations

from streamfrom.proxy.errors.base import ProxyError


class UnknownDatabase(ProxyError):
    """No keyspace has this name."""

    mysql_code = 1049  # ER_BAD_DB_ERROR
    sqlstate = "42000"
    remedy = "`SHOW DATABASES` lists the keyspaces"

    def __init__(self, name: str) -> None:
        super().__init__(f"Unknown database '{name}'")


class NoDatabaseSelected(ProxyError):
    """The statement names no keyspace, and the session has none."""

    mysql_code = 1046  # ER_NO_DB_ERROR
    sqlstate = "3D000"
    remedy = "`USE` a keyspace, or qualify the name"
    sentence = "No database selected"


class NoSuchVschemaTable(ProxyError):
    """The vschema of a keyspace has no such table. The words, with their code, are Vitess's."""

    mysql_code = 1146  # ER_NO_SUCH_TABLE
    sqlstate = "42S02"
    remedy = "`SHOW VSCHEMA TABLES` lists them"

    def __init__(self, table: str, keyspace: str) -> None:
        super().__init__(f"VT05005: table '{table}' does not exist in keyspace '{keyspace}'")


class NoHealthyReplica(ProxyError):
    """A target `@replica` of a shard whose replicas are all away or behind; Vitess's words first."""

    remedy = "repeat it without `@replica`, or repair the replicas"

    def __init__(self, keyspace: str, shard: str, reason: str) -> None:
        super().__init__(
            f'no healthy tablet available for \'keyspace:"{keyspace}" shard:"{shard}"'
            f" tablet_type:REPLICA': {reason}"
        )


class ReplicaTarget(ProxyError):
    """A statement that may write, in a target `@replica`. The words are Vitess's."""

    mysql_code = 1874  # ER_INNODB_READ_ONLY
    remedy = "`USE` the keyspace"

    def __init__(self, verb: str) -> None:
        super().__init__(f"VT09002: {verb} statement with a replica target")


class StreamOfReplica(ProxyError):
    """A STREAM in a target `@replica`: only a primary can be claimed from. Vitess's words."""

    remedy = "`USE` the keyspace"
    sentence = (
        "VT09009: stream is supported only for primary tablet type, current type: REPLICA"
    )


class MissingVindexColumn(ProxyError):
    """An INSERT into a sharded table does not name the column that decides the shard."""

    mysql_code = 1364  # ER_NO_DEFAULT_FOR_FIELD

    def __init__(self, table: str, column: str) -> None:
        super().__init__(
            f"Field '{column}' doesn't have a default value: table '{table}' is sharded by it,"
            " so every INSERT must give it"
        )


class BadVindexValue(ProxyError):
    """The value of a vindex column is NULL or nothing that the vindex can map."""

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
        """Return what MySQL answers for NULL in a NOT NULL column, else its 1366."""
        return (1048, "23000") if self.is_null else (self.mysql_code, self.sqlstate)
