"""Whether servers understand a statement as the client wrote it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from streamfrom.proxy.local_statements.local_answers import is_answered_locally
from streamfrom.proxy.local_statements.show_status import is_session_status
from streamfrom.proxy.routing.planner import qualifiers
from streamfrom.sqlparse_ext.session.schemas import asks_for_schemas
from streamfrom.sqlparse_ext.writes.generated import next_values


if TYPE_CHECKING:
    from streamfrom.proxy.sql.catalog import View
    from streamfrom.proxy.sql.statement_compiler import StatementCompiler
    from streamfrom.sqlparse_ext.statements import Shape


def is_sent_as_written(compiler: StatementCompiler, view: View, shape: Shape) -> bool:
    """Whether servers understand such a statement without other names or values put into it.

    On a message table it may be completed nevertheless; its use of session state is not looked at.
    """
    return not (
        shape.target is not None
        or qualifiers(shape)
        or asks_for_schemas(shape, view.database)
        or is_answered_locally(shape)
        or is_session_status(shape)
        or next_values(shape) is not None
        or compiler.sequence_of(view, shape) is not None
    )
