"""What a server is asked in place of a statement on the schema `streamfrom`; servers answer in test_status_tables.py of the integration tests."""

from types import SimpleNamespace
from typing import Any

import pytest

from streamfrom.engine.errors import TableNotFound
from streamfrom.proxy.sql.queues.status_tables import StatusTables
from streamfrom.proxy.status.status_source import Sight
from streamfrom.sqlparse_ext.errors import SqlError, Unsupported
from tests.sqlparse_ext.facts import statement
from tests.virtual_loop import run_virtual


class Server:
    def __init__(self, trouble):
        self.trouble = trouble


class Around:
    """A session in the target *schema*, whose shards are as *troubles* says."""

    def __init__(self, schema=None, troubles=(None,), others=()):
        async def rows(names, _viewer):
            return {name: [] for name in names}

        async def sight(_shards):
            return Sight()

        near: Any = [Server(trouble) for trouble in troubles]
        far: Any = [Server(trouble) for trouble in others]
        self.near, self.far = near, far
        context: Any = SimpleNamespace(
            status=SimpleNamespace(rows=rows, shards={}),
            rights=SimpleNamespace(sight=sight),
            others=SimpleNamespace(viewer=lambda _sight: None),
            executor=SimpleNamespace(branches=SimpleNamespace(held={})),
            catalog=SimpleNamespace(
                keyspaces=[SimpleNamespace(name="other")],
                view=lambda _: SimpleNamespace(runtimes=far),
            ),
            compiler=SimpleNamespace(
                schema=schema,
                view=None,
                here=lambda: SimpleNamespace(runtimes=near),
                parse=statement,
                lookup=lambda name: SimpleNamespace(keyspace=SimpleNamespace(name=name)),
            ),
        )
        self.tables = StatusTables(context, None)  # type: ignore[arg-type]

    def text(self, sql):
        return run_virtual(self.tables.text(statement(sql)))


QUEUES = b"queues` AS (SELECT * FROM JSON_TABLE(CONVERT(_utf8mb4 x'5b5d' USING utf8mb4), '$[*]' COLUMNS ("


def test_the_rows_stand_before_the_statement_and_its_names_lose_the_schema():
    text = Around().text(
        "SELECT streamfrom.queues.depth FROM `streamfrom`.queues WHERE depth > 1"
    )
    assert text.startswith(b"WITH `" + QUEUES)
    assert text.endswith(b" SELECT queues.depth FROM queues WHERE depth > 1")


def test_common_table_expressions_of_the_statement_follow_them():
    sql = "/* x */ WITH RECURSIVE a AS (SELECT 1 FROM STREAMFROM.queues) SELECT * FROM a"
    text = Around().text(sql)
    assert text.startswith(b"/* x */ WITH RECURSIVE `" + QUEUES)
    assert text.endswith(b", a AS (SELECT 1 FROM queues) SELECT * FROM a")


def test_show_queue_status_is_a_select():
    assert (
        Around()
        .text("SHOW QUEUE STATUS")
        .endswith(b" SELECT * FROM queues ORDER BY keyspace, queue")
    )
    both = Around().text("SHOW QUEUE STATUS FROM `ks` LIKE 'a%'")
    assert both.endswith(b"WHERE keyspace = 'ks' AND queue LIKE 'a%' ORDER BY keyspace, queue")


@pytest.mark.parametrize(
    ("sql", "error"),
    [
        ("SELECT * FROM streamfrom.nothing", TableNotFound),
        ("SELECT * FROM streamfrom.queues, other.t", Unsupported),
        ("SELECT * FROM streamfrom.queues, t", Unsupported),
        ("SHOW QUEUE STATUS WHERE depth > 1", SqlError),
        ("SHOW QUEUE STATUS LIKE", SqlError),
        ("SHOW QUEUE STATUS FROM", SqlError),
        ("SHOW QUEUE STATUS FROM a LIKE 'b' LIMIT 1", SqlError),
    ],
)
def test_what_there_is_not_is_refused(sql, error):
    with pytest.raises(error):
        Around().text(sql)


def test_in_the_schema_names_need_no_qualifier():
    assert Around("streamfrom").text("SELECT * FROM Queues").endswith(b" SELECT * FROM Queues")
    with pytest.raises(TableNotFound):
        Around("streamfrom").text("SELECT * FROM t")


def test_a_server_that_works_evaluates():
    around = Around(troubles=("down", None))
    assert around.tables.shard() is around.near[1]
    around = Around(troubles=("down",), others=("down", None))
    assert around.tables.shard() is around.far[1]
    around = Around(troubles=("down",), others=("down",))
    assert around.tables.shard() is around.near[0]
