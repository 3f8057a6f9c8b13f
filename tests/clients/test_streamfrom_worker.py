"""The worker library without a server: what it reads, what it writes, what functions choose."""

import asyncio
import json
import logging
import multiprocessing
import queue
import sys
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pymysql
import pytest
from asyncmy.errors import OperationalError
from hypothesis import given, strategies as st

from streamfrom_worker import (
    Message,
    Outcome,
    Park,
    Queue,
    Result,
    Retry,
    TestQueue,
    Worker,
    address,
    task_store,
)
from streamfrom_worker.__main__ import WithFields, load, main
from streamfrom_worker.consumer import Completer
from streamfrom_worker.handler import Handler
from streamfrom_worker.session import Answer, Session
from streamfrom_worker.table import Table, describe
from streamfrom_worker.task_store import Acknowledger, Inbox, Receiver, TaskStore
from streamfrom_worker.worker import log_result
from tests.cases import cases, in_turn


HANG_S = 60.0
URL = "mysql://app:secret@db.example:1234/shop"
COLUMNS = [
    ("id", "bigint(20)"),
    ("epoch", "bigint"),
    ("payload", "json"),
    ("n", "int"),
    ("last_error", "varchar(1000)"),
]
DEFINITION = "CREATE TABLE `q` (…) COMMENT='vitess_message,vt_ack_wait=8,vt_max_backoff=60,vt_batch_size=1'"


def test_a_url_names_the_proxy_the_user_and_the_keyspace() -> None:
    found = address.parse("streamfrom://a%40b:p%2Fw@[::1]/my%20ks?unix_socket=/s&ssl_ca=ca.pem")
    assert (found.host, found.port, found.user, found.password) == ("::1", 15306, "a@b", "p/w")
    assert (found.database, found.unix_socket, found.ssl_ca) == ("my ks", "/s", "ca.pem")
    assert "p/w" not in repr(found)


def worker_with(*queues: str) -> Worker:
    worker = Worker(URL)
    for name in queues:
        worker.queue(name)(print)
    return worker


def described(columns: Any = COLUMNS, definition: str = DEFINITION, **options: Any) -> Table:
    return describe(
        "q", columns, definition, **{"wanted": None, "json_columns": None} | options
    )


OF_A_QUEUE = "of queue q must be"
REFUSED: list[tuple[Callable[[], Any], type[Exception], str]] = [
    (lambda: Queue("q").enqueue(None, delay=-1), ValueError, "at least 0"),
    (lambda: Queue("q").enqueue(None, at=datetime(2027, 1, 1)), ValueError, "time zone"),  # noqa: DTZ001 - the bad input
    (lambda: Queue("q").enqueue(None, delay=1, at=datetime.now(UTC)), ValueError, "not both"),
    (lambda: Queue("q").enqueue(7, n=1), TypeError, "cannot use int: give a DB-API connection"),
    (lambda: asyncio.run(Queue("q").enqueue_async(7, n=1)), TypeError, "cannot use int: give a connection of asyncmy"),
    (lambda: Queue("ks.").statement(columns={}), ValueError, "not the name of a queue"),
    (lambda: described(wanted=["x"]), ValueError, "queue q has no column x; it has payload, n, last_error"),
    (lambda: described(json_columns=["x"]), ValueError, "queue q has no column x; it has payload, n, last_error"),
    (lambda: described(definition="CREATE TABLE t"), ValueError, "table q is not a queue"),
    (lambda: described().message((7, 0, "{", 3, None)), ValueError, "column payload is not JSON"),
    (lambda: worker_with("q").queue("q")(print), ValueError, "has a function already"),
    (lambda: worker_with().run(), ValueError, "no function"),
    (lambda: worker_with().queue("q", concurrency=0)(print), ValueError, OF_A_QUEUE),
    (lambda: worker_with().queue("q", prefetch=0)(print), ValueError, OF_A_QUEUE),
    (lambda: worker_with().queue("q", batch=-1)(print), ValueError, OF_A_QUEUE),
    (lambda: worker_with().queue("q", batch="many")(print), ValueError, OF_A_QUEUE),  # type: ignore[arg-type]
    (lambda: worker_with().queue("q", heartbeat=0)(print), ValueError, OF_A_QUEUE),
    (lambda: Retry(after=-1), ValueError, "at least 0 seconds"),
]  # fmt: skip


