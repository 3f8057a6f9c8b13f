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
                target=SimpleNamespace(
                    schema=schema,
                    view=None,
                    here=lambda: SimpleNamespace(runtimes=near),
                    parse=statement,
                    lookup=lambda name: SimpleNamespace(keyspace=SimpleNamespace(name=name)),
                )
            ),
        )
        self.tables = StatusTables(context, None)  # type: ignore[arg-type]

    def text(self, sql):
        return run_virtual(self.tables.text(statement(sql)))


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
