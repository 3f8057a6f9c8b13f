import pytest

from streamfrom.proxy.errors import BadQueue
from streamfrom.proxy.local_statements.queue_definitions import create_table, new_comment
from streamfrom.proxy.local_statements.queue_groups import group_index
from streamfrom.sqlparse_ext.reading.queues import read_queue
from tests.cases import cases
from tests.sqlparse_ext.facts import statement


NOW_NS = 1_800_000_000 * 10**9


def created(columns, settings):
    queue = read_queue(statement(f"CREATE QUEUE q ({columns}) WITH ({settings})"))
    return queue, new_comment(queue)


@cases(group=str, after=str)
def test_a_queue_with_groups_has_their_index(group, after):
    queue, text = created(f"`Batch` {group}, f {after}", "group = batch, after = f")
    assert group_index(queue, text) == (b"KEY `group_idx` (`batch`, `time_acked`)",)
    assert b",\n  KEY `group_idx` (`batch`, `time_acked`)\n) ENGINE" in create_table(
        queue, text, NOW_NS
    )


def test_a_queue_without_groups_or_with_such_an_index_gets_none():
    assert group_index(*created("a INT", "ack_wait = 1")) == ()
    queue, text = created(
        "a INT, b INT, KEY `group_idx` (`a`,`time_acked`)", "group = a, after = b"
    )
    assert group_index(queue, text) == ()


@cases(settings=str, fault=str)
def test_groups_of_other_columns_make_no_queue(settings, fault):
    queue, text = created("a INT, b INT, t VARCHAR(9)", settings)
    with pytest.raises(BadQueue, match=fault):
        create_table(queue, text, NOW_NS)
