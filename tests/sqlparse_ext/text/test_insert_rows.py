"""The rows of INSERT … VALUES."""

import ast

import pytest
from hypothesis import given, strategies as st

from streamfrom.sqlparse_ext.errors import WrongLimit
from streamfrom.sqlparse_ext.literal_values import Number
from streamfrom.sqlparse_ext.sql_mode import DEFAULT_MODE, SqlMode
from streamfrom.sqlparse_ext.statements import OPAQUE, Param
from streamfrom.sqlparse_ext.text.chunks import CHUNK_BYTES, between_chunks
from streamfrom.sqlparse_ext.text.identifiers import literal
from streamfrom.sqlparse_ext.text.insert_rows import as_text, insert_rows, parameter_places
from tests.cases import cases
from tests.sqlparse_ext.facts import statement


ROWS = [
    b"(1, 'x')", b"( -2 , NULL )", b"(TRUE, DEFAULT)", b"(x'00ff', \"a),(b\")", b"(1.5, 'it''s \\')')",
    b"(NOW(), CURRENT_TIMESTAMP(6))", b"(f(1, (2)), 'a' 'b')", b"((SELECT MAX(a) FROM u), a + 1)",
    b"(/* ), ( */ 7, -- ),(\n `a)`)",
]  # fmt: skip
HEADS = [
    b"INSERT INTO t (id, b) VALUES ",
    b"insert into `t`(`id`,`b`)values",
    b"REPLACE /* ( */ INTO ks.t (id, b) VALUE\n",
    b"-- x\n INSERT /*vt+ A=1 */ INTO t (id, b) /* c */ VALUES",
    b"INSERT IGNORE t (id, b) /* x */ VALUES ",
]
TAILS = [
    b"",
    b";",
    b" ON DUPLICATE KEY UPDATE b = VALUES(b), c = f(1, 2)",
    b" AS n(p, q) RETURNING (id)",
    b" RETURNING id, (b), c",
]


def rows(sql: bytes):
    return insert_rows(statement(sql))


@given(
    head=st.sampled_from(HEADS),
    chosen=st.lists(st.sampled_from(ROWS), min_size=1, max_size=6),
    comma=st.sampled_from([b",", b" , ", b",\n", b", /* ( */ "]),
    tail=st.sampled_from(TAILS),
)
def test_rows_are_found_and_the_rest_stays_byte_by_byte(head, chosen, comma, tail):
    sql = head + comma.join(chosen) + tail
    found = rows(sql)
    assert [sql[start:end] for start, end in found.spans] == chosen
    assert len(found) == len(chosen)
    assert found.select_rows(range(len(chosen))) == head + b",".join(chosen) + tail
    assert found.select_rows([len(chosen) - 1]) == head + chosen[-1] + tail


@pytest.mark.parametrize(
    ("text", "ids", "others"),
    [
        (b", ".join(ROWS[:5]), [1, -2, 1, b"\x00\xff", Number("1.5")], [b"x", None, OPAQUE, b"a),(b", b"it's ')"]),
        (b", ".join([ROWS[6], ROWS[0], ROWS[8]]), [OPAQUE, 1, OPAQUE], [OPAQUE, b"x", OPAQUE]),
        # Functions without state do not spoil the other values.
        (b"(1, NOW()), (2, UUID())", [1, 2], [OPAQUE, OPAQUE]),
        (b"(?, 2)", [OPAQUE], [2]),
    ],
)  # fmt: skip
def test_values_of_a_column(text, ids, others):
    found = rows(HEADS[0] + text)
    assert (found.column("ID"), found.column("b"), found.column("c")) == (ids, others, None)


@cases(sql=str.encode)
def test_other_statements_have_no_rows(sql):
    assert rows(sql) is None


values = st.one_of(
    st.none(), st.integers(-(2**63), 2**64 - 1), st.binary(max_size=20), st.text(max_size=10).map(str.encode)
)  # fmt: skip


@given(st.lists(st.tuples(values, values), min_size=1, max_size=5))
def test_values_written_into_rows_are_read_back(pairs):
    text = b", ".join(b"(%s, %s)" % (literal(a), literal(b)) for a, b in pairs)
    found = rows(b"INSERT INTO t (id, b) VALUES " + text)
    assert found.column("id") == [a for a, _ in pairs]
    assert found.column("b") == [b for _, b in pairs]


def test_values_bound_to_rows_are_read():
    sql = b"INSERT INTO t (id, b) VALUES (?, '?'), (2, ?), (?, ?) ON DUPLICATE KEY UPDATE b = ?"
    found = insert_rows(statement(sql).bind((1, b"b", 3, None, 5)))
    assert found is not None
    assert found.column("id") == [1, 2, 3]
    assert found.column("b") == [b"?", b"b", None]


