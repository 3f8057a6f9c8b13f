"""Statements that are no queries: what each is, and the names in it."""

import ast

import pytest

from streamfrom.sqlparse_ext.reading.statement_features import COMPOUND
from streamfrom.sqlparse_ext.reading.utility_statements import (
    READERS,
    STATEMENT_VERBS,
)
from streamfrom.sqlparse_ext.statements import Kind, Opaque
from tests.cases import cases
from tests.sqlparse_ext.facts import shape, statement, tables, uses


@cases(sql=str, kind=Kind, options=ast.literal_eval, target=str)
def test_kinds_options_and_targets(sql, kind, options, target):
    found = shape(sql)
    assert (found.kind, found.options, found.target) == (kind, options, target)


@cases(sql=str, kind=Kind, expected=ast.literal_eval)
def test_tables_that_commands_name(sql, kind, expected):
    assert (shape(sql).kind, tables(sql)) == (kind, expected)


@cases(sql=str, words=ast.literal_eval)
def test_words_behind_the_verb(sql, words):
    assert shape(sql).words == words


@pytest.mark.parametrize("name", ["t", "ks.t", "`ks`.t"])
def test_the_table_whose_vindexes_are_shown_is_named(name):
    assert tables(f"SHOW VSCHEMA VINDEXES ON {name}") == [name.replace("`", "")]


@cases(sql=str, query_only=ast.literal_eval, operand=ast.literal_eval)
def test_kill(sql, query_only, operand):
    found = statement(sql)
    kill = found.shape.kill
    assert kill is not None
    assert kill.query_only == query_only
    if operand is None:
        assert kill.operand is Opaque.OPAQUE
    else:
        assert found.value(kill.operand) == operand


def test_what_is_read_by_its_verb_may_begin_a_statement():
    assert set(READERS) - COMPOUND <= STATEMENT_VERBS


def test_a_word_that_begins_no_statement_is_not_there():
    assert "NOPE" not in STATEMENT_VERBS


# Statements that define something: the tables that they name.
@cases(sql=str, kind=Kind, expected=ast.literal_eval)
def test_tables_that_definitions_name(sql, kind, expected):
    assert (shape(sql).kind, tables(sql)) == (kind, expected)


def test_dropping_if_exists_is_told():
    assert shape("DROP TABLE IF EXISTS t").options == {"IF EXISTS"}


def test_a_select_of_create_table_that_is_not_understood_is_unparsed():
    assert "UNPARSED" in uses("CREATE TABLE t SELECT * FROM {oj a JOIN b}")


def test_whether_a_trigger_is_of_the_current_database_is_known():
    body = "BEFORE INSERT ON d.t FOR EACH ROW SET @a = 1"
    assert "UNQUALIFIED" in shape(f"CREATE TRIGGER x {body}").options
    assert "UNQUALIFIED" in shape(f"CREATE OR REPLACE TRIGGER IF NOT EXISTS `x` {body}").options
    assert "UNQUALIFIED" not in shape(f"CREATE TRIGGER `d`.`x` {body}").options
