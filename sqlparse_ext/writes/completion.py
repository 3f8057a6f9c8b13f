"""Complete the statements on a message table before they are sent.

An UPDATE that acknowledges becomes the whole idiom, an UPDATE of unacked messages by their ids names its
index, time functions become nanoseconds, and rows of the first layout get their defaults. Bytes are spliced into the client's text; the changes are
found once per shape. Measured (CPython 3.11): 13 µs for an ack.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import accumulate, islice, pairwise
from typing import TYPE_CHECKING, Final, NamedTuple

from streamfrom.sqlparse_ext.errors import Unsupported
from streamfrom.sqlparse_ext.reading.queries import (
    UpdateParts,
    assigned_columns,
    parts_of_update,
)
from streamfrom.sqlparse_ext.sql_mode import DEFAULT_MODE
from streamfrom.sqlparse_ext.statements import (
    OPAQUE,
    InsertSource,
    Kind,
    Param,
    Shape,
    Statement,
    Uses,
)
from streamfrom.sqlparse_ext.stored_forms import StoredForm, stored_form
from streamfrom.sqlparse_ext.text.insert_rows import InsertRows, insert_rows
from streamfrom.sqlparse_ext.text.lexer import (
    Edit,
    fingerprint,
    locate,
    relocate,
    replace,
    splice,
)
from streamfrom.sqlparse_ext.text.lexer_patterns import NUMBER, ROWS, STRING
from streamfrom.sqlparse_ext.text.tokens import Cursor, Token, statement_tokens, unquote
from streamfrom.sqlparse_ext.writes.moments import (
    check_literals,
    check_moments,
    check_value,
    moment_edits,
    moment_plan,
    refusal,
    value_plan,
)
from streamfrom.sqlparse_ext.writes.times import NO_MOMENTS, NOW_WORDS, TimeColumns, time_words


if TYPE_CHECKING:
    from streamfrom.sqlparse_ext.statements import InsertShape


_TIME_COLUMNS: Final = frozenset({"time_acked", "time_next"})
_FIRST_LAYOUT_TIME_COLUMNS: Final = _TIME_COLUMNS | {"time_scheduled", "time_created"}
# After the value of time_acked: the delivery that no lease has counted. A message that was not due was not
# delivered. Servers assign from left to right, and MariaDB all at once if its mode says so: then, and if time_next
# was assigned before, the compared value is NULL. There are no numbers, since inserted text has no literals.
COUNT_SEND: Final = (
    b", epoch = IF(epoch, epoch, IFNULL(IFNULL(time_next, FALSE) <= time_acked, TRUE))"
)
# In the value of time_acked: some rows may get NULL, as by an ORM's `CASE id WHEN … END`, and keep their lease.
_CHOICES: Final = frozenset({"CASE", "COALESCE", "IF", "IFNULL", "NULL", "NULLIF", "SELECT"})
_IF_ACKED: Final = b", time_next = CASE WHEN time_acked IS NULL THEN time_next END"
_LITERAL: Final = re.compile(b"[" + NUMBER + STRING + b"]")
NO_STRUCTURE: Final = Uses.UNPARSED | Uses.MULTIPLE
_SEVERAL_TABLES: Final = Uses.JOIN | Uses.CTE


@dataclass(frozen=True, slots=True)
class TableFacts:
    """The facts of a message table that this module needs."""

    name: str
    id_column: str
    default_priority: int
    default_time_next_ns: int | None  # the default of time_next; None for NULL
    columns: frozenset[str]  # all columns, in lower case
    first_layout: bool  # the table has time_scheduled and time_created
    id_auto_increment: bool
    # The id is a number and the primary key begins with it. A text may be compared with a number or another character set,
    # and then no index can be used.
    by_primary: bool = False
    # The columns, in lower case, to which an INSERT without a column list gives values.
    in_order: tuple[str, ...] = ()
    has_state: bool = False  # the table has a queue's computed column `state`
    # An acknowledged message may have been delivered although its row does not show it.
    is_lazy: bool = False
    acks_early: bool = False  # an ack may be answered before it is written
    refuses_delays: bool = False  # no message may be scheduled for later
    # The columns, in lower case, that decide after which messages another one comes.
    groups: frozenset[str] = frozenset()
    # The stored forms of its ids, which identify messages.
    id_form: StoredForm = field(default_factory=lambda: stored_form(None), compare=False)
    # The columns whose new values change when a message is delivered.
    decisive: frozenset[str] = field(init=False, repr=False, compare=False)
    times: TimeColumns = field(init=False, repr=False, compare=False)  # the time columns

    def __post_init__(self) -> None:
        names = _FIRST_LAYOUT_TIME_COLUMNS if self.first_layout else _TIME_COLUMNS
        # For a statement that names no other table; remaking it would cost every statement.
        object.__setattr__(self, "times", TimeColumns(names, frozenset(), self.in_order))
        object.__setattr__(self, "decisive", _TIME_COLUMNS | {"priority"} | self.groups)


class Completion(NamedTuple):
    """The text to send instead of a statement."""

    text: bytes
    # All insertions, as edits of the template, if none of them has a literal; else nothing.
    words: tuple[Edit, ...] = ()


def complete(
    statement: Statement,
    facts: TableFacts | None,
    now_ns: int,
    times: TimeColumns | None = None,
) -> Completion | None:
    """Return the text to send instead of *statement*; None to send it unchanged.

    *facts* are of the statement's target, its first table; None if that is no message table.
    *times* are the time columns of all its tables; without it, of the target alone. Completing
    the result again changes nothing. Raises Unsupported if a time column is next to a moment that cannot be nanoseconds.
    """
    shape = statement.shape
    if shape.uses & Uses.MULTIPLE:
        return None
    if times is None:
        assert facts is not None
        times = facts.times
    # Cached by shape. Only the values differ from statement to statement.
    moments = moment_plan(shape, times)
    edits: list[Edit] = []
    if moments is not NO_MOMENTS:
        check_moments(moments, statement)
        edits = moment_edits(moments, statement, now_ns)
    in_text: list[Edit] = []
    words: tuple[Edit, ...] = ()
    if shape.kind is Kind.UPDATE and shape.uses & _SEVERAL_TABLES:
        _check_no_ack(shape, facts)
    if facts is not None and not shape.uses & NO_STRUCTURE:
        if shape.kind is Kind.UPDATE:
            words = _words(statement, facts)
            # The usual ack: only fixed words go in, so no literal moves and the new
            # text needs no second reading.
            if words and not edits:
                return Completion(
                    replace(statement.sql, edits_of_text(statement, words)), words
                )
            edits += words
        elif shape.kind in (Kind.INSERT, Kind.REPLACE) and shape.insert is not None:
            in_text = _complete_insert(statement, facts, now_ns, edits)
    if edits:
        in_text += edits_of_text(statement, edits)
    return Completion(replace(statement.sql, in_text)) if in_text else None


def _words(statement: Statement, facts: TableFacts) -> tuple[Edit, ...]:
    shape = statement.shape
    plan = _update_plan(shape, is_lazy=facts.is_lazy)
    return (
        plan.hinted if facts.by_primary and facts.id_column in shape.conditions else plan.fixed
    )


def edits_of_text(statement: Statement, edits: Sequence[Edit]) -> Sequence[Edit]:
    """Return *edits* of the template as edits of the text, like `relocate`. Most texts are laid out like their templates."""
    if statement.mode is not DEFAULT_MODE:
        return relocate(statement.sql, statement.mode, edits)
    # If the text begins like its template, except for the literals, nothing need be searched for: reading
    # the 100 ids of an ack to find places before them was 9 % of a drain.
    begin = statement.shape.template[: max(edit.end for edit in edits)]
    parts = _LITERAL.split(begin)
    # In the order of the text, unless there is a list; the comparison below detects that.
    literals = tuple(islice(statement.literals, len(parts) - 1))
    code, places = [parts[0]], [len(parts[0])]
    for literal, part in zip(literals, parts[1:], strict=True):
        code += (literal, part)
        places.append(places[-1] + 1 + len(part))
    if not statement.sql.startswith(b"".join(code)):
        return relocate(statement.sql, statement.mode, edits)
    grown = [0, *accumulate(len(literal) - 1 for literal in literals)]
    return [
        Edit(
            start + grown[bisect_left(places, start)],
            end + grown[bisect_left(places, end)],
            text,
        )
        for start, end, text in edits
    ]


def check_bound(statement: Statement, facts: TableFacts | None, times: TimeColumns) -> None:
    """Raise Unsupported for a value bound to a `?` that is no number of nanoseconds."""
    shape = statement.shape
    check_literals(moment_plan(shape, times), statement)
    if facts is not None and shape.insert is not None:
        _check_rows(statement, facts)


# --- UPDATE ------------------------------------------------------------------------------------


class _UpdatePlan(NamedTuple):
    """The edits of one shape's template that turn an UPDATE into the whole idiom."""

    fixed: tuple[Edit, ...] = ()
    # *fixed*, and the edit that names the primary key, which is left out if the client names an index.
    hinted: tuple[Edit, ...] = ()
    is_ack: bool = False


