r"""Read large texts in chunks, so that no single call of a regular expression takes long.

While a regular expression runs, no other thread of the program runs. Over 16 MB a pass takes
0.04 to 3 s; over a chunk it takes 2 ms at most (185 ns a byte if each byte is a token). Longer chunks save
nothing, and a point SELECT next to them waits for up to six. The result is that of a single pass: a chunk ends between two pieces,
and a piece longer than a chunk (a string, a number in hexadecimal, a comment, blanks) is read by hand.

Only a name, a word or a number of decimal digits that fills a chunk is read differently: it begins
no token here. No server takes a name of more than 64 characters.

The literals of a large text are not kept. They are read again on request (`Literals`): a
list of 16 MB would take 400 MB as objects, as long as its statement runs.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextvars import ContextVar
from typing import Final, NamedTuple, overload

from streamfrom.sqlparse_ext.text.lexer_patterns import (
    BAD,
    CALL_ROWS,
    NUMBER,
    ROWS,
    STRING,
    STRING_FIRST,
    Lexis,
)


CHUNK_BYTES: Final = 8 << 10
# A longer text is read in chunks. Taking out the literals of this size takes 6 ms at most in one go.
LARGE_TEXT_BYTES: Final = 32 << 10
# Making a shape of a template of this length, or its plan, takes as long.
LARGE_TEMPLATE_BYTES: Final = 4 << 10

# Called between chunks by the reader of a large text. It may raise, to stop the reading.
between_chunks: ContextVar[Callable[[], None] | None] = ContextVar(
    "between_chunks", default=None
)

# More than a piece looks past its own end.
_MARGIN_BYTES: Final = 16
_LITERAL, _NOISE, _BAD = 1, 2, 3

Piece = tuple[bytes, bytes, bytes, bytes]

_BLANKS = re.compile(rb"[ \t\n\r\f\v]++")
_DASHES = re.compile(rb"--(?=[\x00-\x20\x7f]|\Z)")
_HEX = re.compile(rb"[0-9a-fA-F]++")
_HEX_START = re.compile(rb"-?0x(?=[0-9a-fA-F])")
_WORD = re.compile(rb"[\w$\x80-\xff]")
_QUOTED_START = re.compile(
    rb"(?:_(?i:binary|utf8mb4|utf8mb3|utf8|ascii)[ \t\n\r\f\v]{0,64}+)?[xXbBnN]?+(['\"])"
)
# Comments that end, and blanks.
_NOISE_RUN = re.compile(
    rb"(?:[ \t\n\r\f\v]++|/\*(?!(?:vt)?\+)[^*]*+(?:\*(?!/)[^*]*+)*\*/"
    rb"|(?:#|--(?=[\x00-\x20\x7f]))[^\n]*+\n)+"
)
# The inside of a string, by its quote, and by whether a backslash escapes; in x'…' and b'…'.
_BODIES: Final = {
    (b"'", True): re.compile(rb"[^'\\]*+(?:(?:\\.|'')[^'\\]*+){0,256}", re.DOTALL),
    (b'"', True): re.compile(rb'[^"\\]*+(?:(?:\\.|"")[^"\\]*+){0,256}', re.DOTALL),
    (b"'", False): re.compile(rb"[^']*+(?:''[^']*+){0,256}"),
    (b'"', False): re.compile(rb'[^"]*+(?:""[^"]*+){0,256}'),
}
_TO_THE_QUOTE = re.compile(rb"[^']*+")


class Chunk(NamedTuple):
    """The place of a chunk in the text, and how to read its pieces again."""

    start: int
    end: int
    # The end of the text for the regular expression; the first *kept* of its pieces count.
    stop: int
    kept: int
    # Which of the four parts of a piece the chunk is, if no regular expression read it; else 0.
    whole: int = 0

    def pieces(self, sql: bytes, lex: Lexis) -> list[Piece]:
        """Return the pieces of the chunk."""
        if self.whole:
            parts = [b"", b"", b"", b""]
            parts[self.whole] = sql[self.start : self.end]
            return [(parts[0], parts[1], parts[2], parts[3])]
        return lex.pieces.findall(sql, self.start, self.stop)[: self.kept]


def pause() -> None:
    """Let the session that waits for a large text's reading stop it."""
    if (between := between_chunks.get()) is not None:
        between()


