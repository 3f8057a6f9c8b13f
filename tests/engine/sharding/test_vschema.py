import ast
import json

import pytest

from streamfrom.engine.errors import VschemaError
from streamfrom.engine.sharding.vschema import AutoIncrement, parse_vschema, unknown_keys
from tests.cases import cases


def parsed(**fields):
    return parse_vschema(json.dumps(fields))


def sharded(table, vindexes=None, name="t"):
    return parsed(
        sharded=True,
        vindexes=vindexes or {"h": {"type": "hash"}, "n": {"type": "numeric"}},
        tables={name: table},
    )


def test_the_vschema_of_the_originals_tests_is_read():
    schema = sharded({"column_vindexes": [{"column": "ID", "name": "h"}]})
    primary = schema.tables["t"].primary
    assert schema.sharded
    assert primary.column == "id"
    assert primary.vindex.type == "hash"
    assert primary.vindex.vindex.map(1).hex() == "166b40b44aba4bd6"


def test_an_unsharded_keyspace_needs_nothing():
    schema = parse_vschema("{}")
    assert (schema.sharded, schema.vindexes, schema.tables) == (False, {}, {})
    assert parsed(tables={"t": {}}).tables["t"].primary is None


@cases(fields=ast.literal_eval, mode=str)
def test_what_it_says_of_foreign_keys_is_kept(fields, mode):
    assert parsed(**fields).foreign_key_mode == mode


def test_an_unknown_word_about_foreign_keys_is_refused():
    with pytest.raises(VschemaError, match="disallow, unmanaged, managed"):
        parsed(foreign_key_mode="allow")


def test_both_spellings_of_fields_are_read_and_unknown_ones_ignored():
    table = sharded(
        {
            "columnVindexes": [{"columns": ["A"], "name": "h", "color": "red"}],
            "autoIncrement": {"column": "ID", "sequence": "other.seq"},
        }
    ).tables["t"]
    assert table.primary.column == "a"
    assert table.auto_increment == AutoIncrement("id", "other.seq")


@cases(fields=ast.literal_eval, told=str)
def test_a_key_that_means_nothing_is_named_with_the_one_that_may_be_meant(fields, told):
    assert "; ".join(unknown_keys(json.dumps(fields))) == told


def test_vindexes_keep_their_params_and_owner():
    vindexes = {"h": {"type": "hash", "params": {"x": "1"}, "owner": "other"}}
    spec = sharded({"column_vindexes": [{"column": "id", "name": "h"}]}, vindexes).vindexes["h"]
    assert (spec.params, spec.owner) == ({"x": "1"}, "other")


@cases(table=ast.literal_eval, fault=str)
def test_faults_are_told_in_the_originals_words(table, fault):
    vindexes = {
        "h": {"type": "hash"},
        "o": {"type": "hash", "owner": "t"},
    }
    with pytest.raises(VschemaError) as failure:
        sharded(table, vindexes)
    assert str(failure.value) == fault


def test_an_unknown_vindex_type_is_a_fault():
    with pytest.raises(VschemaError, match='vindexType "hush" not found'):
        parsed(vindexes={"h": {"type": "hush"}})


@pytest.mark.parametrize("text", ["", "{", "[]", "3"])
def test_what_is_no_json_object_is_a_fault_that_names_the_keyspace(text):
    with pytest.raises(VschemaError, match="vschema of keyspace 'commerce'"):
        parse_vschema(text, "commerce")
