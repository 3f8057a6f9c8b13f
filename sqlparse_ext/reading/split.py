"""Cuts the text of a multi-statement query into its statements.

Bodies that hold statements of their own stay whole (`sqlparse_ext.reading.statement_boundaries`). DELIMITER is the
client's and never comes here.
"""

from __future__ import annotations

from typing import Final

from streamfrom.sqlparse_ext.reading.statement_boundaries import end_of_statement
from streamfrom.sqlparse_ext.statements import DEFAULT_MODE, SqlMode
from streamfrom.sqlparse_ext.text.lexer import fingerprint, locate
from streamfrom.sqlparse_ext.text.tokens import Token, tokenise


_BLANKS: Final = b" \t\n\r\f\v"
# How much of a statement a server's syntax error quotes.
_SHOWN_BYTES: Final = 80


def split_statements(sql: bytes, mode: SqlMode = DEFAULT_MODE) -> list[bytes]:
    """Return the statements of *sql* in order, without blanks and `;` around them.

    Empty statements are dropped; comments stay with the statement that follows them, and a text
    of comments alone counts as empty. A text without a `;` inside comes back as it is.
    """
    if b";" not in sql.rstrip(b"; \t\n\r\f\v"):
        whole = sql.strip(b"; \t\n\r\f\v")
        return [whole] if whole else []
    template = fingerprint(sql, mode).template
    tokens = tokenise(template).tokens
    # The border before each statement, and each but the last `;`: where a text ends and the
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


def several(sql: bytes, mode: SqlMode, *, on_mariadb: bool) -> str:
    """Return what a server says of *sql*, several statements, where it takes only one."""
    template = fingerprint(sql, mode).template
    tokens = tokenise(template).tokens
    end = end_of_statement(tokens, 0, template)
    (place,) = locate(sql, mode, [tokens[end + 1 if end else 0].start])
    line = sql.count(b"\n", 0, place) + 1
    product = "MariaDB" if on_mariadb else "MySQL"
    return (
        "You have an error in your SQL syntax; check the manual that corresponds to your"
        f" {product} server version for the right syntax to use near"
        f" '{_shown(sql[place:], on_mariadb=on_mariadb)}' at line {line}"
    )


def _shown(text: bytes, *, on_mariadb: bool) -> str:
    """Return as much of *text* as servers quote, MariaDB with dots where there is more."""
    if len(text) <= _SHOWN_BYTES:
        return text.decode("utf-8", "surrogateescape")
    if on_mariadb:
        return text[: _SHOWN_BYTES - 3].decode("utf-8", "ignore") + "..."
    return text[:_SHOWN_BYTES].decode("utf-8", "ignore")
