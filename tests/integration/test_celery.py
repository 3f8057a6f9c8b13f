"""Celery on streamfrom: a real worker before a real proxy, sent what Celery's users send it."""

import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import kombu.exceptions
import pytest
from celery import Celery
from kombu import Connection, Exchange, Queue, pools
from kombu.utils.uuid import uuid

import streamfrom_worker.celery  # noqa: F401 - it registers the transport
from tests.fixtures.programs import StartProgram, kill
from tests.fixtures.streams import WAIT_S, eventually, rows, run
from tests.integration.conftest import Queue as Place


pytestmark = pytest.mark.one_server

LIBRARY = Path(__file__).parents[2] / "clients" / "python"
ACK_WAIT_S = 3
WORK_S = 2 * ACK_WAIT_S
TASKS = f"""
import os, time
import streamfrom_worker.celery
from celery import Celery

app = Celery("tasks_of_test", broker=os.environ["BROKER"])
app.conf.update(
    broker_transport_options={{"ack_wait": {ACK_WAIT_S}}}, task_acks_late=True, worker_prefetch_multiplier=1,
    task_ignore_result=True, worker_redirect_stdouts=False, worker_send_task_events=True,
)

def say(*words):
    os.write(1, (" ".join(map(str, words)) + chr(10)).encode())

@app.task
def note(word):
    say("note", word, time.time())

@app.task
def pass_on(word):
    note.delay(word)

@app.task(bind=True, max_retries=2)
def fail(self):
    say("fail", self.request.retries, time.time())
    if self.request.retries < 2:
        raise self.retry(countdown=0.5)

@app.task
def work(seconds):
    say("begin")
    time.sleep(seconds)
    say("end")
"""

# What is no message of kombu.
BROKEN = (
    "no JSON",
    "[]",
    '{"body": "", "headers": {}}',
    '{"body": "", "properties": 7}',
    '{"body": "x", "properties": {"body_encoding": "base64"}}',
    '{"body": "x", "properties": {"body_encoding": "unknown"}}',
    '{"body": "", "properties": {}, "headers": 7}',
)
# What is one, and no task.
NO_TASKS = (
    '{"body": "", "properties": {}, "headers": {"eta": 7}}',
    '{"body": "", "properties": {"delivery_info": 7}}',
)
PARKED = "SELECT last_error FROM celery_message WHERE time_acked IS NULL AND time_next > 8e18"


class Worker:
    """A `celery worker` in a process of its own."""

    def __init__(self, start: StartProgram, folder: Path, broker: str, name: str) -> None:
        self.out = folder / f"{name}.out"
        path = os.pathsep.join([str(LIBRARY), str(folder)])
        words = f"-m celery -A tasks_of_test worker -n {name}@here -c 2 -l INFO"
        command = [sys.executable, *words.split()]
        environ = {**os.environ, "BROKER": broker, "PYTHONPATH": path}
        self.process = start(command, self.out, cwd=folder, env=environ)

    def said(self, word: str) -> list[list[str]]:
        """Return the words of each line that begins with *word*."""
        lines = [line.split() for line in self.out.read_text().splitlines()]
        return [line for line in lines if line[:1] == [word]]

    def stop(self) -> None:
        """Ask it to end, and wait until it has."""
        self.process.terminate()
        assert self.process.wait(WAIT_S) == 0


@pytest.fixture
def broker(plain: Place, tmp_path: Path) -> str:
    (tmp_path / "tasks_of_test.py").write_text(TASKS)
    return f"streamfrom://root@127.0.0.1:{plain.proxy.port}/{plain.keyspace}"


@pytest.fixture
def app(broker: str) -> Iterator[Celery]:
    with Celery("tasks_of_test", broker=broker) as app:
        app.conf.update(
            broker_transport_options={"ack_wait": ACK_WAIT_S}, task_ignore_result=True
        )
        yield app
    pools.reset()  # they would outlive the tables of this test


def send(app: Celery, name: str, *values: Any, **options: Any) -> Any:
    return app.send_task(f"tasks_of_test.{name}", values, **options)


def test_a_worker_does_what_celerys_users_ask(plain, app, broker, tmp_path, start_program):
    for n in range(50):
        send(app, "pass_on" if n % 2 else "note", f"n{n}")
    due_s = time.time() + 3
    send(app, "note", "later", countdown=3)
    worker = Worker(start_program, tmp_path, broker, "one")
    eventually(
        # A ping before the worker listens has no answer.
        lambda: app.control.ping(timeout=10, limit=1) == [{"one@here": {"ok": "pong"}}],
        "the worker answers",
        3 * WAIT_S,
    )
    revoked = uuid()
    app.control.revoke(revoked)
    worker_says = app.control.inspect(timeout=WAIT_S, limit=1)
    eventually(lambda: worker_says.revoked() == {"one@here": [revoked]})
    send(app, "note", "revoked", task_id=revoked)
    send(app, "fail")
    eventually(lambda: len(worker.said("fail")) == 3)
    later = eventually(lambda: [line for line in worker.said("note") if line[1] == "later"])
    assert float(later[0][2]) >= due_s
    eventually(lambda: len(worker.said("note")) == 51)
    assert sorted({line[1] for line in worker.said("note")}) == sorted(
        [*(f"n{n}" for n in range(50)), "later"]
    )
    assert [one["name"] for one in worker_says.active_queues()["one@here"]] == ["celery"]
    # Warm shutdown: what runs ends, and what has not begun is another worker's at once.
    for _ in range(4):
        send(app, "work", 1)
    eventually(lambda: len(worker.said("begin")) == 2)
    worker.stop()
    assert len(worker.said("end")) == len(worker.said("begin"))
    other = Worker(start_program, tmp_path, broker, "two")
    eventually(lambda: len(worker.said("end")) + len(other.said("end")) == 4)
    assert len(worker.said("note")) == 51
    client = plain.connect()
    left = "SELECT id FROM celery_message WHERE queue = 'celery' AND time_acked IS NULL"
    eventually(lambda: rows(client, left) == ())
    # The bindings are none that somebody has to look at.
    ((_, _, depth, *_),) = rows(client, "SHOW QUEUE STATUS LIKE 'celery_message_binding'")
    ((_, made),) = rows(client, "SHOW CREATE QUEUE celery_message_binding")
    assert (depth, "paused" in made) == (0, False)


