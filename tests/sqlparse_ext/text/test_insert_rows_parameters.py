import ast

from streamfrom.sqlparse_ext.cache import StatementCache
from streamfrom.sqlparse_ext.sql_mode import DEFAULT_MODE
from streamfrom.sqlparse_ext.statements import OPAQUE, Param
from streamfrom.sqlparse_ext.text.insert_rows import as_text, parameter_places
from tests.cases import cases


def parse(sql: str):
    return StatementCache().get(sql.encode())


def spell(place: int) -> bytes:
    return b"<%d>" % place


@cases(sql=str, count=ast.literal_eval)
def test_only_the_question_marks_that_are_code_count(sql, count):
    assert len(parameter_places(sql.encode(), DEFAULT_MODE)) == count


def test_values_stand_in_their_places():
    statement = parse("INSERT INTO t VALUES (?, '?'), (?, ?)")
    assert as_text(statement.bind((1, 2, 3), spell)) == (
        b"INSERT INTO t VALUES (<0>, '?'), (<1>, <2>)"
    )
    assert as_text(statement) == statement.sql


def test_conditions_and_assignments_take_the_values_bound():
    statement = parse("UPDATE t SET a = ?, b = 1 WHERE id IN (?, 5) AND c = ?")
    shape = statement.shape
    assert shape.assignments["a"] == Param(0)
    bound = statement.bind((7, 8, b"x"))
    assert bound.values(shape.conditions["id"]) == [8, 5]
    assert bound.values(shape.conditions["c"]) == [b"x"]
    assert bound.argument(Param(0)) == 7
    assert statement.values(shape.conditions["id"]) is None
    assert statement.argument(Param(0)) is OPAQUE


def test_behind_rows_parameters_count_from_the_end():
    sql = "INSERT INTO t (id, a) VALUES (?, ?), (?, ?), (?, ?) ON DUPLICATE KEY UPDATE a = ?, b = ?"
    statement = parse(sql).bind(tuple(range(8)))
    assigned = statement.shape.assignments
    assert statement.values([assigned["a"], assigned["b"]]) == [6, 7]
