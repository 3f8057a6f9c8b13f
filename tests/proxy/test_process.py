import gc
import os
import resource
import socket
import sys
import time

import pytest
import structlog

from streamfrom.proxy import process
from streamfrom.proxy.process import ServiceManager
from tests.proxy.fake_server import FakeServer
from tests.proxy.rigs import config_of


@pytest.fixture(autouse=True)
def collector():
    """The collector and the turns of threads as they were, afterwards."""
    before, interval_s = gc.get_threshold(), sys.getswitchinterval()
    yield
    sys.setswitchinterval(interval_s)
    gc.set_threshold(*before)


def prepared(monkeypatch, soft, hard, max_connections=1000):
    limits = [(soft, hard)]
    monkeypatch.setattr(resource, "getrlimit", lambda _what: limits[-1])
    monkeypatch.setattr(resource, "setrlimit", lambda _what, new: limits.append(new))
    with structlog.testing.capture_logs() as logs:
        process.prepare(config_of(FakeServer(), max_connections=max_connections, pool_size=50))
    return limits[-1], logs


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


@pytest.fixture(params=["path", "name"])
def manager(request, tmp_path):
    """A service manager's socket, and what is told to it."""
    name = f"streamfrom-{os.getpid()}-{time.monotonic_ns()}"
    address = str(tmp_path / "notify") if request.param == "path" else f"@{name}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
        listening.bind(address.replace("@", "\0", 1) if request.param == "name" else address)
        listening.settimeout(60)
        yield ServiceManager(address), lambda: listening.recv(4096).decode()


def test_each_step_is_one_datagram(manager):
    told, heard = manager
    told.ready()
    assert heard() == "READY=1"
    before_us = time.monotonic_ns() // 1000
    told.reloading()
    first, second = heard().split("\n")
    assert first == "RELOADING=1"
    key, moment = second.split("=")
    assert key == "MONOTONIC_USEC"
    assert before_us <= int(moment) <= time.monotonic_ns() // 1000
    told.stopping()
    assert heard() == "STOPPING=1"


@pytest.mark.parametrize("address", ["", "vsock:2:1234", "relative/path"])
def test_an_address_of_no_unix_socket_is_told_nothing(address):
    with structlog.testing.capture_logs() as logs:
        ServiceManager(address).ready()
    assert logs == []


def test_a_manager_that_has_gone_or_reads_nothing_is_one_line_of_the_log(tmp_path):
    with structlog.testing.capture_logs() as logs:
        ServiceManager(str(tmp_path / "gone")).stopping()
    (line,) = logs
    assert (line["log_level"], line["news"]) == ("warning", "STOPPING=1")
    address = str(tmp_path / "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
        listening.bind(address)
        with structlog.testing.capture_logs() as logs:
            for _ in range(100_000):
                ServiceManager(address).ready()
                if logs:
                    break
    assert logs[0]["news"] == "READY=1"
