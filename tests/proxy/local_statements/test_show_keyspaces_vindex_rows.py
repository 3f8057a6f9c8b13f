"""What a SELECT from a vindex answers; the keyspace ids are those of Vitess's own functions."""

import json

import pytest

from streamfrom.engine.sharding.keyspace import Keyspace, Shard
from streamfrom.engine.sharding.vschema import parse_vschema
from streamfrom.proxy.local_statements.show_keyspaces import vindex_columns, vindex_rows
from streamfrom.sqlparse_ext.errors import Unsupported
from tests.cases import cases
from tests.sqlparse_ext.facts import shape, statement


TYPES = ("hash", "binary", "numeric", "unicode_loose_md5", "xxhash")
VINDEXES = {name: {"type": name} for name in TYPES} | {
    "regions": {"type": "multicol", "params": {"column_count": "2"}}
}
KEYSPACE = Keyspace(
    "commerce",
    (Shard.named("-80"), Shard.named("80-")),
    parse_vschema(
        json.dumps(
            {
                "sharded": True,
                "vindexes": VINDEXES,
                "tables": {"t": {"column_vindexes": [{"column": "id", "name": "hash"}]}},
            }
        ),
        "commerce",
    ),
)


def asked(sql, vindex="hash"):
    assert KEYSPACE.vschema is not None
    return vindex_rows(statement(sql), KEYSPACE, KEYSPACE.vschema.vindexes[vindex])


def test_every_column_has_vitess_value_and_is_a_binary_string_under_the_name_that_is_asked():
    assert asked("SELECT * FROM hash WHERE id = 1") == [
        (b"1", bytes.fromhex("166b40b44aba4bd6"), b"", b"\x80", b"166b40b44aba4bd6", b"-80")
    ]
    assert asked("SELECT shard, ID, range_start FROM hash WHERE id IN (29999, 397)") == [
        (b"80-", b"29999", b"\x80"),
        (b"-80", b"397", b""),
    ]
    columns = vindex_columns(shape("SELECT keyspace_id, `ID` FROM commerce.hash WHERE id = 1"))
    assert [(column.name, column.charset) for column in columns] == [
        ("keyspace_id", 63),
        ("ID", 63),
    ]


@cases(vindex=str, value=str)
def test_what_has_no_keyspace_id_has_no_row(vindex, value):
    assert asked(f"SELECT * FROM {vindex} WHERE id = {value}", vindex) == []


def test_a_text_of_unknown_weights_and_a_vindex_of_several_columns_are_refused():
    assert asked("SELECT shard FROM unicode_loose_md5 WHERE id = 'a'", "unicode_loose_md5")
    with pytest.raises(Unsupported, match="keyspace id that 'unicode_loose_md5' has"):
        asked(
            "SELECT shard FROM unicode_loose_md5 WHERE id IN ('a', '中')", "unicode_loose_md5"
        )
    with pytest.raises(Unsupported, match="'regions', a vindex of several columns"):
        asked("SELECT * FROM regions WHERE id = 1", "regions")


@cases(sql=str)
def test_other_forms_are_refused_with_the_form_that_there_is(sql):
    with pytest.raises(Unsupported, match=r"WHERE id = value or id IN \(values\)"):
        asked(sql)


def test_a_number_is_its_text():
    assert asked("SELECT id, keyspace_id FROM binary WHERE id = 1.50", "binary") == [
        (b"1.50", b"1.50")
    ]
