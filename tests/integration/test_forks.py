"""Programs that fork once they have used a client, as gunicorn does with --preload: each process has connections of its own."""

import sys
from pathlib import Path

import pytest

from tests.fixtures.programs import finished
from tests.fixtures.streams import rows


pytestmark = pytest.mark.one_server

LIBRARY = Path(__file__).parents[2] / "clients" / "python"
SENT = 10
# Threads of the parent wait on each of its locks and connections at the moment of the fork.
DRAMATIQ = """
import dramatiq
from dramatiq import Message
from streamfrom_worker.dramatiq import StreamfromBroker

broker = StreamfromBroker(sys.argv[1])
broker.declare_queue("default")
store = broker.store

def send():
    broker.enqueue(Message("default", "work", (), {}, {}))

send()
consumer = broker.consume("default", timeout=60_000)
held = next(consumer)
ident = held.streamfrom_id

def in_child():
    own = broker.consume("default", timeout=60_000)
    own.ack(next(own))
    broker.close()

def in_parent():
    consumer.ack(held)
    broker.close()
"""
CELERY = """
import kombu
import streamfrom_worker.celery

connection = kombu.Connection(sys.argv[1])
queue = connection.SimpleQueue("default")
store = connection.transport.store

def send():
    queue.put({})

send()
held = queue.get(timeout=60)
ident = held.delivery_tag

def in_child():
    connection.collect()
    own = connection.SimpleQueue("default")
    own.get(timeout=60).ack()
    connection.release()

def in_parent():
    held.ack()
    connection.release()
"""
FORK = f"""
def busy():
    while not done.is_set():
        store.run("DO SLEEP(0.02)")

done = threading.Event()
thread = threading.Thread(target=busy)
thread.start()
time.sleep(0.1)
child = os.fork()
for _ in range({SENT}):
    send()
mine = store.run("SELECT CONNECTION_ID()")[0][0]
if not child:
    print("child", mine, flush=True)
    in_child()
    os._exit(0)
done.set()
thread.join()
assert os.waitpid(child, 0)[1] == 0
print("parent", mine, flush=True)
print("given_back", ident in [row[0] for row in store.take(["default"], 100, 0)])
in_parent()
"""


@pytest.mark.parametrize(
    ("program", "table"), [(DRAMATIQ, "dramatiq_message"), (CELERY, "celery_message")]
)
def test_a_child_shares_no_connection_and_gives_nothing_back(plain, program, table):
    url = f"streamfrom://root@127.0.0.1:{plain.proxy.port}/{plain.keyspace}"
    done = finished(
        [sys.executable, "-c", f"import os, sys, threading, time\n{program}{FORK}", url],
        env={"PYTHONPATH": str(LIBRARY)},
    )
    assert done.returncode == 0, done.stderr
    said = dict(line.split() for line in done.stdout.splitlines())
    assert said["child"] != said["parent"]
    assert said["given_back"] == "False"
    found = rows(plain.connect(), f"SELECT COUNT(*), COUNT(time_acked) FROM {table}")
    assert found == ((1 + 2 * SENT, 2),)