def test_a_value_that_the_server_converts_is_opaque():
    sql = b"INSERT INTO t (id, b) VALUES ('th\xe9', 'tea'), (x'e9', 2)"
    for mode, first in ((SqlMode.OTHER_CHARSET, OPAQUE), (DEFAULT_MODE, b"th\xe9")):
        rows = insert_rows(statement(sql, mode))
        assert rows is not None
        assert rows.column("id") == [first, b"\xe9"]
        assert rows.column("b") == [b"tea", 2]


@cases(value=str.encode, meaning=str.encode)
@pytest.mark.parametrize("place", [0, 1])
def test_rows_with_long_values_are_cut_in_chunks(value, meaning, place):
    """A regular expression over a value of 15 MB held everybody up for half a second."""
    values = [b"7", b"'y'"]
    values[place] = value
    first, last = b"(" + b" , ".join(values) + b" )", b"(8, NULL)"
    sql = HEADS[0] + first + b" , " + last
    paused = []
    token = between_chunks.set(lambda: paused.append(1))
    try:
        found = rows(sql)
        assert found.column("id") == ([meaning, 8] if place == 0 else [7, 8])
        assert found.column("b") == ([b"y", None] if place == 0 else [meaning, None])
    finally:
        between_chunks.reset(token)
    assert len(paused) > len(sql) / CHUNK_BYTES
    assert [sql[slice(*span)] for span in found.spans] == [first, last]
    assert [sql[slice(*span)] for span in found.elements(0)] == values
    assert found.select_rows([1]) == HEADS[0] + last


@cases(sql=str, count=ast.literal_eval)
def test_only_the_question_marks_that_are_code_count(sql, count):
    assert len(parameter_places(sql.encode(), DEFAULT_MODE)) == count


def test_values_stand_in_their_places():
    found = statement("INSERT INTO t VALUES (?, '?'), (?, ?)")
    assert as_text(found.bind((1, 2, 3), lambda place: b"<%d>" % place)) == (
        b"INSERT INTO t VALUES (<0>, '?'), (<1>, <2>)"
    )
    assert as_text(found) == found.sql


def test_null_and_texts_are_numbers_in_a_limit():
    spelt = [b"NULL", b"'2'", b"NULL", b"'3'", b"'x'"]
    for sql, expected in (
        ("SELECT ?, ? FROM t LIMIT ?, ?", b"SELECT NULL, '2' FROM t LIMIT 0, 3"),
        ("SELECT ?, a FROM t limit\n? offset ?", b"SELECT NULL, a FROM t limit\n2 offset 0"),
        ("SELECT ?, ?, b.limit, ? LIMIT 1", b"SELECT NULL, '2', b.limit, NULL LIMIT 1"),
    ):
        found = statement(sql)
        bound = found.bind((None,) * sql.count("?"), spelt.__getitem__)
        assert as_text(bound) == expected


@pytest.mark.parametrize(
    "sql", ["SELECT a FROM t LIMIT ?", "DELETE FROM t limit ?", "SELECT a LIMIT 1 OFFSET ?"]
)
@pytest.mark.parametrize(
    "spelt", [b"-1", b"1.5", b"'x'", b"''", b"'-1'", b"0x32", b"1e30", b"@a"]
)
def test_a_limit_takes_whole_numbers(sql, spelt):
    with pytest.raises(WrongLimit, match="LIMIT"):
        as_text(statement(sql).bind((None,), lambda _: spelt))


def test_conditions_and_assignments_take_the_values_bound():
    found = statement("UPDATE t SET a = ?, b = 1 WHERE id IN (?, 5) AND c = ?")
    shape = found.shape
    assert shape.assignments["a"] == Param(0)
    bound = found.bind((7, 8, b"x"))
    assert bound.values(shape.conditions["id"]) == [8, 5]
    assert bound.values(shape.conditions["c"]) == [b"x"]
    assert bound.argument(Param(0)) == 7
    assert found.values(shape.conditions["id"]) is None
    assert found.argument(Param(0)) is OPAQUE


def test_behind_rows_parameters_count_from_the_end():
    sql = "INSERT INTO t (id, a) VALUES (?, ?), (?, ?), (?, ?) ON DUPLICATE KEY UPDATE a = ?, b = ?"
    found = statement(sql).bind(tuple(range(8)))
    assigned = found.shape.assignments
    assert found.values([assigned["a"], assigned["b"]]) == [6, 7]
