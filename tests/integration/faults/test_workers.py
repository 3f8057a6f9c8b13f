"""Several workers behind one port: they are a fleet of their own, and their parent keeps them running."""

import json
import os
import signal
from collections import defaultdict
from typing import Any

import pytest
from pymysql.connections import Connection

from tests.fixtures.database_servers import DatabaseServer, execute
from tests.fixtures.running_proxy import RunningProxy, keyspace_toml
from tests.fixtures.streams import eventually, message_table, run


pytestmark = [pytest.mark.db, pytest.mark.one_server]

SERVE = "workers serve"
LISTENING = "listening"


def config(database: str, server: DatabaseServer) -> str:
    return keyspace_toml(database, [server]) + "[fleet]\nworkers = 2\n"


def by_worker(proxy: RunningProxy, database: str) -> "dict[int, Connection[Any]]":
    """Return a connection to each worker, by the prefix of its connection ids."""
    found: dict[int, Connection[Any]] = {}
    for _ in range(200):
        connection = proxy.connect(database=database, autocommit=True)
        found[connection.thread_id() >> 22] = connection
        if len(found) == 2:
            return found
    raise AssertionError("200 connections came to one worker")


def pids(proxy: RunningProxy) -> set[int]:
    with open(f"/proc/{proxy.pid}/task/{proxy.pid}/children") as children:
        return set(map(int, children.read().split()))


def test_workers_share_a_port_a_socket_a_queue_and_a_hangup(
    server, database, start_proxy, consume, tmp_path_factory
):
    execute(server, message_table(poller_interval=30), database=database)
    path = tmp_path_factory.mktemp("s") / "s"
    head = f'[server]\nlisten = "127.0.0.1:0"\nunix_socket = "{path}"\n'
    proxy = start_proxy(head + config(database, server))
    proxy.wait_for_log(SERVE)
    run(proxy.connect(unix_socket=str(path), database=database), "SELECT 1")
    with pytest.raises(pytest.fail.Exception, match=f"127.0.0.1 port {proxy.port}"):
        start_proxy(f'[server]\nlisten = "127.0.0.1:{proxy.port}"\n' + config(database, server))
    connections = by_worker(proxy, database)
    streams = [consume(proxy, database=database) for _ in range(8)]
    count = 80
    for ident in range(count):
        producer = list(connections.values())[ident % 2]
        run(producer, f"INSERT INTO my_message (id) VALUES ({ident})")
    seen: dict[int, int] = defaultdict(int)
    while sum(seen.values()) < count:
        for number, stream in enumerate(streams):
            seen[number] += stream.poll(0.05) is not None
    assert len(seen) == len(streams), "each stream has its share, whichever worker it is at"
    proxy.process.send_signal(signal.SIGHUP)
    proxy.wait_for_log("configuration unchanged", times=2)
    assert proxy.stop() == 0
    lines = [json.loads(line) for line in proxy.log().splitlines() if line.startswith("{")]
    assert {line["worker"] for line in lines if line["event"] == "stopped"} == {1, 2}
    assert not path.exists()


def test_a_worker_that_dies_is_started_anew_and_all_end_with_their_parent(
    server, database, start_proxy, consume
):
    execute(server, message_table(poller_interval=1), database=database)
    proxy = start_proxy(config(database, server))
    proxy.wait_for_log(SERVE)
    before = pids(proxy)
    assert len(before) == 2
    died = min(before)
    os.kill(died, signal.SIGKILL)
    proxy.wait_for_log("a worker died")
    eventually(lambda: len(pids(proxy) - before) == 1)
    proxy.wait_for_log(LISTENING, times=3)
    connections = by_worker(proxy, database)
    stream = consume(proxy, database=database)
    for ident, producer in enumerate(connections.values()):
        run(producer, f"INSERT INTO my_message (id) VALUES ({ident})")
    assert sorted(stream.ids(2)) == [0, 1]
    proxy.kill()
    proxy.wait_for_log('"stopped"', times=2)
