"""Look up statements by their text; parse each shape only once.

There are three steps: the exact bytes, then the form (`Forms`), then the template. The first and the last are dicts with two
generations. When the young generation is full it becomes the old one, and an entry that is used again moves from
there into the new one. So a hit costs no bookkeeping, and entries in use stay.

Measured (CPython 3.11, 100-byte statements): exact hit 0.1 µs, form 2 µs, template hit 5-15 µs, parse 50-100 µs,
with joins and subqueries 200 µs.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Final, Generic, NamedTuple, TypeVar
from weakref import WeakKeyDictionary

from streamfrom.sqlparse_ext.errors import SqlError
from streamfrom.sqlparse_ext.reading.parser import parse
from streamfrom.sqlparse_ext.reading.queues import StreamSyntaxError
from streamfrom.sqlparse_ext.sql_mode import DEFAULT_MODE, SqlMode
from streamfrom.sqlparse_ext.statements import Shape, Statement
from streamfrom.sqlparse_ext.text.chunks import LARGE_TEXT_BYTES
from streamfrom.sqlparse_ext.text.insert_rows import insert_rows
from streamfrom.sqlparse_ext.text.lexer import Edit, fingerprint, locate, replace
from streamfrom.sqlparse_ext.text.lexer_patterns import LEXES, ROWS
from streamfrom.sqlparse_ext.text.multibyte_text import has_dollar_quotes
from streamfrom.sqlparse_ext.text.tokens import check_length
from streamfrom.sqlparse_ext.text.version_comments import ServerVersion, resolved


# Each literal is a group of its pattern, and an IN list is one.
_LITERALS_MAX: Final = 16
# A text is tried against this many forms with the same beginning.
_ALIKE_MAX: Final = 8
# Compiling one takes 0.3 ms. A pattern takes some 10 bytes for each byte of code: 10 MB for all.
_FORMS_MAX: Final = 512
_CODE_BYTES_MAX: Final = 2048
# After this many readings a template is worth a form. If the text at hand gives no form, the next try is at twice the
# count.
_READ_BEFORE: Final = 8

_NUMBER: Final = rb"([0-9]+)"
_NUMBERS: Final = rb"([0-9]+(?:, ?[0-9]+)*)"
_STRING: Final = rb"('[^'\\]*(?:(?:\\.|'')[^'\\]*)*')"
_LIST: Final = re.compile(_NUMBERS)
_PLAIN: Final = re.compile(_NUMBER + rb"|" + _STRING, re.DOTALL)
_WORD: Final = re.compile(rb"(?i:NULL|DEFAULT|TRUE|FALSE)")
# Between these a literal is always a separate token.
_BEFORE: Final = b" \n\t=(,<>"
_BEHIND: Final = b" \n\t,)"
# The text before the first literal, at most: a name may have digits, too.
_BEGINNING: Final = re.compile(rb"[^0-9']*")


class _Form(NamedTuple):
    match: Callable[[bytes], re.Match[bytes] | None]
    shape: Shape
    has_row: bool
    list_at: int | None  # the slot of its IN list


class Forms:
    r"""The forms of frequent texts, all in the default SQL mode: recognised, not read.

    A *form* is a pattern made from one text: its code byte by byte, and for each literal a pattern of its kind. A text that matches has
    the same template by construction, since a literal is replaced by one of its kind, between the same bytes: each of these ends a
    number or a string, and begins none. Unusual literals (a sign, a fraction, a hexadecimal or bit literal, a character set, other
    quotes) are part of no form, so texts with them are read.
    """

    def __init__(self) -> None:
        self._forms: dict[bytes, list[_Form]] = {}
        # How often each was read, while the cache keeps it.
        self._read: WeakKeyDictionary[Shape, int] = WeakKeyDictionary()
        self._count = 0

    def recognise(self, sql: bytes, mode: SqlMode) -> Statement | None:
        """Return the statement of *sql* if its form is known. mode: the default one, for the statement."""
        beginning = _BEGINNING.match(sql)
        assert beginning is not None
        forms = self._forms.get(beginning[0])
        if forms is None or len(sql) > LARGE_TEXT_BYTES or b"$" in sql:
            return None
        for match, shape, has_row, list_at in forms:
            if found := match(sql):
                values = found.groups()
                if has_row:
                    return Statement(sql, mode, shape, row=values)
                if list_at is None:
                    return Statement(sql, mode, shape, values)
                items = values[list_at].replace(b" ", b"").split(b",")
                literals = (*values[:list_at], *items, *values[list_at + 1 :])
                return Statement(sql, mode, shape, literals, ((list_at, list_at, len(items)),))
        return None

    def learn(self, statement: Statement) -> None:
        """Count a text that had to be read, and make a form of it if it is frequent."""
        shape = statement.shape
        count = self._read[shape] = self._read.get(shape, 0) + 1
        if count < _READ_BEFORE or count & (count - 1):
            return
        if self._count >= _FORMS_MAX:
            self._forms.clear()
            self._count = 0
        beginning = _BEGINNING.match(statement.sql)
        assert beginning is not None
        alike = self._forms.setdefault(beginning[0], [])
        if len(alike) < _ALIKE_MAX and (form := _form(statement)) is not None:
            alike.append(form)
            self._count += 1


def _form(statement: Statement) -> _Form | None:
    """Return the form of a text; None if it has unusual literals, or comments that servers may run."""
    sql, shape = statement.sql, statement.shape
    if b"$" in sql or b"/*" in sql or len(sql) > LARGE_TEXT_BYTES:
        return None
    has_row = shape.template.endswith(ROWS)
    if has_row:
        rows = insert_rows(statement)
        if rows is None or len(rows) != 1 or statement.literals:
            return None
        places = rows.elements(0)
    else:
        places = list(_places(sql))
        if [sql[start:end] for start, end in places] != list(statement.literals):
            return None
    list_at = None
    if statement.runs:
        (_, list_at, count), *others = statement.runs
        # One place for the whole list.
        places[list_at : list_at + count] = [
            (places[list_at][0], places[list_at + count - 1][1])
        ]
        if others:
            return None
    code_bytes = len(sql) - sum(end - start for start, end in places)
    if not 0 < len(places) <= _LITERALS_MAX or code_bytes > _CODE_BYTES_MAX:
        return None
    pattern: list[bytes] = []
    done = 0
    for index, (start, end) in enumerate(places):
        literal = sql[start:end]
        if (
            not start
            or sql[start - 1] not in _BEFORE
            or (end < len(sql) and sql[end] not in _BEHIND)
        ):
            return None
        if index == list_at:
            if not _LIST.fullmatch(literal):
                return None
            one = _NUMBERS
        elif plain := _PLAIN.fullmatch(literal):
            one = _NUMBER if plain[1] else _STRING
        elif has_row and _WORD.fullmatch(literal):
            one = rb"(" + literal + rb")"
        else:
            return None
        pattern += (re.escape(sql[done:start]), one)
        done = end
    pattern.append(re.escape(sql[done:]))
    return _Form(re.compile(b"".join(pattern), re.DOTALL).fullmatch, shape, has_row, list_at)


def _places(sql: bytes) -> Iterator[tuple[int, int]]:
    """Yield the place of each literal of a text in the default mode."""
    at = 0
    for piece in LEXES[0].pieces.findall(sql):
        code, literal, noise, bad = piece
        at += len(code)
        if literal:
            yield at, at + len(literal)
        at += len(literal) + len(noise) + len(bad)


# A prepared IN list of as many `?`s as the protocol can count has 131,000 tokens; reading the limit
# takes 0.4 s of a thread and 40 MB.
TOKENS_MAX: Final = 200_000
# A longer text is unlikely to come again byte by byte.
_TEXT_BYTES_MAX: Final = 4096
# The cost of one entry without its text: the Statement, its literals, the dict's slot.
_ENTRY_BYTES: Final = 400
_SHAPE_BYTES: Final = 2_000
# MySQL shows this much of the text in a syntax error.
_NEAR_BYTES: Final = 80

_Value = TypeVar("_Value")
_MYSQL: Final = ServerVersion(is_mariadb=False, version=80400)


class _Generations(Generic[_Value]):
    """A dict that drops old entries. *budget* limits the sum of their sizes, approximately."""

    def __init__(self, budget: int) -> None:
        self.half = budget // 2
        self.size = 0
        self.young: dict[bytes, _Value] = {}
        self.old: dict[bytes, _Value] = {}

    def get(self, key: bytes, size: int) -> _Value | None:
        value = self.young.get(key)
        if value is None:
            value = self.old.get(key)
            if value is not None:
                self.put(key, value, size)
        return value

    def put(self, key: bytes, value: _Value, size: int) -> None:
        # Two generations instead of a list of uses: entries used since the last change
        # move on, the rest goes at once. A hit costs one look-up, and no bookkeeping.
        if self.size + size > self.half:
            self.old = self.young
            self.young = {}
            self.size = 0
        self.young[key] = value
        self.size += size


class LongTemplate(Exception):
    """A new shape that would take long to make."""


class StatementCache:
    """The recently used statements and shapes, separate for each sql_mode.

    bytes_max: about how many bytes the kept texts may take, and again the same for the kept templates.
    server: returns the server version by which version comments are read now.
    tokens_max: how many tokens a statement may have in addition to the literals of rows and IN lists.
    """

    def __init__(
        self,
        bytes_max: int = 16 << 20,
        server: Callable[[], ServerVersion] = lambda: _MYSQL,
        tokens_max: int = TOKENS_MAX,
    ) -> None:
        self.server = server
        self._bytes_max = bytes_max
        self.tokens_max = tokens_max
        self._forms = Forms()
        self._modes: dict[int, tuple[_Generations[Statement], _Generations[Shape]]] = {}
        # The mode of the last call, which is nearly always that of the next text, too.
        self._latest = (DEFAULT_MODE, self._for(DEFAULT_MODE))

    def get(
        self, sql: bytes, mode: SqlMode = DEFAULT_MODE, template_max: int | None = None
    ) -> Statement:
        """Return the statement of *sql*. It is shared: do not change it. Version comments are resolved in its text.

        Raises SqlError for a malformed STREAM, TooManyTokens for more tokens than a statement may have,
        LongTemplate for a new shape of more than *template_max* bytes.
        """
        latest, (texts, shapes) = self._latest
        if mode is not latest:
            texts, shapes = found = self._for(mode)
            self._latest = mode, found
        # The hot path: a text that was seen lately is not even measured.
        statement = texts.young.get(sql)
        if statement is not None:
            return statement
        if mode is DEFAULT_MODE:
            statement = self._forms.recognise(sql, mode)
            if statement is not None:
                return statement
        size = len(sql) + _ENTRY_BYTES
        statement = texts.get(sql, size)
        # A longer text rarely comes twice, and would push out hundreds of others.
        is_key = len(sql) <= _TEXT_BYTES_MAX
        if (
            statement is None
            # The two tests of single bytes spare nearly every text the search after them.
            and b"$" in sql
            and not mode & SqlMode.DOLLAR_QUOTES
            and has_dollar_quotes(sql)
        ):
            if self.server().quotes_by_dollars:
                return self.get(sql, mode | SqlMode.DOLLAR_QUOTES, template_max)
            is_key = False  # it has quotes for other servers
        if statement is None and b"!" in sql:
            # A text with version comments is no key: servers of other versions read it differently.
            sql = resolved(sql, mode, self.server())
            size = len(sql) + _ENTRY_BYTES
            statement = texts.get(sql, size)
        if statement is None:
            template, literals, runs = fingerprint(sql, mode)
            shape = self._shape(shapes, sql, mode, template, template_max)
            statement = Statement(sql, mode, shape, literals, runs)
            if is_key:
                texts.put(sql, statement, size)
            if mode is DEFAULT_MODE:
                self._forms.learn(statement)
        return statement

    def with_words(self, statement: Statement, text: bytes, words: Sequence[Edit]) -> Statement:
        """Return the statement of *text*, which is *statement* with *words*, edits of its template.

        The edits have no literal, so the literals are the statement's and are not read again: with an
        ack of 100 ids that was 9 % of a drain.
        """
        mode = statement.mode
        template = replace(statement.shape.template, words)
        shape = self._shape(self._for(mode)[1], text, mode, template)
        return Statement(text, mode, shape, statement.literals, statement.runs)

    def _shape(
        self,
        shapes: _Generations[Shape],
        sql: bytes,
        mode: SqlMode,
        template: bytes,
        template_max: int | None = None,
    ) -> Shape:
        shape = shapes.get(template, len(template) + _SHAPE_BYTES)
        if shape is None:
            if template_max is not None and len(template) > template_max:
                raise LongTemplate
            if len(template) > self.tokens_max:  # there cannot be more tokens than bytes
                check_length(template, self.tokens_max)
            shape = _parse(sql, mode, template)
            shapes.put(template, shape, len(template) + _SHAPE_BYTES)
        return shape

    def _for(self, mode: SqlMode) -> tuple[_Generations[Statement], _Generations[Shape]]:
        found = self._modes.get(int(mode))
        if found is None:
            found = _Generations(self._bytes_max), _Generations(self._bytes_max)
            self._modes[int(mode)] = found
        return found


def _parse(sql: bytes, mode: SqlMode, template: bytes) -> Shape:
    try:
        return parse(template)
    except StreamSyntaxError as error:
        (at,) = locate(sql, mode, (error.position,))
        near = sql[at : at + _NEAR_BYTES].decode("utf-8", "surrogateescape")
        line = sql.count(b"\n", 0, at) + 1
        raise SqlError(
            "STREAM takes * or a list of columns, FROM, one message table, and optionally WHERE with its key (column = value, or"
            " column IN (value, …)), LIMIT n and WAIT seconds; each stream gets what is ready, by priority and time, so"
            f" acknowledge or reschedule what you do not want, near '{near}' at line {line}"
        ) from None
