"""CREATE, ALTER and DROP QUEUE that cannot be carried out."""

from __future__ import annotations

from streamfrom.proxy.errors.base import ProxyError


class BadQueue(ProxyError):
    """A statement about a queue names a setting, column or table that cannot be so."""

    mysql_code = 1210  # ER_WRONG_ARGUMENTS
    remedy = "correct what the error names"


class QueueExists(ProxyError):
    """CREATE QUEUE of a table that every shard has."""

    mysql_code = 1050  # ER_TABLE_EXISTS_ERROR
    sqlstate = "42S01"
    remedy = "every shard has it; `IF NOT EXISTS` accepts that"

    def __init__(self, name: str) -> None:
        super().__init__(f"Table '{name}' already exists")


class NoSuchQueue(ProxyError):
    """A statement on a queue that no shard has."""

    mysql_code = 1051  # ER_BAD_TABLE_ERROR
    sqlstate = "42S02"
    remedy = "no shard has it: check the name and the keyspace"

    def __init__(self, name: str) -> None:
        super().__init__(f"Unknown queue '{name}'")
