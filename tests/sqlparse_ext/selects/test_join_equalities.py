import ast

from hypothesis import given, strategies as st
from sqlglot import exp, parse_one

from streamfrom.sqlparse_ext.selects.join_equalities import (
    is_row_by_row,
    looks_at_other_rows,
    read_join_equalities,
)
from streamfrom.sqlparse_ext.selects.select_ast import Reference
from streamfrom.sqlparse_ext.sql_mode import DEFAULT_MODE
from streamfrom.sqlparse_ext.statements import Slot
from streamfrom.sqlparse_ext.text.lexer import fingerprint
from tests.cases import cases
from tests.sqlparse_ext.facts import statement


def equalities(sql):
    """The ties of a text: per alias or name, the column and what it equals, literals as values."""
    found = statement(sql)
    sources = read(sql).sources
    names = [(source.table.alias or source.table.name) for source in sources]

    def told(equal):
        if isinstance(equal, Reference):
            return f"{names[equal.source]}.{equal.column}"
        return tuple(found.values(equal) or ())

    return {
        name: {
            column: [told(equal) for equal in each]
            for column, each in source.equalities.items()
        }
        for name, source in zip(names, sources, strict=True)
    }


def read(sql):
    found = read_join_equalities(statement(sql).shape.template)
    assert found is not None
    return found


def certain(sql):
    return {source.table.name for source in read(sql).sources if source.is_certain}


@cases(sql=str, expected=ast.literal_eval)
def test_conditions_tie_both_ways_also_those_of_writes(sql, expected):
    assert equalities(sql) == expected


@cases(join=str, expected=ast.literal_eval)
def test_on_ties_only_the_side_whose_rows_it_chooses(join, expected):
    assert (
        equalities(f"SELECT * FROM a {join} b ON a.id = b.id AND a.k = 1 AND b.k = 2")
        == expected
    )


@cases(source=str, expected=ast.literal_eval)
def test_using_ties_as_on_does_and_names_one_column(source, expected):
    assert equalities(f"SELECT * FROM {source} WHERE id = 5") == expected


@cases(condition=str, expected=ast.literal_eval)
def test_a_subquerys_table_is_tied_to_the_outer_one_and_never_the_other_way(
    condition, expected
):
    found = equalities(f"SELECT * FROM a WHERE {condition}")
    assert found["b"] == expected
    assert not found["a"]


@cases(sql=str)
def test_what_is_not_certain_ties_nothing(sql):
    assert not any(equalities(sql).values())


@cases(sql=str)
def test_a_form_that_is_in_doubt_is_none(sql):
    template = fingerprint(sql.encode(), DEFAULT_MODE).template
    assert read_join_equalities(template) is None


def test_every_table_is_found_wherever_it_stands():
    sql = (
        "WITH w AS (SELECT * FROM a WHERE id = 1) SELECT (SELECT 1 FROM b LIMIT 1) FROM w"
        " JOIN (SELECT id FROM c) d ON d.id = w.id WHERE EXISTS (SELECT 1 FROM e)"
        " GROUP BY 1 HAVING COUNT(*) > (SELECT 2 FROM f) ORDER BY (SELECT 3 FROM g)"
    )
    assert set(equalities(sql)) == {"a", "b", "c", "e", "f", "g"}
    assert len(read(sql).limited) == 1


@cases(source=str, expected=ast.literal_eval)
def test_a_table_is_certain_unless_an_outer_join_may_put_nulls_for_it(source, expected):
    assert certain(f"SELECT * FROM {source}") == expected


def test_the_items_of_an_insert_select_are_told():
    sql = "INSERT INTO t (id, k, v) SELECT a.id, 5, a.k + 1 FROM a WHERE a.id = 9"
    assert read(sql).blocks[0].items == (Reference(0, "id"), (Slot(0),), None)
    assert read("INSERT INTO t SELECT * FROM a").blocks[0].items == ()


@given(st.text(alphabet="SELECT FROM a,b.id=1()JOIN ON?'", max_size=60))
def test_no_text_makes_it_fail(text):
    read_join_equalities(fingerprint(text.encode(), DEFAULT_MODE).template)


def test_a_table_belongs_to_the_select_of_a_union_that_it_stands_in():
    found = read(
        "SELECT a.id FROM a UNION ALL (SELECT DISTINCT 5 FROM b WHERE b.id IN (SELECT c.id FROM c))"
        " EXCEPT SELECT * FROM d"
    )
    assert [source.block for source in found.sources] == [0, 1, 1, 2]
    assert [source.is_main for source in found.sources] == [True, True, False, True]
    assert [block.items for block in found.blocks] == [(Reference(0, "id"),), ((Slot(0),),), ()]
    assert [block.is_distinct for block in found.blocks] == [False, True, False]
    assert not any(block.is_grouped for block in found.blocks)
    assert found.operators == ["EXCEPT", "UNION ALL"]


def test_a_cte_of_several_selects_is_of_none_of_them():
    found = read("WITH w AS (SELECT id FROM a) SELECT id FROM w UNION SELECT id FROM b")
    assert [(each.table.name, each.block) for each in found.sources] == [("a", None), ("b", 1)]


@cases(sql=str, expected=ast.literal_eval)
def test_a_derived_table_that_is_all_of_a_from_is_looked_through(sql, expected):
    assert certain(sql) == expected


@cases(sql=str, are_inside=ast.literal_eval)
def test_a_limit_of_one_of_several_selects_is_inside(sql, are_inside):
    assert read(sql).limits_inside is are_inside


@cases(inner=str, columns=ast.literal_eval)
def test_it_is_told_what_its_rows_are_put_together_by(inner, columns):
    (grouping,) = read(f"SELECT * FROM ({inner}) d").groupings
    assert {reference.column for reference in grouping} == columns


def test_limits_of_subqueries_in_expressions_are_told_apart_from_all_others():
    found = read("SELECT (SELECT b.x FROM b, c WHERE b.id = a.id LIMIT 1) FROM a LIMIT 3")
    assert not found.limits_inside
    names = [{found.sources[number].table.name for number in each} for each in found.limited]
    assert names == [{"b", "c"}]


@cases(sql=str, expected=ast.literal_eval)
def test_one_row_of_all_rows_is_not_row_by_row(sql, expected):
    select = parse_one(sql, dialect="mysql")
    assert isinstance(select, exp.Select)
    assert is_row_by_row(select) is expected


@cases(sql=str, expected=ast.literal_eval)
def test_limits_windows_and_variables_look_at_other_rows(sql, expected):
    assert looks_at_other_rows(parse_one(sql, dialect="mysql")) is expected
