"""Split a text into its statements, and find where one of them ends.

The bodies of stored programs contain statements and stay whole: those of CREATE PROCEDURE,
FUNCTION, TRIGGER and EVENT, and of MariaDB's BEGIN NOT ATOMIC, IF, CASE, LOOP, REPEAT, WHILE and FOR, also after
SET STATEMENT … FOR; in its Oracle mode of DECLARE and BEGIN. DELIMITER is the client's and never comes here.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from streamfrom.sqlparse_ext.reading.statement_features import COMPOUND
from streamfrom.sqlparse_ext.reading.utility_statements import (
    BEHIND_BEGIN,
    OBJECTS,
    STORED_PROGRAMS,
)
from streamfrom.sqlparse_ext.sql_mode import DEFAULT_MODE, SqlMode
from streamfrom.sqlparse_ext.text.lexer import fingerprint, locate
from streamfrom.sqlparse_ext.text.tokens import Cursor, Token, tokenise


_BLANKS: Final = b" \t\n\r\f\v"
# Words that open a block when a statement begins with them, and what stands before a statement.
_BLOCKS: Final = frozenset({"IF", "LOOP", "REPEAT", "WHILE", "FOR"})
_STATEMENT_FOLLOWS: Final = frozenset(
    {";", "THEN", "ELSE", "DO", "BEGIN", "LOOP", "REPEAT", ":", "ROW", ")"}
)
# Words that follow a `;` only inside a body.
_INSIDE: Final = frozenset(
    {"END", "ELSE", "ELSEIF", "ELSIF", "EXCEPTION", "UNTIL", "WHEN", "DECLARE"}
)


def split_statements(sql: bytes, mode: SqlMode = DEFAULT_MODE) -> list[bytes]:
    """Return the statements of *sql* in order, without blanks and `;` around them.

    Empty statements are dropped; comments stay with the statement that follows them, and a text
    that has only comments counts as empty. A text without a `;` inside comes back unchanged.
    """
    if b";" not in sql.rstrip(b"; \t\n\r\f\v"):
        whole = sql.strip(b"; \t\n\r\f\v")
        return [whole] if whole else []
    template = fingerprint(sql, mode).template
    tokens = tokenise(template).tokens
    # The border before each statement, and each `;` but the last: where a text ends and the
    # next one begins. Between two `;` without a token there is nothing, or a comment.
    cuts: list[Token] = []
    empty: list[bool] = []
    start = 0
    while start <= len(tokens):
        end = end_of_statement(tokens, start, template)
        empty.append(end == start)
        if end < len(tokens):
            cuts.append(tokens[end])
        start = end + 1
    places = locate(sql, mode, [place for cut in cuts for place in (cut.start, cut.end)])
    starts = [0, *places[1::2]]
    ends = [*places[::2], len(sql)]
    return [
        sql[start:end].strip(_BLANKS)
        for start, end, nothing in zip(starts, ends, empty, strict=True)
        if not nothing
    ]


def end_of_statement(tokens: list[Token], start: int, template: bytes) -> int:
    """Return the index of the `;` that ends the statement at *start*, or the end."""
    has_body = _has_body(Cursor(tokens, template, start))
    depth = 0
    for place in range(start, len(tokens)):
        key = tokens[place].key
        before = tokens[place - 1].key if place > start else ""
        if key == ";" and not depth:
            return place
        if has_body:
            if key in ("BEGIN", "CASE"):
                depth += before != "END"
            elif key in _BLOCKS:
                begins = place == start or before in _STATEMENT_FOLLOWS
                depth += begins and (key != "FOR" or before != ")")  # … IN (1) FOR UPDATE
            elif key == "END" and depth:
                depth -= 1
    return len(tokens)


def are_several(tokens: list[Token], template: bytes) -> bool:
    """Return whether a text is certainly several statements; it has no `;` around it.

    The end of a body may be found too soon, in Oracle's syntax or after a column called `end`. The
    rest of that body then begins with a word that begins no statement, and the text counts as one
    statement: the server judges it.
    """
    if not any(token.key == ";" for token in tokens):
        return False
    if not _has_body(Cursor(tokens, template)):
        return True
    end = end_of_statement(tokens, 0, template)
    if end == len(tokens):
        return False
    while end < len(tokens):
        start = end + 1
        if _is_inside(Cursor(tokens, template, start)):
            return False
        end = end_of_statement(tokens, start, template)
    return True


def _is_inside(cursor: Cursor) -> bool:
    if cursor.key == "BEGIN":
        # Earlier declarations may be for it.
        return _has_body(cursor) and cursor.peek(1).key != "NOT"
    return cursor.key in _INSIDE


def _has_body(cursor: Cursor) -> bool:
    """Return whether a `;` may be inside this statement: it has a body of statements."""
    behind = Cursor(cursor.tokens, cursor.template, cursor.at)
    while behind.key == "SET" and behind.peek(1).key == "STATEMENT":
        if not _find(behind, {"FOR"}):
            return False
        behind.take()
    if behind.key == "BEGIN":
        return behind.peek(1).key not in BEHIND_BEGIN
    if behind.key in COMPOUND:
        return True
    if behind.key not in ("CREATE", "ALTER"):
        return False
    return _find(behind, OBJECTS) and behind.key in STORED_PROGRAMS


def _find(cursor: Cursor, keys: Collection[str]) -> bool:
    """Move to the next token of *keys* outside parentheses; False if a `;` comes first.

    A `;` in parentheses also ends the search: otherwise a text of many statements, each of which opens
    one and closes none, would be read to its end for each of them.
    """
    depth = 0
    while key := cursor.key:
        depth += (key == "(") - (key == ")")
        if key == ";" or depth < 0:
            return False
        if not depth and key in keys:
            return True
        cursor.take()
    return False
