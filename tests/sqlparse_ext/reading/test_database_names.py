"""Where statements name databases."""

import ast

import pytest
from hypothesis import given, strategies as st

from streamfrom.sqlparse_ext.errors import SqlError
from streamfrom.sqlparse_ext.reading.database_names import Qualified, database_names, renamed
from streamfrom.sqlparse_ext.sql_mode import DEFAULT_MODE, SqlMode
from streamfrom.sqlparse_ext.text.lexer import splice
from tests.cases import cases, in_turn
from tests.sqlparse_ext.facts import statement
from tests.sqlparse_ext.strategies import MODES, texts


# Statements that servers take, with Ks where a database is named, and ks where the same word is a table, an alias or a text.
STATEMENTS = """
SELECT * FROM Ks.t
SELECT Ks.t.a, 'ks.t' FROM Ks . t -- ks.t
SELECT * FROM a, Ks.t JOIN Ks.u ON ks.x = u.y, (Ks.v, Ks.w)
SELECT ks.a FROM x AS ks
SELECT ks.a FROM Ks.x ks WHERE ks.b IN (SELECT ks.c FROM Ks.y ks)
SELECT ks.a FROM Ks.ks
SELECT Ks.f(), Ks.f(Ks.g(ks.a)) FROM t ks
SELECT EXTRACT(YEAR FROM ks.d), TRIM('x' FROM ks.e) FROM Ks.t ks
SELECT * FROM Ks.t STRAIGHT_JOIN Ks.u
SELECT STRAIGHT_JOIN ks.a FROM Ks.t ks
SELECT a FROM Ks.t UNION SELECT a FROM Ks.u ORDER BY a, ks.b
SELECT a INTO @x FROM Ks.t
SELECT * FROM Ks.t FOR UPDATE
SELECT NEXTVAL(Ks.sq), LASTVAL(Ks.sq), SETVAL(Ks.sq, 5)
SELECT NEXT VALUE FOR Ks.sq, PREVIOUS VALUE FOR Ks.sq
SELECT * FROM JSON_TABLE(Ks.t.c, '$' COLUMNS (a INT PATH '$')) AS ks, Ks.t
TABLE Ks.t
WITH c AS (SELECT * FROM Ks.t) SELECT * FROM c JOIN Ks.u
INSERT INTO Ks.t VALUES (1),(2)
INSERT Ks.t (a) VALUES (1)
INSERT IGNORE INTO Ks.t (a) SELECT ks.a FROM Ks.u ks ON DUPLICATE KEY UPDATE a = ks.a, b = ks.b
INSERT INTO Ks.t SET a = Ks.f()
REPLACE LOW_PRIORITY Ks.t VALUES (REPLACE('a', 'b', 'c'))
UPDATE Ks.t SET a = 1
UPDATE Ks.t AS ks JOIN Ks.u ON ks.a = u.a SET ks.b = 2
UPDATE Ks.a, Ks.b SET a.x = b.y
DELETE FROM Ks.t WHERE Ks.t.id IN (1,2)
DELETE ks FROM Ks.t AS ks
DELETE Ks.t, Ks.u FROM Ks.t JOIN Ks.u
DELETE FROM Ks.t USING Ks.t JOIN Ks.u
EXPLAIN SELECT ks.a FROM Ks.t ks
EXPLAIN FORMAT=JSON UPDATE Ks.t SET a = 1
EXPLAIN FOR SCHEMA Ks SELECT 1 FROM t
DESCRIBE Ks.t
DESC Ks.t a
ANALYZE SELECT * FROM Ks.t
ANALYZE FORMAT = JSON DELETE FROM Ks.t
ANALYZE TABLE Ks.t, Ks.u
CALL Ks.p
CALL Ks.p(Ks.f(), 1)
DO Ks.f(), RELEASE_LOCK(Ks.g())
SET @a = Ks.f(), @b = (SELECT MAX(ks.a) FROM Ks.t ks)
LOAD DATA INFILE 'x' REPLACE INTO TABLE Ks.t (a) SET b = Ks.f()
CREATE TABLE Ks.t (a INT, FOREIGN KEY (a) REFERENCES Ks.u (a) ON DELETE SET NULL)
CREATE TABLE Ks.t LIKE Ks.u
CREATE TABLE Ks.t AS SELECT ks.a FROM Ks.u AS ks
CREATE TEMPORARY TABLE IF NOT EXISTS Ks.t (a INT DEFAULT (Ks.f()))
CREATE TABLE t (a INT) ENGINE = MERGE UNION = (Ks.a, Ks.b)
ALTER TABLE Ks.t RENAME TO Ks.u
ALTER TABLE Ks.t ALTER COLUMN a SET DEFAULT 1, RENAME Ks.u
ALTER TABLE Ks.t EXCHANGE PARTITION p WITH TABLE Ks.u
ALTER TABLE Ks.t ADD CONSTRAINT FOREIGN KEY (a) REFERENCES Ks.u (a)
DROP TABLE IF EXISTS Ks.t, Ks.u
TRUNCATE TABLE Ks.t
TRUNCATE Ks.t
RENAME TABLE Ks.a TO Ks.b, Ks.c TO Ks.d
CREATE INDEX i ON Ks.t (a)
DROP INDEX i ON Ks.t
CREATE OR REPLACE DEFINER = `a`@`b` SQL SECURITY INVOKER VIEW Ks.v AS SELECT ks.a FROM Ks.t ks
ALTER VIEW Ks.v AS SELECT 1
DROP VIEW IF EXISTS Ks.v
SHOW CREATE VIEW Ks.v
CREATE PROCEDURE Ks.p(a INT) BEGIN DECLARE b INT; SELECT ks.a INTO b FROM Ks.t ks; CALL Ks.q(); IF b THEN INSERT INTO Ks.u VALUES (1); UPDATE Ks.u SET a = 2; DELETE FROM Ks.u; END IF; END
CREATE PROCEDURE Ks.p() UPDATE Ks.t ks SET ks.a = 1
CREATE FUNCTION Ks.f() RETURNS INT DETERMINISTIC RETURN Ks.g()
CREATE FUNCTION IF NOT EXISTS Ks.f() RETURNS INT RETURN (SELECT ks.a FROM Ks.t ks)
CREATE AGGREGATE FUNCTION Ks.f(x INT) RETURNS INT BEGIN LOOP FETCH GROUP NEXT ROW; END LOOP; END
ALTER PROCEDURE Ks.p COMMENT 'x'
DROP PROCEDURE Ks.p
DROP FUNCTION IF EXISTS Ks.f
SHOW CREATE PROCEDURE Ks.p
SHOW PROCEDURE CODE Ks.p
CREATE TRIGGER Ks.tg BEFORE INSERT ON Ks.t FOR EACH ROW SET ks.a = Ks.f()
CREATE TRIGGER Ks.tg AFTER UPDATE ON Ks.t FOR EACH ROW FOLLOWS x INSERT INTO Ks.u SELECT ks.a FROM Ks.v ks
DROP TRIGGER IF EXISTS Ks.tg
SHOW CREATE TRIGGER Ks.tg
CREATE EVENT Ks.ev ON SCHEDULE EVERY 1 DAY DO CALL Ks.p()
CREATE EVENT Ks.ev ON SCHEDULE AT '2030-01-01' DO DELETE FROM Ks.t WHERE ks.a = 1
ALTER EVENT Ks.ev RENAME TO Ks.ew
DROP EVENT Ks.ev
SHOW CREATE EVENT Ks.ev
CREATE SEQUENCE Ks.sq START WITH 5
ALTER SEQUENCE IF EXISTS Ks.sq RESTART 7
DROP SEQUENCE Ks.sq
CREATE PACKAGE BODY Ks.pk AS FUNCTION f RETURN INT IS BEGIN RETURN 1; END; END
CHECKSUM TABLE Ks.t, Ks.u EXTENDED
CHECK TABLE Ks.t
OPTIMIZE LOCAL TABLE Ks.t
REPAIR TABLE Ks.t
CACHE INDEX Ks.t IN hot
LOAD INDEX INTO CACHE Ks.t
FLUSH TABLES Ks.t WITH READ LOCK
LOCK TABLES Ks.a AS ks READ, Ks.b WRITE
HANDLER Ks.t OPEN AS h
HANDLER Ks.t READ FIRST WHERE ks.a = 1
GRANT SELECT, INSERT (a), UPDATE ON Ks.* TO 'u'@'%'
GRANT REFERENCES ON TABLE Ks.t TO u@localhost WITH GRANT OPTION
GRANT EXECUTE ON PROCEDURE Ks.p TO u
REVOKE DELETE ON Ks.t FROM u
SHOW COLUMNS FROM Ks.t
SHOW FULL COLUMNS FROM t FROM Ks
SHOW INDEX FROM ks IN Ks
SHOW TABLES FROM Ks
SHOW FULL TABLES IN Ks WHERE ks.a = 1
SHOW TABLE STATUS FROM Ks LIKE 'ks'
SHOW TRIGGERS IN Ks
SHOW EVENTS FROM Ks
SHOW OPEN TABLES FROM Ks
SHOW CREATE TABLE Ks.t
SHOW CREATE DATABASE Ks
SHOW CREATE SCHEMA IF NOT EXISTS Ks
CREATE DATABASE IF NOT EXISTS Ks
DROP SCHEMA Ks
ALTER DATABASE Ks CHARACTER SET utf8mb4
BEGIN NOT ATOMIC DECLARE a INT; SELECT ks.a FROM Ks.t ks; INSERT INTO Ks.u VALUES (Ks.f()); END
IF (SELECT ks.a FROM Ks.t ks) THEN TRUNCATE TABLE Ks.u; END IF
""".strip().splitlines()  # fmt: skip


