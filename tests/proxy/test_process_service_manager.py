import os
import socket
import time

import pytest
import structlog

from streamfrom.proxy.process import ServiceManager


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
