"""Ten times the text takes about ten times the work, whatever it is made of, for each who reads it."""

import os
import random
from functools import partial

import pytest

from streamfrom.sqlparse_ext.cache import StatementCache
from streamfrom.sqlparse_ext.errors import StreamfromError
from streamfrom.sqlparse_ext.reading.split import split_statements
from streamfrom.sqlparse_ext.session.inline import inline
from streamfrom.sqlparse_ext.session.schemas import schemas_asked
from streamfrom.sqlparse_ext.statements import Statement
from streamfrom.sqlparse_ext.text.identifiers import requalify
from streamfrom.sqlparse_ext.text.parameters import parameter_places
from tests.growth import is_linear


# Characters. A nightly run sets GROWTH_CHARACTERS to a million.
LARGE = int(os.environ.get("GROWTH_CHARACTERS", "40000"))
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
SHAPES = [(head, piece) for piece in PIECES for head in random.Random(piece).sample(HEADS, 2)]
_DICE = random.Random(15)
SHAPES += [(_DICE.choice(HEADS), b"".join(_DICE.sample(PIECES, 3))) for _ in range(20)]
WHO = {"USER": b"'u'", "FOUND_ROWS": b"1"}


READERS = {
    "split": lambda statement: split_statements(statement.sql),
    "inline": lambda statement: inline(statement, WHO, {5: 6}),
    "schemas": lambda statement: schemas_asked(statement, "information_schema"),
    "requalify": lambda statement: requalify(statement.sql, {"a": "b"}),
    "parameters": lambda statement: parameter_places(statement.sql, statement.mode),
}


def text(head: bytes, piece: bytes, size: int) -> bytes:
    return head + piece * (size // len(piece))


@pytest.mark.parametrize(("head", "piece"), SHAPES)
def test_work_grows_with_the_text_and_no_faster(head, piece):
    def text(size: int) -> bytes:
        return bytes(head + piece * (size // len(piece)))

    def read(size: int) -> Statement | None:
        try:
            return StatementCache().get(text(size))
        except StreamfromError:
            return None

    assert is_linear(lambda size: partial(read, size), SMALL, LARGE)
    statements = {size: read(size) for size in (SMALL, LARGE)}
    if None in statements.values():
        return
    for name, reader in READERS.items():
        work = {size: partial(reader, statement) for size, statement in statements.items()}
        assert is_linear(work.__getitem__, SMALL, LARGE), name
