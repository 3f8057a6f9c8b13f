import ast

import pytest

from streamfrom.sqlparse_ext.session.session_calls import (
    Dynamic,
    LockCalls,
    Step,
    dynamic,
    inline,
    lock_calls,
    takes_text,
)
from streamfrom.sqlparse_ext.statements import Slot
from tests.cases import cases
from tests.sqlparse_ext.facts import shape, statement


@pytest.mark.parametrize(
    ("sql", "found"),
    [
        ("PREPARE s FROM 'SELECT 1'", Dynamic(Step.PREPARE, "s", Slot(0))),
        ("prepare `My S` from @text;", Dynamic(Step.PREPARE, "my s", "@text")),
        ("EXECUTE S", Dynamic(Step.EXECUTE, "s")),
        ("EXECUTE s USING @a, @`b c`, @'d'", Dynamic(Step.EXECUTE, "s", None, ("@a", "@`b c`", "@'d'"))),
        ("EXECUTE IMMEDIATE 'SELECT 1'", Dynamic(Step.IMMEDIATE, "", Slot(0))),
        ("EXECUTE IMMEDIATE @q USING @a", Dynamic(Step.IMMEDIATE, "", "@q", ("@a",))),
        ("DEALLOCATE PREPARE s", Dynamic(Step.DEALLOCATE, "s")),
        ("DROP PREPARE s", Dynamic(Step.DEALLOCATE, "s")),
    ],
)  # fmt: skip
def test_it_is_read(sql, found):
    assert dynamic(shape(sql)) == found


@cases(sql=str)
def test_what_is_written_in_another_way_is_not(sql):
    assert dynamic(shape(sql)) is None


@cases(sql=str, takes=ast.literal_eval)
def test_a_text_is_a_value_of_prepare_and_of_execute_immediate(sql, takes):
    assert takes_text(shape(sql)) is takes


VALUES = {
    "FOUND_ROWS": b"5", "CONNECTION_ID": b"17", "CURRENT_USER": b"'ann@%'", "@@WARNING_COUNT": b"2",
    "@@SOCKET": b"'/p.sock'",
}  # fmt: skip


def inlined(sql: str) -> str:
    return inline(statement(sql), VALUES).decode()


@cases(sql=str, result=str)
def test_a_call_becomes_its_value_and_its_column_keeps_the_name(sql, result):
    assert inlined(sql) == result


@cases(sql=str)
def test_what_is_no_such_call_stays(sql):
    assert inlined(sql) == sql


@cases(sql=str, result=str)
def test_who_holds_a_lock_is_told_in_other_numbers(sql, result):
    assert inline(statement(sql), VALUES, {30: 17, 31: 18}).decode() == result


@cases(
    sql=str, names=ast.literal_eval, has_others=ast.literal_eval, releases_all=ast.literal_eval
)
def test_the_locks_that_a_statement_asks_for_are_told(sql, names, has_others, releases_all):
    assert lock_calls(statement(sql)) == LockCalls(frozenset(names), has_others, releases_all)