@in_turn
@pytest.mark.parametrize(("ask", "error", "said"), REFUSED)
def test_a_mistake_is_refused_with_what_is_wanted(
    ask: Callable[[], Any], error: type[Exception], said: str
) -> None:
    with pytest.raises(error, match=said):
        ask()


@cases(url=str, error=str)
def test_a_url_that_lacks_something_is_refused(url: str, error: str) -> None:
    with pytest.raises(ValueError, match=error):
        Worker(url)


def test_an_insert_has_what_the_caller_gives() -> None:
    at = datetime(2027, 1, 2, 3, 4, 5, 678901, tzinfo=timezone(timedelta(hours=2)))
    sql, values = Queue("ks.a`b").statement(
        at=at, priority=3, columns={"p`": {"x": [1]}, "n": None}
    )
    assert sql == (
        "INSERT INTO `ks`.`a``b` (`p```, `n`, priority, time_next) VALUES (%s, %s, %s, %s)"
    )
    assert values == ['{"x": [1]}', None, 3, 1798851845678901000]
    sql, values = Queue("q").statement(delay=1.5, columns={})
    assert sql == "INSERT INTO `q` (time_next) VALUES (NOW() + INTERVAL %s MICROSECOND)"
    assert values == [1500000]


def test_a_table_is_read_from_the_servers_own_words() -> None:
    table = described()
    assert table.columns == ("payload", "n", "last_error")
    assert table.json_columns == {"payload"}
    assert (table.ack_wait_s, table.min_backoff_s, table.max_backoff_s) == (8, 8, 60)
    assert described(wanted=["n"]).json_columns == frozenset()
    # MariaDB's JSON is a text with a CHECK.
    maria = described([("t", "longtext")], f"CHECK (json_valid(`t`)) {DEFINITION}")
    assert maria.json_columns == {"t"}
    assert maria.has_last_error is False


def test_a_row_becomes_a_message() -> None:
    message = described().message((7, 2, '{"a": 1}', 3, None))
    found = (message.id, message.delivery, message["payload"], message["n"])
    assert found == (7, 3, {"a": 1}, 3)


@given(
    delivery=st.integers(1, 10**6),
    longest=st.floats(0.001, 1e6),
    ack_wait=st.floats(0.001, 1e6),
)
def test_a_backoff_is_that_of_the_queue(delivery: int, longest: float, ack_wait: float) -> None:
    table = Table("q", (), ack_wait_s=ack_wait, min_backoff_s=ack_wait, max_backoff_s=longest)
    wait = table.backoff_s(delivery)
    base = min(ack_wait * 2.0 ** min(delivery - 1, 60), longest)
    assert min(base, 0.75 * longest) <= wait <= longest
    assert wait <= base * 4 / 3


def test_a_worker_holds_what_it_can_work_on() -> None:
    assert Handler("q", print, concurrency=4).prefetched == 4
    assert Handler("q", print, concurrency=4, batch=10).prefetched == 40
    assert Handler("q", print, concurrency=4, prefetch=100).prefetched == 100


class Refused(Exception):
    pass


def raising(error: Exception | None) -> Callable[[Any], None]:
    def function(_: Any) -> None:
        if error is not None:
            raise error

    return function


@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize(
    ("error", "outcome", "after"),
    [
        (None, Outcome.ACKED, None),
        (Refused("no"), Outcome.RETRIED, 5.0),
        (Retry("later", after=2), Outcome.RETRIED, 2),
        (Retry(), Outcome.RETRIED, 5.0),
        (Park("never"), Outcome.PARKED, None),
    ],
)
def test_a_function_chooses_by_what_it_raises(
    *, error: Exception | None, outcome: Outcome, after: float | None, is_async: bool
) -> None:
    plain = raising(error)

    async def coroutine(message: Any) -> None:
        plain(message)

    handler = Handler(
        "q", coroutine if is_async else plain, retry=lambda delivery: delivery * 5.0
    )
    with ThreadPoolExecutor(1) as threads:
        (result,) = asyncio.run(handler.call([Message("q", 7, 1)], threads))
    assert (result.outcome, result.retry_after, result.error) == (outcome, after, error)


