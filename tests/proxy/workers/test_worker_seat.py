import ast
import asyncio
import os
import socket
from contextlib import nullcontext
from dataclasses import replace

import pytest

from streamfrom.proxy.config.toml_values import ConfigError
from streamfrom.proxy.workers.worker_seat import HURRY, READY, Parent, WorkerSeat, check_ports
from tests.cases import cases
from tests.proxy.fake_answers import HANG_S
from tests.proxy.fake_server import FakeServer
from tests.proxy.rigs import config_of


def seat(parent_fd=3, unix_fd=None):
    return WorkerSeat(2, parent_fd, 4711, unix_fd, 20)


def test_a_seat_is_a_word_of_a_command_line_and_has_the_port_of_all():
    for each in (seat(), seat(unix_fd=7)):
        assert WorkerSeat.parse(str(each)) == each
    config = config_of(FakeServer())
    seated = seat().seated(config).server
    assert (seated.port, seated.host) == (4711, config.server.host)


@pytest.mark.parametrize(
    ("configured", "own"),
    [(None, None), (("::1", 15380), ("::1", 15381)), (("::1", 0), ("::1", 0))],
)
def test_each_worker_tells_its_figures_at_a_port_of_its_own(configured, own):
    config = replace(config_of(FakeServer()), admin=configured)
    assert seat().seated(config).admin == own
    assert replace(seat(), number=1).seated(config).admin == configured


@cases(admin=ast.literal_eval, grpc=ast.literal_eval, workers=ast.literal_eval, error=str)
def test_no_port_is_wanted_twice(admin, grpc, workers, error):
    config = config_of(FakeServer())
    config = replace(
        config, server=replace(config.server, host="h", port=9), admin=admin, grpc=grpc
    )
    with pytest.raises(ConfigError, match=error) if error else nullcontext():
        check_ports(config, workers)


def test_the_unix_socket_is_the_one_that_was_handed_down():
    shared = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    with seat(unix_fd=os.dup(shared.fileno())).unix_socket() as handed:
        assert handed.family == socket.AF_UNIX
    shared.close()


@pytest.fixture
async def line():
    """The parent's end, and the events of the worker."""
    ours, theirs = socket.socketpair()
    ours.settimeout(HANG_S)
    stop, hurry = asyncio.Event(), asyncio.Event()
    parent = Parent(seat(theirs.detach()), stop, hurry)
    yield ours, parent, stop, hurry
    parent.close()
    ours.close()


async def test_the_parent_hears_that_a_worker_serves_and_has_it_hurry(line):
    ours, parent, stop, _ = line
    parent.tell_ready()
    assert ours.recv(1) == READY
    assert not stop.is_set()
    ours, _, stop, hurry = line
    ours.send(HURRY)
    await hurry.wait()
    assert not stop.is_set()


@pytest.mark.parametrize("is_late", [False, True])
async def test_a_worker_stops_when_its_parent_is_no_more(line, is_late):
    ours, parent, stop, hurry = line
    ours.close()
    if is_late:
        parent.tell_ready()
    await stop.wait()
    assert not hurry.is_set()
