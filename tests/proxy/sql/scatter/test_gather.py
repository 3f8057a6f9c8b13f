"""Answers gathered from shards that are played here, packet by packet."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from streamfrom.proxy.backends.answer_readers import BufferedAnswer
from streamfrom.proxy.backends.session_variables import UNLIMITED
from streamfrom.proxy.errors import BackendError, BackendLost
from streamfrom.proxy.execution.session_connections import SessionConnections
from streamfrom.proxy.routing.routes import Merge
from streamfrom.proxy.sql.compile.large_texts import LargeTexts, readers
from streamfrom.proxy.sql.scatter import gather as module
from streamfrom.proxy.wire.constants import BINARY_CHARSET, Capability, FieldType, Status
from streamfrom.proxy.wire.framing import frame
from streamfrom.proxy.wire.response import RowCollector
from streamfrom.proxy.wire.resultset import ColumnDefinition, err_packet
from streamfrom.sqlparse_ext.errors import Unsupported
from streamfrom.sqlparse_ext.selects.select_reader import read_select
from tests.proxy.rigs import context_of
from tests.proxy.wire.peers import text_resultset
from tests.sqlparse_ext.facts import statement


# The fakes below are no Executor, Link and Reply, and play them.
gather: Any = module.gather

CAPABILITIES = int(Capability.PROTOCOL_41 | Capability.DEPRECATE_EOF)
INT = ColumnDefinition("a", org_name="a", type=FieldType.LONGLONG, charset=BINARY_CHARSET)


def result(columns, rows, status=Status.AUTOCOMMIT, warnings=0):
    return text_resultset(
        columns, rows, capabilities=CAPABILITIES, status=status, warnings=warnings
    )


def refusal(code=1054, text="Unknown column"):
    return frame(err_packet(code, "42S22", text, CAPABILITIES), 1)


class FakeLink:
    def __init__(self):
        self.blocked = False
        self.closed = False
        self.paused = False

    def pause_reading(self):
        self.paused = True

    def resume_reading(self):
        self.paused = False


class FakeBackend:
    """One shard's connection; `answer` plays its part."""

    thread_id = 7

    def __init__(self, questions):
        self.link = FakeLink()
        self.sent: list[bytes] = []
        self.reader: Any = None
        self._questions = questions

    async def answers(self, packets):
        found = []
        for packet in packets:
            self.sent.append(packet[5:])
            collector = RowCollector()
            rows = collector.feed(self._questions(packet[5:]))
            found.append(BufferedAnswer(collector, rows))
        return found

    def send(self, packet, reader):
        self.sent.append(packet[5:])
        self.reader = reader

    def answer(self, data):
        if self.reader.data_received(data) is not None:
            self.reader.answer_completed()


class FakeExecutor:
    take_warnings: Any = SessionConnections.take_warnings
    retries: Any = SessionConnections.retries

    def __init__(self, backends):
        self.branches = SimpleNamespace(has_begun=False, is_broken=False, held={})
        self.state = self._state = SimpleNamespace(is_stopped=False)
        self._failover_buffer_s = 60.0
        self.current: Any = None
        self.given: list[int] = []
        self.abandoned: list[int] = []
        self._backends = backends

    async def acquire(self, shard, database, shape):
        return self._backends[shard]

    async def ask(self, shard, database, packet, shape, *, diagnostics):
        assert not any(backend.reader is None for backend in self._backends)
        (answer,) = await self._backends[shard].answers([packet])
        if answer.error is not None:
            raise answer.error.exception()
        return answer

    def started(self, shard, backend):
        pass

    def listed(self, shard, packet):
        pass

    async def pipeline(self, shard, backend, packets):
        return await backend.answers(packets)

    def settle(self, part, shape):
        self.given.append(part.shard)

    def release(self, shard, backend):
        self.given.append(shard)

    def abandon(self, shard, backend):
        self.abandoned.append(shard)


class FakeShard(int):
    """A shard that is there again as soon as somebody waits for it."""

    waits = 0

    async def wait_available(self, deadline_s):
        self.waits += 1
        return True


class FakeReply:
    binary = False
    can_take_back = False

    def __init__(self):
        self.columns: list[bytes] | None = None
        self.rows: list[bytes] = []
        self.ended: tuple[int, int] | None = None

    def head(self, columns):
        self.columns = list(columns)

    def more_rows(self, rows):
        self.rows += rows

    def end_of_rows(self, *, status, warnings):
        self.ended = status, warnings

    def take_back(self):
        if self.can_take_back:
            self.columns, self.rows = None, []
        return self.can_take_back


