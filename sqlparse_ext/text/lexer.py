r"""From a text to its template: one pass of one regular expression.

A *template* is the text without what differs from call to call: each literal becomes one marker
byte, each comment or run of blanks one space, an IN list of literals one marker, the rows of a
VALUES clause one marker. Everything the parser says about a statement it reads from the template
alone, so two texts of one template have the same facts by construction.

Positions in a template map back to positions in the text (`locate`), so a rewrite is found once
per template and spliced into each text byte by byte (`splice`).

The hints `/*+ … */` and `/*vt+ … */` stay code. Version comments never come here: see
`version_comments`.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple

from streamfrom.sqlparse_ext.errors import Unsupported
from streamfrom.sqlparse_ext.statements import DEFAULT_MODE, SqlMode
from streamfrom.sqlparse_ext.text.chunks import CHUNK_BYTES, LargeText, Literals, pause
from streamfrom.sqlparse_ext.text.readable import MULTIBYTE, readable


if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from streamfrom.sqlparse_ext.text.chunks import Piece

NUMBER: Final = b"\0"  # a number, x'..', b'..'
STRING: Final = b"\1"
BAD: Final = b"\2"  # a byte that begins no token: an open quote, a control character
ROWS: Final = b"\3"  # VALUES rows of literals, NULL and DEFAULT only
LIST: Final = b"\4"  # the literals of an IN list
CALL_ROWS: Final = b"\5"  # VALUES rows that also call harmless functions, such as NOW()
ROW_LITERAL: Final = b"\6"  # a literal inside other VALUES rows: not a slot

_MARKS = rb"\x00-\x06"
_BLANK = rb"[ \t\n\r\f\v]"
_BLANKS = _BLANK + rb"*+"
_WORD = rb"[\w$\x80-\xff]"
_DOTTED = _WORD + rb"*+(?:\." + _WORD + rb"++)*+"
_HINT = rb"/\*(?:vt)?\+[^*" + _MARKS + rb"]*+(?:\*(?!/)[^*" + _MARKS + rb"]*+)*+\*/"
_COMMENT = (
    rb"/\*(?!(?:vt)?\+)[^*]*+(?:\*(?!/)[^*]*+)*+(?:\*/|\Z)"
    rb"|#[^\n]*+|--(?=[\x00-\x20]|\Z)[^\n]*+"
)
_NUMBER = (
    rb"(?:0x[0-9a-fA-F]+|0b[01]+|(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?)"
    rb"(?!" + _WORD + rb")"
)
# Rows that call one of these are as uniform as rows of literals: no session state decides
# their value, and they change none.
_HARMLESS_CALL = (
    rb"(?i:NOW|CURRENT_TIMESTAMP|LOCALTIME|LOCALTIMESTAMP|SYSDATE|UTC_TIMESTAMP|UNIX_TIMESTAMP"
    rb"|CURDATE|CURTIME|CURRENT_DATE|CURRENT_TIME|UTC_DATE|UTC_TIME|UUID|RAND)\( ?[0-9]?+ ?\)"
)


class Lexis:
    """The regular expressions for one way of quoting.

    pieces: findall returns (code, literal, comments and blanks, bad byte) for each piece of a text.
    chunk_pieces: like `pieces`, with shorter pieces, for the chunks of a large text.
    values: the head of an INSERT (group 1) and its rows of literals (group 2).
    call_values: like `values`, with rows that may also call harmless functions.
    head: the head of an INSERT.
    plain_rows, call_rows: rows of literals; rows that may also call harmless functions.
    plain_element: a value of `plain_rows` (group 1) and the blanks around it.
    comma: the comma between two rows, with the blanks around it.
    row, element: a row of `call_rows`; a value in it (group 1) and the blanks around it.
    skeleton: the next parenthesis or comma (group 1) outside of literals; empty at the end.
    parameter: the next `?` (group 1) outside of literals; empty at the end.
    """

    def __init__(self, *, ansi_quotes: bool, backslash_escapes: bool) -> None:
        self.ansi_quotes = ansi_quotes
        self.backslash_escapes = backslash_escapes
        if backslash_escapes:
            single = rb"'[^'\\]*+(?:(?:\\.|'')[^'\\]*+)*+'"
            double = rb'"[^"\\]*+(?:(?:\\.|"")[^"\\]*+)*+"'
        else:
            single = rb"'[^']*+(?:''[^']*+)*+'"
            double = rb'"[^"]*+(?:""[^"]*+)*+"'
        backtick = rb"`[^`" + _MARKS + rb"]*+(?:``[^`" + _MARKS + rb"]*+)*+`"
        quoted = backtick + rb"|" + backtick.replace(b"`", b'"') if ansi_quotes else backtick
        string = single if ansi_quotes else single + rb"|" + double

        # Only introducers that leave the bytes of the literal as they are; `_latin1'..'` is cut
        # into a word and a literal, which nobody takes for a value.
        introducer = (
            rb"(?i:binary|utf8mb4|utf8mb3|utf8|ascii)" + _BLANKS
            + rb"(?='|[xXbB]'|0[xb]" + (rb")" if ansi_quotes else rb'|")')
        )  # fmt: skip
        prefixed = rb"(?:_" + introducer + rb")?+(?:" + string + rb"|[xXbBnN]'[^']*+'"
        literal = (
            prefixed
            # A minus right after one of = ( , < > can only be a sign.
            + rb"|(?:(?:(?<=[=(,<>])|(?<=[=(,<>] ))-(?=[0-9.]))?+"
            + _NUMBER
            + rb")"
        )
        # A quoted user variable keeps its quotes: its name is code, not a value.
        variable = (
            rb"@(?:'[^'\\" + _MARKS + rb"]*+'|\"[^\"\\" + _MARKS + rb"]*+\"|" + backtick
            + rb"|[@\w$.\x80-\xff]*+)"
        )  # fmt: skip
        code = (
            rb"(?:[AC-MO-WYZac-mo-wyz$\x80-\xff]" + _DOTTED
            + rb"| (?![ \t\n\r\f\v]|/\*(?!(?:vt)?\+)|#|--(?:[\x00-\x20]|\Z))"
            rb"|[,=()<>*+;:!%&|^~?\[\]{}\\]"
            rb"|\.(?![0-9])"
            rb"|[xXbBnN](?!')" + _DOTTED
            + rb"|_(?!" + introducer + rb")" + _DOTTED
            + rb"|(?:" + quoted + rb")(?:\." + _WORD + rb"++)*+"
            rb"|" + variable
            + rb"|-(?!-(?:[\x00-\x20]|\Z))(?!(?:(?<=[=(,<>]-)|(?<=[=(,<>] -))[0-9.])"
            rb"|/(?!\*)|" + _HINT
            + rb"|(?!" + _NUMBER + rb")[0-9]" + _DOTTED + rb")"
        )  # fmt: skip
        noise = rb"(?:" + _BLANK + rb"|" + _COMMENT + rb")"
        # An open quote or hint takes all that is left, as it does on the server; to look for
        # tokens behind it would also take quadratic time.
        bad = rb"(['\"`].*+|/\*.*+|.)"
        self.pieces = re.compile(
            rb"(" + code + rb"++)?+(?:(" + literal + rb")|(" + noise + rb"++)|" + bad + rb"|\Z)",
            re.DOTALL,
        )  # fmt: skip
        self.chunk_pieces = re.compile(
            rb"(" + code + rb"{1,256}+)?+(?:(" + literal + rb")|(" + noise + rb"{1,4096}+)|\Z|(?="
            + code + rb")|" + bad + rb")",
            re.DOTALL,
        )  # fmt: skip

        plain = (
            rb"(?:" + prefixed + rb")|-?+" + _NUMBER
            + rb"|(?i:NULL|DEFAULT|TRUE|FALSE)(?!" + _WORD + rb"| ?\())"
        )  # fmt: skip
        head = _insert_head(rb"(?:" + quoted + rb"|" + _WORD + rb"++)")
        self.values = re.compile(head + _rows(plain), re.DOTALL)
        calls = rb"(?:" + plain + rb"|" + _HARMLESS_CALL + rb")"
        self.call_values = re.compile(head + _rows(calls), re.DOTALL)
        self.head = re.compile(head, re.DOTALL)
        self.plain_rows = re.compile(_row_list(plain), re.DOTALL)
        self.call_rows = re.compile(_row_list(calls), re.DOTALL)
        self.comma = re.compile(_BLANKS + rb"," + _BLANKS)
        self.row = re.compile(_row(calls), re.DOTALL)
        self.plain_element = re.compile(_BLANKS + rb"(" + plain + rb")" + _BLANKS, re.DOTALL)
        self.element = re.compile(_BLANKS + rb"(" + calls + rb")" + _BLANKS, re.DOTALL)
        self._calls = calls
        self.skeleton = re.compile(
            rb"(?:" + string + rb"|" + quoted + rb"|" + _COMMENT + rb"|" + _HINT
            # An open quote takes all that is left.
            + rb"|[^(),'\"`/#-]++|[/#\"-])*+(?:['\"`].*+)?+([(),]|\Z)",
            re.DOTALL,
        )  # fmt: skip
        self.parameter = re.compile(
            rb"(?:" + string + rb"|" + quoted + rb"|" + _COMMENT + rb"|" + _HINT
            # An open quote takes all that is left.
            + rb"|[^?'\"`/#-]++|[/#\"-])*+(?:['\"`].*+)?+(\?|\Z)",
            re.DOTALL,
        )  # fmt: skip

    @cache  # noqa: B019 - a Lexis lives as long as the program
    def row_with(self, index: int) -> re.Pattern[bytes]:
        """Return `row` with the value at *index* as group 1, which a short row leaves out."""
        comma = _BLANKS + rb"," + _BLANKS
        return re.compile(
            rb"\(" + _BLANKS + rb"(?:(?:" + self._calls + comma + rb"){%d}(" % index + self._calls
            + rb")|" + self._calls + rb")(?:" + comma + self._calls + rb")*+" + _BLANKS + rb"\)",
            re.DOTALL,
        )  # fmt: skip


def _insert_head(name: bytes) -> bytes:
    gap = rb"(?:" + _BLANK + rb"|" + _COMMENT + rb"|" + _HINT + rb")*+"
    option = rb"(?i:LOW_PRIORITY|DELAYED|HIGH_PRIORITY|IGNORE|INTO)(?!" + _WORD + rb")"
    return (
        rb"(" + gap + rb"(?i:INSERT|REPLACE)(?!" + _WORD + rb")(?:" + gap + option + rb")*+"
        + gap + name + rb"(?:\." + name + rb")?+" + gap
        + rb"(?:\(" + _BLANKS + name + rb"(?:" + _BLANKS + rb"," + _BLANKS + name + rb")*+"
        + _BLANKS + rb"\))?+" + gap + rb"(?i:VALUES?)" + gap + rb")"
    )  # fmt: skip


def _row(element: bytes) -> bytes:
    return (
        rb"\(" + _BLANKS + element + rb"(?:" + _BLANKS + rb"," + _BLANKS + element + rb")*+"
        + _BLANKS + rb"\)"
    )  # fmt: skip


def _row_list(element: bytes) -> bytes:
    row = _row(element)
    return row + rb"(?:" + _BLANKS + rb"," + _BLANKS + row + rb")*+"


def _rows(element: bytes) -> bytes:
    more = rb"(?:" + _BLANK + rb"|" + _COMMENT + rb")*+,"
    return rb"(" + _row_list(element) + rb")(?!" + more + rb")"


# What may stand between two rows, beside the comma.
BETWEEN_ROWS: Final = re.compile(rb"(?:" + _BLANK + rb"|" + _COMMENT + rb")*+", re.DOTALL)


_LEXES: Final = tuple(
    Lexis(
        ansi_quotes=bool(bits & SqlMode.ANSI_QUOTES),
        backslash_escapes=not bits & SqlMode.NO_BACKSLASH_ESCAPES,
    )
    for bits in range(4)
)


def lexis(mode: SqlMode) -> Lexis:
    """Return the regular expressions that read a text under *mode*."""
    return _LEXES[int(mode) & 3]


class Fingerprint(NamedTuple):
    """A text, taken apart.

    literals: the raw literals that are slots, in order; those of IN lists one after another.
    runs: (slot, place of the first literal, number of literals) of each LIST marker.
    """

    template: bytes
    literals: Sequence[bytes]
    runs: tuple[tuple[int, int, int], ...]


class _Fold(NamedTuple):
    """A range of a template, and the size of what took its place."""

    start: int
    end: int
    size: int


_KEPT_BYTES_MAX: Final = 1024
# A longer text is read in chunks. It takes 3 ms at most in one go.
LARGE_TEXT_BYTES: Final = 32 << 10
# Of a text with more statements than that nothing but the first one's rows is folded.
_STATEMENTS_MAX: Final = 100_000
# A row of a template that is longer than that is not folded.
_ROW_BYTES_MAX: Final = 256 << 10
_INSERT_FIRST: Final = frozenset(b"iIrR/#- \t\n\r\f\v")
_STRING_FIRST: Final = frozenset(b"'\"_nN")

_ITEM = rb"(?:[\0\1]|\( ?[\0\1](?: ?, ?[\0\1])*+ ?\))"
_IN_LIST = re.compile(
    rb"[iI][nN](?<![\w$\x80-\xff.@`][iI][nN]) ?\( ?("
    + _ITEM
    + rb"(?: ?, ?"
    + _ITEM
    + rb")*+) ?\)"
)
_FLAT = rb"(?:[^()`\"]|`[^`]*+`|\"[^\"]*+\")"
_TEMPLATE_ROW = rb"\((?:%s|\((?:%s|\((?:%s|\(%s*+\))*+\))*+\))*+\)" % ((_FLAT,) * 4)
_TEMPLATE_ROWS = re.compile(
    rb"( ?(?i:INSERT|REPLACE)\b" + _FLAT + rb"*?(?:\(" + _FLAT + rb"*+\) ?)?\b(?i:VALUES?) ?)("
    + _TEMPLATE_ROW + rb"(?: ?, ?" + _TEMPLATE_ROW + rb")*+)",
    re.DOTALL,
)  # fmt: skip
# The same in parts, for a large template.
_TEMPLATE_HEAD = re.compile(
    rb" ?(?i:INSERT|REPLACE)\b" + _FLAT + rb"*?(?:\(" + _FLAT + rb"*+\) ?)?\b(?i:VALUES?) ?(?=\()",
    re.DOTALL,
)  # fmt: skip
_TEMPLATE_ROW_LIST = re.compile(
    _TEMPLATE_ROW + rb"(?: ?, ?" + _TEMPLATE_ROW + rb")*+", re.DOTALL
)
_TEMPLATE_COMMA = re.compile(rb" ?, ?")
_LIST_HEAD = re.compile(rb"[iI][nN](?<![\w$\x80-\xff.@`][iI][nN]) ?\( ?")
_LIST_HEAD_BYTES: Final = 8
_LIST_ITEMS = re.compile(_ITEM + rb"(?: ?, ?" + _ITEM + rb")*+")
_LIST_CLOSE = re.compile(rb" ?\)")
_EACH_TEMPLATE_ROW = re.compile(_TEMPLATE_ROW, re.DOTALL)
_TO_ROW_LITERAL: Final = bytes.maketrans(NUMBER + STRING, ROW_LITERAL * 2)


def fingerprint(sql: bytes, mode: SqlMode) -> Fingerprint:
    """Return the template of *sql* and its literals. Never raises, takes linear time.

    Measured (CPython 3.11): 3 µs for a point SELECT of 32 bytes, 5 µs for one of 100 bytes, 0.8 ms
    for an INSERT of 1,000 rows in 100 KB.
    """
    if mode is not DEFAULT_MODE:
        sql = readable(sql, mode)
    if len(sql) > LARGE_TEXT_BYTES:
        return _read_large(sql, mode).fingerprint
    lex = _LEXES[0] if mode is DEFAULT_MODE else lexis(mode)
    parts: list[bytes] = []
    literals: list[bytes] = []
    if not sql or sql[0] not in _INSERT_FIRST:
        _assemble(lex.pieces.findall(sql), parts, literals)
        template = b"".join(parts)
    elif found := _uniform_rows(sql, lex):
        rows, mark = found
        head = rows[1]
        read = _taken_apart if len(head) <= _KEPT_BYTES_MAX else _taken_apart.__wrapped__
        template, before = read(head, lex)
        template += mark
        literals += before
        if rows.end() < len(sql):
            _assemble(lex.pieces.findall(sql, rows.end()), parts, literals)
            template += b"".join(parts)
    else:
        _assemble(lex.pieces.findall(sql), parts, literals)
        template, fold, slots = _fold_rows(b"".join(parts))
        if fold:
            del literals[slots]
    if not literals:
        return Fingerprint(template, (), ())
    template, _, runs = _fold_lists(template)
    return Fingerprint(template, tuple(literals), runs)


@lru_cache(maxsize=1024)  # what stands before the rows of an INSERT is the same few texts
def _taken_apart(code: bytes, lex: Lexis) -> tuple[bytes, tuple[bytes, ...]]:
    """Return the template of *code* and its literals."""
    parts: list[bytes] = []
    literals: list[bytes] = []
    _assemble(lex.pieces.findall(code), parts, literals)
    return b"".join(parts), tuple(literals)


def _assemble(
    pieces: list[tuple[bytes, bytes, bytes, bytes]], parts: list[bytes], literals: list[bytes]
) -> None:
    for code, literal, noise, bad in pieces:
        parts.append(code)
        if literal:
            literals.append(literal)
            parts.append(STRING if literal[0] in _STRING_FIRST else NUMBER)
        elif noise:
            parts.append(b" ")
        elif bad:
            parts.append(BAD)


def _uniform_rows(sql: bytes, lex: Lexis) -> tuple[re.Match[bytes], bytes] | None:
    if rows := lex.values.match(sql):
        return rows, ROWS
    if rows := lex.call_values.match(sql):
        return rows, CALL_ROWS
    return None


def _slots(template: bytes) -> int:
    return template.count(NUMBER) + template.count(STRING)


def _fold_rows(template: bytes) -> tuple[bytes, list[_Fold], slice]:
    """Keep one of each kind of VALUES row; also return which literals fell out."""
    match = None if b"/*" in template else _TEMPLATE_ROWS.match(template)
    if match is None:
        return template, [], slice(0)
    rows = match[2].translate(_TO_ROW_LITERAL)
    kinds = b", ".join(dict.fromkeys(_EACH_TEMPLATE_ROW.findall(rows)))
    start, end = match.span(2)
    first = _slots(match[1])
    return (
        template[:start] + kinds + template[end:],
        [_Fold(start, end, len(kinds))],
        slice(first, first + _slots(match[2])),
    )


def _fold_lists(
    template: bytes,
) -> tuple[bytes, list[_Fold], tuple[tuple[int, int, int], ...]]:
    """Put one marker for the literals of each IN list."""
    if b"(" not in template:
        return template, [], ()
    folds: list[_Fold] = []
    runs: list[tuple[int, int, int]] = []
    parts: list[bytes] = []
    done = slot = first = 0
    for match in _IN_LIST.finditer(template):
        start, end = match.span(1)
        before = template[done:start]
        passed = _slots(before)
        slot += passed
        first += passed
        count = _slots(match[1])
        folds.append(_Fold(start, end, 1))
        runs.append((slot, first, count))
        first += count
        parts += (before, LIST)
        done = end
        slot += 1
    if not folds:
        return template, folds, ()
    parts.append(template[done:])
    return b"".join(parts), folds, tuple(runs)


class _Large(NamedTuple):
    """A large text, its fingerprint, and what was folded in its template: rows, then lists."""

    text: LargeText
    fingerprint: Fingerprint
    rows: list[_Fold]
    lists: list[_Fold]


def _read_large(sql: bytes, mode: SqlMode) -> _Large:
    """Do what `fingerprint` and `locate` do, in chunks."""
    text = LargeText(sql, lexis(mode), (ROWS, CALL_ROWS), _write_chunk)
    template = text.template
    folds: list[_Fold] = []
    left_out: list[tuple[int, int]] = []
    if sql[0] in _INSERT_FIRST or b";" in template:
        template, folds, left_out = _fold_large_rows(template, has_rows=text.rows is not None)
    template, lists, runs = _fold_large_lists(template)
    literals = Literals(text, left_out)
    return _Large(text, Fingerprint(template, literals, runs), folds, lists)


def _write_chunk(
    pieces: list[Piece],
    follows_noise: bool,  # noqa: FBT001 - a callback
    parts: list[bytes],
) -> tuple[int, bool]:
    """Append the template of *pieces* to *parts*.

    Return the number of their literals, and whether they end in noise: blanks and comments, which are
    one space also where several pieces share them.
    """
    count = 0
    for code, literal, noise, bad in pieces:
        if code:
            parts.append(code[1:] if follows_noise and code[:1] == b" " else code)
            follows_noise = False
        if literal:
            count += 1
            parts.append(STRING if literal[0] in _STRING_FIRST else NUMBER)
            follows_noise = False
        elif noise:
            if not follows_noise:
                parts.append(b" ")
            follows_noise = True
        elif bad:
            parts.append(BAD)
            follows_noise = False
    return count, follows_noise


def _fold_large_rows(
    template: bytes, *, has_rows: bool
) -> tuple[bytes, list[_Fold], list[tuple[int, int]]]:
    """Do what `_fold_rows` does, for each statement of a template, and in pieces.

    has_rows: the rows of the first statement are one mark already. Also return the (place, count) of
    the literals that fell out.
    """
    folds: list[_Fold] = []
    left_out: list[tuple[int, int]] = []
    parts: list[bytes] = []
    done = slot = 0
    has_code = b"/*" in template
    for at in _statement_starts(template, skips_first=has_rows or has_code):
        if at < done:
            continue
        head = _TEMPLATE_HEAD.match(template, at, at + _ROW_BYTES_MAX)
        if head is None:
            continue
        start = head.end()
        end, kinds, count = _row_kinds(template, start)
        if not kinds or (has_code and b"/*" in template[head.start() : end]):
            continue
        kept = b", ".join(kinds)
        slot += _slots(template[done:start])
        if count:
            left_out.append((slot, count))
        slot += count
        folds.append(_Fold(start, end, len(kept)))
        parts += (template[done:start], kept)
        done = end
    parts.append(template[done:])
    return b"".join(parts), folds, left_out


def _row_kinds(template: bytes, start: int) -> tuple[int, Iterable[bytes], int]:
    """Return the end of the VALUES rows at *start*, one row of each kind, and the number of their literals."""
    kinds: dict[bytes, None] = {}
    count = 0
    at = end = start
    while rows := _TEMPLATE_ROW_LIST.match(template, at, at + CHUNK_BYTES) or (
        _TEMPLATE_ROW_LIST.match(template, at, at + _ROW_BYTES_MAX)
    ):
        pause()
        count += _slots(rows[0])
        marked = rows[0].translate(_TO_ROW_LITERAL)
        kinds.update(dict.fromkeys(_EACH_TEMPLATE_ROW.findall(marked)))
        end = rows.end()
        comma = _TEMPLATE_COMMA.match(template, end)
        if comma is None:
            break
        at = comma.end()
    return end, kinds.keys(), count


def _statement_starts(template: bytes, *, skips_first: bool) -> Iterator[int]:
    """Yield where statements may begin in *template*."""
    if not skips_first:
        yield 0
    if template.count(b";") > _STATEMENTS_MAX:
        return
    at = template.find(b";")
    while at >= 0:
        yield at + 1
        at = template.find(b";", at + 1)


def _fold_large_lists(
    template: bytes,
) -> tuple[bytes, list[_Fold], tuple[tuple[int, int, int], ...]]:
    """Do what `_fold_lists` does, in pieces."""
    folds: list[_Fold] = []
    runs: list[tuple[int, int, int]] = []
    parts: list[bytes] = []
    done = at = slot = first = 0
    size = len(template)
    while at < size:
        pause()
        stop = min(at + CHUNK_BYTES, size)
        head = _LIST_HEAD.search(template, at, stop)
        if head is None:
            at = stop if stop == size else stop - _LIST_HEAD_BYTES
            continue
        if stop < size and head.end() >= stop - 1 and head.start() > at:
            at = head.start()
            continue
        start = head.end()
        end, count = _list_end(template, start)
        close = _LIST_CLOSE.match(template, end) if end > start else None
        at = head.start() + 1 if close is None else close.end()
        if close is None:
            continue
        before = template[done:start]
        passed = _slots(before)
        slot += passed
        first += passed
        folds.append(_Fold(start, end, 1))
        runs.append((slot, first, count))
        first += count
        slot += 1
        parts += (before, LIST)
        done = end
    parts.append(template[done:])
    return b"".join(parts), folds, tuple(runs)


def _list_end(template: bytes, start: int) -> tuple[int, int]:
    """Return the end of the list's literals that begin at *start*, and their number."""
    end = at = start
    count = 0
    while items := _LIST_ITEMS.match(template, at, at + CHUNK_BYTES):
        pause()
        count += _slots(items[0])
        end = items.end()
        comma = _TEMPLATE_COMMA.match(template, end)
        if comma is None:
            break
        at = comma.end()
    return end, count