def rewritten(sql, mapping, mode=DEFAULT_MODE):
    found = statement(sql, mode)
    return splice(found.sql, mode, renamed(found.shape, mapping))


@in_turn
@pytest.mark.parametrize("line", STATEMENTS)
def test_each_name_of_a_database_is_found_and_no_other(line):
    sql = line.replace("Ks", "ks").encode()
    assert rewritten(sql, {"ks": "db"}).decode() == line.replace("Ks", "`db`")
    assert rewritten(sql, {"other": "db"}) == sql


@given(
    line=st.sampled_from(STATEMENTS),
    blanks=st.lists(st.sampled_from([" ", "\n\t", " /* ks.t */ ", "/**/ ", " -- ks.\n", " # x\n"])),
    quote=st.sampled_from(["ks", "`ks`", '"ks"']),
    name=st.text(st.characters(blacklist_categories=("Cs", "Cc")), min_size=1, max_size=8),
)  # fmt: skip
def test_quotes_blanks_and_comments_change_nothing(line, blanks, quote, name):
    mode = SqlMode.ANSI_QUOTES if quote[0] == '"' else DEFAULT_MODE
    words = line.split(" ")
    gaps = [*blanks, *([" "] * len(words))]
    spaced = "".join(word + gap for word, gap in zip(words, gaps, strict=False))
    new = "`" + name.replace("`", "``") + "`"
    found = rewritten(spaced.replace("Ks", quote).encode(), {"ks": name}, mode)
    assert found.decode() == spaced.replace("Ks", new)


