"""Advisory locks in a statement: which ones it asks for, and whether it gives all of them up.

See https://dev.mysql.com/doc/refman/8.4/en/locking-functions.html.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from streamfrom.sqlparse_ext.statements import Slot, Statement, Uses
from streamfrom.sqlparse_ext.text.tokens import Cursor, statement_tokens


# A literal that is the same under every sql_mode and in every character set.
_PLAIN: Final = re.compile(rb"'[^'\\\x80-\xff]*'|[0-9]+")


class LockCalls(NamedTuple):
    """The calls of GET_LOCK and RELEASE_ALL_LOCKS in a statement.

    names: the lock names that are plain literals, as written.
    has_others: a GET_LOCK takes a name that is no plain literal.
    releases_all: the statement releases all locks and takes none.
    """

    names: frozenset[bytes]
    has_others: bool
    releases_all: bool


def lock_calls(statement: Statement) -> LockCalls:
    """Return the calls in the text of *statement*."""
    if not statement.shape.uses & Uses.ADVISORY_LOCK:
        return LockCalls(frozenset(), has_others=False, releases_all=False)
    template = statement.shape.template
    cursor = Cursor(statement_tokens(template), template)
    names: set[bytes] = set()
    has_others = releases_all = False
    while key := cursor.take().key:
        if cursor.key != "(":
            continue
        releases_all |= key == "RELEASE_ALL_LOCKS"
        if key == "GET_LOCK":
            slot = cursor.peek(1).slot
            name = statement.raw(slot)[0] if isinstance(slot, Slot) else b""
            if _PLAIN.fullmatch(name) and cursor.peek(2).key == ",":
                names.add(name)
            else:
                has_others = True
    asks = bool(names) or has_others
    return LockCalls(frozenset(names), has_others, releases_all and not asks)
