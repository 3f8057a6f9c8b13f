import pytest
from hypothesis import given, strategies as st

from streamfrom.proxy.errors import BadMessageId, WireError
from streamfrom.proxy.vtgate import vtgateservice_pb2 as pb
from streamfrom.proxy.vtgate.message_service import field_of, literals, rows_of
from streamfrom.proxy.wire.constants import BINARY_CHARSET, FieldFlag, FieldType
from streamfrom.proxy.wire.resultset import ColumnDefinition, column_definition, text_row
from streamfrom.sqlparse_ext.cache import StatementCache


@pytest.mark.parametrize(
    ("column", "kind"),
    [
        (ColumnDefinition("c", type=FieldType.LONGLONG), pb.INT64),
        (ColumnDefinition("c", type=FieldType.LONGLONG, flags=FieldFlag.UNSIGNED), pb.UINT64),
        (ColumnDefinition("c", type=FieldType.YEAR, flags=FieldFlag.UNSIGNED), pb.YEAR),
        (ColumnDefinition("c", type=FieldType.NEWDECIMAL), pb.DECIMAL),
        (ColumnDefinition("c", type=FieldType.VAR_STRING), pb.VARCHAR),
        (
            ColumnDefinition("c", type=FieldType.VAR_STRING, charset=BINARY_CHARSET),
            pb.VARBINARY,
        ),
        (ColumnDefinition("c", type=FieldType.BLOB), pb.TEXT),
        (ColumnDefinition("c", type=FieldType.BLOB, charset=BINARY_CHARSET), pb.BLOB),
        (ColumnDefinition("c", type=FieldType.STRING, charset=BINARY_CHARSET), pb.BINARY),
        (ColumnDefinition("c", type=FieldType.STRING, flags=FieldFlag.ENUM), pb.ENUM),
        (ColumnDefinition("c", type=FieldType.STRING, flags=FieldFlag.SET), pb.SET),
        (ColumnDefinition("c", type=FieldType.JSON, charset=BINARY_CHARSET), pb.JSON),
    ],
)
def test_a_column_has_the_type_that_vitess_gives_it(column, kind):
    assert field_of(column_definition(column)).type == kind


@given(st.lists(st.lists(st.none() | st.binary(max_size=300), min_size=3, max_size=3)))
def test_rows_hold_what_they_held(rows):
    found = []
    for row in rows_of(map(text_row, rows), 3):
        values, place = [], 0
        for length in row.lengths:
            values.append(None if length < 0 else row.values[place : place + length])
            place += max(length, 0)
        assert place == len(row.values)
        found.append(values)
    assert found == rows


def test_a_row_of_another_width_is_no_row():
    with pytest.raises(WireError):
        rows_of([text_row([b"1"])], 2)


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (pb.INT64, b"1) OR (1"),
        (pb.INT64, b""),
        (pb.INT64, b"-"),
        (pb.INT64, b"--1"),
        (pb.INT64, b"1e9"),
        (pb.INT64, b" 1"),
        (pb.INT64, b"\xd9\xa1"),
        (pb.INT64, b"1" * 21),
        (pb.FLOAT64, b"1.5"),
        (pb.EXPRESSION, b"NOW()"),
        (pb.NULL_TYPE, b""),
        (9999, b"1"),
    ],
)
def test_what_no_message_has_as_its_id_is_refused(kind, value):
    with pytest.raises(BadMessageId) as refused:
        literals([pb.Value(type=kind, value=value)])
    assert refused.value.wire_code() == (1210, "HY000")


@given(st.lists(st.tuples(st.sampled_from([pb.INT64, pb.VARCHAR, pb.VARBINARY]), st.binary())))
def test_no_value_ends_the_list(values):
    try:
        listed = literals([pb.Value(type=kind, value=value) for kind, value in values])
    except BadMessageId:
        return
    text = b"UPDATE t SET a = 1 WHERE id IN (0," + (listed or b"1") + b") AND b = 2"
    statement = StatementCache().get(text)
    assert "b" in {str(name) for name in statement.shape.conditions}
