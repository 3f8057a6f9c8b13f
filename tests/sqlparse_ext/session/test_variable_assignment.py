import pytest

from streamfrom.sqlparse_ext.session.variable_assignment import may_assign
from tests.sqlparse_ext.facts import shape


@pytest.mark.parametrize(
    ("sql", "assigns"),
    [
        ("SELECT 1", False),
        ("SELECT @a", False),
        ("UPDATE t SET a = @a WHERE id = @b", False),
        ("SET sql_mode = @a", False),
        ("PREPARE s FROM @a", False),
        ("EXECUTE s USING @a", False),
        ("SET @a = 1", True),
        ("SET sql_mode = (@a := 'ANSI')", True),
        ("SELECT @a := @a + 1 FROM t", True),
        ("SELECT a INTO @a FROM t", True),
        ("CALL p(@out)", True),
        ("LOAD DATA LOCAL INFILE 'f' INTO TABLE t (a, @b)", True),
        ("GET DIAGNOSTICS @a = NUMBER", True),
    ],
)
def test_a_statement_that_may_set_one_is_told_from_those_that_read(sql, assigns):
    assert may_assign(shape(sql)) is assigns
