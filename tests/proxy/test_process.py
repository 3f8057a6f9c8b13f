import gc
import resource
import sys

import pytest
import structlog

from streamfrom.proxy import process
from tests.proxy.fake_server import FakeServer
from tests.proxy.rigs import config_of


@pytest.fixture(autouse=True)
def collector():
    """The collector and the turns of threads as they were, afterwards."""
    before, interval_s = gc.get_threshold(), sys.getswitchinterval()
    yield
    sys.setswitchinterval(interval_s)
    gc.set_threshold(*before)


class Limits:
    """The limit on open files of an imagined process."""

    def __init__(self, soft, hard):
        self.now = soft, hard

    def get(self, _what):
        return self.now

    def set(self, _what, limits):
        self.now = limits


def prepared(monkeypatch, soft, hard, max_connections=1000):
    limits = Limits(soft, hard)
    monkeypatch.setattr(resource, "getrlimit", limits.get)
    monkeypatch.setattr(resource, "setrlimit", limits.set)
    with structlog.testing.capture_logs() as logs:
        process.prepare(config_of(FakeServer(), max_connections=max_connections, pool_size=50))
    return limits.now, logs


WANTED = 1000 + 50 + 256


@pytest.mark.parametrize(
    ("soft", "hard", "after"),
    [
        (1024, 4096, (WANTED, 4096)),
        (1024, resource.RLIM_INFINITY, (WANTED, resource.RLIM_INFINITY)),
        (65536, 65536, (65536, 65536)),
    ],
)
def test_as_many_files_may_be_open_as_the_configuration_needs(monkeypatch, soft, hard, after):
    limits, logs = prepared(monkeypatch, soft, hard)
    assert limits == after
    assert logs == []


def test_a_limit_that_is_too_low_is_told(monkeypatch):
    limits, (line,) = prepared(monkeypatch, 256, 512)
    assert limits == (512, 512)
    assert (line["log_level"], line["limit"], line["wanted"]) == ("warning", 512, WANTED)


def test_the_collector_leaves_alone_what_stays_and_threads_give_the_loop_its_turn(monkeypatch):
    frozen = gc.get_freeze_count()
    sys.setswitchinterval(0.005)
    prepared(monkeypatch, 65536, 65536)
    assert gc.get_freeze_count() > frozen
    assert gc.get_threshold()[0] > 10_000
    assert sys.getswitchinterval() == pytest.approx(0.0005)
