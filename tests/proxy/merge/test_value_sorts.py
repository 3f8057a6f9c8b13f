from dataclasses import replace

from streamfrom.proxy.merge.value_sorts import Sort, are_alike, sort_of
from streamfrom.proxy.wire.constants import BINARY_CHARSET, FieldFlag, FieldType
from streamfrom.proxy.wire.resultset import ColumnDefinition


def column(kind, decimals=0, flags=0, charset=BINARY_CHARSET):
    return ColumnDefinition("c", type=kind, decimals=decimals, flags=flags, charset=charset)


TEXT = column(FieldType.VAR_STRING, charset=255)
UNSIGNED = column(FieldType.LONGLONG, flags=FieldFlag.UNSIGNED)


def test_columns_are_alike_whose_values_mean_the_same_things():
    small = column(FieldType.TINY)
    assert are_alike(small, column(FieldType.LONGLONG))
    assert not are_alike(small, UNSIGNED)
    assert are_alike(column(FieldType.TIMESTAMP), column(FieldType.DATETIME))
    assert not are_alike(column(FieldType.DATETIME), column(FieldType.DATETIME, 3))
    assert not are_alike(column(FieldType.NEWDECIMAL, 2), column(FieldType.NEWDECIMAL, 4))
    assert are_alike(TEXT, replace(TEXT, type=FieldType.BLOB, decimals=31))
    assert not are_alike(TEXT, replace(TEXT, charset=8))
    assert sort_of(column(FieldType.JSON)) is sort_of(column(FieldType.YEAR)) is None
    assert not are_alike(column(FieldType.JSON), column(FieldType.YEAR))
    assert sort_of(column(FieldType.BLOB)) is Sort.BYTES