def locate(sql: bytes, mode: SqlMode, positions: Iterable[int]) -> list[int]:
    """Return where *positions* of the template of *sql* are in *sql* itself.

    A position is a border between two tokens, outside of VALUES rows.
    """
    sql = readable(sql, mode)
    if len(sql) > LARGE_TEXT_BYTES:
        read = _read_large(sql, mode)
        return read.text.text_places(_unfolded(_unfolded(positions, read.lists), read.rows))
    lex = lexis(mode)
    anchors = [(0, 0)]
    raw: list[bytes] = []
    folds: list[_Fold] = []
    found = _uniform_rows(sql, lex)
    if found:
        rows, mark = found
        _anchor(lex.pieces.findall(sql, 0, rows.end(1)), anchors, raw)
        raw.append(mark)
        anchors.append((anchors[-1][0] + 1, rows.end()))
        _anchor(lex.pieces.findall(sql, rows.end()), anchors, raw)
        template = b"".join(raw)
    else:
        _anchor(lex.pieces.findall(sql), anchors, raw)
        template = b"".join(raw)
        if sql and sql[0] in _INSERT_FIRST:
            template, folds, _ = _fold_rows(template)
    _, list_folds, _ = _fold_lists(template)
    found_at: list[int] = []
    for place in _unfolded(_unfolded(positions, list_folds), folds):
        at_template, at_text = anchors[bisect_right(anchors, place, key=_first) - 1]
        found_at.append(at_text + place - at_template)
    return found_at