def chunks(sql: bytes, lex: Lexis, start: int, end: int) -> Iterator[tuple[Chunk, list[Piece]]]:
    """Yield the chunks of sql[start:end] and their pieces. All adjacent blanks and comments are in one piece."""
    at = start
    while at < end:
        pause()
        stop = min(at + _size(sql), end)
        pieces = lex.pieces.findall(sql, at, stop)
        kept, left = len(pieces), stop
        while stop < end and kept and left > stop - _MARGIN_BYTES:
            kept -= 1
            left -= sum(map(len, pieces[kept]))
        # The beginning of a string that continues past the chunk seems to be no token.
        while stop < end and kept and pieces[kept - 1][3] in _INTRODUCES:
            kept -= 1
            left -= sum(map(len, pieces[kept]))
        if kept and left > at:
            del pieces[kept:]
            yield Chunk(at, left, stop, kept), pieces
            at = left
            continue
        # One piece fills the chunk.
        code = len(pieces[0][0])
        if not code:
            whole, left = _whole(sql, at, end, lex)
            chunk = Chunk(at, left, left, 1, whole)
        elif code < stop - at - _MARGIN_BYTES:
            left = at + code
            chunk = Chunk(at, left, left, 1)
        else:
            left = end
            chunk = Chunk(at, left, left, 1, _BAD)
        yield chunk, chunk.pieces(sql, lex)
        at = left


def _size(sql: bytes) -> int:
    return CHUNK_BYTES if len(sql) > LARGE_TEXT_BYTES else LARGE_TEXT_BYTES


def _whole(sql: bytes, at: int, end: int, lex: Lexis) -> tuple[int, int]:
    """Return the kind and the end of the piece at *at*, which is longer than a chunk."""
    if (noise := noise_end(sql, at, end)) > at:
        return _NOISE, noise
    literal = literal_end(sql, at, end, lex)
    return (_BAD, end) if literal is None else (_LITERAL, literal)


def noise_end(sql: bytes, at: int, end: int) -> int:
    """Return where the blanks and comments at *at* end. Hints are none."""
    while at < end:
        if found := _NOISE_RUN.match(sql, at, min(at + CHUNK_BYTES, end)):
            at = found.end()
        elif sql.startswith(b"/*", at) and not sql.startswith(_HINTS, at, end):
            close = sql.find(b"*/", at + 2, end)
            at = end if close < 0 else close + 2
        elif sql.startswith(b"#", at) or _DASHES.match(sql, at, end):
            newline = sql.find(b"\n", at, end)
            at = end if newline < 0 else newline
        else:
            break
        pause()
    return at


def marks(
    sql: bytes, pattern: re.Pattern[bytes], lex: Lexis, start: int, end: int
) -> Iterator[int]:
    """Yield the marks that `Lexis.skeleton` or `Lexis.parameter` finds in sql[start:end].

    An open quote takes all that is left.
    """
    at = start
    while at < end:
        pause()
        found = pattern.match(sql, at, end)
        assert found is not None, "it matches nothing at all, too"
        if found[1]:
            yield found.start(1)
        at = found.end() if found.end() > at else _whole(sql, at, end, lex)[1]


_PREFIXES: Final = frozenset({b"x", b"X", b"b", b"B"})
_INTRODUCES: Final = _PREFIXES | {b"n", b"N", b"_"}
_HINTS: Final = (b"/*+", b"/*vt+")
_CLOSE: Final = ord(")")


def literal_end(sql: bytes, at: int, end: int, lex: Lexis) -> int | None:
    """Return where the string, or the number in hexadecimal, at *at* ends; None if there is none."""
    if found := _HEX_START.match(sql, at, end):
        at = found.end()
        while found := _HEX.match(sql, at, min(at + CHUNK_BYTES, end)):
            at = found.end()
        return None if _WORD.match(sql, at, end) else at
    opened = _QUOTED_START.match(sql, at, end)
    if opened is None or (opened[1] == b'"' and lex.ansi_quotes):
        return None
    quote = opened[1]
    at = opened.end()
    is_prefixed = opened[0][-2:-1] in _PREFIXES
    body = _TO_THE_QUOTE if is_prefixed else _BODIES[quote, lex.backslash_escapes]
    while at < end:
        pause()
        found = body.match(sql, at, min(at + CHUNK_BYTES, end))
        assert found is not None
        at = found.end()
        if at == end or (here := sql[at : at + 1]) not in (b"\\", quote):
            continue
        # The chunk ended in an escape or between two quotes, or the string ends.
        if here == quote and (is_prefixed or sql[at + 1 : at + 2] != quote):
            return at + 1
        if here == quote or lex.backslash_escapes:
            at += 2
    return None