@lru_cache(maxsize=1024)
def _update_plan(shape: Shape, *, is_lazy: bool) -> _UpdatePlan:
    """Return the edits for the UPDATEs of *shape*: once per shape, not per statement."""
    cursor, parts = parts_of_update(shape)
    # Not an UPDATE of one table that can be read to its end: it is sent unchanged.
    if parts is None or shape.uses & Uses.CTE:
        return _UpdatePlan()
    tokens = cursor.tokens
    acked = [each for each in parts.assignments if each.column == "time_acked"][-1:]
    is_ack = bool(acked) and _acks(cursor, acked[0].start, acked[0].end)
    hint: tuple[Edit, ...] = ()
    if (is_ack or "time_acked" in shape.guards) and not any(
        token.key in ("INDEX", "KEY") for token in tokens[: parts.table_end]
    ):
        # With `time_acked IS NULL` servers may read along the index that begins with it: MariaDB
        # if a single row waits, MySQL if the waiting rows are no more than the named ones. That locks all waiting rows until
        # the commit, so a claim passes over a new one, and in the reverse order it is a deadlock.
        hint = (_behind(cursor, tokens[parts.table_end - 1], b" FORCE INDEX (PRIMARY)"),)
    if not is_ack:
        return _UpdatePlan(hinted=hint)
    chooses = _chooses(cursor, parts)
    fixed = _idiom(shape, cursor, parts, chooses=chooses)
    if is_lazy and not chooses and "epoch" not in shape.assignments:
        fixed.insert(0, _behind(cursor, tokens[acked[0].end - 1], COUNT_SEND))
    return _UpdatePlan(tuple(fixed), (*hint, *fixed), is_ack=not chooses)