def test_a_function_is_tested_without_a_server() -> None:
    worker = Worker(URL)

    @worker.queue("q", batch=2)
    def work(messages: Sequence[Message]) -> None:
        if messages[0]["payload"] == {"bad": True}:
            raise Park("bad")
        if messages[0].delivery == 1:
            raise Retry

    queue = TestQueue(worker, "q")
    for payload in ({"bad": True}, {}, {"n": 1}):
        queue.enqueue(payload=payload)
    assert [one.outcome for one in queue.work()] == [Outcome.PARKED] * 2 + [Outcome.RETRIED]
    assert [one.outcome for one in queue.work()] == [Outcome.ACKED]
    assert (len(queue.parked), queue.ready, queue.work()) == (2, [], [])
    with pytest.raises(TypeError):
        queue.enqueue(payload={"when": object()})
    with pytest.raises(KeyError):
        TestQueue(worker, "other")


class Notes(Session):
    """A session that notes statements, and refuses every one that names a certain id."""

    def __init__(self, refused: int) -> None:
        super().__init__(address.parse(URL))
        self.refused = refused
        self.written: list[tuple[str, tuple[Any, ...]]] = []

    async def run(self, sql: str, values: Sequence[Any] = ()) -> Answer:
        await asyncio.sleep(0)
        if self.refused in values:
            raise OperationalError(1644, "not yet approved")
        self.written.append((sql, tuple(values)))
        return Answer((), len(values))


async def test_one_row_that_the_server_refuses_keeps_no_other_from_being_written() -> None:
    session = Notes(refused=2)
    completer = Completer(session, Table("q", (), has_last_error=True))
    writing = asyncio.create_task(completer.run())
    for number in range(5):
        completer.add(Result("q", number, 1, Outcome.ACKED, 0.0))
    completer.add(Result("q", 10, 1, Outcome.RETRIED, 0.0, Refused("x" * 2000), 1.5))
    completer.add(Result("q", 2, 1, Outcome.RETRIED, 0.0, Refused("x"), 1.5))
    completer.add(Result("q", 11, 1, Outcome.PARKED, 0.0, Park("no")))
    completer.add(Result("q", 12, 1, Outcome.RETURNED, 0.0))
    await completer.written()
    writing.cancel()
    among = "WHERE id IN (%s) AND time_acked IS NULL"
    soon = (
        f"UPDATE `q` SET time_next = NOW() + INTERVAL %s MICROSECOND, last_error = %s {among}"
    )
    assert session.written == [
        *[(f"UPDATE `q` SET time_acked = NOW() {among}", (one,)) for one in (0, 1, 3, 4)],
        (f"UPDATE `q` SET time_next = 0 {among}", (12,)),
        (soon, (1500000, ("Refused: " + "x" * 2000)[:1000], 10)),
        (f"UPDATE `q` SET time_next = 9000000000000000000, last_error = %s {among}", ("no", 11)),
    ]  # fmt: skip


