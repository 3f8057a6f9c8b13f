"""Whole statements: what clients really send, and what is easily taken for something else."""

import pytest
from hypothesis import given, strategies as st

from streamfrom.sqlparse_ext.cache import StatementCache
from streamfrom.sqlparse_ext.errors import SqlError
from streamfrom.sqlparse_ext.reading.parser import explained_text
from streamfrom.sqlparse_ext.statements import Kind, Slot
from tests.cases import cases
from tests.sqlparse_ext.facts import shape, statement, tables, uses
from tests.sqlparse_ext.strategies import MODES, texts


# What clients send at connect, in use and at close, client by client.
CLIENTS = [
    ("show databases", Kind.SHOW),
    ("show tables", Kind.SHOW),
    ("select @@version_comment limit 1", Kind.SELECT),
    ("select $$", Kind.SELECT),
    ("SELECT DATABASE()", Kind.SELECT),
    ("KILL QUERY 12", Kind.KILL),
    ("SET NAMES utf8mb4", Kind.SET),
    ("SET AUTOCOMMIT = 0", Kind.SET),
    ("SET NAMES utf8mb4 COLLATE utf8mb4_0900_ai_ci", Kind.SET),
    ("SET @@session.autocommit = OFF", Kind.SET),
    ("SELECT @@session.sql_mode", Kind.SELECT),
    ("SELECT VERSION(), DATABASE(), @@transaction_isolation, @@sql_mode", Kind.SELECT),
    ("ROLLBACK", Kind.ROLLBACK),
    ("SHOW FULL TABLES FROM `ks`", Kind.SHOW),
    ("SHOW CREATE TABLE `t`", Kind.SHOW),
    ("SELECT VERSION(), @@sql_mode, @@default_storage_engine, @@sql_auto_is_null, "
     "@@lower_case_table_names, CONVERT_TZ('2001-01-01 01:00:00', 'UTC', 'UTC') IS NOT NULL",
     Kind.SELECT),
    ("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED", Kind.SET),
    ("SAVEPOINT `s140_x1`", Kind.SAVEPOINT),
    ("RELEASE SAVEPOINT `s140_x1`", Kind.SAVEPOINT),
    ("COMMIT", Kind.COMMIT),
    ("START TRANSACTION", Kind.BEGIN),
    ("set autocommit=1, sql_mode = concat(@@sql_mode,',STRICT_TRANS_TABLES')", Kind.SET),
    ("SELECT @@max_allowed_packet,@@system_time_zone,@@time_zone,@@auto_increment_increment",
     Kind.SELECT),
    ("set sql_mode=CONCAT(@@sql_mode,',x'),session_track_system_variables = "
     "CONCAT(@@global.session_track_system_variables,',transaction_isolation'),NAMES utf8mb4",
     Kind.SET),
    ("/* mysql-connector-j-9.0.0 */SELECT  @@session.auto_increment_increment AS a, "
     "@@init_connect AS init_connect, @@wait_timeout AS wait_timeout", Kind.SELECT),
    ("SET character_set_results = NULL", Kind.SET),
    ("/* ping */ SELECT 1", Kind.SELECT),
    ("SET net_write_timeout=600", Kind.SET),
    ("SET sql_select_limit=10", Kind.SET),
    ("SELECT * FROM t WHERE 1=0", Kind.SELECT),
    ("SHOW SCHEMAS", Kind.SHOW),
    ("SHOW INDEXES FROM `t`", Kind.SHOW),
]  # fmt: skip


@pytest.mark.parametrize(("sql", "kind"), CLIENTS)
def test_what_clients_send_is_understood(sql, kind):
    assert shape(sql).kind is kind
    assert "UNPARSED" not in uses(sql)


