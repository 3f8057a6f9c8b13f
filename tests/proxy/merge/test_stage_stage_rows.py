import ast

import pytest

from streamfrom.proxy.merge.stage import AnsweredPart, Combination
from streamfrom.proxy.wire.constants import FieldType
from streamfrom.proxy.wire.resultset import ColumnDefinition
from streamfrom.sqlparse_ext.errors import Unsupported
from streamfrom.sqlparse_ext.selects.inner_selects import read_inner_selects
from tests.cases import cases
from tests.proxy.merge.answers import number
from tests.sqlparse_ext.facts import statement


INT = FieldType.LONGLONG
TEXT = ColumnDefinition("s", type=FieldType.VAR_STRING, charset=45)


def part(*columns, sql="SELECT a FROM t LIMIT 5", is_merged=False, is_compared=False, **how):
    found = AnsweredPart(statement(sql), is_merged=is_merged)
    found.described(columns, is_compared=is_compared, **how)
    found.collated([b"utf8mb4_bin"] * len(columns))
    return found


def union(
    *columns, sql="SELECT a FROM t UNION ALL (SELECT b FROM u LIMIT 2) ORDER BY 1", **given
):
    parts = read_inner_selects(statement(sql).shape.template)
    assert parts is not None
    found = Combination(
        statement(sql), parts, {int(name[1:]): each for name, each in given.items()}
    )
    found.learn(columns)
    return found


@pytest.mark.parametrize(
    ("column", "options", "sentence"),
    [
        (number("f", kind=FieldType.FLOAT), {}, "going on with 'f'"),
        (number("f", 3, kind=FieldType.DOUBLE), {}, "going on with 'f'"),
        (
            number("f", 31, kind=FieldType.DOUBLE),
            {"is_merged": True, "is_compared": True},
            "'f'",
        ),
        (number("d", kind=FieldType.TIMESTAMP), {"is_compared": True}, "going on with 'd'"),
        (number("n", 3), {"is_windowed": True}, "going on with 'n'"),
        (number(""), {}, "two columns of one name"),
    ],
)
def test_what_is_more_than_its_text_is_refused(column, options, sentence):
    with pytest.raises(Unsupported) as refused:
        part(column, **options)
    assert sentence in str(refused.value)


def test_two_columns_of_one_name_are_refused():
    with pytest.raises(Unsupported, match="two columns of one name"):
        part(number("a"), number("A"))


@pytest.mark.parametrize(
    ("own", "whole"),
    [
        (number("a", 2), number("a", 3)),
        (number("a", kind=INT), number("a", 3)),
        (number("a", kind=INT), TEXT),
        (number("a", kind=FieldType.DATE), number("a", kind=FieldType.DATETIME)),
    ],
)
def test_parts_of_a_union_of_other_types_are_refused(own, whole):
    with pytest.raises(Unsupported, match="a UNION of other types"):
        union(whole, p0=part(own)).check_parts()


@cases(sql=str, is_compared=ast.literal_eval)
def test_only_union_all_looks_at_no_value(sql, is_compared):
    assert union(number("a"), sql=sql).is_compared is is_compared


def test_the_answer_must_have_the_columns_of_the_statement():
    found = union(number("a", 3))
    found.check([number("b", 3)])
    with pytest.raises(
        Unsupported,
        match=r"going on with '\w+' over several shards: a shard gives it another type",
    ):
        found.check([number("b", 4)])