def _idiom(shape: Shape, cursor: Cursor, parts: UpdateParts, *, chooses: bool) -> list[Edit]:
    """Return the edits that give an ack `time_next = NULL` and the guard."""
    edits, tokens, behind_set = [], cursor.tokens, b""
    if "time_next" not in shape.assignments:
        # An acked row leaves the index of those that are due.
        behind_set = _IF_ACKED if chooses else b", time_next = NULL"
    if "time_acked" not in shape.guards:
        if parts.where is None:
            behind_set += b" WHERE time_acked IS NULL"
        elif parts.where[0] < parts.where[1]:
            # In parentheses, as there may be an OR.
            first, last = parts.where
            edits.append(Edit(tokens[first].start, tokens[first].start, b"("))
            edits.append(_behind(cursor, tokens[last - 1], b") AND time_acked IS NULL"))
    if behind_set:
        edits.append(_behind(cursor, tokens[parts.set_end - 1], behind_set))
    return edits


def _check_no_ack(shape: Shape, facts: TableFacts | None) -> None:
    """Raise Unsupported if an UPDATE that is not completed assigns time_acked; *facts* as of `complete`."""
    _, parts = parts_of_update(shape)
    # Of one table: its subqueries join others, and only WITH keeps it from being completed.
    if parts is not None and (facts is None or not shape.uses & Uses.CTE):
        return
    if "time_acked" in (assigned_columns(shape.template) or ()):
        raise Unsupported(
            "time_acked in an UPDATE of several tables or using WITH; UPDATE the queue alone,"
            " WHERE id IN (SELECT …)"
        )