def _first(anchor: tuple[int, int]) -> int:
    return anchor[0]


def _anchor(
    pieces: list[tuple[bytes, bytes, bytes, bytes]],
    anchors: list[tuple[int, int]],
    raw: list[bytes],
) -> None:
    """Append where each piece begins in the template and in the text."""
    at_template, at_text = anchors[-1]
    literals: list[bytes] = []
    for piece in pieces:
        size = len(raw)
        _assemble([piece], raw, literals)
        at_template += sum(map(len, raw[size:]))
        at_text += sum(map(len, piece))
        anchors.append((at_template, at_text))


def _unfolded(positions: Iterable[int], folds: Sequence[_Fold]) -> list[int]:
    """Return where *positions* of a template were before *folds*."""
    starts: list[int] = []
    shifts = [0]
    for start, end, size in folds:
        starts.append(start - shifts[-1])
        shifts.append(shifts[-1] + end - start - size)
    return [position + shifts[bisect_left(starts, position)] for position in positions]


class Edit(NamedTuple):
    """Text to put in place of a range: of a template for `splice`, of a text for `replace`."""

    start: int
    end: int
    text: bytes


def splice(sql: bytes, mode: SqlMode, edits: Sequence[Edit]) -> bytes:
    """Return *sql* with *edits*, given in positions of its template, carried out."""
    return replace(sql, relocate(sql, mode, edits))


def relocate(sql: bytes, mode: SqlMode, edits: Sequence[Edit]) -> list[Edit]:
    """Return *edits* of the template of *sql* as edits of *sql*.

    Raises:
        Unsupported: what would be put in is no text in the character set of *sql*.
    """
    if int(mode) & MULTIBYTE and not all(edit.text.isascii() for edit in edits):
        raise Unsupported("putting names or values beyond ASCII into a text in this charset")
    places = locate(sql, mode, [place for edit in edits for place in edit[:2]])
    return [
        Edit(start, end, edit.text)
        for edit, start, end in zip(edits, places[::2], places[1::2], strict=True)
    ]


def replace(text: bytes, edits: Iterable[Edit]) -> bytes:
    """Return *text* with *edits*, which do not overlap, carried out."""
    parts: list[bytes] = []
    done = 0
    for edit in sorted(edits, key=lambda edit: edit[:2]):
        parts += (text[done : edit.start], edit.text)
        done = edit.end
    parts.append(text[done:])
    return b"".join(parts)
