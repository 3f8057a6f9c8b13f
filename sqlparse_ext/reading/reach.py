"""What a statement could reach: every table, schema and function that it names, wherever that stands.

`Shape.tables` says where a statement runs. This says what it may touch, for users who may not touch
everything, so it is a second reading by other means: one pass over all tokens, which knows where a
table can stand and takes every other dotted name for a schema's unless a table or alias of the
statement explains it. What it cannot be sure of is a fault, and a fault is refused.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple
from weakref import WeakKeyDictionary

from streamfrom.sqlparse_ext.reading.statement_features import SELECT_OPTIONS
from streamfrom.sqlparse_ext.reading.structure import FROM_FUNCTIONS
from streamfrom.sqlparse_ext.statements import Kind, Uses
from streamfrom.sqlparse_ext.text.lexer_patterns import BAD
from streamfrom.sqlparse_ext.text.tokens import END, Token, tokenise, trim, unquote


if TYPE_CHECKING:
    from streamfrom.sqlparse_ext.statements import Shape


class Reach(NamedTuple):
    """What a statement names.

    tables: (schema, name) of each name that stands where a table can, CTEs included; the schema as written.
    schemas: the names before a dot that are neither a table nor an alias of the statement.
    has_qualified_calls: a function is called by the name of its schema, so it is a stored one.
    has_wide_names: an unquoted name has a character beyond ASCII, which some character sets read as a blank.
    fault: the reason why the text is not understood to its last token; "" for a text that is.
    """

    tables: frozenset[tuple[str | None, str]]
    schemas: frozenset[str]
    has_qualified_calls: bool
    has_wide_names: bool
    fault: str


# Behind these a table stands.
_BEFORE_TABLE: Final = frozenset({"FROM", "JOIN", "INTO", "TABLE", "TABLES", "REFERENCES"})
# And in a definition, where a column can stand nowhere else.
_BEFORE_TABLE_IN_DDL: Final = frozenset({"LIKE", "TO", "RENAME", "ON", "VIEW", "SEQUENCE"})
_SEQUENCE_FUNCTIONS: Final = frozenset({"NEXTVAL", "LASTVAL", "SETVAL"})
_SEQUENCE_COLUMNS: Final = frozenset({"NEXTVAL", "CURRVAL"})
# These end a list of tables on every server: they are reserved words of both.
_ENDS_TABLES: Final = frozenset(
    {"WHERE", "GROUP", "HAVING", "ORDER", "LIMIT", "UNION", "SET", "SELECT", "VALUES"}
)
# May stand between a word of _BEFORE_TABLE and the table.
_TABLE_OPTIONS: Final = frozenset(
    {
        "LOW_PRIORITY",
        "DELAYED",
        "HIGH_PRIORITY",
        "IGNORE",
        "INTO",
        "QUICK",
        "IF",
        "NOT",
        "EXISTS",
    }
    | {"LATERAL", "TABLE", "COLUMN", "INDEX", "KEY", "FROM"}
)
# UPDATE behind these is no statement.
_BEFORE_NO_UPDATE: Final = frozenset({"KEY", "FOR", "ON", "BEFORE", "AFTER"})
# No name but a quoted one is written so, and before a dot there is a name.
_RESERVED: Final = _ENDS_TABLES | {
    *("FROM", "JOIN", "INTO", "REFERENCES", "ON", "USING", "UPDATE", "DELETE", "INSERT", "AS"),
    *("AND", "OR", "NOT", "IN", "LIKE", "BY", "STRAIGHT_JOIN", "CASE", "WHEN", "THEN", "ELSE"),
}
_INSERTS: Final = frozenset({"INSERT", "REPLACE"})
_BEFORE_INTO: Final = _INSERTS | {"LOW_PRIORITY", "DELAYED", "HIGH_PRIORITY", "IGNORE"}
_DEFINES: Final = frozenset({Kind.DDL, Kind.LOCK, Kind.OTHER})
_BRACES: Final = frozenset("{}[]")
_QUOTES: Final = (b"'", b'"', b"`")

_KNOWN: Final[WeakKeyDictionary[Shape, Reach]] = WeakKeyDictionary()

_EXPRESSION, _TABLE, _BEHIND_TABLE = range(3)


@dataclass(slots=True)
class _Frame:
    """One level of parentheses. has_query: a SELECT stands in this level or in one around it."""

    state: int
    has_query: bool
    has_from: bool = True


def reach(shape: Shape) -> Reach:
    """Return what a statement names. It is worked out once for each shape."""
    found = _KNOWN.get(shape)
    if found is None:
        found = _KNOWN[shape] = _read(shape)
    return found


def _read(shape: Shape) -> Reach:
    lexed = tokenise(shape.template)
    tokens = trim(lexed.tokens)
    fault = _fault(shape, tokens)
    if any(quote in hint for hint in lexed.hints for quote in _QUOTES):
        fault = fault or "a hint with a quote in it is not understood"
    if fault:
        return Reach(
            frozenset(),
            frozenset(),
            has_qualified_calls=False,
            has_wide_names=False,
            fault=fault,
        )
    return _Walk(shape, tokens).reach()


def _fault(shape: Shape, tokens: list[Token]) -> str:
    if shape.uses & Uses.UNPARSED or BAD in shape.template:
        return "it is not understood to its end"
    before = END
    for token in tokens:
        key = token.key
        if key in _BRACES:
            return f"'{key}' is not understood here"
        if key == "PROCEDURE" and shape.kind not in (Kind.SHOW, Kind.DDL):
            return "PROCEDURE is not understood here"
        if key == "INTO" and before.key not in _BEFORE_INTO:
            return "INTO is not understood here"
        if key == "." and (not before.is_name or before.key in _RESERVED):
            return "a dot behind no name is not understood"
        if any("\udc80" <= char <= "\udcff" for char in key):
            return "a name that is not in UTF-8 is not understood"
        before = token
    return ""


class _Walk:
    """One pass over the tokens of a statement."""

    def __init__(self, shape: Shape, tokens: list[Token]) -> None:
        self.shape = shape
        self.tokens = tokens
        self.defines = shape.kind in _DEFINES
        self.frames = [_Frame(_EXPRESSION, has_query=not self.defines)]
        self.tables: set[tuple[str | None, str]] = set()
        self.schemas: set[str] = set()
        self.names: set[str] = set()
        self.columns_of: set[str] = set()
        self.has_qualified_calls = False
        self.fault = ""

    def reach(self) -> Reach:
        place = 0
        while place < len(self.tokens):
            place = self._step(place)
        # `a.b` names a column of table or alias a, or a table b of schema a: without an a among
        # the tables the worse is assumed.
        unexplained = {name for name in self.columns_of if name.lower() not in self.names}
        return Reach(
            frozenset(self.tables),
            frozenset(self.schemas | unexplained),
            self.has_qualified_calls,
            any(token.is_word and not token.key.isascii() for token in self.tokens),
            self.fault,
        )

    def _key(self, place: int) -> str:
        return self.tokens[place].key if 0 <= place < len(self.tokens) else ""

    def _step(self, place: int) -> int:
        token, frame = self.tokens[place], self.frames[-1]
        key = token.key
        if token.is_name and self._key(place + 1) == ".":
            return self._dotted(place)
        if key == "(":
            self._open(place)
        elif key == ")":
            if len(self.frames) > 1:
                self.frames.pop()
        elif key == ",":
            if frame.state == _BEHIND_TABLE:
                frame.state = _TABLE
        else:
            self._keyword_or_table(place)
        return place + 1

    def _open(self, place: int) -> None:
        frame, before = self.frames[-1], self._key(place - 1)
        holds_tables = (
            frame.state == _TABLE
            or before in _SEQUENCE_FUNCTIONS
            or (before == "USING" and self.shape.kind is Kind.DELETE)
        )
        if frame.state == _TABLE:
            frame.state = _BEHIND_TABLE
        self.frames.append(
            _Frame(
                _TABLE if holds_tables else _EXPRESSION,
                has_query=frame.has_query,
                has_from=before not in FROM_FUNCTIONS,
            )
        )

    def _keyword_or_table(self, place: int) -> None:
        token, frame = self.tokens[place], self.frames[-1]
        key, before = token.key, self._key(place - 1)
        if key in _ENDS_TABLES:
            frame.state = _EXPRESSION
            frame.has_query = frame.has_query or key == "SELECT"
        elif (frame.state == _TABLE and key in _TABLE_OPTIONS) or (
            key == "FROM" and not frame.has_from
        ):
            pass
        elif (
            key in _BEFORE_TABLE
            or (self.defines and key in _BEFORE_TABLE_IN_DDL)
            or (key in _INSERTS and (not place or before in ("EXPLAIN", "DESCRIBE", "ANALYZE")))
            or (key == "UPDATE" and before not in _BEFORE_NO_UPDATE)
        ):
            frame.state = _TABLE
        elif (
            key == "DELETE"
            and before not in _BEFORE_NO_UPDATE
            and self._key(place + 1) != "FROM"
        ):
            frame.state = _TABLE  # DELETE a, b FROM …
        elif (
            (key == "STRAIGHT_JOIN" and before not in SELECT_OPTIONS)
            or (key == "USING" and self._key(place + 1) != "(" and len(self.frames) == 1)
            or (key == "FOR" and before == "VALUE")
        ):
            frame.state = _TABLE
        elif (
            key == "VALUE"
            and self.shape.kind in (Kind.INSERT, Kind.REPLACE)
            and len(self.frames) == 1
        ):
            frame.state = _EXPRESSION
        elif frame.state == _TABLE:
            frame.state = _BEHIND_TABLE
            if token.is_name:
                name = unquote(token, self.shape.template)
                self.tables.add((None, name))
                self.names.add(name.lower())
        elif token.is_name and (frame.state == _BEHIND_TABLE or before == "AS"):
            # An alias: what it stands for has been named already.
            self.names.add(unquote(token, self.shape.template).lower())

    def _dotted(self, place: int) -> int:
        """Read `a.b`, `a.b.c` or one with `*` at the end, and return the place behind it."""
        frame = self.frames[-1]
        parts = [unquote(self.tokens[place], self.shape.template)]
        place += 1
        while self._key(place) == ".":
            last = self.tokens[place + 1] if place + 1 < len(self.tokens) else END
            if not (last.is_name or last.key == "*"):
                self.fault = "a dot before no name is not understood"
                return place + 1
            parts.append("*" if last.key == "*" else unquote(last, self.shape.template))
            place += 2
        if frame.state == _TABLE:
            frame.state = _BEHIND_TABLE
            self.tables.add((parts[0], parts[1]))
            self.names.add(parts[1].lower())
            if parts[1] == "*":  # DELETE a.* FROM …
                self.tables.discard((parts[0], "*"))
                self.columns_of.add(parts[0])
            if len(parts) > 2 and parts[2] != "*":
                self.fault = "a table's name of three parts is not understood"
        elif len(parts) > 2 or self._key(place) == "(" or not frame.has_query:
            self.schemas.add(parts[0])
            self.has_qualified_calls |= self._key(place) == "("
        else:
            self.columns_of.add(parts[0])
        if parts[-1].upper() in _SEQUENCE_COLUMNS:
            self.fault = "a sequence's value is not understood here"
        return place
