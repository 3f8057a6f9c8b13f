"""Statements of parts, answered by shards that are played here."""

import asyncio
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import pytest

from streamfrom.proxy.backends.answer_readers import BufferedAnswer
from streamfrom.proxy.backends.session_variables import UNLIMITED
from streamfrom.proxy.errors import BackendError, MergeTooLarge
from streamfrom.proxy.routing.planner import Planner
from streamfrom.proxy.sql.compile.large_texts import LargeTexts, readers
from streamfrom.proxy.sql.scatter import two_stage as module
from streamfrom.proxy.wire.constants import BINARY_CHARSET, FieldType
from streamfrom.proxy.wire.response import RowCollector
from streamfrom.proxy.wire.resultset import ColumnDefinition, parse_text_row
from streamfrom.sqlparse_ext.errors import Unsupported
from tests.proxy.keyspaces import HIGH, SHARDED
from tests.proxy.rigs import context_of
from tests.proxy.sql.scatter.test_gather import FakeReply, result
from tests.sqlparse_ext.facts import statement


INT = ColumnDefinition("n", org_name="n", type=FieldType.LONGLONG, charset=BINARY_CHARSET)
# The fakes below are no Executor and Link, and play them.
Select: Any = module.TwoStageSelect


class FakeExecutor:
    """Answers each text by its part of it that *answers* names."""

    def __init__(self, answers):
        self.sent: list[tuple[str, bytes]] = []
        self._answers = answers

    async def ask(self, shard, database, packet, shape, *, diagnostics=None):
        text = packet[5:]
        self.sent.append((shard.name, text))
        found = next(found for part, found in self._answers if part in text)
        if isinstance(found, Exception):
            raise found
        collector = RowCollector()
        return BufferedAnswer(collector, collector.feed(result([INT], found, warnings=1)))


def run(sql, answers, memory_bytes=1 << 20):
    given = statement(sql)
    route = Planner(SHARDED, SHARDED.shards, lambda _: None).plan(given.shape).route(given)
    executor, reply = FakeExecutor(answers), FakeReply()
    state: Any = SimpleNamespace(
        diagnostics=None,
        answered_at=None,
        select_limit=lambda limit=UNLIMITED: nullcontext(limit),
    )

    async def answer():
        context = context_of(
            executor=executor,
            state=state,
            link=None,
            config=SimpleNamespace(merge_memory_bytes=memory_bytes),
            compiler=SimpleNamespace(large_texts=LargeTexts(readers())),
        )
        select = Select(context, None, lambda shard: shard)
        await select.run(given, route, reply)

    asyncio.run(answer())
    return executor.sent, reply


SQL = (
    f"SELECT COUNT(*) AS n FROM ref UNION ALL SELECT n FROM t WHERE id = {HIGH}"
    " UNION ALL SELECT n FROM t WHERE id = 5 ORDER BY 1"
)
LIMIT = b"LIMIT %d" % (module.ROWS_MAX + 1)
ROWS = b'[["7"]]'.hex().encode()
ANSWERS = [
    (LIMIT, [[b"7"]]),
    (b"COLLATION", [[b"binary"]]),
    (ROWS, [[b"3"], [b"7"]]),
    (b"", [[b"7"]]),
]


def test_the_first_shard_answers_the_rest_from_the_rows_of_the_parts():
    sent, reply = run(SQL, ANSWERS)
    assert [parse_text_row(row) for row in reply.rows] == [[b"3"], [b"7"]]
    (own,) = [text for shard, text in sent if shard == "80-"]
    assert own == (
        b"SELECT `n` FROM (SELECT n FROM t WHERE id = %d) AS `streamfrom` %b" % (HIGH, LIMIT)
    )
    assert sent[0] == ("-80", SQL.encode() + b" LIMIT 0")
    assert sent[-1][1].startswith(
        b"SELECT COUNT(*) AS n FROM ref UNION ALL SELECT `n` FROM JSON_TABLE("
    )
    assert sent[-1][1].endswith(b" UNION ALL SELECT n FROM t WHERE id = 5 ORDER BY 1")


def test_strings_that_would_compare_in_another_way_are_refused():
    answers = [
        (b"UNION ALL SELECT `n` FROM JSON_TABLE", [[b"other"]]),
        *ANSWERS,
    ]
    with pytest.raises(
        Unsupported,
        match="going on with strings over several shards that compare by another collation",
    ):
        run(SQL, answers)


def test_a_part_with_two_columns_of_one_name_is_refused():
    error = BackendError(1060, "42S21", "Duplicate column name")
    with pytest.raises(Unsupported, match="two columns of one name"):
        run(SQL, [(b"LIMIT 0) AS", error), *ANSWERS])


def test_a_text_that_the_server_would_not_take_is_not_sent(monkeypatch):
    monkeypatch.setattr(module, "TEXT_BYTES_MAX", 100)
    limit = b"SELECT @@max_allowed_packet"
    sent, reply = run(SQL, [(limit, [[b"1000"]]), *ANSWERS])
    assert (sent[-2], len(reply.rows)) == (("-80", limit), 2)
    with pytest.raises(
        Unsupported, match="more than a server with a max_allowed_packet of 200"
    ):
        run(SQL, [(limit, [[b"200"]]), *ANSWERS])


def test_parts_with_too_many_rows_or_bytes_are_refused():
    many = [[b"7"]] * (module.ROWS_MAX + 1)
    with pytest.raises(Unsupported, match="parts of more than 50000 rows"):
        run(SQL, [(LIMIT, many), *ANSWERS])
    with pytest.raises(MergeTooLarge):
        run(SQL, [(LIMIT, many[:1000]), *ANSWERS], memory_bytes=1000)
