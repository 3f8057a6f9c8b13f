"""What is left out of a template: of VALUES rows all but one of each kind, of an IN list all but a mark.

A template is folded in pieces, so that no single call of a regular expression takes long (see `chunks`).
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from streamfrom.sqlparse_ext.text.chunks import CHUNK_BYTES, pause
from streamfrom.sqlparse_ext.text.lexer_patterns import LIST, NUMBER, ROW_LITERAL, STRING


class Fold(NamedTuple):
    """A range of a template, and the size of what took its place."""

    start: int
    end: int
    size: int


# Of a text with more statements than that nothing but the first one's rows is folded.
_STATEMENTS_MAX: Final = 100_000
# A row of a template that is longer than that is not folded.
_ROW_BYTES_MAX: Final = 256 << 10

_FLAT = rb"(?:[^()`\"]++|`[^`]*+`|\"[^\"]*+\")"
_ROW = rb"\((?:%s|\((?:%s|\((?:%s|\(%s*\))*\))*\))*\)" % ((_FLAT,) * 4)
_INSERT_HEAD = re.compile(
    rb" ?(?i:INSERT|REPLACE)\b" + _FLAT.replace(b"++", b"") + rb"*?(?:\(" + _FLAT + rb"*\) ?)?\b(?i:VALUES?) ?(?=\()",
    re.DOTALL,
)  # fmt: skip
_ROWS = re.compile(_ROW + rb"(?: ?, ?" + _ROW + rb")*", re.DOTALL)
_EACH_ROW = re.compile(_ROW, re.DOTALL)
_COMMA = re.compile(rb" ?, ?")
_TO_ROW_LITERAL: Final = bytes.maketrans(NUMBER + STRING, ROW_LITERAL * 2)

_LIST_HEAD = re.compile(rb"[iI][nN](?<![\w$\x80-\xff.@`][iI][nN]) ?\( ?")
_LIST_HEAD_BYTES: Final = 8
_ITEM = rb"(?:[\0\1]|\( ?[\0\1](?: ?, ?[\0\1])* ?\))"
_LIST_ITEMS = re.compile(_ITEM + rb"(?: ?, ?" + _ITEM + rb")*")
_LIST_CLOSE = re.compile(rb" ?\)")


def fold_rows(
    template: bytes, *, has_rows: bool
) -> tuple[bytes, list[Fold], list[tuple[int, int]]]:
    """Keep one of each kind of the VALUES rows of each statement in *template*.

    has_rows: the rows of the first statement are one mark already.

    Return the template, what was folded, and the (place, count) of the literals that fell out.
    """
    folds: list[Fold] = []
    left_out: list[tuple[int, int]] = []
    parts: list[bytes] = []
    done = slot = 0
    has_code = b"/*" in template
    for at in _statement_starts(template, skips_first=has_rows or has_code):
        # A `;` inside of rows that were folded just now.
        if at < done:
            continue
        head = _INSERT_HEAD.match(template, at, at + _ROW_BYTES_MAX)
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
        folds.append(Fold(start, end, len(kept)))
        parts += (template[done:start], kept)
        done = end
    parts.append(template[done:])
    return b"".join(parts), folds, left_out


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


def _row_kinds(template: bytes, start: int) -> tuple[int, Iterable[bytes], int]:
    """Return the end of the VALUES rows at *start*, one row of each kind, and the number of their literals."""
    kinds: dict[bytes, None] = {}
    count = 0
    at = end = start
    while rows := _ROWS.match(template, at, at + CHUNK_BYTES) or (
        _ROWS.match(template, at, at + _ROW_BYTES_MAX)
    ):
        pause()
        count += _slots(rows[0])
        # Rows that differ only in whether a value is a number or a string are of one kind, or
        # each mixture of them would be a shape of its own.
        marked = rows[0].translate(_TO_ROW_LITERAL)
        kinds.update(dict.fromkeys(_EACH_ROW.findall(marked)))
        end = rows.end()
        comma = _COMMA.match(template, end)
        if comma is None:
            break
        at = comma.end()
    return end, kinds.keys(), count


def fold_lists(template: bytes) -> tuple[bytes, list[Fold], tuple[tuple[int, int, int], ...]]:
    """Put one mark for the literals of each IN list.

    Return the template, what was folded, and the `lexer.Fingerprint.runs`.
    """
    folds: list[Fold] = []
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
        # The head ends at the end of the chunk, so the blanks behind it may go on: read again
        # from there.
        if stop < size and head.end() >= stop - 1 and head.start() > at:
            at = head.start()
            continue
        start = head.end()
        end, count = _list_end(template, start)
        close = _LIST_CLOSE.match(template, end) if end > start else None
        # IN (SELECT …), IN (a, 1): nothing to fold.
        at = head.start() + 1 if close is None else close.end()
        if close is None:
            continue
        before = template[done:start]
        passed = _slots(before)
        slot += passed
        first += passed
        folds.append(Fold(start, end, 1))
        runs.append((slot, first, count))
        first += count
        slot += 1
        parts += (before, LIST)
        done = end
    if not folds:
        return template, folds, ()
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
        comma = _COMMA.match(template, end)
        if comma is None:
            break
        at = comma.end()
    return end, count


def _slots(template: bytes) -> int:
    return template.count(NUMBER) + template.count(STRING)


def unfolded(positions: Iterable[int], folds: Sequence[Fold]) -> list[int]:
    """Return where *positions* of a template were before *folds*."""
    starts: list[int] = []
    shifts = [0]
    for start, end, size in folds:
        starts.append(start - shifts[-1])
        shifts.append(shifts[-1] + end - start - size)
    return [position + shifts[bisect_left(starts, position)] for position in positions]
