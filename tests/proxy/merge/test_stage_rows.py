import ast

import pytest

from streamfrom.proxy.merge.stage_rows import AnsweredPart, Combination
from streamfrom.proxy.wire.constants import FieldFlag, FieldType
from streamfrom.proxy.wire.resultset import ColumnDefinition, text_row
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


def rows(*values):
    return [text_row(list(each)) for each in values]


def test_rows_are_given_as_literals_behind_the_part_without_rows():
    found = part(number("a", 2), TEXT)
    empty = "SELECT * FROM (SELECT a FROM t LIMIT 0) AS `streamfrom`"
    assert found.text.decode() == found.ask_columns().decode() == empty
    found.give(rows([b"1.50", b"x"], [None, None]))
    assert found.text.decode() == (
        f"SELECT * FROM ({empty} UNION ALL SELECT 1.50, _utf8mb4 x'78' UNION ALL"
        " SELECT NULL, NULL) AS `streamfrom`"
    )


def test_values_must_come_back_as_they_were_sent():
    found = part(number("a", 2), TEXT)
    found.give(rows([b"1.50", b"x"]))
    found.check([number("c", 2), TEXT], rows([b"1.50", b"x"]))
    for columns, came in (
        ([number("c", 2), TEXT], rows([b"1.50", b"y"])),
        ([number("c", 2), TEXT], []),
        ([number("c", 3), TEXT], rows([b"1.50", b"x"])),
    ):
        with pytest.raises(
            Unsupported, match=r"going on with (these rows|'\w+') over several shards: a shard"
        ):
            found.check(columns, came)


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
        (number(""), {}, "a column with such a name"),
    ],
)
def test_what_is_more_than_its_text_is_refused(column, options, sentence):
    with pytest.raises(Unsupported) as refused:
        part(column, **options)
    assert sentence in str(refused.value)


def test_a_char_column_without_padding_sorts_otherwise_than_its_texts():
    column = ColumnDefinition("s", type=FieldType.STRING, charset=45)
    row = text_row([b"utf8mb4_unicode_nopad_ci"])
    part(column).check_collations(row)
    part(TEXT, is_compared=True).check_collations(row)
    part(column, is_compared=True).check_collations(text_row([b"utf8mb4_general_ci"]))
    with pytest.raises(
        Unsupported, match="a CHAR column of collation utf8mb4_unicode_nopad_ci"
    ):
        part(column, is_compared=True).check_collations(row)


def test_two_columns_of_one_name_are_refused():
    with pytest.raises(Unsupported, match="two columns of one name"):
        part(number("a"), number("A"))


@pytest.mark.parametrize(
    ("own", "whole"),
    [
        (number("a", kind=INT), number("a", kind=FieldType.LONG)),
        (number("a", kind=INT), number("a", 0)),
        (number("a", 3), number("a", 3)),
        (ColumnDefinition("a", type=FieldType.NULL), TEXT),
    ],
)
def test_parts_of_a_union_may_have_types_that_read_alike(own, whole):
    union(whole, p0=part(own)).check_parts()


@pytest.mark.parametrize(
    ("own", "whole"),
    [
        (number("a", 2), number("a", 3)),
        (number("a", kind=INT), number("a", 3)),
        (number("a", kind=INT), TEXT),
        (number("a", kind=FieldType.DATE), number("a", kind=FieldType.DATETIME)),
        (ColumnDefinition("s", type=FieldType.STRING, charset=45, flags=FieldFlag.ENUM), TEXT),
    ],
)
def test_parts_of_a_union_of_other_types_are_refused(own, whole):
    with pytest.raises(Unsupported, match="a UNION of other types"):
        union(whole, p0=part(own)).check_parts()


def test_the_rest_is_asked_with_the_parts_in_their_places():
    found = union(number("a"), p1=part(number("b"), sql="SELECT b FROM u LIMIT 2"))
    given = "SELECT * FROM (SELECT b FROM u LIMIT 0) AS `streamfrom`"
    assert found.described() == (
        b"SELECT a FROM t UNION ALL (SELECT b FROM u LIMIT 2) ORDER BY 1 LIMIT 0"
    )
    assert found.sql().decode() == f"SELECT a FROM t UNION ALL ({given}) ORDER BY 1"
    own, other = found.ask_collations()
    assert own == (
        b"SELECT COLLATION(MAX(`a`)) FROM"
        b" (SELECT a FROM t UNION ALL (SELECT b FROM u LIMIT 2) LIMIT 0) AS `streamfrom`"
    )
    assert given.encode() in other


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
