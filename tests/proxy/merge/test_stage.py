import json
from dataclasses import replace

import pytest

from streamfrom.proxy.errors import MergeTooLarge
from streamfrom.proxy.merge.stage import Stage, json_table
from streamfrom.proxy.wire.constants import BINARY_CHARSET, FieldFlag, FieldType
from streamfrom.proxy.wire.resultset import ColumnDefinition, text_row
from streamfrom.sqlparse_ext.errors import Unsupported
from tests.proxy.merge.answers import number


TEXT = ColumnDefinition("s", type=FieldType.VAR_STRING, charset=45, length=80)
BYTES = ColumnDefinition("b", type=FieldType.BLOB, charset=BINARY_CHARSET)


def test_rows_are_one_ascii_literal_and_typed_columns():
    stage = Stage([number("a", 2), TEXT, BYTES], ["", "latin1_bin", ""])
    text = stage.select(
        [text_row([b"1.50", "é'\\\n".encode(), b"\0\xff"]), text_row([None] * 3)]
    )
    assert text.isascii()
    assert b"\\" not in text
    hexed = max(text.decode().split("'"), key=len)
    assert json.loads(bytes.fromhex(hexed)) == [["1.50", "é'\\\n", "00ff"], [None] * 3]
    assert text.startswith(
        b"SELECT `a`, `s`, UNHEX(`b`) AS `b` FROM JSON_TABLE(CONVERT(_utf8mb4 x'"
    )
    assert text.endswith(
        b"' USING utf8mb4), '$[*]' COLUMNS (`a` DECIMAL(65,2) PATH '$[0]',"
        b" `s` VARCHAR(20) CHARACTER SET latin1 COLLATE latin1_bin PATH '$[1]',"
        b" `b` MEDIUMTEXT CHARACTER SET ascii PATH '$[2]')) AS `streamfrom`"
    )


def test_texts_of_another_character_set_are_left_to_the_server():
    latin = ColumnDefinition("s", type=FieldType.STRING, charset=8, length=5)
    text = Stage([latin], ["utf8mb4_bin"]).select([text_row([b"\x80"])])
    assert b"CONVERT(_latin1 x'5b5b228022" in text
    assert b"`s` CHAR(5) CHARACTER SET utf8mb4" in text
    with pytest.raises(Unsupported, match="several character sets"):
        Stage([latin, TEXT], ["latin1_bin", "latin1_bin"])


def test_a_character_that_may_have_been_lost_on_the_way_is_refused():
    latin = ColumnDefinition("s", type=FieldType.STRING, charset=8, length=5)
    for charset, collation in ((8, "utf8mb4_bin"), (33, "utf8mb4_bin"), (8, "utf8mb3_bin")):
        with pytest.raises(Unsupported, match=r"a '\?' in the column 's'"):
            Stage([replace(latin, charset=charset)], [collation]).select([text_row([b"a?"])])
    for charset, collation in ((8, "latin1_bin"), (45, "latin1_bin"), (45, "utf8mb4_bin")):
        Stage([replace(latin, charset=charset)], [collation]).select([text_row([b"a?"])])


@pytest.mark.parametrize("value", [b"0000-00-00", b"2024-00-10", b"2024-01-00 00:00:00"])
def test_dates_of_zeros_are_up_to_the_mode_and_refused(value):
    stage = Stage([number("d", kind=FieldType.DATETIME)], [""])
    with pytest.raises(Unsupported, match="a date of zeros"):
        stage.select([text_row([value])])


def test_a_text_that_no_server_takes_is_too_large():
    with pytest.raises(MergeTooLarge):
        json_table([("a", "INT")], [b"x" * (8 << 20)], "t")


@pytest.mark.parametrize(
    ("column", "collation", "typed"),
    [
        (
            replace(TEXT, type=FieldType.BLOB),
            "utf8mb4_bin",
            b"`s` MEDIUMTEXT CHARACTER SET utf8mb4",
        ),
        (replace(TEXT, length=4 << 20), "utf8mb4_bin", b"`s` MEDIUMTEXT CHARACTER SET utf8mb4"),
        (number("n", kind=FieldType.NULL), "", b"SELECT NULL AS `n` FROM"),
    ],
)
def test_long_texts_and_nulls_have_types_of_their_own(column, collation, typed):
    assert typed in Stage([column], [collation]).select([text_row([None])])


@pytest.mark.parametrize("column", [replace(TEXT, flags=FieldFlag.ENUM), TEXT])
def test_what_a_text_alone_does_not_tell_is_refused(column):
    with pytest.raises(Unsupported, match="going on with 's'"):
        Stage([column], [""])


@pytest.mark.parametrize(
    ("kind", "length", "type_"),
    [
        (FieldType.VAR_STRING, 10, b"VARCHAR(20) CHARACTER SET ascii"),
        (FieldType.VAR_STRING, 9000, b"MEDIUMTEXT CHARACTER SET ascii"),
        (FieldType.BLOB, 255, b"MEDIUMTEXT CHARACTER SET ascii"),
    ],
)
def test_short_bytes_become_no_blob_by_which_servers_count_differently(kind, length, type_):
    column = ColumnDefinition("v", type=kind, charset=BINARY_CHARSET, length=length)
    assert b"`v` " + type_ + b" PATH" in Stage([column], [""]).select([])
