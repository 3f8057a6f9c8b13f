import json

import pytest

from engine.errors import TableNotFound
from proxy.config.file import Role, Secret, User
from proxy.errors import CommandDenied
from proxy.sessions.explanation import explanation
from proxy.sessions.guard import Guard
from sqlparse_ext.errors import SqlError, Unsupported
from tests.proxy.sessions.test_preparation import preparation


WRITER = Guard(User("app", Secret(""), None, Role.READWRITE, None), "host")
READER = Guard(User("eve", Secret(""), None, Role.READONLY, None), "host")


def plan(sql, use="commerce", guard=WRITER):
    made = preparation(use)
    (column,), ((text,),) = explanation(made, guard, made.parse(sql.encode()))
    assert column.name == "JSON"
    assert text is not None
    return json.loads(text)


def test_the_plan_is_that_of_the_text_that_would_be_sent():
    found = plan("VEXPLAIN PLAN SELECT * FROM `commerce`.t WHERE id = 5")
    assert (found["Shards"], found["Query"]) == (["-80"], "SELECT * FROM t WHERE id = 5")
    completed = plan("VEXPLAIN PLAN UPDATE msg SET time_acked = 1 WHERE id = 5")["Query"]
    assert "time_next = NULL" in completed


def test_a_qualifier_names_the_keyspace_and_the_shards():
    found = plan("EXPLAIN FORMAT=VTEXPLAIN SELECT * FROM `commerce:80-`.t", use="plain")
    assert found["TargetDestination"] == "Shard(80-)"


def test_a_stream_is_planned_over_its_target():
    found = plan("VEXPLAIN PLAN STREAM * FROM msg", use="commerce:80-")
    assert (found["OperatorType"], found["Shards"]) == ("MStream", ["80-"])


@pytest.mark.parametrize(
    ("sql", "error"),
    [
        ("VEXPLAIN PLAN", SqlError),
        ("VEXPLAIN TRACE SELECT 1", Unsupported),
        ("VEXPLAIN PLAN SELECT * FROM unknown", Unsupported),
        ("VEXPLAIN PLAN STREAM * FROM t", TableNotFound),
    ],
)
def test_what_would_not_run_has_no_plan(sql, error):
    with pytest.raises(error):
        plan(sql)


def test_a_reader_is_not_told_of_writes():
    plan("VEXPLAIN PLAN SELECT * FROM t", guard=READER)
    with pytest.raises(CommandDenied):
        plan("VEXPLAIN PLAN DELETE FROM t", guard=READER)
