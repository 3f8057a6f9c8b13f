"""Several proxies or workers before one server: one dispatches, the others follow it, and all tell of the clients and streams of all."""

import json
import os
import signal
from typing import Any

import pytest
from pymysql.connections import Connection

from tests.fixtures.background import in_thread
from tests.fixtures.database_servers import DatabaseServer, execute
from tests.fixtures.running_proxy import RunningProxy, keyspace_toml, user_toml
from tests.fixtures.streams import eventually, message_table, refused, rows, run
from tests.integration.conftest import DISPATCHED


pytestmark = pytest.mark.one_server

TEXTS = "message LONGTEXT"


def change(member: RunningProxy, database: str, sql: str) -> None:
    run(member.connect(database=database, autocommit=True), sql)


def test_a_paused_dispatcher_delivers_nothing_once_it_goes_on(server, database, fleet, consume):
    execute(server, message_table(poller_interval=1), database=database)
    first, second = fleet()
    at_second = consume(second, database=database)
    os.kill(first.pid, signal.SIGSTOP)
    try:
        second.wait_for_log(DISPATCHED)
        producer = second.connect(database=database, autocommit=True)
        for ident in range(1, 21):
            run(producer, f"INSERT INTO my_message (id) VALUES ({ident})")
        assert sorted(at_second.ids(20)) == list(range(1, 21))
    finally:
        os.kill(first.pid, signal.SIGCONT)
    first.wait_for_log("is withheld")
    at_second.close()
    at_first = consume(first, database=database)
    run(producer, "INSERT INTO my_message (id) VALUES (21)")
    assert 21 in at_first.ids(21), "what the closed stream held comes as well"


def test_streams_and_commits_at_any_member_are_of_one_queue(server, database, fleet, consume):
    """A poll comes every 10,000 s: whatever comes sooner was told from member to member."""
    execute(server, message_table(poller_interval=10_000, columns=TEXTS), database=database)
    first, second, third = fleet(3)
    stream = consume(second, "STREAM /*vt+ PREFETCH=1 */ * FROM my_message", database=database)
    producers = [p.connect(database=database, autocommit=True) for p in (first, second, third)]
    for ident, producer in enumerate(producers * 2, 1):
        run(producer, f"INSERT INTO my_message (id, message) VALUES ({ident}, '{ident}')")
    came = []
    for member in [third, first, second] * 2:
        (ident,) = stream.ids(1)
        assert stream.poll(0.05) is None, "its prefetch is full"
        came.append(ident)
        update = f"UPDATE my_message SET time_acked = 1800000000000000005 WHERE id = {ident}"
        change(member, database, update)
    assert sorted(came) == [1, 2, 3, 4, 5, 6]


def test_a_member_of_another_fleet_only_waits(server, database, fleet, start_proxy, consume):
    execute(server, message_table(poller_interval=600), database=database)
    (shop,) = fleet(1)
    stock = start_proxy(shop.config.read_text().replace('"shop"', '"stock"'))
    stock.wait_for_log("fleet 'shop'")
    at_shop = consume(shop, database=database)
    at_stock = consume(stock, database=database)
    producer = shop.connect(database=database, autocommit=True)
    run(producer, "INSERT INTO my_message (id) VALUES (1)")
    assert at_shop.ids(1) == [1]
    assert at_stock.poll(0.5) is None
    run(producer, "UPDATE my_message SET time_acked = NOW() WHERE id = 1")
    # Neither lists nor ends the other's clients.
    assert at_shop.id not in {row[0] for row in rows(stock.connect(), "SHOW PROCESSLIST")}
    assert shop.stop() == 0
    stock.wait_for_log(DISPATCHED)
    change(stock, database, "INSERT INTO my_message (id) VALUES (2)")
    assert at_stock.ids(1) == [2]


USERS = user_toml("boss", account="shared", role="admin")
USERS += user_toml("eve", account="shared") + user_toml("root", account="shared")


