from dataclasses import replace

import pytest

from streamfrom.proxy.errors import NoDatabaseSelected, NoSuchVschemaTable, UnknownDatabase
from streamfrom.proxy.local_statements.show_vschema import show_vschema
from tests.cases import cases
from tests.proxy.keyspaces import PLAIN, SHARDED
from tests.sqlparse_ext.facts import shape


def told(sql, selected=SHARDED):
    found = shape(sql)
    columns, rows = show_vschema(found, [SHARDED, PLAIN], selected)
    return [column.name for column in columns], [
        tuple((value or b"").decode() for value in row) for row in rows
    ]


def test_tables_are_those_of_the_selected_keyspace():
    names, rows = told("SHOW VSCHEMA TABLES")
    assert names == ["Tables"]
    assert rows == [("msg",), ("multi",), ("named",), ("pin",), ("pin_high",), ("ref",), ("t",)]


def test_tables_need_a_keyspace():
    with pytest.raises(NoDatabaseSelected):
        told("SHOW VSCHEMA TABLES", None)


def test_vindexes_of_all_keyspaces():
    assert told("SHOW VSCHEMA VINDEXES") == (
        ["Keyspace", "Name", "Type", "Params", "Owner"],
        [("commerce", "md5", "binary_md5", "", ""), ("commerce", "numeric", "numeric", "", "")],
    )


def test_the_comment_of_a_keyspace_tells_why_its_newer_vschema_is_not_in_force():
    faulty = replace(PLAIN, vschema_fault="it is no JSON")
    _, rows = show_vschema(shape("SHOW VSCHEMA KEYSPACES"), [faulty], None)
    assert rows == [(b"plain", b"false", b"unmanaged", b"it is no JSON")]


VINDEX_COLUMNS = ["Columns", "Name", "Type", "Params", "Owner"]


@cases(sql=str)
def test_vindexes_of_a_table_tell_their_columns(sql):
    selected = PLAIN if "commerce" in sql else SHARDED
    assert told(sql, selected) == (
        VINDEX_COLUMNS,
        [("a, b", "numeric", "numeric", "", "")],
    )


@pytest.mark.parametrize(
    ("table", "selected", "error", "sentence"),
    [
        (
            "garbage",
            SHARDED,
            NoSuchVschemaTable,
            "VT05005: table 'garbage' does not exist in keyspace 'commerce'",
        ),
        ("nowhere.t", SHARDED, UnknownDatabase, "Unknown database 'nowhere'"),
        ("t", None, NoDatabaseSelected, "No database selected"),
    ],
)
def test_vindexes_of_what_there_is_not(table, selected, error, sentence):
    with pytest.raises(error, match=f"^{sentence}$"):
        told(f"SHOW VSCHEMA VINDEXES ON {table}", selected)
