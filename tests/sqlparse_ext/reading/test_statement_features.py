"""Features that no tracker shows, each found in the ways people write it."""

import pytest

from streamfrom.sqlparse_ext.reading.statement_features import may_assign
from tests.sqlparse_ext.facts import shape, uses


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("SELECT 1", set()),
        ("SELECT @@version_comment LIMIT 1", {"LIMIT"}),
        ("SELECT @x", {"USER_VARIABLE"}),
        ("SELECT @y := 2", {"USER_VARIABLE"}),
        ("SELECT @`a b`, @'c'", {"USER_VARIABLE"}),
        ("SET @x = 1", {"USER_VARIABLE"}),
        ("SELECT LAST_INSERT_ID()", {"LAST_INSERT_ID"}),
        ("SELECT last_insert_id ( )", {"LAST_INSERT_ID"}),
        ("SELECT LAST_INSERT_ID(5)", {"SETS_LAST_INSERT_ID"}),
        ("UPDATE s SET id = LAST_INSERT_ID(id + 1)", {"SETS_LAST_INSERT_ID"}),
        ("SELECT @@identity, @@SESSION.last_insert_id", {"LAST_INSERT_ID"}),
        ("SELECT last_insert_id FROM t", set()),
        ("SELECT SQL_CALC_FOUND_ROWS * FROM t", {"CALC_FOUND_ROWS"}),
        ("SELECT /*!40001 SQL_CALC_FOUND_ROWS */ * FROM t", {"CALC_FOUND_ROWS"}),
        ("SELECT FOUND_ROWS()", {"FOUND_ROWS"}),
        ("SELECT ROW_COUNT()", {"ROW_COUNT"}),
        ("SELECT GET_LOCK('a', 1)", {"ADVISORY_LOCK"}),
        ("DO RELEASE_LOCK('a')", {"ADVISORY_LOCK"}),
        ("SELECT IS_USED_LOCK('a')", {"ADVISORY_LOCK"}),
        ("SELECT 'GET_LOCK(1)', `GET_LOCK` FROM t -- GET_LOCK(", set()),
        ("SHOW WARNINGS", {"DIAGNOSTICS"}),
        ("SHOW ERRORS LIMIT 1", {"DIAGNOSTICS", "LIMIT"}),
        ("SHOW COUNT(*) WARNINGS", {"DIAGNOSTICS", "AGGREGATE"}),
        ("SELECT @@warning_count", {"DIAGNOSTICS"}),
        ("SELECT @@max_allowed_packet, @@global.socket", {"IDENTITY"}),
        ("GET DIAGNOSTICS CONDITION 1 @p = MESSAGE_TEXT", {"DIAGNOSTICS", "USER_VARIABLE"}),
        ("CREATE TEMPORARY TABLE t (a INT)", {"TEMPORARY_TABLE"}),
        ("DROP TEMPORARY TABLE t", {"TEMPORARY_TABLE"}),
        ("HANDLER t OPEN", {"HANDLER"}),
        ("SELECT * FROM t FOR UPDATE", {"LOCKING_READ"}),
        ("SELECT * FROM t FOR SHARE SKIP LOCKED", {"LOCKING_READ"}),
        ("SELECT * FROM t LOCK IN SHARE MODE", {"LOCKING_READ"}),
        ("SELECT * FROM t WHERE a IN (SELECT b FROM u)", {"SUBQUERY"}),
        ("SELECT * FROM (SELECT 1) d", {"SUBQUERY"}),
        ("(SELECT 1) UNION ALL (SELECT 2)", {"SETOP"}),
        ("((SELECT 1))", set()),
        ("SELECT * FROM a JOIN b USING (x)", {"JOIN"}),
        ("SELECT * FROM a, b", {"JOIN"}),
        ("SELECT * FROM a STRAIGHT_JOIN b", {"JOIN"}),
        ("SELECT STRAIGHT_JOIN * FROM a", set()),
        ("SELECT COUNT(*), MAX(a) FROM t", {"AGGREGATE"}),
        ("SELECT a FROM t GROUP BY a", {"GROUP"}),
        ("SELECT a FROM t HAVING a > 1", {"GROUP"}),
        ("SELECT DISTINCT a FROM t", {"DISTINCT"}),
        ("SELECT a FROM t ORDER BY a LIMIT 1, 2", {"ORDER", "LIMIT"}),
        ("SELECT 1 EXCEPT SELECT 2", {"SETOP"}),
        ("SELECT RANK() OVER w FROM t WINDOW w AS (ORDER BY a)", {"WINDOW", "ORDER"}),
        ("SELECT 1 INTO @a", {"INTO", "USER_VARIABLE"}),
        ("SELECT * FROM t INTO OUTFILE '/tmp/x'", {"INTO"}),
        ("SET SESSION_TRACK_SCHEMA = 1", {"TRACKER_SETTING"}),
        ("SET @@session.session_track_gtids = OFF", {"TRACKER_SETTING"}),
        ("SET GLOBAL x = 1", {"GLOBAL_SCOPE"}),
        ("SET PERSIST x = 1", {"GLOBAL_SCOPE"}),
        ("SET @@global.x = 1", {"GLOBAL_SCOPE"}),
        ("SET x = @@global.x", set()),
        ("LOAD DATA LOCAL INFILE 'x' INTO TABLE t", {"LOCAL_INFILE"}),
        ("LOAD DATA INFILE 'x' INTO TABLE t", set()),
        ("WITH c AS (SELECT 1) SELECT * FROM c", {"CTE", "SUBQUERY"}),
        ("CREATE TABLE t (a INT)", {"IMPLICIT_COMMIT"}),
        ("LOCK TABLES t READ", {"IMPLICIT_COMMIT"}),
        ("TRUNCATE t", {"IMPLICIT_COMMIT"}),
        ("GRANT ALL ON *.* TO 'a'@'b'", {"IMPLICIT_COMMIT"}),
        ("CREATE PROCEDURE p() BEGIN SELECT @x; END", {"IMPLICIT_COMMIT"}),
        ("DELETE FROM t RETURNING a", {"RETURNING"}),
        ("SELECT 1; SELECT 2", {"MULTIPLE", "UNPARSED"}),
        ("INSERT INTO t VALUES (LAST_INSERT_ID()), (1)", {"LAST_INSERT_ID"}),
        ("INSERT INTO t VALUES (1), (GET_LOCK('a', 1))", {"ADVISORY_LOCK"}),
        ("INSERT INTO t VALUES ('LAST_INSERT_ID()')", set()),
        ("SELECT t.limit, t.join FROM t", set()),
    ],
)
def test_uses(sql, expected):
    assert uses(sql) == expected


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
    assert shape(sql).variables == names


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
