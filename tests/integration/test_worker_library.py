"""The worker library before a real proxy: each message is worked on, whatever the function or the machine does."""

import ast
import asyncio
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import asyncmy
import pytest
import sqlalchemy
from asyncmy.errors import MySQLError
from sqlalchemy.orm import Session

from streamfrom_worker import Message, Park, Queue, Result, Retry, Worker, address
from streamfrom_worker.session import Session as WorkerSession
from tests.cases import cases
from tests.fixtures.programs import kill
from tests.fixtures.running_proxy import RunningProxy
from tests.fixtures.streams import WAIT_S, eventually, rows, run
from tests.integration.conftest import Queue as Place


pytestmark = pytest.mark.one_server

WORK_S = 3.0  # longer than the lease of the queue that it is for
LIBRARY = Path(__file__).parents[2] / "clients" / "python"
CREATE = (
    "CREATE QUEUE {} (payload JSON, n BIGINT, last_error VARCHAR(1000)) WITH (ack_wait = {})"
)
JOBS = """
import sys, time
from streamfrom_worker import Worker

worker = Worker(sys.argv.pop(), grace=60)

@worker.queue("job", concurrency=2, prefetch=4)
def work(message):
    print("begin", message["n"], flush=True)
    time.sleep(message["payload"]["seconds"])
    print("end", message["n"], flush=True)

if __name__ == "__main__":
    worker.run()
"""


def url_of(proxy: RunningProxy, keyspace: str) -> str:
    return f"mysql://root@127.0.0.1:{proxy.port}/{keyspace}"


class Job:
    """A queue `job`, a client of it, and a worker that notes what became of its messages."""

    def __init__(self, place: Place, ack_wait: float = 30) -> None:
        self.client = place.connect()
        run(self.client, CREATE.format("job", ack_wait))
        self.results: list[Result] = []
        url = url_of(place.proxy, place.keyspace)
        self.worker = Worker(url, on_result=self.results.append)

    async def has(self, count: int) -> None:
        """Have the worker serve until so many messages have come to an end."""
        async with serving(self.worker):
            await until(lambda: len(self.results) >= count)

    def unacked(self) -> int:
        return int(rows(self.client, "SELECT COUNT(*) FROM job WHERE time_acked IS NULL")[0][0])


@asynccontextmanager
async def serving(worker: Worker) -> AsyncIterator[None]:
    task = asyncio.create_task(worker.serve())
    try:
        yield
    finally:
        worker.stop()
        await asyncio.wait_for(task, WAIT_S)


async def until(fact: Callable[[], bool]) -> None:
    deadline = time.monotonic() + WAIT_S
    while not fact():
        assert time.monotonic() < deadline
        await asyncio.sleep(0.01)


async def test_a_function_ends_a_message_in_each_way(plain: Place) -> None:
    job = Job(plain)
    client = job.client
    ids = {}
    for n, payload in enumerate(("{}", '{"retry": 0}', '{"fail": 1}', '{"park": 1}')):
        run(client, f"INSERT INTO job (n, payload) VALUES ({n}, '{payload}')")
        ids[rows(client, "SELECT LAST_INSERT_ID()")[0][0]] = n

    @job.worker.queue("job", concurrency=2)
    async def work(message: Message) -> None:
        payload = message["payload"]
        if message.delivery == 1 and "retry" in payload:
            raise Retry(after=payload["retry"])
        if "fail" in payload:
            raise RuntimeError("no such address")
        if "park" in payload:
            raise Park("no consent")

    await job.has(5)
    assert sorted((ids[one.id], one.delivery, one.outcome.value) for one in job.results) == [
        (0, 1, "acked"),
        (1, 1, "retried"),
        (1, 2, "acked"),
        (2, 1, "retried"),
        (3, 1, "parked"),
    ]
    found = rows(client, "SELECT n, time_acked IS NOT NULL, last_error FROM job ORDER BY n")
    assert list(found) == [
        (0, 1, None),
        (1, 1, ""),
        (2, 0, "RuntimeError: no such address"),
        (3, 0, "no consent"),
    ]
    # By the queue's backoff, and for good.
    soon = "SELECT time_next BETWEEN NOW() AND NOW() + INTERVAL 60 SECOND FROM job WHERE n = 2"
    assert rows(client, soon) == ((1,),)
    assert rows(client, "SELECT time_next FROM job WHERE n = 3")[0][0] == 9 * 10**18


