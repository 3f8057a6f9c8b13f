"""Ten times the text takes about ten times the work, whatever it is made of, for each who reads it."""

import random
import time

import pytest

from sqlparse_ext.cache import StatementCache
from sqlparse_ext.errors import StreamfromError
from sqlparse_ext.reading.split import split_statements
from sqlparse_ext.session.inline import inline
from sqlparse_ext.session.schemas import schemas_asked
from sqlparse_ext.text.identifiers import requalify
from sqlparse_ext.text.parameters import parameter_places


SMALL, LARGE = 4_000, 40_000
# Linear is 10 and quadratic 100; clocks and caches of a busy machine are in between.
GROWTH_MAX = 45
# What takes less is not worth a doubt.
QUICK_S = 0.05
HEADS = [
    b"", b"SELECT ", b"SELECT * FROM t WHERE ", b"SELECT * FROM information_schema.tables WHERE ",
    b"INSERT INTO t VALUES ", b"UPDATE t SET ", b"SET ", b"SET STATEMENT a=1 FOR ", b"SELECT a FROM t ",
    b"CREATE TABLE t (",
]  # fmt: skip
PIECES = [
    b"@a=1,", b"a=1,", b"a,", b"1,", b"(", b"()", b"(1,", b"a.b,", b"?,", b";", b"SELECT 1;", b"CREATE (;",
    b"SET STATEMENT;", b"SET STATEMENT x=1 FOR ", b"BEGIN ", b"CASE WHEN 1 THEN ", b"/**/", b"-- \n", b"`a`,",
    b"'x',", b"'", b"a AND ", b"a=1 AND ", b"a IN (1) AND ", b"a IN (1,?) OR ", b"USER(),", b"FOUND_ROWS(),",
    b"IS_USED_LOCK('a'),", b"IS_USED_LOCK(", b"TABLE_SCHEMA='a' AND ", b"TABLE_SCHEMA IN (", b"JOIN t ",
    b"JOIN t ON 1 ", b"UNION SELECT 1 ", b"(SELECT 1 FROM t),", b"(1,2),", b"(1+1,2),", b"/*! ", b"NOT ", b"||",
]  # fmt: skip
SHAPES = [(head, piece) for piece in PIECES for head in random.Random(piece).sample(HEADS, 2)]
_DICE = random.Random(15)
SHAPES += [(_DICE.choice(HEADS), b"".join(_DICE.sample(PIECES, 3))) for _ in range(20)]
WHO = {"USER": b"'u'", "FOUND_ROWS": b"1"}


def seconds(head: bytes, piece: bytes, size: int) -> dict[str, float]:
    sql = head + piece * (size // len(piece))
    found = {}
    began = time.thread_time()
    try:
        statement = StatementCache().get(sql)
    except StreamfromError:
        return {}
    found["get"] = time.thread_time() - began
    for name, read in {
        "split": lambda: split_statements(sql),
        "inline": lambda: inline(statement, WHO, {5: 6}),
        "schemas": lambda: schemas_asked(statement, "information_schema"),
        "requalify": lambda: requalify(sql, {"a": "b"}),
        "parameters": lambda: parameter_places(sql, statement.mode),
    }.items():
        began = time.thread_time()
        read()
        found[name] = time.thread_time() - began
    return found


@pytest.mark.parametrize(("head", "piece"), SHAPES)
def test_work_grows_with_the_text_and_no_faster(head, piece):
    slow = {name for name, s in seconds(head, piece, LARGE).items() if s > QUICK_S}
    for _ in range(3):
        if not slow:
            return
        small, large = seconds(head, piece, SMALL), seconds(head, piece, LARGE)
        slow = {n for n in slow if large[n] > GROWTH_MAX * max(small[n], 1e-4)}
    assert not slow