def test_tasks_of_a_worker_that_is_killed_are_anothers(app, broker, tmp_path, start_program):
    first = Worker(start_program, tmp_path, broker, "first")
    send(app, "work", WORK_S)
    eventually(lambda: first.said("begin"))
    kill(first.process)
    second = Worker(start_program, tmp_path, broker, "second")
    eventually(lambda: second.said("end"))
    # Longer than the lease, and yet no other process was given it.
    assert len(second.said("begin")) == 1


def test_what_is_no_task_is_parked_with_the_reason(plain, app, broker, tmp_path, start_program):
    send(app, "absent")
    client = plain.connect()
    values = ", ".join(f"('celery', 0, '{text}')" for text in BROKEN + NO_TASKS)
    run(client, f"INSERT INTO celery_message (queue, priority, payload) VALUES {values}")
    send(app, "note", "good")
    worker = Worker(start_program, tmp_path, broker, "one")
    eventually(lambda: worker.said("note"), "a task runs", 3 * WAIT_S)
    eventually(lambda: len(rows(client, PARKED)) == 1 + len(BROKEN + NO_TASKS))
    assert {error.partition(":")[0] for (error,) in rows(client, PARKED)} == {
        "rejected by the worker; see its log",
        "not a message of kombu",
    }


def test_a_proxy_that_is_away_or_killed_costs_no_task(lone, tmp_path, start_program):
    (tmp_path / "tasks_of_test.py").write_text(TASKS)
    broker = f"streamfrom://root@127.0.0.1:{lone.port}/{lone.keyspace}"
    with Celery("tasks_of_test", broker=broker) as app:
        # It makes the table: what the killed proxy had in flight comes again after so long.
        app.conf.update(broker_transport_options={"ack_wait": ACK_WAIT_S})
        with pytest.raises(kombu.exceptions.OperationalError, match="1153"):
            send(app, "note", "x" * 2_000_000)
        for n in range(10):
            send(app, "note", f"n{n}")
        lone.proxy.stop()
        worker = Worker(start_program, tmp_path, broker, "one")  # nothing listens yet
        eventually(lambda: "Trying again" in worker.out.read_text(), "it tries", 3 * WAIT_S)
        lone.start()
        eventually(lambda: worker.said("note"), "a task runs", 3 * WAIT_S)
        lone.proxy.kill()
        lone.start()
        send(app, "note", "late")
        eventually(lambda: len({line[1] for line in worker.said("note")}) == 11, "", 3 * WAIT_S)
    pools.reset()


def test_two_workers_with_one_name_share_the_tasks(app, broker, tmp_path, start_program):
    workers = []
    for folder in (tmp_path / "a", tmp_path / "b"):
        folder.mkdir()
        (folder / "tasks_of_test.py").write_text(TASKS)
        workers.append(Worker(start_program, folder, broker, "same"))
    for worker in workers:
        eventually(lambda: "ready" in worker.out.read_text(), "it is ready", 3 * WAIT_S)  # noqa: B023
    for n in range(40):
        send(app, "note", f"n{n}")

    def noted() -> list[str]:
        return sorted(line[1] for worker in workers for line in worker.said("note"))

    eventually(lambda: len(noted()) >= 40)
    for worker in workers:
        worker.stop()
    assert noted() == sorted(f"n{n}" for n in range(40))


def test_priorities_and_exchanges_of_kombu(broker: str) -> None:
    topic = Exchange("of_test", "topic")
    queue = Queue("q_of_test", topic, routing_key="a.#")
    with Connection(broker) as connection, Connection(broker) as other:
        bound = queue(connection.channel())
        bound.declare()
        # Another process, which has bound nothing itself.
        producer = other.Producer()
        topic(other.channel()).declare()
        for priority in (0, 9, 5):
            producer.publish(
                {"n": priority}, exchange=topic, routing_key="a.b", priority=priority
            )
        producer.publish({"n": -1}, exchange=topic, routing_key="b", retry=False)
        got = [eventually(bound.get) for _ in range(3)]
        assert [message.payload["n"] for message in got] == [9, 5, 0]
        assert bound.get() is None
        got[0].ack()
        got[1].reject()
        got[2].requeue()
        again = eventually(bound.get)
        assert again.payload == {"n": 0}
        assert again.delivery_info["redelivered"] is True
        again.ack()
        producer.publish({"n": 7}, exchange=topic, routing_key="a.c")
        assert bound.purge() == 1
        bound.delete()


def test_a_task_that_ends_after_its_connection_is_an_error_that_celery_knows(broker):
    """Celery logs it and goes on; with any other error its worker ends."""
    with kombu.Connection(broker) as connection:
        connection.SimpleQueue("late").put({"n": 1})
        message = connection.SimpleQueue("late").get(timeout=WAIT_S)
        errors = connection.connection_errors
        connection.collect()
        for end in (message.ack, message.reject, message.requeue):
            with pytest.raises(errors, match="the channel is closed"):
                end()
        again = connection.SimpleQueue("late").get(timeout=WAIT_S)
        assert again.payload == {"n": 1}
        again.ack()
