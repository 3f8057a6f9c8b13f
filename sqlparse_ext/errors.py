"""The root of every error that streamfrom returns to a client, and the errors of the SQL layer.

The lowest package owns the root so that all three may raise it. ``str(error)`` is the
sentence for the client; ``wire_code()`` returns its code and SQLSTATE. Only the
session turns an error into a packet.
"""

from __future__ import annotations

from typing import ClassVar, Final


# The advice for a construct that cannot be used, if its error has none.
_INSTEAD: Final = {
    " over several shards": "; give a value of the vindex column, or ask each shard after USE `keyspace:shard`",
    " in a sharded keyspace": "; USE `keyspace:shard` for one shard",
    " in a batch": "; execute it row by row",
    " ties to one shard": "; give one value for all vindex columns, compare them (in a SELECT), or send one statement after another",
}
NAMED_MAX: Final = 120  # characters of an expression in an error


class StreamfromError(Exception):
    """An error that a client gets. The message is a sentence that explains what to do."""

    mysql_code: ClassVar[int] = 1105  # ER_UNKNOWN_ERROR
    sqlstate: ClassVar[str] = "HY000"
    # The advice in the reference; empty if the sentence itself contains it.
    remedy: ClassVar[str] = ""

    def wire_code(self) -> tuple[int, str]:
        """Return the MySQL error code and the five characters of SQLSTATE."""
        return self.mysql_code, self.sqlstate


class SqlError(StreamfromError):
    """A statement is written wrongly: one that only streamfrom has, such as STREAM."""

    mysql_code = 1064  # ER_PARSE_ERROR
    sqlstate = "42000"
    remedy = "write what the error says that it takes"

    def __init__(self, why: str) -> None:
        super().__init__(f"You have an error in your SQL syntax; {why}")


class TooManyTokens(StreamfromError):
    """A statement that is longer than any that is written or generated on purpose."""

    mysql_code = 3170  # ER_CAPACITY_EXCEEDED, MySQL's own when its parser runs out of capacity

    def __init__(self, tokens_max: int) -> None:
        super().__init__(
            f"the statement has more than {tokens_max} tokens without the literals of rows and IN"
            " lists, as max_statement_tokens of [server] allows; send it in parts"
        )


class WrongLimit(StreamfromError):
    """A value bound to a LIMIT is no number of rows, in a statement that runs as text."""

    mysql_code = 1210  # ER_WRONG_ARGUMENTS

    def __init__(self, bound: str) -> None:
        super().__init__(
            f"Incorrect arguments to LIMIT: {bound[:NAMED_MAX]}; bind whole numbers"
        )


class Unsupported(StreamfromError):
    """Correct SQL whose exact answer this proxy cannot give, so it gives none."""

    mysql_code = 1235  # ER_NOT_SUPPORTED_YET
    sqlstate = "42000"
    remedy = "use what it names, or the [list](refused.md)"

    def __init__(self, construct: str) -> None:
        advice = next((_INSTEAD[end] for end in _INSTEAD if construct.endswith(end)), "")
        super().__init__(f"unsupported: {construct}{advice}")

    @classmethod
    def computing(cls, expression: bytes, reason: str) -> Unsupported:
        """Return the error for an *expression* that cannot be computed exactly from the values of several shards."""
        named = expression.decode("utf-8", "replace")
        return cls(
            f"{named[:NAMED_MAX]}{'…' if named[NAMED_MAX:] else ''} over several shards: {reason};"
            " select its parts and compute in your program, or give a value of the vindex column"
        )


class DelayRefused(StreamfromError):
    """A message would, or may, be scheduled for later, although vt_delayed of its table is off."""

    mysql_code = 1290  # ER_OPTION_PREVENTS_STATEMENT

    def __init__(self, table: str, reason: str) -> None:
        super().__init__(
            f"vt_delayed of message table '{table}' is off, so nothing can be scheduled for later:"
            f" {reason}; leave time_next out, or give it NULL, 0, NOW() or a number in the past"
        )
