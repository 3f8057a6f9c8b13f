"""Fixtures of Dramatiq's own tests, which its source archive lacks, for the broker that BROKER_URL names; `tests.suites.python_suites` puts this file next to them."""

# mypy: ignore-errors
# Run where Dramatiq is installed, and next to its tests.

import os
import sys
import types
from contextlib import contextmanager

import dramatiq
import pytest
from dramatiq import Worker
from dramatiq.brokers.redis import RedisBroker
from dramatiq.rate_limits.backends import StubBackend as StubLimits
from dramatiq.results.backends import RedisBackend

from streamfrom_worker.dramatiq import StreamfromBackend, StreamfromBroker


URL = os.environ["BROKER_URL"]
IS_OURS = URL.startswith("streamfrom")


@contextmanager
def worker(*args, **options):
    """Run a worker for the length of a block."""
    running = Worker(*args, **options)
    running.start()
    try:
        yield running
    finally:
        running.stop()


def skip(function):
    """Leave out what is for other systems."""
    return function


common = types.ModuleType("tests.common")
common.worker = worker
for name in ("skip_on_windows", "skip_on_pypy", "skip_in_ci", "skip_unless_rabbit_mq"):
    setattr(common, name, skip)
sys.modules["tests.common"] = common


@pytest.fixture
def stub_broker():
    broker = StreamfromBroker(URL, ack_wait=5) if IS_OURS else RedisBroker(url=URL)
    broker.emit_after("process_boot")
    dramatiq.set_broker(broker)
    yield broker
    broker.flush_all()
    broker.emit_before("process_stop")
    broker.close()


@pytest.fixture
def stub_worker(stub_broker):
    with worker(stub_broker, worker_timeout=100, worker_threads=32) as running:
        yield running


@pytest.fixture
def redis_broker(stub_broker):
    return stub_broker


@pytest.fixture
def redis_worker(stub_worker):
    return stub_worker


@pytest.fixture
def result_backend():
    return StreamfromBackend(URL) if IS_OURS else RedisBackend(url=URL)


@pytest.fixture
def rate_limiter_backend():
    return StubLimits()
