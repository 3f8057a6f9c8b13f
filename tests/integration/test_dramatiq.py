"""Dramatiq on streamfrom: what its own tests ask of a broker, before a real proxy."""

import itertools
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import dramatiq
import pymysql
import pytest
from dramatiq import Message, Worker
from dramatiq.common import current_millis
from dramatiq.errors import ConnectionClosed
from dramatiq.results import Results
from dramatiq.results.errors import ResultFailure, ResultMissing, ResultTimeout

from streamfrom_worker import task_store
from streamfrom_worker.dramatiq import StreamfromBackend, StreamfromBroker
from tests.fixtures.streams import eventually, rows, run
from tests.integration.conftest import Lone, Queue as Place


pytestmark = pytest.mark.one_server

ACK_WAIT_S = 3
HANG_MS = 60_000
PARKED = "SELECT last_error FROM dramatiq_message WHERE time_acked IS NULL AND time_next > 8e18 ORDER BY id"


@pytest.fixture
def url(plain: Place) -> str:
    return f"streamfrom://root@127.0.0.1:{plain.proxy.port}/{plain.keyspace}"


@pytest.fixture
def broker(url: str) -> Iterator[StreamfromBroker]:
    broker = StreamfromBroker(url, ack_wait=ACK_WAIT_S)
    dramatiq.set_broker(broker)
    yield broker
    broker.close()


@contextmanager
def working(broker: StreamfromBroker, threads: int = 4) -> Iterator[Worker]:
    worker = Worker(broker, worker_timeout=100, worker_threads=threads)
    worker.start()
    try:
        yield worker
    finally:
        worker.stop()


def join(broker: StreamfromBroker, worker: Worker, actor: dramatiq.Actor) -> None:
    broker.join(actor.queue_name, timeout=HANG_MS)
    worker.join()


def test_a_failed_message_comes_again_after_its_backoff_until_it_succeeds(broker):
    tries = []

    @dramatiq.actor(min_backoff=400, max_backoff=400)
    def work():
        tries.append(current_millis())
        if len(tries) < 4:
            raise RuntimeError("not yet")

    with working(broker) as worker:
        work.send()
        join(broker, worker, work)
    assert len(tries) == 4
    # Dramatiq draws its backoff between a half and the whole.
    assert all(later - sooner >= 200 for sooner, later in itertools.pairwise(tries))


def test_delays_are_kept_independently_and_take_no_place_in_the_prefetch(broker):
    found = []

    @dramatiq.actor
    def note(n, due):
        found.append((n, current_millis() - due))

    now = current_millis()
    for n in range(40):
        note.send_with_options(args=(n + 100, now + 3_600_000), delay=3_600_000)
    for n, delay in ((1, 2000), (2, 1000)):
        note.send_with_options(args=(n, now + delay), delay=delay)
    with working(broker, threads=1):
        eventually(lambda: len(found) == 2)
    assert [n for n, _ in found] == [2, 1]
    assert all(late >= 0 for _, late in found)
    broker.flush_all()
    broker.join(note.queue_name, timeout=HANG_MS)


def test_what_fails_for_good_or_nobody_knows_is_parked_with_its_error(broker, plain):
    @dramatiq.actor(max_retries=0)
    def fail():
        raise RuntimeError("no such customer")

    unknown = Message("default", "no_actor", (), {}, {})
    with working(broker) as worker:
        fail.send()
        join(broker, worker, fail)
        broker.enqueue(unknown)
        join(broker, worker, fail)
        client = plain.connect()
        text = str(unknown.encode(), "utf-8")
        wrong = text.replace('"options":{}', '"options":7'), text.replace('"no_actor"', "[]")
        for text in ("x", *wrong):
            insert = (
                f"INSERT INTO dramatiq_message (queue, payload) VALUES ('default', '{text}')"
            )
            run(client, insert)
        join(broker, worker, fail)
    errors = [error for (error,) in rows(client, PARKED)]
    assert errors[0] == "RuntimeError: no such customer"
    assert errors[1].startswith("ActorNotFound: no_actor")
    assert all(error.startswith("not a message of Dramatiq") for error in errors[2:])
    # One statement makes a parked message ready again.
    run(client, "UPDATE dramatiq_message SET time_next = 0 WHERE time_next > 8e18 LIMIT 1")
    assert len(rows(client, PARKED)) == len(errors) - 1 == 4


def test_a_message_in_a_transaction_comes_with_its_commit_alone(broker, plain):
    found = []

    @dramatiq.actor
    def note(word):
        found.append(word)

    client = plain.connect(autocommit=False)
    with working(broker) as worker:
        broker.enqueue_in(client, note.message("rolled back"))
        client.rollback()
        broker.enqueue_in(client, note.message("committed"))
        assert rows(plain.connect(), "SELECT COUNT(*) FROM dramatiq_message") == ((0,),)
        client.commit()
        join(broker, worker, note)
    assert found == ["committed"]