def questions(text):
    if b"COLLATION" in text:
        return result([INT, INT], [[b"binary", b""]])
    return result([INT], [])


class Stage:
    """Two shards and a client, with one statement under way."""

    def __init__(self, sql, ask=questions):
        self.backends = [FakeBackend(ask), FakeBackend(ask)]
        self.executor = FakeExecutor(self.backends)
        self.reply = FakeReply()
        self.state: Any = SimpleNamespace(answered_at=self.backends[1], diagnostics=None)
        self.link = FakeLink()
        self.shards: Any = [FakeShard(0), FakeShard(1)]
        found = statement(sql)
        select = read_select(found.shape.template)
        assert select is not None
        in_groups = bool(select.group) or select.has_aggregate
        self.task = asyncio.ensure_future(
            gather(
                context_of(
                    executor=self.executor,
                    state=self.state,
                    link=self.link,
                    config=SimpleNamespace(merge_memory_bytes=1 << 20),
                    compiler=SimpleNamespace(large_texts=LargeTexts(readers())),
                ),
                None,
                self.shards,
                found,
                Merge((), select, in_groups),
                self.reply,
                UNLIMITED,
            )
        )

    async def settle(self):
        for _ in range(10):
            await asyncio.sleep(0)

    async def until_asked(self):
        while any(backend.reader is None for backend in self.backends):
            assert not self.task.done(), self.task
            await asyncio.sleep(0)


def ordered(*numbers):
    return result([INT, INT], [[b"%d" % n, b"%d" % n] for n in numbers])


async def test_both_shards_get_the_text_and_their_rows_come_in_order():
    stage = Stage("SELECT a FROM t ORDER BY a")
    await stage.until_asked()
    assert stage.backends[1].sent == [b"SELECT a AS `streamfrom:1`, a FROM t ORDER BY a"]
    stage.backends[0].answer(ordered(1, 4))
    stage.backends[1].answer(ordered(2, 3))
    assert await stage.task
    assert stage.reply.rows == [b"\x011", b"\x012", b"\x013", b"\x014"]
    assert stage.reply.ended == (0, 0)
    assert sorted(stage.executor.given) == [0, 1]
    assert stage.executor.current is None


async def test_the_warnings_of_all_shards_are_left_in_the_order_of_the_shards():
    def ask(text):
        if text == b"SHOW WARNINGS":
            # The second shard is the first that ends.
            return result([ColumnDefinition("Level")], [[b"from 0" if heard else b"from 1"]])
        return questions(text)

    heard: list[int] = []
    stage = Stage("SELECT a FROM t ORDER BY a", ask)
    await stage.until_asked()
    rows = [[b"1", b"1"]]
    stage.backends[1].answer(result([INT, INT], rows, warnings=2))
    await stage.settle()
    heard.append(1)
    stage.backends[0].answer(result([INT, INT], rows, warnings=1))
    assert await stage.task
    assert stage.reply.ended == (0, 3)
    assert stage.state.answered_at is None
    assert [row[1:] for row in stage.state.diagnostics.rows] == [b"from 0", b"from 1"]


def computing(text):
    """Play a shard that computes -COUNT(*) of five rows."""
    if b"COLLATION(MAX" in text:
        return result([INT], [[b"binary"]])
    if b"JSON_TABLE" in text:
        return result([INT] * 2, [[b"0", b"-5"]])
    if b"streamfrom" in text:
        return result([INT] * 3, [])
    return result([INT], [])


async def test_a_shard_computes_what_is_made_of_the_counts_of_all():
    stage = Stage("SELECT -COUNT(*) FROM t", computing)
    await stage.until_asked()
    assert stage.backends[1].sent == [b"SELECT COUNT(*) FROM t"]
    stage.backends[0].answer(result([INT], [[b"2"]]))
    stage.backends[1].answer(result([INT], [[b"3"]]))
    assert await stage.task
    assert b'[["0","5"]]'.hex().encode() in stage.backends[0].sent[-1]
    assert stage.reply.rows == [b"\x02-5"]
    assert stage.reply.ended == (0, 0)
    assert stage.executor.current is None


async def test_an_error_of_a_group_that_nobody_might_have_seen_is_none_of_the_clients():
    def ask(text):
        return refusal(1690) if b"JSON_TABLE" in text else computing(text)

    for sql, raised, row in (
        ("SELECT -COUNT(*) FROM t", BackendError, [b"2"]),
        ("SELECT 5 FROM t HAVING -COUNT(*) < 5", Unsupported, [b"5", b"2"]),
    ):
        stage = Stage(sql, ask)
        await stage.until_asked()
        for backend in stage.backends:
            backend.answer(result([INT] * len(row), [row]))
        with pytest.raises(raised):
            await stage.task


