"""Where statements end whose bodies hold statements, and which texts surely are several."""

import pytest

from streamfrom.sqlparse_ext.reading.statement_boundaries import are_several, end_of_statement
from streamfrom.sqlparse_ext.text.tokens import tokenise


@pytest.mark.parametrize(
    "sql",
    [
        b"SELECT 1; SELECT 2",
        b"CREATE TRIGGER x BEFORE INSERT ON t FOR EACH ROW SET @a = 1; SELECT 2",
        b"CREATE PROCEDURE p() SELECT 1; SELECT 2",
        b"CREATE FUNCTION f() RETURNS INT RETURN 1; SELECT f()",
        b"CREATE EVENT e ON SCHEDULE EVERY 1 HOUR DO SET @a = 1; SELECT 2",
        b"CREATE PROCEDURE p() BEGIN SELECT 1; SELECT 2; END; CREATE PROCEDURE q() SELECT 1",
        b"CREATE PROCEDURE p() BEGIN SELECT 1; END; CREATE PROCEDURE q() BEGIN SELECT 2; END",
        b"BEGIN NOT ATOMIC SELECT 1; END; SELECT 2",
        b"IF 1 THEN SELECT 1; END IF; SELECT 2",
        b"SET STATEMENT sql_mode = '' FOR CREATE PROCEDURE p() SELECT 1; SELECT 2",
        b"BEGIN; SELECT 1; COMMIT",
        b"BEGIN WORK; SELECT 1; COMMIT",
        b"CREATE PROCEDURE p() SELECT 1; BEGIN; SELECT 2; COMMIT",
    ],
)
def test_text_behind_a_body_is_another_statement(sql):
    assert are_several(tokenise(sql).tokens, sql)


@pytest.mark.parametrize(
    "sql",
    [
        b"SELECT 1",
        b"CREATE PROCEDURE p() BEGIN SELECT 1; SELECT 2; END",
        b"CREATE PROCEDURE p() BEGIN IF a THEN SELECT 1; ELSE SELECT 2; END IF; END",
        # In Oracle's words what is declared stands before BEGIN.
        b"CREATE PROCEDURE p AS x INT; BEGIN SELECT 1; END",
        b"CREATE PROCEDURE p AS x INT; y INT; BEGIN x := 1; EXCEPTION WHEN OTHERS THEN NULL; END",
        b"CREATE PACKAGE b AS FUNCTION f RETURN INT; PROCEDURE p; END",
        b"DECLARE x INT; BEGIN x := 1; SELECT x; END",
        b"BEGIN SELECT 1; SELECT 2; END",
        b"SET STATEMENT sql_mode = '' FOR CREATE PROCEDURE p() BEGIN SELECT 1; SELECT 2; END",
        b"SET STATEMENT max_statement_time = 1 FOR SELECT 1",
        # A column of this name ends nothing.
        b"CREATE PROCEDURE p() BEGIN SELECT end FROM t; SELECT 2; END",
    ],
)
def test_a_statement_with_a_body_is_one(sql):
    assert not are_several(tokenise(sql).tokens, sql)


def test_a_statement_ends_at_the_separator_behind_its_body():
    sql = b"CREATE PROCEDURE p() BEGIN SELECT 1; END; SELECT 2"
    tokens = tokenise(sql).tokens
    end = end_of_statement(tokens, 0, sql)
    assert (tokens[end - 1].key, tokens[end].key, tokens[end + 1].key) == ("END", ";", "SELECT")
    assert end_of_statement(tokens, end + 1, sql) == len(tokens)


def test_set_statement_in_set_statement_needs_no_recursion():
    sql = b"SET STATEMENT a = 1 FOR " * 5_000 + b"SELECT 1; SELECT 2"
    assert are_several(tokenise(sql).tokens, sql)
    assert not are_several(tokenise(sql[:-10]).tokens, sql[:-10])
