"""Find the database names in a statement, for every statement of both servers.

One pass over the tokens, by their context and not by the kind of statement, so it also reads the bodies of views, routines,
triggers, events and blocks. A name before a dot is a database's

- in the place of a table: after FROM, JOIN, INTO, UPDATE and similar words, and after the commas of such a list;
- before two more names: `shop.item.id`; and before a call: `shop.f()`;
- in the part before a query or a body: `CALL shop.p`, `DROP TRIGGER shop.tg`, `GRANT … ON shop.*`, `SHOW CREATE VIEW shop.v`.

Elsewhere `a.b` is the column b of a table or alias a. A database stands alone in SHOW … FROM and after DATABASE.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Final, NamedTuple
from weakref import WeakKeyDictionary

from streamfrom.sqlparse_ext.reading.statement_features import (
    COMPOUND,
    FROM_FUNCTIONS,
    SELECT_OPTIONS,
    SEQUENCE_FUNCTIONS,
)
from streamfrom.sqlparse_ext.statements import Kind, Shape, Uses
from streamfrom.sqlparse_ext.text.identifiers import quote_identifier
from streamfrom.sqlparse_ext.text.lexer import Edit
from streamfrom.sqlparse_ext.text.tokens import END, Token, statement_tokens, unquote


class Qualified(Enum):
    """The object that a database's name qualifies."""

    TABLE = "TABLE"
    REFERENCE = "REFERENCE"  # the table of a foreign key
    PROGRAM = "PROGRAM"  # a routine, trigger, event, sequence
    ALONE = "ALONE"


class DatabaseName(NamedTuple):
    """One place of a template that names a database. *behind*: where the qualified name begins."""

    name: str
    role: Qualified
    start: int
    end: int
    behind: int


class TablePlace(NamedTuple):
    """A table that a query reads: template[start:end] is its name, with its database if given."""

    schema: str | None
    name: str
    start: int
    end: int
    has_alias: bool


@dataclass(slots=True)
class Names:
    """The databases that a statement names: filled while it is read, and never changed afterwards."""

    places: list[DatabaseName] = field(default_factory=list)  # in the order of the text
    # The tables in the FROM clauses of queries.
    read: list[TablePlace] = field(default_factory=list)
    # The places of `schema.table.column`.
    columns: list[DatabaseName] = field(default_factory=list)
    # A table is named without its database; common table expressions are no tables.
    has_unqualified_tables: bool = False


# A table follows these, wherever they are.
_BEFORE_TABLE: Final = frozenset({"FROM", "JOIN", "INTO", "TABLE", "TABLES", "REFERENCES"})
_WRITES: Final = frozenset({"INSERT", "REPLACE", "UPDATE", "DELETE", "TRUNCATE"})
# After these a verb begins no statement: ON DUPLICATE KEY UPDATE, FOR UPDATE, BEFORE INSERT OR DELETE ON, CREATE OR REPLACE.
_BEFORE_NO_VERB: Final = frozenset(
    {"KEY", "FOR", "ON", "BEFORE", "AFTER", "OR", "CHARACTER", "UPDATE", "DELETE"}
)
_ENDS_TABLES: Final = frozenset(
    {"WHERE", "GROUP", "HAVING", "ORDER", "LIMIT", "UNION", "EXCEPT", "INTERSECT"}
    | {"SET", "SELECT"}
    | {"VALUES", "VALUE", "WINDOW", "RETURNING", ";", "DO", "THEN", "BEGIN"}
)
# The first words of a statement's code, in which `a.b` is a column.
_BEGINS_CODE: Final = frozenset(
    {"SELECT", "VALUES", "SET", "BEGIN", "RETURN", "WHERE", "DO", "DECLARE", *_WRITES}
)
_CODE: Final = frozenset(
    {Kind.SELECT, Kind.INSERT, Kind.REPLACE, Kind.UPDATE, Kind.DELETE, Kind.SET, Kind.BEGIN}
)
_GRANTS: Final = frozenset({"GRANT", "REVOKE"})
# Words that may come between one of _BEFORE_TABLE or _WRITES and the table.
_TABLE_OPTIONS: Final = frozenset(
    {"LOW_PRIORITY", "DELAYED", "HIGH_PRIORITY", "IGNORE", "QUICK", "IF", "NOT", "EXISTS"}
    | {"LATERAL", "ONLY", "FROM", "INTO", "TABLE"}
)
# Words that may follow a table and are no alias of it.
_NO_ALIAS: Final = frozenset(
    {"ON", "USING", "JOIN", "LEFT", "RIGHT", "INNER", "OUTER", "CROSS", "NATURAL", "FULL"}
    | {"STRAIGHT_JOIN", "USE", "FORCE", "IGNORE", "FOR", "LOCK", "PARTITION", "TABLESAMPLE"}
    | {"INTO", "OFFSET", "FETCH", "END", "ELSE", "AND", "OR", "READ", "WRITE", "PROCEDURE"}
    | {"LOOP", *_ENDS_TABLES}
)
_DATABASE: Final = frozenset({"DATABASE", "SCHEMA"})
_SHOW_FROM: Final = frozenset({"FROM", "IN"})

