import ast
from dataclasses import replace

import pytest

from streamfrom.proxy.errors import NoDatabaseSelected, NoSuchVschemaTable, UnknownDatabase
from streamfrom.proxy.local_statements.show_keyspaces import (
    Tablet,
    chosen_databases,
    like,
    pattern_text,
    show_databases,
    show_vitess,
    show_vschema,
)
from tests.cases import cases
from tests.proxy.keyspaces import PLAIN, SHARDED
from tests.sqlparse_ext.facts import shape, statement


TABLETS = [
    Tablet("commerce", "-80", True, "db1:3306", "db1", True),
    Tablet("commerce", "-80", False, "db2:3306", "db2", False),
    Tablet("plain", "-", True, "/run/mysqld.sock", "localhost", True),
]


def told(sql):
    found = statement(sql)
    columns, rows = show_vitess(found, [SHARDED, PLAIN], TABLETS)
    return [column.name for column in columns], rows


def test_a_tablet_is_a_server_of_a_shard():
    names, rows = told("SHOW VITESS_TABLETS")
    assert names == [
        *("Cell", "Keyspace", "Shard", "TabletType"),
        *("State", "Alias", "Hostname", "PrimaryTermStartTime"),
    ]
    assert rows == [
        (b"", b"commerce", b"-80", b"PRIMARY", b"SERVING", b"db1:3306", b"db1", b""),
        (b"", b"commerce", b"-80", b"REPLICA", b"NOT_SERVING", b"db2:3306", b"db2", b""),
        (b"", b"plain", b"-", b"PRIMARY", b"SERVING", b"/run/mysqld.sock", b"localhost", b""),
    ]


def vschema(sql, selected=SHARDED):
    found = shape(sql)
    columns, rows = show_vschema(found, [SHARDED, PLAIN], selected)
    return [column.name for column in columns], [
        tuple((value or b"").decode() for value in row) for row in rows
    ]


def test_tables_are_those_of_the_selected_keyspace():
    names, rows = vschema("SHOW VSCHEMA TABLES")
    assert names == ["Tables"]
    assert rows == [("msg",), ("named",), ("pin",), ("pin_high",), ("ref",), ("t",)]


def test_tables_need_a_keyspace():
    with pytest.raises(NoDatabaseSelected):
        vschema("SHOW VSCHEMA TABLES", None)


def test_vindexes_of_all_keyspaces():
    assert vschema("SHOW VSCHEMA VINDEXES") == (
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
    assert vschema(sql, selected) == (VINDEX_COLUMNS, [("name", "md5", "binary_md5", "", "")])


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
        vschema(f"SHOW VSCHEMA VINDEXES ON {table}", selected)


KEYSPACES = [SHARDED, PLAIN]


@cases(sql=str, column=str, names=ast.literal_eval)
def test_they_are_the_keyspaces_in_sight(sql, column, names):
    (found,), rows = show_databases(statement(sql), KEYSPACES)
    assert (found.name, rows) == (column, [(name.encode(),) for name in names])


def test_what_a_where_says_is_for_a_server_to_decide():
    asked = statement("SHOW DATABASES WHERE `Database` = 'it''s'")
    text = chosen_databases(asked, [PLAIN])
    assert text == (
        b"SELECT `Database` FROM (SELECT CONVERT('information_schema' USING utf8mb4)"
        b" COLLATE utf8mb4_general_ci AS `Database` UNION ALL SELECT CONVERT('plain' USING"
        b" utf8mb4) COLLATE utf8mb4_general_ci) AS `SCHEMATA` WHERE `Database` = 'it''s'"
    )


@cases(pattern=str, found=ast.literal_eval)
def test_it_matches_whole_names_as_a_server_would(pattern, found):
    matches = like(statement(f"SHOW VITESS_SHARDS LIKE '{pattern}'"))
    assert [name for name in ("shop/-80", "shop/80-") if matches.fullmatch(name)] == found


def test_its_text_is_that_of_the_literal():
    assert pattern_text(statement("SHOW DATABASES LIKE 'it''s%'")) == "it's%"
    assert pattern_text(statement("SHOW DATABASES LIKE x")) == ""