def _behind(cursor: Cursor, token: Token, text: bytes) -> Edit:
    """Return the edit that puts *text* after *token*, kept apart from a word that follows."""
    follows = cursor.template[token.end : token.end + 1]
    return Edit(token.end, token.end, text + (b" " if follows.isalpha() else b""))


def _acks(cursor: Cursor, start: int, end: int) -> bool:
    """Return whether time_acked = tokens[start:end] gives it a value: not NULL, not DEFAULT, not only a column's."""
    token = cursor.tokens[start]
    is_value = end - start > 1 or token.slot is not None or token.key in NOW_WORDS
    return is_value and token.key not in ("NULL", "DEFAULT")


def _chooses(cursor: Cursor, parts: UpdateParts) -> bool:
    given = (a for a in parts.assignments if a.column == "time_acked" and a.end - a.start > 1)
    return any(t.key in _CHOICES for a in given for t in cursor.tokens[a.start : a.end])


def is_ack(shape: Shape) -> bool:
    """Return whether an UPDATE of one table gives time_acked a value in each row."""
    return _update_plan(shape, is_lazy=False).is_ack


# --- INSERT ------------------------------------------------------------------------------------


def _complete_insert(
    statement: Statement, facts: TableFacts, now_ns: int, edits: list[Edit]
) -> list[Edit]:
    """Complete the rows and the SET list: add edits of the template to *edits*, return those of the text."""
    shape = statement.shape
    insert = shape.insert
    assert insert is not None
    if insert.source is InsertSource.SET:
        edits += _set_defaults(statement, insert, facts, now_ns)
    elif insert.source is InsertSource.VALUES:
        in_text, added = _complete_rows(statement, facts, now_ns)
        if added:
            names = b"".join(b", " + name.encode() for name in added)
            edits.append(Edit(insert.columns_at, insert.columns_at, names))
        return in_text
    return []


# In this order, after the client's own columns. time_next follows time_scheduled.
_DEFAULTED: Final = ("time_scheduled", "time_next", "time_created", "epoch")


def _missing(facts: TableFacts, given: Collection[str]) -> list[str]:
    """Return the columns of the first layout that an INSERT leaves to the proxy."""
    if not facts.first_layout:
        return []
    return [name for name in _DEFAULTED if name in facts.columns and name not in given]


def _default(column: str, scheduled: bytes | None, now_ns: int) -> bytes:
    if column == "epoch":
        return b"0"
    if column == "time_next" and scheduled is not None:
        return scheduled
    return b"%d" % now_ns


def _set_defaults(
    statement: Statement, insert: InsertShape, facts: TableFacts, now_ns: int
) -> list[Edit]:
    """Return the additions to INSERT … SET, as edits of the template."""
    missing = _missing(facts, insert.set)
    if not missing:
        return []
    scheduled = None
    if "time_scheduled" in insert.set:
        places = locate(statement.sql, statement.mode, insert.set_at["time_scheduled"])
        given = statement.sql[slice(*places)]
        scheduled = _value(statement, "time_scheduled", given, now_ns)
    added = [
        b", %s = %s" % (name.encode(), _default(name, scheduled, now_ns)) for name in missing
    ]
    return [Edit(insert.set_end, insert.set_end, b"".join(added))]


def _value(statement: Statement, column: str, text: bytes, now_ns: int) -> bytes:
    """Return *text*, one value of *column* in a row, with its moments as nanoseconds. Raises Unsupported if it cannot."""
    template, literals, runs = fingerprint(text, statement.mode)
    plan = value_plan(template, column)
    if plan is NO_MOMENTS:
        return text
    shape = Shape(Kind.OTHER, Uses(0), template)
    value = Statement(text, statement.mode, shape, literals, runs)
    check_moments(plan, value)
    edits = moment_edits(plan, value, now_ns)
    return splice(text, statement.mode, edits) if edits else text