_KNOWN: Final[WeakKeyDictionary[Shape, Names]] = WeakKeyDictionary()

_EXPRESSION, _TABLE, _BEHIND_TABLE = range(3)


def database_names(shape: Shape) -> Names:
    """Return where a statement names databases. It is worked out once for each shape."""
    found = _KNOWN.get(shape)
    if found is None:
        found = _KNOWN[shape] = _Finder(shape, statement_tokens(shape.template)).names()
    return found


def tables_read(tokens: list[Token], template: bytes) -> list[TablePlace]:
    """Return the tables in the FROM clauses of a query, *tokens* of *template*."""
    return _Finder(Shape(Kind.SELECT, Uses(0), template), tokens).names().read


def renamed(shape: Shape, mapping: Mapping[str, str | None]) -> list[Edit]:
    """Return the edits of the template that replace databases by those of *mapping*; None drops the qualifier."""
    edits = []
    for place in database_names(shape).places:
        if place.name in mapping:
            new = mapping[place.name]
            text = "" if new is None else quote_identifier(new)
            end = place.behind if new is None else place.end
            edits.append(Edit(place.start, end, text.encode("utf-8", "surrogateescape")))
    return edits


@dataclass(slots=True)
class _Nesting:
    """One level of parentheses."""

    state: int
    has_from: bool = True
    has_query: bool = False
    is_read: bool = False