async def test_a_message_that_cannot_be_decoded_is_parked_and_keeps_no_other_waiting(plain):
    job = Job(plain)
    run(job.client, "ALTER TABLE job MODIFY payload TEXT")
    run(job.client, "INSERT INTO job (payload) VALUES ('{'), ('[1]')")
    job.worker.queue("job", json=["payload"])(lambda _: None)
    await job.has(2)
    shown = "SELECT payload, time_acked IS NULL, last_error FROM job ORDER BY payload"
    found = rows(job.client, shown)
    assert found[0][:2] == ("[1]", 0)
    assert found[1][:2] == ("{", 1)
    assert "column payload is not JSON" in found[1][2]


async def test_long_work_keeps_its_message(queue: Place) -> None:
    job = Job(queue, ack_wait=1)

    @job.worker.queue("job", concurrency=2)
    def work(message: Message) -> None:
        time.sleep(WORK_S)

    run(job.client, "INSERT INTO job (n) VALUES (1), (2)")
    await job.has(2)
    assert [(one.delivery, one.outcome.value) for one in job.results] == [(1, "acked")] * 2


async def test_a_batch_is_one_call(queue: Place) -> None:
    job = Job(queue)
    run(job.client, "INSERT INTO job (n) VALUES " + ", ".join(f"({n})" for n in range(300)))
    got: list[list[int]] = []

    @job.worker.queue("job", batch=50)
    def work(messages: list[Message]) -> None:
        got.append([message["n"] for message in messages])

    await job.has(300)
    assert sorted(n for batch in got for n in batch) == list(range(300))
    assert max(map(len, got)) <= 50
    assert job.unacked() == 0


async def test_a_message_is_sent_in_the_producers_transaction(plain: Place) -> None:
    client = Job(plain).client
    job = Queue("job")
    proxy, keyspace = plain.proxy, plain.keyspace

    pymysql_connection = plain.connect(autocommit=False)
    ids = [job.enqueue(pymysql_connection, n=1, payload={"a": [1]})]
    pymysql_connection.commit()
    job.enqueue(pymysql_connection, n=-1)
    pymysql_connection.rollback()

    engine = sqlalchemy.create_engine(f"mysql+pymysql://root@127.0.0.1:{proxy.port}/{keyspace}")
    with Session(engine) as session:
        ids.append(job.enqueue(session, n=2, priority=7))
        session.commit()
        job.enqueue(session, n=-2)
    with engine.begin() as connection:
        ids.append(job.enqueue(connection, n=3, delay=3600))
    engine.dispose()

    raw = await asyncmy.connect(
        host="127.0.0.1", port=proxy.port, user="root", database=keyspace
    )
    ids.append(await job.enqueue_async(raw, n=4))
    await raw.commit()
    await raw.ensure_closed()

    found = rows(client, "SELECT n, id, priority, time_next > NOW() FROM job ORDER BY n")
    assert [row[:2] for row in found] == list(zip(range(1, 5), ids, strict=True))
    assert found[1][2] == 7
    assert found[2][3] == 1


async def test_a_function_acknowledges_in_its_own_transaction(plain: Place) -> None:
    job = Job(plain)
    run(job.client, "CREATE TABLE done (n BIGINT)")
    run(job.client, "INSERT INTO job (n) VALUES (1), (2)")
    newly: list[bool] = []

    @job.worker.queue("job")
    def work(message: Message) -> None:
        connection = plain.connect(autocommit=False)
        run(connection, f"INSERT INTO done VALUES ({message['n']})")
        newly.append(message.acknowledge(connection))
        if message["n"] == 2 and message.delivery == 1:
            connection.rollback()
            raise Retry(after=0)
        connection.commit()

    await job.has(3)
    assert newly == [True, True, True]
    assert sorted(rows(job.client, "SELECT n FROM done")) == [(1,), (2,)]
    assert job.unacked() == 0


@cases(name=str, columns=ast.literal_eval, error=str)
async def test_a_wrong_queue_ends_the_worker_with_a_sentence(name, columns, error, plain):
    job = Job(plain)
    run(job.client, "CREATE TABLE ordinary (id INT PRIMARY KEY)")
    job.worker.queue(name, columns=columns)(lambda _: None)
    with pytest.raises((MySQLError, ValueError), match=error):
        await asyncio.wait_for(job.worker.serve(), WAIT_S)