async def test_what_no_shard_can_compute_from_the_values_is_refused_before_it_is_run():
    stage = Stage(
        "SELECT COUNT(*) + a FROM t",
        lambda text: refusal() if b"streamfrom" in text else questions(text),
    )
    with pytest.raises(
        Unsupported, match="over several shards: a shard cannot compute it from merged values"
    ):
        await stage.task
    assert stage.backends[1].sent == []


async def test_a_shard_that_runs_ahead_is_not_read_from_until_the_other_catches_up(monkeypatch):
    monkeypatch.setattr(module, "WAITING_BYTES_MAX", 100)
    monkeypatch.setattr(module, "_RESUME_BYTES", 20)
    stage = Stage("SELECT a FROM t ORDER BY a")
    await stage.until_asked()
    fast, slow = stage.backends
    slow.answer(ordered(5)[:30])
    everything = ordered(*range(60))
    fast.answer(everything[:-30])
    await stage.settle()
    assert [fast.link.paused, slow.link.paused] == [True, False]
    slow.answer(ordered(5)[30:])
    await stage.settle()
    assert [fast.link.paused, slow.link.paused] == [False, False]
    fast.answer(everything[-30:])
    assert await stage.task
    assert len(stage.reply.rows) == 61


async def test_nothing_is_merged_while_the_client_is_behind():
    stage = Stage("SELECT a FROM t ORDER BY a")
    await stage.until_asked()
    stage.link.blocked = True
    stage.backends[0].answer(ordered(1))
    stage.backends[1].answer(ordered(2))
    await stage.settle()
    assert stage.reply.rows == []
    stage.link.blocked = False
    stage.executor.current.client_writable()
    assert await stage.task
    assert len(stage.reply.rows) == 2


async def test_an_error_of_one_shard_ends_the_answer_and_the_other_shards_query():
    stage = Stage("SELECT a FROM t ORDER BY a")
    await stage.until_asked()
    stage.backends[0].answer(ordered(1, 2)[:40])
    stage.backends[1].answer(refusal(1317, "Query execution was interrupted"))
    with pytest.raises(BackendError) as refused:
        await stage.task
    assert refused.value.code == 1317
    assert stage.executor.given == [1]
    assert stage.executor.abandoned == [0]
    assert stage.executor.current is None


async def again(stage):
    """Have both shards answer the second attempt of *stage*, and return the rows."""
    for backend in stage.backends:
        backend.reader = None
    await stage.until_asked()
    stage.backends[0].answer(ordered(1))
    stage.backends[1].answer(ordered(2))
    assert await stage.task
    return stage.reply.rows


@pytest.mark.parametrize("is_refused", [True, False])
async def test_a_read_of_which_the_client_has_seen_nothing_is_asked_again(is_refused):
    stage = Stage("SELECT a FROM t ORDER BY a")
    await stage.until_asked()
    if is_refused:
        stage.backends[1].answer(refusal(1053, "Server shutdown in progress"))
    else:
        stage.backends[1].reader.connection_lost(BackendLost("ks", "80-"))
    assert await again(stage) == [b"\x011", b"\x012"]
    assert [shard.waits for shard in stage.shards] == [0, 1]


@pytest.mark.parametrize("can_take_back", [True, False])
async def test_rows_that_no_client_has_seen_are_taken_back(can_take_back):
    stage = Stage("SELECT a FROM t")
    stage.reply.can_take_back = can_take_back
    await stage.until_asked()
    for backend in stage.backends:
        backend.reader.data_received(ordered(1, 2)[:-8])
    await stage.settle()
    assert stage.reply.rows
    stage.backends[1].reader.connection_lost(BackendLost("ks", "80-"))
    if can_take_back:
        assert sorted(await again(stage)) == [b"\x011\x011", b"\x012\x012"]
    else:
        with pytest.raises(BackendLost):
            await stage.task


async def test_the_servers_own_words_about_a_wrong_statement_reach_the_client():
    stage = Stage("SELECT nope FROM t ORDER BY 1", lambda text: refusal())
    with pytest.raises(BackendError, match="Unknown column"):
        await stage.task
    assert stage.executor.given == [0]


async def test_the_open_transaction_of_a_shard_shows_in_the_answers_status():
    stage = Stage("SELECT a FROM t LIMIT 1")
    await stage.until_asked()
    for backend in stage.backends:
        backend.answer(result([INT], [], Status.IN_TRANS))
    assert await stage.task
    assert stage.reply.columns is not None
    assert stage.reply.ended == (Status.IN_TRANS, 0)
