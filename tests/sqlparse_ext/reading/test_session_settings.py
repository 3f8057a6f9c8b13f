"""SET in all its forms, those of every driver's first words included."""

import ast

import pytest

from streamfrom.sqlparse_ext.reading.session_settings import (
    passing_variables,
    split_set_statement,
    with_session_scope,
)
from streamfrom.sqlparse_ext.statements import Opaque
from tests.cases import cases
from tests.sqlparse_ext.facts import statement, uses


OPAQUE = Opaque.OPAQUE


def items(sql):
    found = statement(sql)
    return [
        (
            item.kind.value,
            item.scope.value,
            item.name,
            OPAQUE if item.value is OPAQUE else found.text(item.value),
            found.text(item.collation),
        )
        for item in found.shape.set
    ]


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("SET NAMES utf8mb4", [("NAMES", "SESSION", "names", "utf8mb4", None)]),
        ("SET NAMES 'utf8mb4' COLLATE 'utf8mb4_bin'",
         [("NAMES", "SESSION", "names", "utf8mb4", "utf8mb4_bin")]),
        ("SET NAMES DEFAULT", [("NAMES", "SESSION", "names", "DEFAULT", None)]),
        ("SET CHARACTER SET latin1", [("CHARACTER SET", "SESSION", "character set", "latin1", None)]),
        ("set charset utf8", [("CHARACTER SET", "SESSION", "character set", "utf8", None)]),
        ("SET AUTOCOMMIT = 0", [("SYSTEM", "SESSION", "autocommit", "0", None)]),
        ("SET autocommit=1", [("SYSTEM", "SESSION", "autocommit", "1", None)]),
        ("SET @@session.autocommit = OFF", [("SYSTEM", "SESSION", "autocommit", "OFF", None)]),
        ("SET LOCAL x = ON", [("SYSTEM", "SESSION", "x", "ON", None)]),
        ("SET @@local.x := 'a'", [("SYSTEM", "SESSION", "x", "a", None)]),
        ("SET GLOBAL a = 1, b = 2, SESSION c = 3, @@d = 4",
         [("SYSTEM", "GLOBAL", "a", "1", None), ("SYSTEM", "GLOBAL", "b", "2", None),
          ("SYSTEM", "SESSION", "c", "3", None), ("SYSTEM", "SESSION", "d", "4", None)]),
        ("SET PERSIST_ONLY a = DEFAULT", [("SYSTEM", "PERSIST_ONLY", "a", "DEFAULT", None)]),
        ("SET @@persist.a = 5", [("SYSTEM", "PERSIST", "a", "5", None)]),
        ("SET @a = 5, @`b c` := NULL",
         [("USER", "SESSION", "a", "5", None), ("USER", "SESSION", "b c", None, None)]),
        ("SET sql_mode = CONCAT(@@sql_mode, ',x'), time_zone = '+00:00'",
         [("SYSTEM", "SESSION", "sql_mode", OPAQUE, None),
          ("SYSTEM", "SESSION", "time_zone", "+00:00", None)]),
        ("SET sql_mode=(SELECT CONCAT(@@sql_mode, ',PIPES_AS_CONCAT,NO_ENGINE_SUBSTITUTION')),"
         "time_zone='+00:00',NAMES utf8mb4 COLLATE utf8mb4_unicode_ci;",
         [("SYSTEM", "SESSION", "sql_mode", OPAQUE, None),
          ("SYSTEM", "SESSION", "time_zone", "+00:00", None),
          ("NAMES", "SESSION", "names", "utf8mb4", "utf8mb4_unicode_ci")]),
        ("SET character_set_results = NULL",
         [("SYSTEM", "SESSION", "character_set_results", None, None)]),
        ("SET `sql_mode` = ''", [("SYSTEM", "SESSION", "sql_mode", "", None)]),
        ("SET a.key_buffer_size = 5", [("SYSTEM", "SESSION", "a.key_buffer_size", "5", None)]),
        ("SET TRANSACTION ISOLATION LEVEL READ COMMITTED, READ ONLY",
         [("TRANSACTION", "NEXT", "isolation level", "READ COMMITTED", None),
          ("TRANSACTION", "NEXT", "access mode", "READ ONLY", None)]),
        ("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED",
         [("TRANSACTION", "SESSION", "isolation level", "READ COMMITTED", None)]),
        ("SET @@transaction_isolation = 'SERIALIZABLE'",
         [("SYSTEM", "NEXT", "transaction_isolation", "SERIALIZABLE", None)]),
        ("SET transaction_isolation = 'SERIALIZABLE'",
         [("SYSTEM", "SESSION", "transaction_isolation", "SERIALIZABLE", None)]),
        ("SET PASSWORD = 'x'", [("OTHER", "SESSION", "password", OPAQUE, None)]),
        ("SET ROLE NONE", [("OTHER", "SESSION", "role", OPAQUE, None)]),
        ("/*!40101 SET @OLD_SQL_MODE=@@SQL_MODE, SQL_MODE='NO_AUTO_VALUE_ON_ZERO' */",
         [("USER", "SESSION", "old_sql_mode", OPAQUE, None),
          ("SYSTEM", "SESSION", "sql_mode", "NO_AUTO_VALUE_ON_ZERO", None)]),
    ],
)  # fmt: skip
def test_items(sql, expected):
    assert items(sql) == expected


@cases(sql=str, names=ast.literal_eval)
def test_variables_of_one_statement_alone(sql, names):
    found = passing_variables(statement(sql).shape)
    assert found >= names
    assert bool(found) == bool(names)


@cases(sql=str, parts=ast.literal_eval)
def test_the_statement_behind_set_statement_is_found(sql, parts):
    found = split_set_statement(statement(sql))
    assert found == (None if parts is None else tuple(part.encode() for part in parts))


@pytest.mark.parametrize("sql", ["SET", "SET 5 = 6", "SET x", "SET STATEMENT a=1 FOR SELECT 1"])
def test_what_is_no_assignment_is_unparsed(sql):
    assert "UNPARSED" in uses(sql)


@cases(sql=str, scoped=str)
def test_a_variable_without_a_scope_is_given_the_session_s(sql, scoped):
    assert with_session_scope(statement(sql)).decode() == scoped


@cases(sql=str)
def test_nothing_else_is_given_a_scope(sql):
    assert with_session_scope(statement(sql)).decode() == sql
