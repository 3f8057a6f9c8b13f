import pytest

from streamfrom.sqlparse_ext.session.named_variables import may_assign, named_variables
from tests.sqlparse_ext.facts import shape


@pytest.mark.parametrize(
    ("sql", "names"),
    [
        ("SELECT 1", set()),
        ("SELECT @@sql_mode, '@a', \"@b\" -- @c", set()),
        ("SET @a = 1, @B=@a+1", {"a", "b"}),
        ("SELECT @`a ``b`, @'it', @\"is\", @a.b$c", {"a `b", "it", "is", "a.b$c"}),
        ("SELECT @É", {"É"}),
        ("SHOW GRANTS FOR 'root'@'localhost'", set()),
        ("SHOW GRANTS FOR root@localhost", set()),
        ("CALL p(@out)", {"out"}),
    ],
)
def test_a_statement_names_its_variables(sql, names):
    assert named_variables(shape(sql)) == names


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
