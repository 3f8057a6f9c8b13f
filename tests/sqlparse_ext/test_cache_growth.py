"""Ten times the text takes about ten times the work, whatever it is made of, for each who reads it."""

import os
import random
from contextlib import suppress
from functools import partial

import pytest

from streamfrom.sqlparse_ext.cache import StatementCache
from streamfrom.sqlparse_ext.errors import StreamfromError
from streamfrom.sqlparse_ext.reading.database_names import renamed
from streamfrom.sqlparse_ext.reading.split import split_statements
from streamfrom.sqlparse_ext.session.information_schema import schemas_asked
from streamfrom.sqlparse_ext.session.session_calls import inline
from streamfrom.sqlparse_ext.text.insert_rows import insert_rows, parameter_places
from tests.growth import is_linear


# Characters. A nightly run sets GROWTH_CHARACTERS to a million.
LARGE = int(os.environ.get("GROWTH_CHARACTERS", "10000"))
SMALL = LARGE // 10
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
SHAPES = [(random.Random(piece).choice(HEADS), piece) for piece in PIECES]
_DICE = random.Random(15)
SHAPES += [(_DICE.choice(HEADS), b"".join(_DICE.sample(PIECES, 3))) for _ in range(20)]
SHAPES += [
    (b"SELECT '", b"\\'"), (b"SELECT ", b"/*+ "), (b"SELECT ", b"/*vt+ x"), (b"SELECT ", b"`"), (b"SELECT ", b"@'"),
    (b"SELECT ", b"in (1, "), (b"SELECT ", b"1"), (b"INSERT INTO t VALUES ", b"("),
    (b"INSERT INTO t VALUES (f(1)) ON DUPLICATE KEY UPDATE a = ", b"x + "),
    (b"INSERT INTO t VALUES (1), (", b"'a' "), (b"", b"CREATE;"), (b"STREAM ", b"a, "),
    # Values of a row that ends wrongly: each may be read in one way only.
    (b"INSERT INTO t VALUES (", b"1,"), (b"INSERT INTO t VALUES (", b"1.5,"), (b"INSERT INTO t VALUES (", b"0x1F , -1e5,"),
    (b"INSERT INTO t VALUES (", b"'a','it''s',"), (b"INSERT INTO t VALUES (", b"'a\\\"',"),
    (b"INSERT INTO t VALUES (", b"NOW( ),"), (b"INSERT INTO t VALUES (", b"_utf8'a',"), (b"INSERT INTO t VALUES (x),", b"(1,'a'),"),
    (b"INSERT ", b"/**/ "), (b"INSERT INTO t ", b"-- \n"), (b"INSERT ", b"INTO "), (b"INSERT INTO t (a", b", `b`"),
    (b"SELECT '", b"''"), (b"SELECT `", b"``"), (b"SELECT '", b'\\"'), (b"SELECT 1.5", b".5"), (b"SELECT ", b"((("),
    (b"UPDATE t SET ", b"SELECT 1;IS_USED_LOCK(?,"), (b"SELECT USER()", b",(SELECT USER()"), (b"SELECT USER()", b" SELECT 1"),
]  # fmt: skip
# A head, what opens, and what closes it.
NESTED = [
    (b"SELECT * FROM t WHERE id = 5 AND ", b"(", b")"),
    (b"SELECT * FROM t WHERE ", b"(id = 5 AND ", b"1)"),
    (b"SELECT ", b"f(", b")"),
]
WHO = {"USER": b"'u'", "FOUND_ROWS": b"1"}


READERS = {
    "split": lambda statement: split_statements(statement.sql),
    "inline": lambda statement: inline(statement, WHO, {5: 6}),
    "schemas": lambda statement: schemas_asked(statement, "information_schema"),
    "database names": lambda statement: renamed(statement.shape, {"a": "b"}),
    "parameters": lambda statement: parameter_places(statement.sql, statement.mode),
    "rows": insert_rows,
}


@pytest.mark.parametrize(
    ("head", "piece", "close"), [*((head, piece, b"") for head, piece in SHAPES), *NESTED]
)
def test_work_grows_with_the_text_and_no_faster(head, piece, close):
    def text(size: int) -> bytes:
        times = size // len(piece + close)
        return bytes(head + piece * times + close * times)

    statements = {}

    def read(size: int, sql: bytes) -> None:
        with suppress(StreamfromError):
            statements[size] = StatementCache().get(sql)

    assert is_linear(lambda size: partial(read, size, text(size)), SMALL, LARGE)
    if SMALL not in statements:  # what is quick was not read
        read(SMALL, text(SMALL))
    if statements.keys() != {SMALL, LARGE}:
        return
    for name, reader in READERS.items():
        work = {size: partial(reader, statement) for size, statement in statements.items()}
        assert is_linear(work.__getitem__, SMALL, LARGE), name