def uniform_rows(sql: bytes, lex: Lexis) -> tuple[int, int, bool] | None:
    """Return where the rows of literals of an INSERT begin and end, and whether some have calls.

    None if there is anything else among them.
    """
    size = _size(sql)
    head = lex.head.match(sql, 0, size)
    if head is None:
        return None
    start = end = head.end()
    has_calls = False
    while (comma := lex.comma.match(sql, end)) or end == start:
        pause()
        at = comma.end() if comma else start
        if found := lex.rows.match(sql, at, at + size):
            end = found.end()
            has_calls = has_calls or found.lastindex is not None
        elif at + size < len(sql) and (cut := elements(sql, at, lex)):
            end = cut[1]
            has_calls = has_calls or any(sql[last - 1] == _CLOSE for _, last in cut[0])
        else:
            return None
    behind = noise_end(sql, end, len(sql))
    return None if sql.startswith(b",", behind) else (start, end, has_calls)


def cut_rows(
    sql: bytes, start: int, end: int, row: re.Pattern[bytes], lex: Lexis
) -> Iterator[tuple[tuple[int, int], re.Match[bytes] | None]]:
    """Yield the place of each uniform row, and the match of *row* in it; None if it is too long."""
    at = start
    while True:
        pause()
        if found := row.match(sql, at, min(at + CHUNK_BYTES, end)):
            span = found.span()
        else:
            cut = elements(sql, at, lex)
            assert cut is not None
            span = at, cut[1]
        yield span, found
        comma = lex.comma.match(sql, span[1], end)
        if comma is None:
            return
        at = comma.end()


def elements(sql: bytes, at: int, lex: Lexis) -> tuple[list[tuple[int, int]], int] | None:
    """Return the places of the values of the row at *at*, and its end; None if there are others than `Lexis.element`."""
    if not sql.startswith(b"(", at):
        return None
    end = len(sql)
    spans = []
    while True:
        at += 1
        if blanks := _BLANKS.match(sql, at):
            at = blanks.end()
        stop = min(at + CHUNK_BYTES, end)
        found = lex.element.match(sql, at, stop)
        if found is not None and (stop == end or found.end() < stop - _MARGIN_BYTES):
            spans.append(found.span(1))
            at = found.end()
        else:
            last = literal_end(sql, at, end, lex)
            if last is None:
                return None
            spans.append((at, last))
            at = last
            if blanks := _BLANKS.match(sql, at):
                at = blanks.end()
        if sql.startswith(b")", at):
            return spans, at + 1
        if not sql.startswith(b",", at):
            return None
        pause()


def assemble(pieces: list[Piece], parts: list[bytes], literals: list[bytes]) -> None:
    """Append the template of *pieces* to *parts*, and their literals."""
    for code, literal, noise, bad in pieces:
        parts.append(code)
        if literal:
            literals.append(literal)
            parts.append(STRING if literal[0] in STRING_FIRST else NUMBER)
        elif noise:
            parts.append(b" ")
        elif bad:
            parts.append(BAD)


class Passage(NamedTuple):
    """A chunk, and the size of the template and of the literals before it."""

    chunk: Chunk
    at_template: int
    at_literal: int
    # The chunk's pieces if the whole text is small; None if they are to be read again.
    pieces: list[Piece] | None = None