def config(database: str, server: DatabaseServer) -> str:
    return keyspace_toml(database, [server]) + USERS


def listed(client: "Connection[Any]") -> dict[int, str]:
    return {row[0]: row[1] for row in rows(client, "SHOW PROCESSLIST")}


def error_of(client: "Connection[Any]", sql: str) -> int:
    return refused(client, sql)[0]


def test_clients_of_another_proxy_are_listed_and_killed(server, database, start_proxy):
    one, two = (start_proxy(config(database, server)) for _ in range(2))
    boss = one.connect(user="boss", database=database)
    eve = two.connect(user="eve", database=database)
    eve_here = one.connect(user="eve", database=database)
    root = one.connect(user="root", database=database)
    ids = {client.thread_id(): name for client, name in ((boss, "boss"), (eve, "eve"))}
    assert ids.items() <= listed(boss).items()
    assert listed(eve_here) == {client.thread_id(): "eve" for client in (eve, eve_here)}
    assert listed(eve).keys() == listed(eve_here).keys()

    assert error_of(root, f"KILL {eve.thread_id()}") == 1095
    assert error_of(boss, f"KILL {eve.thread_id() + 99}") == 1094
    outcome = in_thread(lambda: rows(eve, "SELECT SLEEP(1000)"))
    eventually(lambda: "SLEEP(1000)" in str(rows(boss, "SHOW FULL PROCESSLIST")))
    run(eve_here, f"KILL QUERY {eve.thread_id()}")
    ended = outcome()
    assert ended == ((1,),) or ended.args[0] == 1317  # MySQL, MariaDB
    run(eve, "SELECT 1")
    run(eve_here, f"KILL {eve.thread_id()}")
    assert error_of(eve, "SELECT 1") in (2006, 2013)


STATUS = "SELECT depth, in_flight, ready, streams, delivered, acked FROM streamfrom.queues WHERE unanswered IS NULL"
COUNT = "SELECT COUNT(*), SUM(is_answering) FROM streamfrom.members"
STREAMS = "SELECT connection_id, unacked, delivered FROM streamfrom.streams ORDER BY 1"


def says(client: "Connection[Any]", sql: str, *expected: tuple[Any, ...]) -> None:
    """Return once the answer is *expected*; a busy machine may miss the deadline of a question to a member."""
    eventually(lambda: rows(client, sql) == expected, f"{sql}: {expected}")


def meets(client: "Connection[Any]") -> None:
    """Return once the proxy of *client* has heard of the other one, which a PROCESSLIST looks for at once."""

    def has_met() -> bool:
        run(client, "SHOW PROCESSLIST")
        return rows(client, COUNT) == ((2, 2),)

    eventually(has_met)


