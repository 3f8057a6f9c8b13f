"""Multi-statements are cut at the right `;` and nowhere else."""

import ast

import pytest
from hypothesis import given, strategies as st

from streamfrom.sqlparse_ext.reading.split import (
    are_several,
    split_statements,
)
from streamfrom.sqlparse_ext.text.tokens import tokenise
from tests.cases import cases, in_turn
from tests.sqlparse_ext.strategies import MODES, texts


BODIES = [
    b"CREATE PROCEDURE p() BEGIN SELECT 1; SELECT 2; END",
    b"CREATE DEFINER=`a`@`b` FUNCTION f() RETURNS INT BEGIN IF a THEN RETURN 1; END IF; RETURN 2; END",
    b"CREATE TRIGGER x BEFORE INSERT ON t FOR EACH ROW BEGIN SET NEW.a = IF(1, 2, 3); END",
    b"CREATE PROCEDURE p() IF 1 THEN SELECT 1; ELSE SELECT 2; END IF",
    b"CREATE EVENT e ON SCHEDULE EVERY 1 DAY DO BEGIN CASE 1 WHEN 1 THEN SELECT 1; END CASE; END",
    b"CREATE PROCEDURE p() l: LOOP WHILE 1 DO SELECT CASE WHEN 1 THEN 2 END; END WHILE; "
    b"REPEAT SELECT REPEAT('a', 3); UNTIL 1 END REPEAT; END LOOP",
    b"BEGIN NOT ATOMIC DECLARE a INT; SELECT 1; END",
    b"BEGIN NOT ATOMIC SELECT a FROM t WHERE a IN (1) FOR UPDATE; SELECT 2; END",
    b"FOR row IN (SELECT 1 AS a FROM t) DO SELECT row.a; SELECT 2; END FOR",
    b"FOR i IN 1..3 DO IF i THEN SELECT i; END IF; END FOR",
    b"IF 1 THEN SELECT 1; ELSE SELECT 2; END IF",
    b"WHILE 1 DO SELECT 1; SELECT 2; END WHILE",
    b"CASE 1 WHEN 1 THEN SELECT 1; ELSE SELECT 2; END CASE",
    b"LOOP SELECT 1; END LOOP",
    b"REPEAT SELECT REPEAT('a', 3); UNTIL 1 END REPEAT",
    b"ALTER EVENT e DO BEGIN SELECT 1; END",
]
WHOLE = [
    b"SELECT 1", b"SELECT 'a;b', \"c;d\", `e;f`", b"SELECT 'it''s; ', 'it\\'s; '",
    b"SELECT /* ; */ 1 -- ;\n, 2 # ;\n, 3", b"INSERT INTO t VALUES (1, ';'), (2, ')')",
    b"INSERT INTO t VALUES (1, f(';')), (2, f(3))", b"SELECT * FROM t WHERE id IN (1, 2, 3)", b"BEGIN",
    b"SET @x = ';'", *BODIES,
]  # fmt: skip


@in_turn
@pytest.mark.parametrize("statement", WHOLE)
def test_a_statement_is_not_cut(statement):
    assert split_statements(statement) == [statement]
    assert split_statements(b" " + statement + b" ;\n;") == [statement]


@given(statements=st.lists(st.sampled_from(WHOLE), min_size=1, max_size=5))
def test_joined_statements_come_back(statements):
    assert split_statements(b";\n".join(statements) + b";") == statements


@cases(sql=str.encode, expected=ast.literal_eval)
def test_empty_statements_and_comments_are_no_statements(sql, expected):
    assert split_statements(sql) == expected


@given(sql=texts, mode=MODES)
def test_nothing_but_separators_gets_lost(sql, mode):
    parts = split_statements(sql, mode)
    at = 0
    for part in parts:
        assert part == part.strip()
        at = sql.index(part, at) + len(part)


@cases(sql=str.encode, are=ast.literal_eval)
def test_text_behind_a_body_is_another_statement(sql, are):
    assert are_several(tokenise(sql).tokens, sql) is are


def test_set_statement_in_set_statement_needs_no_recursion():
    sql = b"SET STATEMENT a = 1 FOR " * 5_000 + b"SELECT 1; SELECT 2"
    assert are_several(tokenise(sql).tokens, sql)
    assert not are_several(tokenise(sql[:-10]).tokens, sql[:-10])