# Each of these some parser takes for something else, or refuses.
DANGEROUS = [
    ("SELECT 1 INTO @a", Kind.SELECT),
    ("SAVEPOINT a", Kind.SAVEPOINT),
    ("FLUSH TABLES", Kind.OTHER),
    ("/*!40101 SET NAMES utf8 */", Kind.SET),
    ("/*M!999999\\- enable the sandbox mode */ /*!40101 SET NAMES utf8 */", Kind.SET),
    ("/*!50003 SELECT 1 */", Kind.SELECT),
    ("/*M!100100 SELECT 1 */", Kind.EMPTY),
    ("DELIMITER ;;", Kind.OTHER),
    ("LOAD DATA INFILE 'x' INTO TABLE t", Kind.LOAD),
    ("START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY", Kind.BEGIN),
    ("XA START 'x'", Kind.XA),
    ("RELEASE SAVEPOINT a", Kind.SAVEPOINT),
    ("DO 1", Kind.OTHER),
    ("HANDLER t OPEN", Kind.OTHER),
    ("DEALLOCATE PREPARE s", Kind.PREPARE),
    ("SELECT * FROM t INTO OUTFILE '/tmp/x'", Kind.SELECT),
    ("UPDATE LOW_PRIORITY IGNORE t SET a = 1", Kind.UPDATE),
    ("SELECT {d '2020-01-01'}", Kind.SELECT),
    ("CHANGE REPLICATION SOURCE TO SOURCE_HOST = 'x'", Kind.OTHER),
    ("SIGNAL SQLSTATE '45000'", Kind.OTHER),
    ("ROLLBACK AND NO CHAIN RELEASE", Kind.ROLLBACK),
    ("REPLACE INTO t VALUES (1)", Kind.REPLACE),
    ("CALL p()", Kind.CALL),
    ("LOCK TABLES t READ", Kind.LOCK),
    ("UNLOCK TABLES", Kind.LOCK),
    ("PREPARE s FROM 'x'", Kind.PREPARE),
    ("EXECUTE s", Kind.PREPARE),
    ("GRANT ALL ON *.* TO 'a'@'b'", Kind.OTHER),
    ("CREATE USER a", Kind.DDL),
    ("CREATE TRIGGER x BEFORE INSERT ON t FOR EACH ROW SET NEW.a = 1", Kind.DDL),
    ("CREATE TABLE t (a INT) PARTITION BY HASH (a) PARTITIONS 4", Kind.DDL),
    ("OPTIMIZE TABLE t", Kind.OTHER),
    ("SET PASSWORD = 'x'", Kind.SET),
    ("SET STATEMENT max_statement_time = 1 FOR SELECT 1", Kind.SET),
    ("SHOW COUNT(*) WARNINGS", Kind.SHOW),
    ("SHOW BINARY LOG STATUS", Kind.SHOW),
    ("SELECT 'a' 'b'", Kind.SELECT),
    ("SELECT a->'$.b', a->>'$.c', 5 MOD 2, NOW() + INTERVAL 1 DAY FROM t", Kind.SELECT),
    ("SELECT _utf8mb4'x', N'y', X'00', 0xff FROM t", Kind.SELECT),
    ("SELECT * FROM t WHERE MATCH (a) AGAINST ('x' IN BOOLEAN MODE)", Kind.SELECT),
    ("SELECT * FROM t FOR UPDATE SKIP LOCKED", Kind.SELECT),
    ("INSERT INTO t SET a = 1", Kind.INSERT),
]


@pytest.mark.parametrize(("sql", "kind"), DANGEROUS)
def test_nothing_is_taken_for_something_else(sql, kind):
    assert shape(sql).kind is kind


@pytest.mark.parametrize(
    "sql", ["", " ", ";", " ; ; ", "/* only a comment */", "-- x", "/*! */"]
)
def test_nothing_is_empty(sql):
    assert shape(sql).kind is Kind.EMPTY


def test_what_a_version_comment_hides_is_code():
    assert tables("SELECT * FROM t /*! JOIN u */") == ["t", "u"]
    assert uses("DELETE FROM t /*! WHERE GET_LOCK('a', 1) */") == {"ADVISORY_LOCK"}


@cases(sql=str.encode, inner=str.encode)
def test_the_statement_inside_an_explain(sql, inner):
    assert explained_text(statement(sql)) == inner


def test_bodies_of_statements_are_one_statement():
    assert "MULTIPLE" not in uses("CREATE PROCEDURE p() BEGIN SELECT 1; SELECT 2; END")
    assert "MULTIPLE" in uses("CREATE TABLE IF NOT EXISTS t (a INT); SELECT 1")
    assert "MULTIPLE" in uses("DROP PROCEDURE IF EXISTS p; CREATE PROCEDURE p() SELECT 1")


@given(sql=st.one_of(texts, st.binary(max_size=80)), mode=MODES)
def test_any_text_has_a_shape_or_is_a_wrong_stream(sql, mode):
    try:
        found = StatementCache().get(sql, mode)
    except SqlError:
        return
    explained_text(found)
    operands = [operand for each in found.shape.conditions.values() for operand in each]
    for operand in (*operands, *found.shape.assignments.values()):
        if isinstance(operand, Slot):
            found.value(operand)