class ChunkedText:
    """A text read in chunks, as one template in which nothing is folded yet.

    rows: the range of an INSERT's uniform rows, which one mark represents; None without them.
    literals_count: how many literals it has outside uniform rows.
    """

    def __init__(self, sql: bytes, lex: Lexis) -> None:
        self.sql = sql
        self.lex = lex
        self.rows = uniform_rows(sql, lex)
        self.literals_count = 0
        self._passages: list[Passage] = []
        self._size = 0
        # The number of the chunk that was read last, and its literals.
        self._read_last: tuple[int, list[bytes]] = (-1, [])
        parts: list[bytes] = []
        end = 0
        if self.rows is not None:
            start, end, has_calls = self.rows
            self._read(0, start, parts)
            self._pass(Chunk(start, end, end, 0), [], parts)
            parts.append(CALL_ROWS if has_calls else ROWS)
            self._size += 1
        self._read(end, len(sql), parts)
        self._pass(Chunk(len(sql), len(sql), len(sql), 0), [], parts)
        self.template = b"".join(parts)

    def _read(self, start: int, end: int, parts: list[bytes]) -> None:
        for chunk, pieces in chunks(self.sql, self.lex, start, end):
            self._pass(chunk, pieces, parts)

    def _pass(self, chunk: Chunk, pieces: list[Piece], parts: list[bytes]) -> None:
        kept = None if pieces and len(self.sql) > LARGE_TEXT_BYTES else pieces
        self._passages.append(Passage(chunk, self._size, self.literals_count, kept))
        own: list[bytes] = []
        literals: list[bytes] = []
        assemble(pieces, own, literals)
        parts.append(b"".join(own))
        self._size += len(parts[-1])
        self.literals_count += len(literals)

    def literals(self, start: int, end: int) -> Iterator[bytes]:
        """Yield the literals from *start* to *end*."""
        at = bisect_right(self._passages, start, key=lambda p: p.at_literal) - 1
        for place in range(at, len(self._passages)):
            passage = self._passages[place]
            if passage.at_literal >= end:
                return
            pause()
            known, found = self._read_last
            if known != place:
                found = [piece[1] for piece in self._pieces(passage) if piece[1]]
                self._read_last = place, found
            first = passage.at_literal
            yield from found[max(start - first, 0) : max(end - first, 0)]

    def _pieces(self, passage: Passage) -> list[Piece]:
        if passage.pieces is not None:
            return passage.pieces
        return passage.chunk.pieces(self.sql, self.lex)

    def text_places(self, positions: Iterable[int]) -> list[int]:
        """Return the places in the text of positions of the unfolded template."""
        anchors: dict[int, list[tuple[int, int]]] = {}
        places = []
        for position in positions:
            at = bisect_right(self._passages, position, key=lambda p: p.at_template) - 1
            if at not in anchors:
                anchors = {at: self._anchors(self._passages[at])}
            # A border is in code, which is the same in both, so it is as far from its anchor in both.
            near = bisect_right(anchors[at], position, key=lambda anchor: anchor[0]) - 1
            at_template, at_text = anchors[at][near]
            places.append(at_text + position - at_template)
        return places

    def _anchors(self, passage: Passage) -> list[tuple[int, int]]:
        """Return where each piece begins in the template and in the text."""
        at_template, at_text = passage.at_template, passage.chunk.start
        anchors = [(at_template, at_text)]
        for piece in self._pieces(passage):
            at_template += len(piece[0]) + any(piece[1:])
            at_text += sum(map(len, piece))
            anchors.append((at_template, at_text))
        return anchors


class Literals(Sequence[bytes]):
    """The literals of a large text, read again on each use.

    left_out: (place, count) of the literals of folded rows, which do not count, in order.
    """

    def __init__(self, text: ChunkedText, left_out: Sequence[tuple[int, int]] = ()) -> None:
        self._text = text
        # The place of each gap among the remaining literals, and how many are left out up to there.
        self._gaps: list[int] = []
        self._out: list[int] = [0]
        for place, count in left_out:
            self._gaps.append(place - self._out[-1])
            self._out.append(self._out[-1] + count)

    def __len__(self) -> int:
        return self._text.literals_count - self._out[-1]

    @overload
    def __getitem__(self, index: int) -> bytes: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[bytes, ...]: ...
    def __getitem__(self, index: int | slice) -> bytes | tuple[bytes, ...]:
        start, end, step = (
            index.indices(len(self))
            if isinstance(index, slice)
            else slice(index, index + 1).indices(len(self))
        )
        found: list[bytes] = []
        while start < end:
            at = bisect_right(self._gaps, start)
            stop = min(end, self._gaps[at]) if at < len(self._gaps) else end
            out = self._out[at]
            found += self._text.literals(start + out, stop + out)
            start = stop
        if isinstance(index, slice):
            return tuple(found[::step])
        return found[0]
