"""SHOW QUEUE STATUS and the schema `streamfrom` are the fleet's: two proxies, a stream on each."""

import os
import signal
from typing import Any

import pytest
from pymysql.connections import Connection

from tests.fixtures.database_servers import execute
from tests.fixtures.streams import eventually, message_table, rows, run


pytestmark = [pytest.mark.db, pytest.mark.one_server]

STATUS = "SELECT depth, in_flight, ready, streams, delivered, acked FROM streamfrom.queues WHERE unanswered IS NULL"
COUNT = "SELECT COUNT(*), SUM(is_answering) FROM streamfrom.members"
STREAMS = (
    "SELECT connection_id, unacked, delivered FROM streamfrom.streams ORDER BY connection_id"
)


def says(client: "Connection[Any]", sql: str, *expected: tuple[Any, ...]) -> None:
    """Return once the answer is *expected*; a busy machine may miss the deadline of a question to a member."""
    eventually(lambda: rows(client, sql) == expected, f"{sql}: {expected}")


def meets(client: "Connection[Any]") -> None:
    """Return once the proxy of *client* has heard of the other one, which a PROCESSLIST looks for at once."""

    def has_met() -> bool:
        run(client, "SHOW PROCESSLIST")
        return rows(client, COUNT) == ((2, 2),)

    eventually(has_met)


def test_each_proxy_tells_the_figures_of_both_and_one_that_hangs_holds_nobody_up(
    server, database, fleet, consume
):
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
        says(
            client,
            "SELECT COUNT(*), COUNT(DISTINCT member), SUM(is_dispatched) FROM streamfrom.shards",
            (2, 2, 1),
        )
        says(
            client,
            "SELECT dispatches, address > '', error FROM streamfrom.members ORDER BY dispatches DESC",
            (f"{database}/-", 1, None),
            ("", 1, None),
        )
        names = (
            "SELECT m.member FROM streamfrom.streams s JOIN streamfrom.members m USING (member)"
        )
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
        "SELECT is_answering, error > '', uptime_s IS NULL FROM streamfrom.members ORDER BY 1"
    )
    eventually(lambda: hanging(members) == ((0, 1, 1), (1, None, 0)))
    missing = "SELECT acked, unanswered LIKE 'member % at %: %' FROM streamfrom.queues"
    eventually(lambda: hanging(missing) == ((1, 1),))
    for client in clients:
        eventually(lambda: rows(client, "SELECT SUM(acked) FROM streamfrom.queues") == ((2,),))  # noqa: B023
