"""The `?`s of a statement to be prepared: where they are, and the text with values in their place.

A `?` is code, so it is part of the template and an operand like a literal (`statements.Param`).
What a statement was bound to travels with it (`Statement.arguments`); here are the two questions
that only its text answers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from streamfrom.sqlparse_ext.errors import Unsupported
from streamfrom.sqlparse_ext.text.chunks import marks
from streamfrom.sqlparse_ext.text.lexer_patterns import lexis
from streamfrom.sqlparse_ext.text.multibyte_text import MULTIBYTE, readable


if TYPE_CHECKING:
    from streamfrom.sqlparse_ext.sql_mode import SqlMode
    from streamfrom.sqlparse_ext.statements import Statement


def parameter_places(sql: bytes, mode: SqlMode) -> list[int]:
    """Return where in *sql* its `?`s are, those in strings, names and comments left out."""
    if b"?" not in sql:
        return []
    lex = lexis(mode)
    return list(marks(readable(sql, mode), lex.parameter, lex, 0, len(sql)))


def as_text(statement: Statement) -> bytes:
    """Return the text with what is bound to its `?`s in their places.

    A statement that nothing is bound to comes back as it is.

    Raises:
        Unsupported: a value is no text in the character set of the statement.
    """
    sql = statement.sql
    spell = statement.spell
    if spell is None:
        return sql
    parts: list[bytes] = []
    done = 0
    for index, place in enumerate(parameter_places(sql, statement.mode)):
        spelt = spell(index)
        if int(statement.mode) & MULTIBYTE and not spelt.isascii():
            raise Unsupported(
                "this prepared statement with values beyond ASCII in this charset; SET NAMES utf8mb4"
            )
        parts += (sql[done:place], spelt)
        done = place + 1
    parts.append(sql[done:])
    return b"".join(parts)
