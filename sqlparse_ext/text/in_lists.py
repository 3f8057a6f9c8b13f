"""The IN list of a statement, shared out: the same text with a part of the list each.

A shard that is asked for ids it does not hold locks the gaps where they would be, and with them
the inserts of all others; so a write names to each shard its own ids only.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Final

from streamfrom.sqlparse_ext.text.lexer import Edit, relocate, replace
from streamfrom.sqlparse_ext.text.lexer_patterns import LIST, NUMBER, STRING


if TYPE_CHECKING:
    from streamfrom.sqlparse_ext.statements import ListSlot, Statement


_SLOT: Final = re.compile(b"[" + NUMBER + STRING + LIST + b"]")


def share_list(
    statement: Statement, slot: ListSlot, shares: Iterable[Sequence[int]]
) -> list[bytes]:
    """Return the text of *statement* once for each share, with its part of the list.

    A share is what `statement.raw(slot)` is to be reduced to, by index; never empty.
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
