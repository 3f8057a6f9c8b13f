"""Which statement of a session is an early ack; the answer itself is in test_fast_path.py."""

from types import SimpleNamespace
from typing import Any

import pytest

from streamfrom.proxy.sql.early_ack_answer import early_ack
from streamfrom.proxy.sql.statement_compiler import CompiledStatement
from streamfrom.sqlparse_ext.writes.message_effects import effect
from tests.sqlparse_ext.facts import statement
from tests.sqlparse_ext.writes.test_completion import CURRENT


ACK = "UPDATE m SET time_acked = 5, time_next = NULL WHERE id IN (7, 8) AND time_acked IS NULL"


def asked(sql, *, may_write=True):
    sent = statement(sql.encode())
    step = CompiledStatement(sent, "m", effect(sent, CURRENT), acks_early=True)
    executor: Any = SimpleNamespace(commits_at_once=lambda _shard: may_write)
    shard: Any = None
    return early_ack(step, shard, executor)


def test_an_ack_by_ids_is_told_with_its_moment():
    assert asked(ACK) == ((7, 8), 5)


def test_it_is_none_where_the_session_may_not_write_by_itself():
    assert asked(ACK, may_write=False) is None


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM m",
        "UPDATE m SET time_acked = 5 WHERE priority = 1",
        "UPDATE m SET time_next = 5 WHERE id = 7",
    ],
)
def test_other_statements_are_none(sql):
    assert asked(sql) is None
