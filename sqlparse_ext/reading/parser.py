"""From a template to its facts: the first keyword selects the reader of the rest.

Parsing never fails for other servers' SQL: a statement that is not understood is UNPARSED, and the
server judges it. Only STREAM, which no server knows, raises.
"""

from __future__ import annotations

from typing import Final

from streamfrom.sqlparse_ext.reading.queries import (
    QUERY_STARTS,
    read_delete,
    read_insert,
    read_query,
    read_update,
)
from streamfrom.sqlparse_ext.reading.queues import read_stream
from streamfrom.sqlparse_ext.reading.split import are_several
from streamfrom.sqlparse_ext.reading.statement_features import sweep, user_variables
from streamfrom.sqlparse_ext.reading.utility_statements import READERS, explained_at
from streamfrom.sqlparse_ext.statements import Kind, Shape, Statement, Uses
from streamfrom.sqlparse_ext.text.lexer import locate
from streamfrom.sqlparse_ext.text.lexer_patterns import BAD
from streamfrom.sqlparse_ext.text.tokens import (
    Cursor,
    Token,
    is_balanced,
    statement_tokens,
    tokenise,
    trim,
)


_READERS: Final = {
    **READERS,
    **dict.fromkeys(("INSERT", "REPLACE"), read_insert),
    "UPDATE": read_update,
    "DELETE": read_delete,
    "STREAM": read_stream,
}
_WORDS_MAX: Final = 6
# Operators that may come between the words of SHOW COUNT(*) WARNINGS, EXPLAIN FORMAT = JSON.
_BETWEEN_WORDS: Final = frozenset({"=", "(", ")", "*"})


def parse(template: bytes) -> Shape:
    """Return the facts of *template*. Raises StreamSyntaxError for a malformed STREAM."""
    lexed = tokenise(template)
    tokens = trim(lexed.tokens)
    shape = Shape(Kind.OTHER, sweep(tokens), template)
    if not tokens:
        shape.kind = Kind.EMPTY
        return shape
    cursor = Cursor(tokens, template)
    shape.directives = _directives(lexed.hints)
    shape.verb = next((token.key for token in tokens if token.key != "("), "")
    shape.words = _words(tokens)
    if BAD in template or not is_balanced(tokens):
        shape.uses |= Uses.UNPARSED
    if are_several(tokens, template):
        shape.uses |= Uses.MULTIPLE | Uses.UNPARSED
    if shape.uses & Uses.USER_VARIABLE:
        shape.variables = user_variables(tokens, template)
    if cursor.key in QUERY_STARTS:
        read_query(shape, cursor)
    elif reader := _READERS.get(cursor.take().key):
        reader(shape, cursor)
    if shape.uses & Uses.UNPARSED:
        shape.conditions = {}
        shape.condition_only = False
        shape.guards = frozenset()
        shape.assignments = {}
        shape.insert = None
    return shape


def _words(tokens: list[Token]) -> tuple[str, ...]:
    words = []
    for token in tokens[1:]:
        if token.is_word:
            words.append(token.key)
            if len(words) == _WORDS_MAX:
                break
        elif token.key not in _BETWEEN_WORDS:
            break
    return tuple(words)


def _directives(hints: list[bytes]) -> dict[str, str]:
    """Read `/*vt+ KEY=VALUE KEY2 */`; the last of equal keys counts."""
    found = {}
    for hint in hints:
        if hint.startswith(b"/*vt+"):
            for word in hint[5:-2].decode("utf-8", "surrogateescape").split():
                key, equals, value = word.partition("=")
                found[key.lower()] = value if equals else "true"
    return found


def explained_text(statement: Statement) -> bytes | None:
    """Return the statement inside an EXPLAIN, VEXPLAIN or ANALYZE; None if there is none."""
    if statement.shape.kind is not Kind.EXPLAIN:
        return None
    tokens = statement_tokens(statement.shape.template)
    place = explained_at(Cursor(tokens, statement.shape.template, 1))
    if place >= len(tokens):
        return None
    start, end = locate(statement.sql, statement.mode, (tokens[place].start, tokens[-1].end))
    return statement.sql[start:end]
