import ast

import pytest

from streamfrom.proxy.merge.shard_texts import UnionTexts
from streamfrom.sqlparse_ext.errors import Unsupported
from streamfrom.sqlparse_ext.selects.derived import read_union
from tests.cases import cases
from tests.proxy.merge.answers import number, texts
from tests.sqlparse_ext.facts import statement


@cases(limit=str, offset=ast.literal_eval, count=ast.literal_eval, reach=ast.literal_eval)
def test_a_shard_owes_as_many_rows_as_offset_and_limit(limit, offset, count, reach):
    found = texts(f"SELECT a FROM t{limit}")
    assert (found.offset, found.count, found.reach) == (offset, count, reach)


@cases(sql=str, asked=str.encode)
def test_the_answer_is_described_by_the_statement_without_rows(sql, asked):
    assert texts(sql).described() == asked


@pytest.mark.parametrize(
    ("source", "star"),
    [("t", b"t.*"), ("db.t", b"db.t.*"), ("t AS `x y`", b"`x y`.*"), ("t x", b"`x`.*")],
)
def test_a_star_behind_other_items_names_its_table(source, star):
    assert texts(f"SELECT * FROM {source}").star() == star


def test_options_keep_all_but_distinct():
    assert texts("SELECT DISTINCT SQL_NO_CACHE a FROM t").options() == b"SQL_NO_CACHE"
    assert texts("SELECT a FROM t").options() == b""


@pytest.mark.parametrize("order", ["RAND()", "a + UUID_SHORT()", "@x", "x + 1"])
def test_what_is_another_value_the_second_time_is_refused(order):
    found = texts(f"SELECT a AS x FROM t ORDER BY {order}")
    with pytest.raises(Unsupported):
        found.check_repeatable(found.select.order[0].expression)


def test_a_union_is_asked_for_as_a_derived_table_and_described_as_it_is():
    found = statement("SELECT a FROM t UNION ALL SELECT 7 FROM u ORDER BY a LIMIT 5")
    union = read_union(found.shape.template, is_distinct=False)
    assert union is not None
    parts = UnionTexts(found, union)
    assert parts.described().startswith(
        b"SELECT a FROM t UNION ALL SELECT 7 FROM u ORDER BY a LIMIT 0"
    )
    assert parts.ask_columns().startswith(
        b"SELECT * FROM (SELECT a FROM t UNION ALL SELECT 7 FROM u)"
    )
    parts.check_described([number("a"), number("b")])
    for names in (["a", "A"], ["a", ""], ["a "]):
        with pytest.raises(Unsupported, match="in a UNION over several shards"):
            parts.check_described([*map(number, names)])


def test_a_limit_must_be_a_number():
    with pytest.raises(Unsupported, match="this form of LIMIT"):
        texts("SELECT a FROM t LIMIT 1.5")