@cases(sql=str, expected=str)
def test_a_qualifier_is_dropped_where_no_one_name_serves(sql, expected):
    assert rewritten(sql.encode(), {"ks": None}).decode() == expected


@pytest.mark.parametrize(
    ("sql", "roles"),
    [
        ("SELECT ks.f() FROM ks.t", [Qualified.PROGRAM, Qualified.TABLE]),
        ("CALL ks.p()", [Qualified.PROGRAM]),
        ("ALTER TABLE ks.t ADD FOREIGN KEY (a) REFERENCES ks.u (a)", [Qualified.TABLE, Qualified.REFERENCE]),
        ("SELECT NEXTVAL(ks.sq), NEXT VALUE FOR ks.sq", [Qualified.PROGRAM, Qualified.PROGRAM]),
        ("DROP TRIGGER ks.tg", [Qualified.PROGRAM]),
        ("SHOW TABLES FROM ks", [Qualified.ALONE]),
    ],
)  # fmt: skip
def test_what_a_name_stands_before(sql, roles):
    assert [each.role for each in database_names(statement(sql).shape).places] == roles


@cases(sql=str, has=ast.literal_eval)
def test_tables_without_a_database(sql, has):
    assert database_names(statement(sql).shape).has_unqualified_tables is has


@cases(sql=str, read=ast.literal_eval)
def test_the_tables_that_queries_read(sql, read):
    found = database_names(statement(sql).shape).read
    assert [(each.schema, each.name, each.has_alias) for each in found] == read


@given(sql=texts, mode=MODES)
def test_any_text_is_read_and_renaming_twice_changes_nothing_more(sql, mode):
    try:
        once = rewritten(sql, {"ks": "db"}, mode)
    except SqlError:  # a STREAM that is none
        return
    assert rewritten(once, {"ks": "db"}, mode) == once