def test_results(broker, url, plain):
    broker.add_middleware(Results(backend=StreamfromBackend(url)))

    @dramatiq.actor(store_results=True, max_retries=0)
    def divide(a, b):
        return a / b

    with working(broker) as worker:
        found = divide.send(6, 3)
        failed = divide.send(1, 0)
        assert found.get_result(block=True, timeout=HANG_MS) == 2
        with pytest.raises(ResultFailure):
            failed.get_result(block=True, timeout=HANG_MS)
        short = divide.send_with_options(args=(1, 1))
        join(broker, worker, divide)
    assert short.get_result() == 1
    with pytest.raises(ResultMissing):
        divide.message(1, 2).get_result()
    # Its table is none that somebody has to look at.
    client, quiet = plain.connect(), "SHOW QUEUE STATUS LIKE 'dramatiq_result'"
    ((_, _, depth, *_),) = eventually(lambda: rows(client, quiet))
    ((_, made),) = rows(client, "SHOW CREATE QUEUE dramatiq_result")
    assert (depth, "paused" in made) == (0, False)


def test_who_has_room_for_all_it_may_hold_waits_for_no_more_room(broker, monkeypatch):
    monkeypatch.setattr(task_store, "GATHER_S", HANG_MS)
    broker.declare_queue("default")
    for _ in range(3):
        broker.enqueue(Message("default", "work", (), {}, {}))
    consumer = broker.consume("default", prefetch=2, timeout=HANG_MS)
    for message in [next(consumer), next(consumer)]:
        consumer.ack(message)
    assert next(consumer)


def test_a_proxy_that_is_away_is_a_connection_error(unused_tcp_port):
    broker = StreamfromBroker(f"streamfrom://root@127.0.0.1:{unused_tcp_port}/shop")
    broker.declare_queue("default")
    with pytest.raises(ConnectionClosed):
        broker.enqueue(Message("default", "work", (), {}, {}))
    with pytest.raises(ValueError, match="must name a user and a keyspace"):
        StreamfromBroker("streamfrom://127.0.0.1/")


@pytest.fixture
def lone_broker(lone: Lone) -> Iterator[StreamfromBroker]:
    broker = StreamfromBroker(f"streamfrom://root@127.0.0.1:{lone.port}/{lone.keyspace}")
    dramatiq.set_broker(broker)
    yield broker
    broker.close()


def test_a_proxy_that_is_away_or_killed_costs_no_message(lone, lone_broker):
    begun, gate, found = threading.Event(), threading.Event(), set()

    @dramatiq.actor
    def work(n):
        begun.set()
        gate.wait(60)
        found.add(n)

    for n in range(10):
        work.send(n)
    lone.proxy.stop()
    unacked = "SELECT COUNT(*) FROM dramatiq_message WHERE time_acked IS NULL"
    with working(lone_broker):  # nothing listens yet
        lone.start()
        eventually(begun.is_set)
        lone.proxy.kill()
        gate.set()
        lone.start()
        eventually(lambda: lone.direct(unacked) == ((0,),))
    assert found == set(range(10))


def test_what_the_server_refuses_is_its_own_error_and_spares_the_rest(lone, lone_broker):
    url = f"streamfrom://root@127.0.0.1:{lone.port}/{lone.keyspace}"
    lone_broker.add_middleware(Results(backend=StreamfromBackend(url)))
    lone_broker.declare_queue("q" * 200)

    @dramatiq.actor(store_results=True, max_retries=0)
    def answer(count, text=""):
        return "x" * count if count else object()

    with pytest.raises(pymysql.err.OperationalError, match="1153"):
        answer.send(0, "x" * 2_000_000)
    with pytest.raises(pymysql.err.DataError, match="Data too long for column 'queue'"):
        lone_broker.enqueue(Message("q" * 200, "answer", (1,), {}, {}))
    with pytest.raises(pymysql.err.OperationalError, match="Unknown database 'nothing'"):
        StreamfromBroker(url.replace(lone.keyspace, "nothing")).flush("default")
    with working(lone_broker) as worker:
        # A result that cannot be stored: the work was done, and is not done again.
        lost = [answer.send(2_000_000), answer.send(0)]
        assert answer.send(3).get_result(block=True, timeout=HANG_MS) == "xxx"
        join(lone_broker, worker, answer)
    for message in lost:
        with pytest.raises(ResultTimeout):
            message.get_result(block=True, timeout=1)
    assert lone.direct("SELECT DISTINCT epoch FROM dramatiq_message") == ((1,),)
