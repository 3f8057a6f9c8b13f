"""Read SELECT, UPDATE, DELETE, INSERT and REPLACE: their tables, conditions, assignments and lists.

One plainly named table is read from the tokens; `structure` reads statements with more, and
those that it does not know are UNPARSED.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from streamfrom.sqlparse_ext.reading.conditions import WHERE_ENDS, read_operand, read_where
from streamfrom.sqlparse_ext.statements import (
    InsertShape,
    InsertSource,
    Kind,
    Param,
    TableRef,
    Uses,
)
from streamfrom.sqlparse_ext.text.lexer_patterns import CALL_ROWS, ROWS
from streamfrom.sqlparse_ext.text.tokens import (
    Cursor,
    Token,
    split_commas,
    stand_in,
    statement_tokens,
    unquote,
)


if TYPE_CHECKING:
    from streamfrom.sqlparse_ext.statements import Shape


QUERY_STARTS: Final = frozenset({"SELECT", "WITH", "TABLE", "VALUES", "("})
_COMPOUND: Final = Uses.SUBQUERY | Uses.JOIN | Uses.SETOP | Uses.CTE
_INDEX_HINTS: Final = frozenset({"USE", "IGNORE", "FORCE"})
_UPDATE_OPTIONS: Final = frozenset({"LOW_PRIORITY", "IGNORE"})
_DELETE_OPTIONS: Final = frozenset({"LOW_PRIORITY", "QUICK", "IGNORE"})
_UPDATE_ENDS: Final = frozenset({"WHERE", "ORDER", "LIMIT"})
_DML_ENDS: Final = frozenset({"WHERE", "ORDER", "LIMIT", "RETURNING"})
# A word here is no alias.
_FACTOR_ENDS: Final = (
    WHERE_ENDS
    | _DML_ENDS
    | _INDEX_HINTS
    | {"SET", "JOIN", "INNER", "CROSS", "LEFT", "RIGHT", "NATURAL", "STRAIGHT_JOIN", "ON"}
    | {"USING", "PARTITION", "TABLESAMPLE", "SELECT", "VALUES", "VALUE"}
)


class Assignment(NamedTuple):
    """`column = value`; the value is tokens[start:end]."""

    column: str
    start: int
    end: int


class UpdateParts(NamedTuple):
    """The clauses of an UPDATE, as indexes of tokens."""

    table: TableRef | None  # None for several tables
    table_end: int  # the place after the table, its alias and its index hints
    assignments: tuple[Assignment, ...]
    set_end: int  # the place after the last assignment
    # The condition of WHERE, without that word; None without the clause.
    where: tuple[int, int] | None


def read_query(shape: Shape, cursor: Cursor) -> None:
    """Read a statement that starts with SELECT, WITH, TABLE, VALUES or a parenthesis."""
    shape.kind = Kind.SELECT
    if cursor.key == "WITH":
        shape.uses |= Uses.CTE
        # The statement proper is the first of these outside the CTEs' parentheses.
        main = cursor.find(
            {"SELECT", "UPDATE", "DELETE", "INSERT", "REPLACE", "TABLE", "VALUES"}
        )
        verb = Cursor(cursor.tokens, cursor.template, main).key
        if verb in ("UPDATE", "DELETE"):
            shape.kind = Kind(verb)
            rewritten = cursor.tokens[:main] + as_select(cursor.tokens, main + 1, verb)
            _ask_structure(shape, rewritten)
        elif verb in ("INSERT", "REPLACE"):
            shape.kind = Kind(verb)
            shape.uses |= Uses.UNPARSED
        else:
            _ask_structure(shape, cursor.tokens[cursor.at :])
        return
    _read_select(shape, cursor)


def _read_select(shape: Shape, cursor: Cursor) -> None:
    tokens = cursor.tokens
    start = cursor.at
    if any(token.key == "INTO" for token in tokens):
        shape.uses |= Uses.INTO
    if cursor.key == "SELECT":
        cursor.at = cursor.find({"FROM", "UNION", "EXCEPT", "INTERSECT"})
        if cursor.at == len(tokens) and not shape.uses & _COMPOUND:
            return  # no FROM: no table
        if cursor.accept("FROM"):
            table = read_factor(cursor)
            if table is None or cursor.key == ",":
                end = cursor.find(WHERE_ENDS | {"WHERE"})
                if len(split_commas(tokens, cursor.at, end)) > 1:
                    shape.uses |= Uses.JOIN
            elif not cursor.key or cursor.key in WHERE_ENDS | {"WHERE"}:
                _read_single(shape, cursor, table)
                # The usual SELECT: nothing in it can name another table, so sqlglot is not
                # needed.
                if not shape.uses & _COMPOUND:
                    is_dual = table.schema is None and table.name.upper() == "DUAL"
                    shape.tables = () if is_dual else (table,)
                    return
    if shape.uses & Uses.INTO:  # sqlglot reads SELECT … INTO as CREATE TABLE
        shape.uses |= Uses.UNPARSED
    _ask_structure(shape, tokens[start:])


def _read_single(shape: Shape, cursor: Cursor, table: TableRef) -> None:
    """Read the WHERE of a statement on one table."""
    is_part = shape.kind is Kind.SELECT and shape.uses & Uses.SETOP  # of a UNION, perhaps
    if is_part or not cursor.accept("WHERE"):
        return
    start = cursor.at
    end = cursor.find(WHERE_ENDS)
    names = frozenset({(table.alias or table.name).lower()})
    read_where(shape, cursor.tokens, start, end, names)


def _ask_structure(shape: Shape, tokens: list[Token]) -> None:
    from streamfrom.sqlparse_ext.reading.structure import query_tables  # loads sqlglot

    tables = None
    if not shape.uses & Uses.UNPARSED:
        tables = query_tables(tokens, shape.template)
    if tables is None:
        shape.uses |= Uses.UNPARSED
        tables = guess_tables(tokens, shape.template)
    elif len(tables) > 1 and not shape.uses & _COMPOUND:
        shape.uses |= Uses.JOIN
    shape.tables = tables


def guess_tables(tokens: list[Token], template: bytes) -> tuple[TableRef, ...]:
    """Return the names after FROM, JOIN, INTO, UPDATE and TABLE, as the best guess."""
    found = []
    for place, token in enumerate(tokens):
        if token.key in ("FROM", "JOIN", "STRAIGHT_JOIN", "INTO", "UPDATE", "TABLE", "USING"):
            table = Cursor(tokens, template, place + 1).table()
            if table is not None:
                found.append(table)
    return tuple(dict.fromkeys(found))


def read_factor(cursor: Cursor) -> TableRef | None:
    """Read `[schema.]table [PARTITION (…)] [[AS] alias] [index hints]`; None if it has another form."""
    table = cursor.table()
    if table is None or cursor.key in ("(", "."):
        return None
    if cursor.accept("PARTITION") and not cursor.skip_parens():
        return None
    alias = None
    if cursor.accept("AS"):
        alias = cursor.name()
        if alias is None:
            return None
    elif cursor.peek().is_name and cursor.key not in _FACTOR_ENDS:
        alias = cursor.name()
    while cursor.accept_any(_INDEX_HINTS):
        if not cursor.accept_any({"INDEX", "KEY"}):
            return None
        if cursor.accept("FOR") and not (
            cursor.accept("JOIN")
            or cursor.accept("ORDER", "BY")
            or cursor.accept("GROUP", "BY")
        ):
            return None
        if not cursor.skip_parens():
            return None
        cursor.accept(",")
    return TableRef(table.schema, table.name, alias) if alias else table


def read_update(shape: Shape, cursor: Cursor) -> None:
    """Read an UPDATE after its verb."""
    shape.kind = Kind.UPDATE
    start = cursor.at
    parts = update_parts(cursor)
    if parts is None or parts.table is None:
        cursor.at = start
        has_set = cursor.find({"SET"}) < len(cursor.tokens)
        shape.uses |= Uses.JOIN if has_set else Uses.UNPARSED
        _ask_structure(shape, as_select(cursor.tokens, start, "UPDATE"))
        return
    shape.tables = (parts.table,)
    shape.assignments = {
        each.column: read_operand(cursor.tokens, each.start, each.end)
        for each in parts.assignments
    }
    cursor.at = parts.set_end
    _read_single(shape, cursor, parts.table)
    if shape.uses & Uses.SUBQUERY:
        add_subqueries(shape, as_select(cursor.tokens, start, "UPDATE"))


def parts_of_update(shape: Shape) -> tuple[Cursor, UpdateParts | None]:
    """Return a cursor over the tokens of an UPDATE, and its parts; None for the parts of one of several tables."""
    cursor = Cursor(statement_tokens(shape.template), shape.template)
    cursor.at = cursor.find({"UPDATE"}) + 1
    parts = update_parts(cursor)
    return cursor, None if parts is None or parts.table is None else parts


def update_parts(cursor: Cursor) -> UpdateParts | None:
    """Find the clauses of an UPDATE after its verb; None if they cannot be read."""
    cursor.skip_all(_UPDATE_OPTIONS)
    table = read_factor(cursor)
    if cursor.key != "SET":
        table, cursor.at = None, cursor.find({"SET"})
    table_end = cursor.at
    if not cursor.accept("SET"):
        return None
    set_end = cursor.find(_UPDATE_ENDS)
    assignments = read_assignments(cursor, cursor.at, set_end)
    if assignments is None:
        return None
    cursor.at = set_end
    where = None
    if cursor.accept("WHERE"):
        where = cursor.at, cursor.find(_UPDATE_ENDS)
    return UpdateParts(table, table_end, assignments, set_end, where)


def read_assignments(cursor: Cursor, start: int, end: int) -> tuple[Assignment, ...] | None:
    """Read `column = value, …` in tokens[start:end]; None if anything else is there."""
    found = []
    for first, last in split_commas(cursor.tokens, start, end):
        item = Cursor(cursor.tokens, cursor.template, first)
        column = item.name()
        while item.accept("."):
            column = item.name()
        if column is None or not item.accept_any({"=", ":="}) or item.at >= last:
            return None
        found.append(Assignment(column.lower(), item.at, last))
    return tuple(found)


def assigned_columns(template: bytes) -> frozenset[str] | None:
    """Return the columns that an UPDATE of any form assigns, in lower case; None if they are not known."""
    cursor = Cursor(statement_tokens(template), template, 1)
    cursor.at = cursor.find({"SET"}) + 1
    assignments = read_assignments(cursor, cursor.at, cursor.find(_UPDATE_ENDS))
    return None if assignments is None else frozenset(each.column for each in assignments)


def read_delete(shape: Shape, cursor: Cursor) -> None:
    """Read a DELETE after its verb."""
    shape.kind = Kind.DELETE
    start = cursor.at
    cursor.skip_all(_DELETE_OPTIONS)
    if cursor.accept("FROM"):
        table = read_factor(cursor)
        if table is not None and (not cursor.key or cursor.key in _DML_ENDS | {";"}):
            shape.tables = (table,)
            _read_single(shape, cursor, table)
            if shape.uses & Uses.SUBQUERY:
                add_subqueries(shape, as_select(cursor.tokens, start, "DELETE"))
            return
    shape.uses |= Uses.JOIN
    _ask_structure(shape, as_select(cursor.tokens, start, "DELETE"))


def add_subqueries(shape: Shape, tokens: list[Token]) -> None:
    """Add the tables of the subqueries; the target stays first."""
    target = shape.tables
    _ask_structure(shape, tokens)
    shape.tables = tuple(dict.fromkeys(target + shape.tables))


def as_select(tokens: list[Token], start: int, verb: str) -> list[Token]:
    """Write an UPDATE or DELETE as a SELECT of the same tables, for `structure`.

    sqlglot does not know all forms of the two, and only the tables are needed.
    """
    cursor = Cursor(tokens, b"", start)
    if verb == "UPDATE":
        cursor.skip_all(_UPDATE_OPTIONS)
        refs_start = cursor.at
        refs_end = cursor.find({"SET"})
        cursor.at = refs_end + 1
        tail = cursor.find(_DML_ENDS)
        columns = tokens[refs_end + 1 : tail]
    else:
        cursor.skip_all(_DELETE_OPTIONS)
        columns = [stand_in("1")]
        using = cursor.find({"USING", "WHERE"})
        if cursor.key != "FROM":
            refs_start = cursor.find({"FROM"}) + 1
        elif using < len(tokens) and tokens[using].key == "USING":
            refs_start = using + 1
        else:
            refs_start = cursor.at + 1
        cursor.at = refs_start
        refs_end = tail = cursor.find(_DML_ENDS)
        cursor.at = tail
        returning = cursor.find({"RETURNING"})
        if returning < len(tokens):
            columns = tokens[returning + 1 :]
            tokens = tokens[:returning]
    return [
        stand_in("SELECT"),
        *columns,
        stand_in("FROM"),
        *tokens[refs_start:refs_end],
        *tokens[tail:],
    ]


_OPTIONS: Final = frozenset({"LOW_PRIORITY", "DELAYED", "HIGH_PRIORITY", "IGNORE"})
_ROW_MARKS: Final = frozenset({ROWS.decode(), CALL_ROWS.decode()})


def insert_parts(cursor: Cursor) -> InsertShape | None:
    """Find the lists of an INSERT or REPLACE, after its verb; None if it is none."""
    seen = cursor.skip_all(_OPTIONS)
    cursor.accept("INTO")
    table = cursor.table()
    if table is None or (cursor.accept("PARTITION") and not cursor.skip_parens()):
        return None
    columns = _column_list(cursor)
    last = cursor.tokens[cursor.at - 1]
    columns_at = last.end if columns is None else last.start
    if cursor.accept_any({"VALUES", "VALUE"}):
        source = InsertSource.VALUES
        start = cursor.at
        _skip_rows(cursor)
    elif cursor.accept("SET"):
        source = InsertSource.SET
        start = cursor.at
        cursor.at = cursor.find({"AS", "ON", "RETURNING"})
    elif cursor.key in QUERY_STARTS:
        source = InsertSource.SELECT
        start = cursor.at
        cursor.at = _query_end(cursor)
    else:
        return None
    source_at = (start, cursor.at)
    row_alias = None
    if cursor.accept("AS"):
        row_alias = cursor.name()
        cursor.skip_parens()
    duplicate_at = None
    if cursor.accept("ON", "DUPLICATE", "KEY", "UPDATE"):
        duplicate_at = cursor.at, cursor.find({"RETURNING"})
        cursor.at = duplicate_at[1]
    return InsertShape(
        table,
        "IGNORE" in seen,
        columns,
        columns_at,
        source,
        source_at,
        row_alias,
        duplicate_at,
        cursor.key in ("", "RETURNING"),
    )


def _column_list(cursor: Cursor) -> tuple[str, ...] | None:
    """Read `(a, b)`, but not `(SELECT …)`."""
    if cursor.key != "(" or cursor.peek(1).key in QUERY_STARTS:
        return None
    start = cursor.at + 1
    if not cursor.skip_parens():
        return None
    last_names = [
        cursor.tokens[end - 1]
        for first, end in split_commas(cursor.tokens, start, cursor.at - 1)
        if end > first
    ]
    return tuple(unquote(token, cursor.template).lower() for token in last_names)


def _skip_rows(cursor: Cursor) -> None:
    if cursor.accept_any(_ROW_MARKS):
        return
    while True:
        cursor.accept("ROW")
        if not cursor.skip_parens() or not cursor.accept(","):
            return


def _query_end(cursor: Cursor) -> int:
    """Return where the query of INSERT … SELECT ends."""
    behind = Cursor(cursor.tokens, cursor.template, cursor.at)
    while True:
        behind.at = behind.find({"ON", "RETURNING"})
        # Any other ON belongs to a join of the query.
        if behind.key != "ON" or behind.peek(1).key == "DUPLICATE":
            return behind.at
        behind.take()


def read_insert(shape: Shape, cursor: Cursor) -> None:
    """Read an INSERT or REPLACE after its verb."""
    shape.kind = Kind(shape.verb)
    insert = shape.insert = insert_parts(cursor)
    if insert is None:
        shape.uses |= Uses.UNPARSED
        shape.tables = guess_tables(cursor.tokens, shape.template)
        return
    shape.tables = (insert.table,)
    tokens = cursor.tokens
    if insert.source is InsertSource.SET:
        for each in _assignments(shape, cursor, insert.source_at):
            insert.set[each.column] = read_operand(tokens, each.start, each.end)
            insert.set_at[each.column] = tokens[each.start].start, tokens[each.end - 1].end
    if insert.duplicate_at is not None:
        # The template keeps one of each kind of the earlier rows, so `?`s are counted from
        # the end.
        count = sum(isinstance(token.slot, Param) for token in tokens)
        for each in _assignments(shape, cursor, insert.duplicate_at):
            operand = read_operand(tokens, each.start, each.end)
            shape.assignments[each.column] = (
                Param(operand - count) if isinstance(operand, Param) else operand
            )
    if not insert.is_whole:
        shape.uses |= Uses.UNPARSED
    source = tokens[slice(*insert.source_at)]
    expressions = []
    if insert.source is InsertSource.SELECT:
        add_subqueries(shape, source)
    else:
        expressions.append(source)
    if shape.uses & Uses.SUBQUERY:
        if insert.duplicate_at is not None:
            expressions.append(tokens[slice(*insert.duplicate_at)])
        if cursor.accept("RETURNING"):
            expressions.append(tokens[cursor.at :])
        # Rows, assignments and the items of RETURNING read as a SELECT's list.
        query = [stand_in("SELECT"), stand_in("1")]
        for expression in expressions:
            query += [stand_in(","), *expression]
        tables, shape.tables = shape.tables, ()
        add_subqueries(shape, query)
        insert.read_beside = shape.tables
        shape.tables = tuple(dict.fromkeys(tables + insert.read_beside))


def _assignments(shape: Shape, cursor: Cursor, span: tuple[int, int]) -> tuple[Assignment, ...]:
    found = read_assignments(cursor, *span)
    if found is None:
        shape.uses |= Uses.UNPARSED
    return found or ()
