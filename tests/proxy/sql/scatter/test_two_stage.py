"""Statements of parts, before fake servers; tests/integration/test_scatter_property.py compares their answers with one server's."""

import pytest

from streamfrom.proxy.errors import MergeTooLarge
from streamfrom.proxy.sql.scatter import two_stage as module
from streamfrom.proxy.sql.scatter.two_stage import INSERT_ROWS_MAX, TakenRows
from streamfrom.proxy.wire.constants import FieldType
from tests.proxy.fake_answers import Error, Rows
from tests.proxy.keyspaces import HIGH
from tests.proxy.rigs import running_proxy


SQL = (
    f"SELECT COUNT(*) AS n FROM ref UNION ALL SELECT n FROM t WHERE id = {HIGH}"
    " UNION ALL SELECT n FROM t WHERE id = 5 ORDER BY 1"
)
PART = f"LIMIT {module.PARTS_ROWS_MAX + 1}"


def numbers(*values):
    return Rows(("n",), tuple((b"%d" % n,) for n in values), types=(FieldType.LONGLONG,))


@pytest.fixture(autouse=True)
def answers(server, other_server):
    for each in (server, other_server):
        each.on("AS `streamfrom`", numbers())
        each.on("FROM ref", numbers(3, 7))
        each.on("COLLATION", Rows(("c",), ((b"binary",),)))
        each.on(PART, numbers(7))


@pytest.mark.parametrize(
    ("text", "answer", "told"),
    [
        ("UNION ALL SELECT `n` FROM JSON_TABLE", Rows(("c",), ((b"other",),)), "compare by another collation"),
        ("LIMIT 0) AS", Error(1060, "Duplicate column name"), "two columns of one name"),
        (PART, numbers(*[7] * (module.PARTS_ROWS_MAX + 1)), "parts of more than 50000 rows"),
    ],
)  # fmt: skip
async def test_what_cannot_be_put_together_is_refused(
    server, other_server, client, text, answer, told
):
    for each in (server, other_server):
        each.on(text, answer)
    refused = await client.query(SQL)
    assert (refused.code, told in refused.message) == (1235, True), refused.message


async def test_a_text_that_the_server_would_not_take_is_not_sent(server, client, monkeypatch):
    monkeypatch.setattr(module, "TEXT_BYTES_MAX", 100)
    server.on("SELECT @@max_allowed_packet", numbers(1000))
    assert (await client.query(SQL)).error is None
    server.on("SELECT @@max_allowed_packet", numbers(200))
    assert "with a max_allowed_packet of 200" in (await client.query(SQL)).message


async def test_parts_take_no_more_than_the_memory_of_a_merge(server, other_server):
    other_server.on(PART, numbers(*range(1000)))
    async with running_proxy(server, other_server, merge_memory_bytes=1000) as proxy:
        client = await proxy.client("commerce")
        assert (await client.query(SQL)).code == 1038


def test_rows_of_several_queries_count_together_and_not_what_is_taken_back():
    taken = TakenRows(1000, "parts")
    taken.head([b"column"])
    taken.more_rows([b"row"] * (INSERT_ROWS_MAX // 16))
    taken.end_of_rows(warnings=2)
    assert (len(taken.rows), taken.columns, taken.warnings) == (
        INSERT_ROWS_MAX // 16,
        [b"column"],
        2,
    )
    taken.rows = []
    with pytest.raises(MergeTooLarge):
        taken.more_rows([b"row"] * 50)
    taken = TakenRows(1 << 20, "parts")
    for _ in range(3):
        taken.more_rows([b""] * INSERT_ROWS_MAX)
        assert taken.take_back()
    assert taken.rows == []
