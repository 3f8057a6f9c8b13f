"""`SET state = 'acked'`: an ack as the proposal of Vitess's queues writes it.

The column `state` of a queue follows from `time_acked` and `epoch`, so nothing can be stored in it.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Final

from streamfrom.sqlparse_ext.errors import Unsupported
from streamfrom.sqlparse_ext.reading.queries import parts_of_update
from streamfrom.sqlparse_ext.statements import OPAQUE, Kind, Param, Shape, Statement
from streamfrom.sqlparse_ext.text.lexer import Edit, splice
from streamfrom.sqlparse_ext.text.tokens import statement_tokens, unquote


STATE: Final = "state"
_ACKED: Final = b"acked"


def sets_state(shape: Shape) -> bool:
    """Return whether an UPDATE gives the column `state` a value."""
    return STATE in shape.assignments and shape.kind is Kind.UPDATE


def is_state_bound(shape: Shape) -> bool:
    """Return whether an UPDATE that `sets_state` takes the value from a `?`."""
    return isinstance(shape.assignments[STATE], Param)


def acknowledged(statement: Statement) -> bytes:
    """Return the text of an UPDATE that `sets_state`, which sets time_acked instead.

    Raises Unsupported if it sets another state than 'acked', or is no UPDATE of one table.
    """
    shape = statement.shape
    value = statement.known(shape.assignments[STATE])
    cursor, parts = parts_of_update(shape)
    given = [] if parts is None else [a for a in parts.assignments if a.column == STATE]
    if value is OPAQUE or value != _ACKED or len(given) != 1:
        raise Unsupported(
            "a state follows from time_acked and epoch; SET state = 'acked' acknowledges, and"
            " nothing else can be set"
        )
    tokens, (start, end) = cursor.tokens, (given[0].start, given[0].end)
    # The name is behind the comma or SET, perhaps with its table's.
    first = start - 1
    while first > 0 and tokens[first - 1].key not in (",", "SET"):
        first -= 1
    edit = Edit(tokens[first].start, tokens[end - 1].end, b"time_acked = NOW()")
    return splice(statement.sql, statement.mode, [edit])


def preparable(statement: Statement) -> bytes:
    """Return an UPDATE that `sets_state` so that a server prepares it, with the same parameters.

    MySQL prepares none that gives a generated column a value, whatever the value will be.
    """
    tokens = statement_tokens(statement.shape.template)
    template = statement.shape.template
    edits = [
        Edit(token.start, token.end, b"time_acked")
        for token, after in pairwise(tokens)
        if after.key == "=" and token.is_name and unquote(token, template).lower() == STATE
    ]
    return splice(statement.sql, statement.mode, edits[:1])