async def test_a_kill_of_a_connection_that_is_gone_is_not_tried_again(plain: Place) -> None:
    """A worker that stops kills its stream's query, and would wait out its grace."""
    session = WorkerSession(address.parse(url_of(plain.proxy, plain.keyspace)))
    with pytest.raises(MySQLError, match="Unknown thread id"):
        await asyncio.wait_for(session.run("KILL QUERY 1"), WAIT_S)
    await session.close()


@pytest.mark.parametrize(
    ("count", "options"), [(1, {"concurrency": 2}), (20, {"prefetch": 20})]
)
async def test_what_a_worker_has_when_the_proxy_dies_is_worked_on_once(lone, count, options):
    """Whether it has begun or not, and though a thread is free to begin it a second time."""
    run(lone.connect(), CREATE.format("job", 30))
    numbers = range(count)
    run(lone.connect(), "INSERT INTO job (n) VALUES " + ", ".join(f"({n})" for n in numbers))
    begun, gate, worked = threading.Event(), threading.Event(), []
    worker = Worker(f"mysql://root@127.0.0.1:{lone.port}/{lone.keyspace}")

    @worker.queue("job", **options)
    def work(message: Message) -> None:
        worked.append(message["n"])
        begun.set()
        gate.wait(WAIT_S)

    def holds_all() -> bool:
        held = "SELECT SUM(unacked) FROM streamfrom.streams"
        return bool(rows(lone.connect(), held)[0][0] == count)

    async with serving(worker):
        await until(lambda: begun.is_set() and holds_all())
        await asyncio.to_thread(lone.proxy.kill)
        await asyncio.to_thread(lone.start)
        await until(holds_all)
        gate.set()
        unacked = "SELECT COUNT(*) FROM job WHERE time_acked IS NULL"
        await until(lambda: lone.direct(unacked) == ((0,),))
    if count > 1 and worked.count(worked[0]) == 2:
        # At least once: the one that had begun may be worked on again.
        del worked[0]
    assert sorted(worked) == [*numbers]


def test_a_signal_lets_work_end_and_gives_back_what_has_not_begun(plain, tmp_path):
    client = Job(plain).client
    (tmp_path / "jobs.py").write_text(JOBS)
    process = subprocess.Popen(
        [sys.executable, "jobs.py", url_of(plain.proxy, plain.keyspace)],
        cwd=tmp_path,
        env={"PYTHONPATH": str(LIBRARY)},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    for n in range(4):
        payload = f'{{"seconds": {WORK_S}}}'
        run(client, f"INSERT INTO job (n, payload) VALUES ({n}, '{payload}')")
    begun = {process.stdout.readline().split()[1] for _ in range(2)}
    process.send_signal(signal.SIGTERM)
    out, _ = process.communicate(timeout=WAIT_S)
    assert process.returncode == 0
    assert {line.split()[1] for line in out.splitlines() if line.startswith("end")} == begun
    left = rows(client, "SELECT n FROM job WHERE time_acked IS NULL ORDER BY n")
    assert {str(n) for (n,) in left} == {"0", "1", "2", "3"} - begun
    # Another worker has them at once, not when a lease ends.
    plain.stream("STREAM n FROM job").comes(*(n for (n,) in left))


def test_kills_of_workers_lose_nothing_and_repeat_only_what_they_cut_off(
    plain, tmp_path, start_program
):
    job, kills = Job(plain), 4
    (tmp_path / "jobs.py").write_text(JOBS)
    command = [sys.executable, "jobs.py", url_of(plain.proxy, plain.keyspace)]
    said = [tmp_path / f"worker {number}" for number in range(kills + 3)]

    def start(number):
        environ = {"PYTHONPATH": str(LIBRARY)}
        return start_program(command, said[number], cwd=tmp_path, env=environ)

    def begun(number):
        lines = said[number].read_text().splitlines()
        return Counter(line.split()[1] for line in lines if line.startswith("begin"))

    workers = [start(number) for number in range(3)]
    values = ", ".join(f"({n}, '{{\"seconds\": 0.05}}')" for n in range(400))
    run(job.client, f"INSERT INTO job (n, payload) VALUES {values}")
    for number in range(kills):
        eventually(partial(begun, number))
        kill(workers[number])
        workers.append(start(number + 3))
    eventually(lambda: job.unacked() == 0)
    by_worker = [*map(begun, range(len(said)))]
    by_survivors = sum(by_worker[kills:], Counter[str]())
    assert set().union(*by_worker) == {str(n) for n in range(400)}
    assert {*by_survivors.values(), *(c for one in by_worker for c in one.values())} == {1}
