"""Statements that a server is sent as the client wrote them, in gbk, big5, sjis and the like too.

A backslash or a quote may be half of a character there, which `sqlparse_ext` does not read when it
puts something into a text in such a character set. In an unsharded keyspace most statements need nothing put in; of these the
facts are read from a masked text (`sqlparse_ext.text.multibyte`). All others are refused by
`Preparation.parse`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from proxy.answers.own_status import is_session_status
from proxy.answers.virtual import is_virtual
from proxy.exchange.recall import ASKS_BACK
from proxy.routing.planner import qualifiers
from sqlparse_ext.session.schemas import asks_for_schemas
from sqlparse_ext.session.variables import named_variables
from sqlparse_ext.statements import Kind, SqlMode, Statement, Uses
from sqlparse_ext.text.lexer import replace
from sqlparse_ext.text.multibyte import masked
from sqlparse_ext.writes.generated import next_values


if TYPE_CHECKING:
    from proxy.exchange.state import SessionState
    from proxy.sql.catalog import View
    from proxy.sql.preparation import Preparation
    from sqlparse_ext.statements import Shape


_KINDS: Final = frozenset(
    {Kind.SELECT, Kind.INSERT, Kind.REPLACE, Kind.UPDATE, Kind.DELETE, Kind.DDL, Kind.SET}
    | {Kind.SHOW, Kind.CALL}
)
_REWRITTEN: Final = (
    Uses.MULTIPLE | Uses.IDENTITY | Uses.ADVISORY_LOCK | Uses.UNPARSED | Uses.LOCAL_INFILE
) | ASKS_BACK


def as_written(preparation: Preparation, state: SessionState, sql: bytes) -> Statement | None:
    """Return the facts of a command's text in such a character set, None where it needs no mask.

    None as well for what cannot be sent as it is. Raises as `Preparation.parse`.
    """
    view = preparation.view
    if state.unread is None or sql.isascii() or view is None or view.is_sharded:
        return None
    escapes = SqlMode.NO_BACKSLASH_ESCAPES not in state.mode
    text = masked(sql, state.unread, backslash_escapes=escapes)
    if text is None:
        return None
    edits = preparation.resolution(text)
    read = preparation.parse(replace(text, edits))
    if not _can_be_masked(preparation, view, read.shape):
        return None
    return Statement(replace(sql, edits), read.mode, read.shape, read.literals, read.runs)


def is_sent_as_written(preparation: Preparation, view: View, shape: Shape) -> bool:
    """Whether servers understand such a statement without other names or values put into it.

    On a message table it may be completed nevertheless; what it uses of its session is not looked at.
    """
    return not (
        shape.target is not None
        or qualifiers(shape)
        or asks_for_schemas(shape, view.database)
        or is_virtual(shape)
        or is_session_status(shape)
        or next_values(shape) is not None
        or preparation.sequence_of(view, shape) is not None
    )


def _can_be_masked(preparation: Preparation, view: View, shape: Shape) -> bool:
    names = [table.name for table in shape.tables]
    return not (
        shape.kind not in _KINDS
        or shape.uses & _REWRITTEN
        # What it is called is not known.
        or any("$" in name for name in (*names, *named_variables(shape)))
        or (shape.kind is Kind.SET and b"@@" in shape.template)
        or not is_sent_as_written(preparation, view, shape)
        or preparation.touches_messages(view, shape)
    )
