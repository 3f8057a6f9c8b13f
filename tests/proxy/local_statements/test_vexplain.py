import ast
import json

import pytest

from streamfrom.proxy.local_statements.vexplain import (
    check_form,
    explain_filled,
    explain_plan,
    explain_stream,
)
from streamfrom.proxy.routing.planner import Planner
from streamfrom.sqlparse_ext.errors import SqlError
from tests.cases import cases
from tests.proxy.keyspaces import HIGH, LOW_SHARD, PLAIN, QUARTERS, SHARDED
from tests.sqlparse_ext.facts import shape, statement


KEYSPACE = {"Name": "commerce", "Sharded": True}
BOTH = ["-80", "80-"]


def plan(sql, keyspace=SHARDED, shards=None):
    shards = shards or keyspace.shards
    found = statement(sql)
    route = Planner(keyspace, shards, lambda _: None).plan(found.shape).route(found)
    return json.loads(explain_plan(found, keyspace, shards, route))


@cases(sql=str)
def test_what_has_no_plan_is_an_error_of_syntax(sql):
    with pytest.raises(SqlError, match="VEXPLAIN PLAN takes a SELECT"):
        check_form(shape(sql))


@cases(sql=str, variant=str, shards=ast.literal_eval)
def test_the_variant_tells_how_shards_are_found(sql, variant, shards):
    found = plan(sql)
    assert (found["Variant"], found["Shards"], found["Keyspace"]) == (variant, shards, KEYSPACE)


def test_values_the_vindex_and_each_part_of_a_split_write_are_told():
    found = plan("SELECT * FROM t WHERE id IN (5, '6', NULL)")
    assert (found["Values"], found["Vindex"]) == (["5", "6", "NULL"], "numeric")
    assert plan(f"INSERT INTO t (id) VALUES (5), ({HIGH})")["Queries"] == {
        "-80": "INSERT INTO t (id) VALUES (5)",
        "80-": f"INSERT INTO t (id) VALUES ({HIGH})",
    }


@cases(sql=str, variant=str)
def test_what_is_merged_has_the_shards_route_as_its_input(sql, variant):
    found = plan(sql)
    assert (found["OperatorType"], found["Variant"]) == ("Merge", variant)
    assert [each["Variant"] for each in found["Inputs"]] == ["Scatter"]
    assert found["Inputs"][0]["Shards"] == BOTH


def test_an_unsharded_keyspace_has_one_way():
    found = plan("SELECT COUNT(*) FROM a JOIN b", PLAIN)
    assert (found["OperatorType"], found["Variant"]) == ("Route", "Unsharded")
    assert found["Keyspace"] == {"Name": "plain", "Sharded": False}
    assert found["Table"] == "a, b"


@pytest.mark.parametrize(
    ("keyspace", "shards", "destination"),
    [
        (SHARDED, SHARDED.shards, "ExactKeyRange(-)"),
        (SHARDED, (LOW_SHARD,), "ExactKeyRange(-80)"),
        (QUARTERS, QUARTERS.shards[1:3], "ExactKeyRange(40-c0)"),
        (PLAIN, PLAIN.shards, "ExactKeyRange(-)"),
    ],
)
def test_a_stream_reads_an_exact_key_range(keyspace, shards, destination):
    found = json.loads(explain_stream(keyspace, shards, "msg"))
    assert list(found)[:3] == ["OperatorType", "Keyspace", "TargetDestination"]
    assert (found["OperatorType"], found["TargetDestination"]) == ("MStream", destination)
    assert found["Table"] == "msg"


def test_parts_that_are_answered_first_are_the_inputs_of_a_merge():
    found = plan("SELECT COUNT(*) FROM t UNION ALL SELECT a FROM t WHERE id = 5")
    assert (found["OperatorType"], found["Variant"]) == ("Merge", "Parts")
    (part,) = found["Inputs"]
    assert (part["OperatorType"], part["Variant"]) == ("Merge", "Aggregate")
    assert part["Inputs"][0]["Query"] == "SELECT COUNT(*) FROM t"


@pytest.mark.parametrize(
    ("sequence", "taken"), [("seq", "select next 3 values from seq"), ("", "3 of vt_auto_id")]
)
def test_an_insert_tells_what_fills_its_column(sequence, taken):
    found = json.loads(
        explain_filled(statement("INSERT INTO t (a) VALUES (1)"), SHARDED, sequence, 3)
    )
    assert (found["AutoIncrement"], found["Table"], found["Variant"]) == (taken, "t", "Sharded")