def test_each_proxy_tells_of_both_though_one_hangs(server, database, fleet, consume):
    execute(server, message_table(ack_wait=3600), database=database)
    proxies = fleet()
    clients = [each.connect(database=database, autocommit=True) for each in proxies]
    for client in clients:
        meets(client)

    sql = "STREAM /*vt+ PREFETCH=2 */ * FROM my_message"
    streams = [consume(each, sql, database=database) for each in proxies]
    run(clients[1], "INSERT INTO my_message (id) VALUES (1), (2), (3), (4), (5)")
    held = [stream.ids(2) for stream in streams]
    (left,) = {1, 2, 3, 4, 5} - {ident for ids in held for ident in ids}
    for client in clients:
        says(client, STATUS, (5, 4, 1, 2, 4, 0))
        says(client, STREAMS, *sorted((stream.id, 2, 2) for stream in streams))
        says(client, "SELECT COUNT(*) FROM streamfrom.streams WHERE stalled_s >= 0", (2,))
        text = (
            "SELECT COUNT(*), COUNT(DISTINCT member), SUM(is_dispatched) FROM streamfrom.shards"
        )
        says(client, text, (2, 2, 1))
        asked = "SELECT dispatches, address > '', error FROM streamfrom.members ORDER BY dispatches DESC"
        says(client, asked, (f"{database}/-", 1, None), ("", 1, None))
        names = "SELECT member FROM streamfrom.streams JOIN streamfrom.members USING (member)"
        eventually(lambda: len(set(rows(client, names))) == 2)  # noqa: B023
    # Acks count where they are written, and the dispatcher gives their room back.
    run(clients[0], f"UPDATE my_message SET time_acked = NOW() WHERE id = {held[0][0]}")
    run(clients[1], f"UPDATE my_message SET time_acked = NOW() WHERE id = {held[1][0]}")
    eventually(lambda: any(stream.poll(0.05) for stream in streams), f"{left} is sent")
    for client in clients:
        says(client, STATUS, (3, 3, 0, 2, 5, 2))
        assert len(rows(client, "SHOW QUEUE STATUS")) == 1

    def hanging(sql: str) -> tuple[Any, ...]:
        """Return what the second proxy answers while the first hangs, which dispatches unless that took too long."""
        os.kill(proxies[0].process.pid, signal.SIGSTOP)
        try:
            return rows(clients[1], sql)
        finally:
            os.kill(proxies[0].process.pid, signal.SIGCONT)

    # On a machine so slow that the one that hangs has lost its connections it is no member: again, then.
    members = (
        "SELECT is_answering, error > '', ISNULL(uptime_s) FROM streamfrom.members ORDER BY 1"
    )
    eventually(lambda: hanging(members) == ((0, 1, 1), (1, None, 0)))
    missing = "SELECT acked, unanswered LIKE 'member % at %: %' FROM streamfrom.queues"
    eventually(lambda: hanging(missing) == ((1, 1),))
    for client in clients:
        eventually(lambda: rows(client, "SELECT SUM(acked) FROM streamfrom.queues") == ((2,),))  # noqa: B023


SERVE = "workers serve"
LISTENING = "listening"


def two_workers(database: str, server: DatabaseServer) -> str:
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


def test_workers_share_all_of_a_proxy(server, database, start_proxy, consume, tmp_path_factory):
    execute(server, message_table(poller_interval=30), database=database)
    path = tmp_path_factory.mktemp("s") / "s"
    head = f'[server]\nlisten = "127.0.0.1:0"\nunix_socket = "{path}"\n'
    proxy = start_proxy(head + two_workers(database, server))
    proxy.wait_for_log(SERVE)
    run(proxy.connect(unix_socket=str(path), database=database), "SELECT 1")
    with pytest.raises(pytest.fail.Exception, match=f"127.0.0.1 port {proxy.port}"):
        start_proxy(
            f'[server]\nlisten = "127.0.0.1:{proxy.port}"\n' + two_workers(database, server)
        )
    connections = by_worker(proxy, database)
    sql = "STREAM /*vt+ PREFETCH=1 */ id FROM my_message"
    streams = [consume(proxy, sql, database=database) for _ in range(8)]
    for ident, producer in enumerate([*connections.values()] * 4):
        run(producer, f"INSERT INTO my_message (id) VALUES ({ident})")
    # Each has its share, whichever worker it is at.
    assert sorted(stream.ids(1)[0] for stream in streams) == [*range(8)]
    one, other = connections.values()
    assert other.thread_id() in listed(one)
    run(one, f"KILL {other.thread_id()}")
    assert error_of(other, "SELECT 1") in (2006, 2013)
    proxy.disconnect()  # or its stop would wait for acks
    proxy.process.send_signal(signal.SIGHUP)
    proxy.wait_for_log("configuration unchanged", times=2)
    assert proxy.stop() == 0
    lines = [json.loads(line) for line in proxy.log().splitlines() if line.startswith("{")]
    assert {line["worker"] for line in lines if line["event"] == "stopped"} == {1, 2}
    assert not path.exists()


def test_a_dead_worker_is_replaced_and_none_is_orphaned(server, database, start_proxy, consume):
    execute(server, message_table(poller_interval=1), database=database)
    proxy = start_proxy(two_workers(database, server))
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