def test_a_program_names_its_worker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "jobs_of_test.py").write_text(
        f"from streamfrom_worker import Worker\nworker = Worker({json.dumps(URL)})\nother = 7\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    assert isinstance(load("jobs_of_test"), Worker)
    assert load("jobs_of_test:worker") is load("jobs_of_test")
    for wrong in ("jobs_of_test:other", "jobs_of_test:absent", "no_such_module_of_test:worker"):
        assert main([wrong]) == 2


def test_a_line_of_the_log_has_the_fields_of_its_record() -> None:
    record = logging.makeLogRecord(
        {"msg": "message %s", "args": ("ended",), "id": 7, "outcome": "acked", "error": None}
    )
    assert WithFields("%(message)s").format(record) == "message ended id=7 outcome=acked"


@pytest.mark.parametrize(
    ("error", "has_trace"),
    [(None, False), (ValueError("no"), True), (Retry("later"), False), (Park("no"), False)],
)
def test_an_outcome_that_a_function_asks_for_is_logged_without_a_trace(
    error: Exception | None, has_trace: bool, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG, "streamfrom_worker"):
        log_result(Result("q", 7, 1, Outcome.ACKED, 0.1, error))
    (record,) = caplog.records
    assert bool(record.exc_info) == has_trace
    assert vars(record)["error"] == (None if error is None or has_trace else str(error))


async def test_a_worker_stops_while_the_proxy_is_away() -> None:
    worker = Worker("mysql://root@127.0.0.1:1/shop")
    worker.queue("q")(print)
    serving = asyncio.create_task(worker.serve())
    await asyncio.sleep(0)
    worker.stop()
    await serving


class Waits(TaskStore):
    """A store whose `take` waits until it is interrupted, and whose acknowledgements do what `answers` says."""

    def __init__(self, *answers: Exception | None) -> None:
        super().__init__({}, "q", 30, 60)
        self.answers = list(answers)
        self.acknowledged: list[tuple[Any, ...]] = []
        self.waits: queue.Queue[tuple[str, ...]] = queue.Queue()
        self.interrupts = threading.Semaphore(0)
        self.may_write = threading.Event()
        self.writing = threading.Event()

    def take(
        self, queues: Sequence[str], count: int, wait_s: float, *, by: Any = None
    ) -> Sequence[Any]:
        self.waits.put(tuple(queues))
        assert self.interrupts.acquire(timeout=HANG_S)
        return ()

    def interrupt(self, by: Any) -> None:
        self.interrupts.release()

    def acknowledge(self, idents: Sequence[Any], *, by: Any = None) -> None:
        self.acknowledged.append(tuple(idents))
        self.writing.set()
        assert self.may_write.wait(HANG_S)
        if self.answers and (error := self.answers.pop(0)) is not None:
            raise error


def test_a_wait_ends_when_other_queues_are_wanted_or_none() -> None:
    store = Waits()
    inbox = Inbox()
    receiver = Receiver(store, inbox)
    receiver.want(["a"], 1)
    assert store.waits.get(timeout=HANG_S) == ("a",)
    receiver.want(["a"], 5)  # no other queue: it goes on
    receiver.want(["b"], 1)
    assert store.waits.get(timeout=HANG_S) == ("b",)
    receiver.want([], 1)
    receiver.want(["c"], 1)
    assert store.waits.get(timeout=HANG_S) == ("c",)
    store.interrupts.release()
    receiver.close()
    inbox.close()
    assert store.waits.empty()


def test_acknowledgements_that_come_while_one_is_written_go_with_the_next() -> None:
    store = Waits()
    acks = Acknowledger(store, HANG_S)
    acks.add(1)
    assert store.writing.wait(HANG_S)
    for number in (2, 3, 4):
        acks.add(number)
    store.may_write.set()
    assert acks.written()
    acks.close()
    assert store.acknowledged == [(1,), (2, 3, 4)]


@pytest.mark.parametrize(
    "error",
    [
        pymysql.err.OperationalError(1644, "not yet approved"),
        pymysql.err.OperationalError(1690, "BIGINT value is out of range"),
        pymysql.err.IntegrityError(1452, "a foreign key constraint fails"),
    ],
)
def test_a_message_whose_acknowledgement_is_refused_keeps_back_no_other(
    error: Exception,
) -> None:
    written: list[int] = []

    class Refuses(Waits):
        def acknowledge(self, idents: Sequence[Any], *, by: Any = None) -> None:
            super().acknowledge(idents, by=by)
            if 3 in idents:
                raise error
            written.extend(idents)

    store = Refuses()
    acks = Acknowledger(store, HANG_S)
    for number in (1, 2, 3, 4, 5):
        acks.add(number)
    store.may_write.set()
    assert acks.written()
    acks.close()
    assert written == [1, 2, 4, 5]


def test_acknowledgements_outlast_a_proxy_that_is_away_and_not_a_server_that_refuses(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(task_store, "pause_s", lambda tries: 0.0)
    away = pymysql.err.OperationalError(2003, "away")
    store = Waits(away, away, None, pymysql.err.OperationalError(1644, "not yet approved"))
    store.may_write.set()
    acks = Acknowledger(store, HANG_S)
    acks.add(1)
    assert acks.written()
    acks.add(2)
    assert acks.written(), "its lease ends"
    acks.close()
    assert store.acknowledged == [(1,), (1,), (1,), (2,)]


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_an_acknowledger_writes_what_comes_after_its_close_and_after_a_fork() -> None:
    """An actor of Dramatiq may outlast the stop of its worker, and a program may close its broker and go on."""
    store = Waits()
    store.may_write.set()
    acks = Acknowledger(store, HANG_S)
    for number in (1, 2):
        acks.add(number)
        acks.close()
        assert acks.written(HANG_S)
    acks.add(3)
    assert acks.written(HANG_S)

    def go_on() -> None:
        acks.add(4)
        sys.exit(not acks.written(HANG_S))

    child = multiprocessing.get_context("fork").Process(target=go_on)
    child.start()
    child.join()
    assert child.exitcode == 0
    acks.close()
    assert store.acknowledged == [(1,), (2,), (3,)]
