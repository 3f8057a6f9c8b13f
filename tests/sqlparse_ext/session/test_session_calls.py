import ast

import pytest

from streamfrom.sqlparse_ext.session.session_calls import Dynamic, Step, dynamic, takes_text
from streamfrom.sqlparse_ext.statements import Slot
from tests.cases import cases
from tests.sqlparse_ext.facts import shape


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
