"""Recognise SELECTs without side effects: columns of the rows with given values. Pure.

`SELECT a, b FROM t WHERE id = 5` is most of applications' queries. It calls nothing, locks nothing
and sets nothing. So it may run on any connection that reads its text in the same way, and again if its
answer was lost.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import pairwise
from typing import Final

from streamfrom.sqlparse_ext.statements import Kind, Shape, Uses
from streamfrom.sqlparse_ext.text.tokens import statement_tokens


# Checking a prepared IN list of 65,535 `?`s took 100 ms of the loop, and no plain read is long.
_TEMPLATE_BYTES_MAX: Final = 4096
_ALLOWED: Final = Uses.ORDER | Uses.LIMIT
# MariaDB's NEXT VALUE FOR and PREVIOUS VALUE FOR: the first takes a value from a sequence.
_SEQUENCES: Final = frozenset({"NEXT", "PREVIOUS"})


@lru_cache(maxsize=8192)
def is_plain_read(shape: Shape) -> bool:
    """Return whether a statement is `SELECT … FROM one_table WHERE column = value [AND …]` without a call.

    It may have `column IN (values)`, ORDER BY, and LIMIT with one number (with two, only the server knows
    the value of FOUND_ROWS()). Any other form is not plain, nor is a text of more than
    4 KB without its literals.
    """
    return (
        shape.kind is Kind.SELECT
        and len(shape.template) <= _TEMPLATE_BYTES_MAX
        and not shape.uses & ~_ALLOWED
        and not shape.directives
        and len(shape.tables) == 1
        and bool(shape.conditions)
        and shape.condition_only
        and _reads_only(shape)
    )


def _reads_only(shape: Shape) -> bool:
    tokens = statement_tokens(shape.template)
    if any(token.key in _SEQUENCES for token in tokens):
        return False
    if shape.uses & Uses.LIMIT and not (
        tokens[-2].key == "LIMIT" and tokens[-1].slot is not None
    ):
        return False
    # A parenthesis opens an IN list, or else perhaps the arguments of a call.
    return all(before.key == "IN" for before, token in pairwise(tokens) if token.key == "(")