def _check_rows(statement: Statement, facts: TableFacts) -> InsertRows | None:
    """Check the literals and parameters for time columns in the VALUES rows; return the rows, or None without such columns."""
    insert = statement.shape.insert
    assert insert is not None
    columns = insert.columns or facts.in_order
    places = [place for place, name in enumerate(columns) if name in facts.times.names]
    rows = insert_rows(statement) if places else None
    if rows is not None:
        for place in places:
            for value in rows.position(place):
                check_value(value, columns[place], is_given=True)
    return rows


def _complete_rows(
    statement: Statement, facts: TableFacts, now_ns: int
) -> tuple[list[Edit], list[str]]:
    """Return the edits of the text's VALUES rows, and the columns they add."""
    insert = statement.shape.insert
    assert insert is not None
    columns = insert.columns or facts.in_order
    rows = _check_rows(statement, facts)
    missing = _missing(facts, columns) if insert.columns else []
    indexes = {place: name for place, name in enumerate(columns) if name in facts.times.names}
    if ROWS in statement.shape.template:
        indexes = {}  # literals only
    if not indexes and not missing:
        return [], []
    rows = rows or insert_rows(statement)
    if rows is None:
        # VALUES ROW(…), which MySQL accepts: the value of each column is not known here.
        _, function = time_words(statement.shape.template, facts.times.names)
        if indexes and function:
            raise refusal(min(indexes.values()), function)
        return [], []
    edits: list[Edit] = []
    scheduled_at = columns.index("time_scheduled") if "time_scheduled" in columns else None
    for row, (_, end) in enumerate(rows.spans):
        elements = rows.elements(row)
        if len(elements) != len(columns):
            return [], []  # the server will report it
        for at, name in indexes.items():
            text = statement.sql[slice(*elements[at])]
            value = _value(statement, name, text, now_ns)
            if value is not text:
                edits.append(Edit(*elements[at], value))
        if missing:
            scheduled = None
            if scheduled_at is not None:
                given = statement.sql[slice(*elements[scheduled_at])]
                scheduled = _value(statement, "time_scheduled", given, now_ns)
            added = [b", " + _default(name, scheduled, now_ns) for name in missing]
            edits.append(Edit(end - 1, end - 1, b"".join(added)))
    return edits, missing


STATE: Final = "state"
_ACKED: Final = b"acked"


def sets_state(shape: Shape) -> bool:
    """Return whether an UPDATE gives the column `state` a value."""
    return STATE in shape.assignments and shape.kind is Kind.UPDATE


def is_state_bound(shape: Shape) -> bool:
    """Return whether an UPDATE that `sets_state` takes the value from a `?`."""
    return isinstance(shape.assignments[STATE], Param)


def acknowledged(statement: Statement) -> bytes:
    """Return the text of an UPDATE that `sets_state`, changed to set time_acked instead.

    Raises Unsupported if it sets another state than 'acked', or is no UPDATE of one table.
    """
    shape = statement.shape
    value = statement.known(shape.assignments[STATE])
    cursor, parts = parts_of_update(shape)
    given = [] if parts is None else [a for a in parts.assignments if a.column == STATE]
    if value is OPAQUE or value != _ACKED or len(given) != 1:
        raise Unsupported(
            "a state follows from time_acked and epoch; SET state = 'acked' acknowledges, and"
            " nothing else can be set"
        )
    tokens, (start, end) = cursor.tokens, (given[0].start, given[0].end)
    # The name comes after the comma or SET, perhaps with its table's.
    first = start - 1
    while first > 0 and tokens[first - 1].key not in (",", "SET"):
        first -= 1
    edit = Edit(tokens[first].start, tokens[end - 1].end, b"time_acked = NOW()")
    return splice(statement.sql, statement.mode, [edit])


def preparable(statement: Statement) -> bytes:
    """Return an UPDATE that `sets_state` in a form that a server prepares, with the same parameters.

    MySQL prepares no UPDATE that gives a generated column a value, whatever the value will be.
    """
    tokens = statement_tokens(statement.shape.template)
    template = statement.shape.template
    edits = [
        Edit(token.start, token.end, b"time_acked")
        for token, after in pairwise(tokens)
        if after.key == "=" and token.is_name and unquote(token, template).lower() == STATE
    ]
    return splice(statement.sql, statement.mode, edits[:1])