class _Finder:
    def __init__(self, shape: Shape, tokens: list[Token]) -> None:
        self.shape = shape
        self.tokens = tokens
        self.is_code = shape.kind in _CODE or shape.verb in COMPOUND or shape.verb == "DO"
        # Names of tables and aliases; they are no databases if a definition refers to its own columns.
        self.own = {
            name.lower() for table in shape.tables if (name := table.alias or table.name)
        }
        self.common: set[str] = set()
        self.unqualified: set[str] = set()
        self.frames = [_Nesting(_EXPRESSION)]
        self.found = Names()

    def names(self) -> Names:
        place = 0
        while place < len(self.tokens):
            place = self._step(place)
        self.found.has_unqualified_tables = bool(self.unqualified - self.common - {"dual"})
        return self.found

    def _token(self, place: int) -> Token:
        return self.tokens[place] if 0 <= place < len(self.tokens) else END

    def _key(self, place: int) -> str:
        return self._token(place).key

    def _name(self, place: int) -> str:
        return unquote(self.tokens[place], self.shape.template)

    def _step(self, place: int) -> int:
        token, frame = self.tokens[place], self.frames[-1]
        key = token.key
        if key == "(":
            self._open(place)
        elif key == ")":
            if len(self.frames) > 1:
                self.frames.pop()
        elif key == ",":
            if frame.state == _BEHIND_TABLE:
                frame.state = _TABLE
        elif token.is_name and self._key(place + 1) == ".":
            return self._dotted(place)
        elif self._stands_alone(place):
            self._add(place, Qualified.ALONE, token.end)
        elif not self._is_keyword(place) and frame.state == _TABLE and token.is_name:
            frame.state = self._behind_table(place)
            if not (frame.is_read and self._key(place + 1) == "("):  # JSON_TABLE(…)
                self.unqualified.add(self._name(place).lower())
                self._reads(place, place)
        return place + 1

    def _open(self, place: int) -> None:
        frame, before = self.frames[-1], self._key(place - 1)
        if before == "AS":
            self._defines_common(place - 2)
        holds_tables = frame.state == _TABLE or before in SEQUENCE_FUNCTIONS
        if frame.state == _TABLE:
            frame.state = _BEHIND_TABLE
        state = _TABLE if holds_tables else _EXPRESSION
        self.frames.append(
            _Nesting(state, has_from=before not in FROM_FUNCTIONS, is_read=frame.is_read)
        )

    def _behind_table(self, place: int) -> int:
        """Return the state after the table at *place*; after that of a foreign key a comma begins no table."""
        return _EXPRESSION if self._key(place - 1) == "REFERENCES" else _BEHIND_TABLE

    def _defines_common(self, place: int) -> None:
        """Note the name of a common table expression that ends at *place*, before AS: `c` or `c (a, b)`."""
        if self._key(place) == ")":
            while place > 0 and self._key(place) != "(":
                place -= 1
            place -= 1
        if self._token(place).is_name:
            self.common.add(self._name(place).lower())

    def _is_keyword(self, place: int) -> bool:
        """Apply the word at *place* to the names after it; return False if it has no effect on them."""
        frame, key, before = self.frames[-1], self._key(place), self._key(place - 1)
        is_call = self._key(place + 1) == "("
        if key == "TABLES" and frame.state == _TABLE:
            return False  # a table of information_schema: only TABLE is reserved
        if key in _WRITES and (before in _BEFORE_NO_VERB or is_call):
            if key == "UPDATE" and before == "KEY":
                frame.state = _EXPRESSION
            return frame.state != _TABLE
        if (
            key in _BEGINS_CODE
            and before not in _BEFORE_NO_VERB
            and self.shape.verb not in _GRANTS
            and not (key == "SET" and self.shape.verb == "ALTER")
        ):
            self.is_code = True
        if key in _WRITES and (self.is_code or self.shape.kind is Kind.DDL):
            frame.state, frame.is_read = _TABLE, False
        elif key in _ENDS_TABLES:
            frame.state = _EXPRESSION
            if key == "SELECT":
                frame.has_query = frame.is_read = True
            elif key == ";":
                frame.has_query = frame.is_read = False
        elif (frame.state == _TABLE and key in _TABLE_OPTIONS) or (
            key == "FROM" and not frame.has_from
        ):
            pass
        elif key in _BEFORE_TABLE or (
            (key == "STRAIGHT_JOIN" and before not in SELECT_OPTIONS)
            or (key == "CALL")
            or (key == "USING" and self.shape.kind is Kind.DELETE and not is_call)
            or (key == "FOR" and before in ("VALUE", "`VALUE"))
        ):
            frame.state = _TABLE
            if key == "FROM":
                frame.is_read = frame.has_query
            elif key not in ("JOIN", "STRAIGHT_JOIN"):
                frame.is_read = False
        else:
            return False
        return True

    def _stands_alone(self, place: int) -> bool:
        """Return whether the name at *place*, which no dot follows, is a database's."""
        shape, token, before = self.shape, self.tokens[place], self._key(place - 1)
        if not token.is_name or self.is_code:
            return False
        if shape.kind is Kind.EXPLAIN:  # EXPLAIN FOR SCHEMA shop SELECT …
            return before in _DATABASE and self._key(place - 2) == "FOR"
        if self._name(place) != shape.target:
            return False
        if shape.kind is Kind.SHOW:
            # SHOW COLUMNS FROM t FROM t: the database is the last one.
            return before in _SHOW_FROM | _DATABASE | {"EXISTS"} and not any(
                self._key(later) in _SHOW_FROM and self._name(later + 1) == shape.target
                for later in range(place + 1, len(self.tokens) - 1)
                if self.tokens[later + 1].is_name
            )
        return shape.kind is Kind.DDL and before in _DATABASE | {"EXISTS"}

    def _dotted(self, place: int) -> int:
        """Read `a.b`, `a.b.c` or one with `*` at the end, and return the place after it."""
        frame, start = self.frames[-1], place
        place += 1
        count = 1
        while self._key(place) == ".":
            count += 1
            place += 2
        is_table = frame.state == _TABLE
        is_call = self._key(place) == "("
        name = self._name(start).lower()
        behind = self._token(start + 2).start
        if is_table:
            frame.state = self._behind_table(start)
            if count == 2 and self._key(start + 2) == "*":  # DELETE a.* FROM …
                return place
            self._reads(start, start + 2)
            before = self._key(start - 1), self._key(start - 2)
            is_program = before[0] in ("CALL", "FOR") or before[1] in SEQUENCE_FUNCTIONS
            role = Qualified.PROGRAM if is_program else Qualified.TABLE
            self._add(start, Qualified.REFERENCE if before[0] == "REFERENCES" else role, behind)
        elif count > 2:
            self._add(start, Qualified.TABLE, behind)
            self.found.columns.append(self.found.places[-1])
        elif is_call:
            self._add(start, Qualified.PROGRAM, behind)
        elif not self.is_code and not (name in self.own and len(self.frames) > 1):
            self._add(start, self._defined(start), behind)
        return place

    def _defined(self, start: int) -> Qualified:
        """Return the kind of object that a name in the head of a statement qualifies."""
        table = {(ref.schema, ref.name) for ref in self.shape.tables}
        pair = (
            self._name(start),
            self._name(start + 2) if self._token(start + 2).is_name else "",
        )
        return Qualified.TABLE if pair in table else Qualified.PROGRAM

    def _add(self, place: int, role: Qualified, behind: int) -> None:
        token = self.tokens[place]
        found = DatabaseName(self._name(place), role, token.start, token.end, behind)
        self.found.places.append(found)

    def _reads(self, first: int, last: int) -> None:
        after = self._token(last + 1)
        has_alias = after.key == "AS" or (after.is_name and after.key not in _NO_ALIAS)
        if self.frames[-1].is_read:
            self.found.read.append(
                TablePlace(
                    self._name(first) if first < last else None,
                    self._name(last),
                    self.tokens[first].start,
                    self.tokens[last].end,
                    has_alias,
                )
            )
