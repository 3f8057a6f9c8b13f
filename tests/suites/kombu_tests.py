"""kombu's integration tests of a transport, for the broker that KOMBU_URL names; `tests.suites.python_suites` puts this file beside them."""

# mypy: ignore-errors
# Its base classes are in the other folder.

import os

import kombu
import pytest

# Registers the transport.
import streamfrom_worker.celery  # noqa: F401

from .common import (
    BaseEventLoop,
    BaseExchangeTypes,
    BaseFailover,
    BaseMessage,
    BasePriority,
    BaseTimeToLive,
    BasicFunctionality,
)


URL = os.environ["KOMBU_URL"]
NOBODY = "streamfrom://root@127.0.0.1:1/nothing"


class Drained(kombu.Connection):
    """A connection whose drain_events() delivers all that is there, as pyamqp's does; virtual transports deliver one."""

    def drain_events(self, **options):
        super().drain_events(**options)
        try:
            while True:
                super().drain_events(timeout=0.5)
        except TimeoutError:
            pass


@pytest.fixture
def connection():
    return kombu.Connection(URL)


@pytest.fixture
def invalid_connection():
    return kombu.Connection(NOBODY)


@pytest.fixture
def failover_connection():
    return kombu.Connection([NOBODY, URL])


class TestBasicFunctionality(BasicFunctionality):
    pass


class TestExchangeTypes(BaseExchangeTypes):
    pass


class TestMessage(BaseMessage):
    pass


class TestTimeToLive(BaseTimeToLive):
    pass


class TestFailover(BaseFailover):
    pass


class TestEventLoop(BaseEventLoop):
    pass


class TestPriority(BasePriority):
    @pytest.fixture
    def connection(self):
        return Drained(URL)
