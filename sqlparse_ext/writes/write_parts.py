"""The text of a write for one of several shards: its part of an IN list, and the LIMIT of a DELETE, which the shards share.

A shard that gets ids it does not hold locks the gaps where they would be, and with them
all other inserts there. So a write names to each shard only its own ids.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Final

from streamfrom.sqlparse_ext.errors import Unsupported
from streamfrom.sqlparse_ext.statements import (
    Kind,
    ListSlot,
    Param,
    Shape,
    Slot,
    Statement,
    Uses,
)
from streamfrom.sqlparse_ext.text.lexer import Edit, relocate, replace, splice
from streamfrom.sqlparse_ext.text.lexer_patterns import LIST, NUMBER, STRING
from streamfrom.sqlparse_ext.text.tokens import statement_tokens


_SLOT: Final = re.compile(b"[" + NUMBER + STRING + LIST + b"]")


def share_list(
    statement: Statement, slot: ListSlot, shares: Iterable[Sequence[int]]
) -> list[bytes]:
    """Return the text of *statement* once for each share, with its part of the list.

    A share lists the indexes to keep of `statement.raw(slot)`; it is never empty.
    """
    literals = statement.raw(slot)
    marks = _SLOT.finditer(statement.shape.template)
    mark = next(islice(marks, int(slot), None))
    edit = Edit(mark.start(), mark.end(), b"")
    (place,) = relocate(statement.sql, statement.mode, [edit])
    return [
        replace(
            statement.sql, [place._replace(text=b", ".join(literals[index] for index in share))]
        )
        for share in shares
    ]


def limit_of(shape: Shape) -> Slot | Param | None:
    """Return the number at the end of `DELETE … LIMIT n`; None for every other statement, and with an ORDER BY."""
    if shape.kind is not Kind.DELETE or shape.uses & (Uses.ORDER | Uses.RETURNING):
        return None
    tokens = statement_tokens(shape.template)
    slot = tokens[-1].slot
    is_limit = len(tokens) > 1 and tokens[-2].key == "LIMIT"
    return slot if is_limit and isinstance(slot, Slot | Param) else None


def rows_max(statement: Statement, limit: Slot | Param) -> int:
    """Return how many rows *statement* deletes at most. Raises Unsupported if that is no whole number."""
    number = statement.known(limit)
    if not isinstance(number, int) or number < 0:
        raise Unsupported(
            "DELETE over several shards with a LIMIT that is no whole number; write the number"
        )
    return number


def with_limit(statement: Statement, rows: int) -> bytes:
    """Return the text of a DELETE that has a `limit_of`, with the limit *rows*."""
    token = statement_tokens(statement.shape.template)[-1]
    edit = Edit(token.start, token.end, b"%d" % rows)
    return splice(statement.sql, statement.mode, [edit])
