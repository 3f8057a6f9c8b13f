"""What a session reads of system schemas, with the names of keyspaces in it."""

from types import SimpleNamespace

import pytest

from streamfrom.proxy.errors import BackendError
from streamfrom.proxy.sql.compile.large_texts import LargeTexts, readers
from streamfrom.proxy.sql.schema_names import with_schema_names
from tests.cases import cases
from tests.proxy.sql.compilers import compiler


class Control:
    """Answers SHOW COLUMNS for `tables` alone."""

    def __init__(self):
        self.asked = []

    async def records(self, sql):
        self.asked.append(sql)
        if "`tables`" not in sql:
            raise BackendError(1109, "42S02", "Unknown table")
        return [{"Field": "TABLE_SCHEMA"}, {"Field": "TABLE_NAME"}]


class Connections:
    async def patiently(self, _shard, ask):
        return await ask()


@pytest.fixture
def session():
    made = compiler("plain")
    control = Control()
    for runtime in made.target.here().runtimes:
        runtime.control, runtime.version, runtime.system_columns = control, "11", {}
        runtime.is_mariadb = True
    context = SimpleNamespace(
        compiler=made, connections=Connections(), large_texts=LargeTexts(readers())
    )

    async def named(sql):
        asked = made.target.parse(sql.encode())
        return (await with_schema_names(context, asked)).sql.decode()  # type: ignore[arg-type]

    return SimpleNamespace(named=named, control=control)


async def test_the_columns_of_a_table_are_asked_for_once(session):
    sql = "SELECT 1 FROM information_schema.tables WHERE LOWER(table_schema) = 'plain'"
    for _ in range(2):
        assert "WHEN 'db_plain' THEN 'plain'" in await session.named(sql)
    assert session.control.asked == ["SHOW COLUMNS FROM `information_schema`.`tables`"]


@cases(sql=str)
async def test_what_needs_no_other_names_stays_as_it_is(session, sql):
    assert await session.named(sql) == sql
