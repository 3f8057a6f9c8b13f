"""The connection or user that a KILL means, also where it names an expression such as `CONNECTION_ID()`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from streamfrom.proxy.errors import NoSuchThread
from streamfrom.proxy.wire.commands import query
from streamfrom.proxy.wire.resultset import parse_text_row
from streamfrom.sqlparse_ext.errors import SqlError, Unsupported
from streamfrom.sqlparse_ext.reading.utility_statements import killed_expression
from streamfrom.sqlparse_ext.statements import KillBy, Kind, Slot, Statement, Uses
from streamfrom.sqlparse_ext.text.tokens import statement_tokens


if TYPE_CHECKING:
    from streamfrom.proxy.execution.executor import Executor
    from streamfrom.proxy.sql.compile.session_target import SessionTarget


def killed_user(statement: Statement) -> str:
    """Return the user that MariaDB's KILL USER means. Raises Unsupported for CURRENT_USER, or one with a host."""
    target = statement.shape.kill
    assert target is not None
    operand = target.operand
    found = statement.value(operand) if isinstance(operand, Slot) else operand
    tokens = statement_tokens(statement.shape.template)
    if isinstance(found, bytes):
        found = found.decode("utf-8", "surrogateescape")
    if not isinstance(found, str) or any(
        token.is_variable or token.key == "CURRENT_USER" for token in tokens
    ):
        raise Unsupported("this form of KILL USER; give the name of a user of the proxy")
    return found


async def killed_id(
    statement: Statement,
    target: SessionTarget,
    executor: Executor,
    with_identity: Callable[[Statement], Awaitable[Statement]],
) -> int:
    """Return the id of the connection that a KILL means; a server computes an expression.

    with_identity: returns a statement with the client's own CONNECTION_ID() and user in it.

    Raises as `Executor.ask`; SqlError or Unsupported if it names no connection, NoSuchThread if it names no id.
    """
    kill = statement.shape.kill
    if kill is None or kill.by is not KillBy.ID:
        raise Unsupported("this form of KILL; give a connection id")
    if not isinstance(kill.operand, Slot):
        expression = killed_expression(statement)
        if not expression:
            raise SqlError("You have an error in your SQL syntax; KILL takes a connection id")
        asked = await with_identity(target.parse(b"SELECT (" + expression + b")"))
        shape = asked.shape
        if shape.kind is not Kind.SELECT or shape.tables or shape.uses & Uses.SUBQUERY:
            raise Unsupported("this form of KILL; give a connection id")
        shard = target.here().runtimes[0]
        database = target.database
        answer = await executor.ask(shard, database, query(asked.sql), shape)
        value = parse_text_row(answer.rows[0])[0] or b""
        number = int(value) if value.isdigit() else None
    else:
        found = statement.value(kill.operand)
        number = found if isinstance(found, int) else None
    if number is None:
        raise NoSuchThread(0)
    return number
