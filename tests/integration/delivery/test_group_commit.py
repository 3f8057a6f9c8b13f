"""Acks of many clients at one moment are committed together, and each client has the answer of its own statement."""

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import pymysql

from tests.fixtures.background import in_thread
from tests.fixtures.database_servers import root
from tests.fixtures.streams import eventually, rows, run
from tests.integration.conftest import Queue
from tests.integration.delivery.producing import insert_all, locked


ACK = "UPDATE my_message SET time_acked = NOW(), time_next = NULL WHERE id = {} AND time_acked IS NULL"
UNACKED = "SELECT COUNT(*) FROM my_message WHERE time_acked IS NULL"
CLIENTS = 8
EACH = 40
SERVER_LOST = 2013  # the code that the driver gives by itself


class Ackers:
    """Clients that acknowledge, each over a connection and a thread of its own.

    Attributes:
        answers: what was affected, by id, in no order; an error's code, negative.
    """

    def __init__(self, queue: Queue) -> None:
        self.answers: dict[int, list[int]] = {}
        self.clients = [queue.connect() for _ in range(CLIENTS)]
        self._results: list[Callable[[], Any]] = []

    def start(self, ids: Callable[[int], list[int]], again: bool = False) -> None:
        """Have client number n acknowledge *ids* (n), one after the other; *again*: until it is affected."""

        def work(number: int, client: Any) -> None:
            cursor = client.cursor()
            for ident in ids(number):
                for _ in range(3):
                    try:
                        affected = cursor.execute(ACK.format(ident))
                    except pymysql.MySQLError as error:
                        affected = -error.args[0]
                        if affected == -SERVER_LOST:
                            return
                    self.answers.setdefault(ident, []).append(affected)
                    if not again or affected > 0:
                        break

        self._results = [in_thread(partial(work, *each)) for each in enumerate(self.clients)]

    def join(self) -> None:
        assert [result() for result in self._results] == [None] * CLIENTS


def own(number: int) -> list[int]:
    """Return the ids of client *number*, of CLIENTS that share those from 1 on."""
    return list(range(number * EACH + 1, number * EACH + EACH + 1))


def updates(queue: Queue) -> int:
    client = root(queue.cluster.servers[0], autocommit=True)
    value = rows(client, "SHOW GLOBAL STATUS LIKE 'Com_update'")[0][1]
    client.close()
    return int(value)


def test_every_client_is_told_of_its_own_messages(plain: Queue) -> None:
    client = plain.create(ack_wait=600)
    last = CLIENTS // 2 * EACH
    insert_all(client, range(1, last + 1))
    run(client, ACK.format(5))
    ackers = Ackers(plain)
    # Two clients acknowledge the same ids, and each some that are not there.
    ackers.start(lambda n: [*range(n // 2 * EACH + 1, n // 2 * EACH + EACH + 1), 10_000 + n])
    ackers.join()
    of_messages = [ackers.answers[ident] for ident in range(1, last + 1)]
    assert all(sorted(each) == [0, 1] for each in of_messages[:4] + of_messages[5:])
    assert ackers.answers[5] == [0, 0]
    assert all(ackers.answers[10_000 + n] == [0] for n in range(CLIENTS))
    assert rows(client, UNACKED) == ((0,),)
    acked = "SELECT acked, in_flight FROM streamfrom.queues WHERE keyspace = 'plain'"
    assert rows(client, acked) == ((last, 0),)


def test_an_ack_leaves_nothing_in_its_session_but_what_a_server_leaves(plain: Queue) -> None:
    client = plain.create(ack_wait=600)
    insert_all(client, range(1, CLIENTS * EACH + 1))
    before = updates(plain)
    ackers = Ackers(plain)
    ackers.start(own)
    ackers.join()
    assert updates(plain) - before < CLIENTS * EACH, "some went together"
    for each in ackers.clients:
        assert rows(each, "SELECT ROW_COUNT(), @@autocommit") == ((1, 1),)
        run(each, "BEGIN")
        each.rollback()
        assert rows(each, "SHOW WARNINGS") == ()


def test_a_row_that_somebody_holds_keeps_nobody_else_waiting(plain: Queue) -> None:
    client = plain.create(ack_wait=600)
    insert_all(client, range(1, CLIENTS * EACH + 1))
    with locked(
        plain.cluster.servers[0],
        plain.cluster.databases["plain"],
        "SELECT id FROM my_message WHERE id = 7 FOR UPDATE",
    ):
        ackers = Ackers(plain)
        ackers.start(own)
        # The first client stands at its seventh message, as it would before a server.
        left = EACH - 6
        eventually(lambda: rows(client, UNACKED) == ((left,),), "all others are done")
        assert 7 not in ackers.answers
    ackers.join()
    assert all(each == [1] for each in ackers.answers.values())


def test_one_that_is_killed_has_done_nothing_and_the_others_go_on(plain: Queue) -> None:
    client = plain.create(ack_wait=600)
    insert_all(client, range(1, CLIENTS * EACH + 1))
    ackers = Ackers(plain)
    number = rows(ackers.clients[3], "SELECT CONNECTION_ID()")[0][0]
    ackers.start(own, again=True)
    with locked(
        plain.cluster.servers[0],
        plain.cluster.databases["plain"],
        "LOCK TABLES my_message WRITE",
    ):

        def is_killed() -> bool:
            # The first time it may come between two acks.
            run(client, f"KILL QUERY {number}")
            return any(-1317 in each for each in ackers.answers.values())

        eventually(is_killed, "it is killed")
    ackers.join()
    told = sorted(ackers.answers.values())
    assert told[0] in ([-1317, 1], [-1317, -1317, 1])
    assert all(each == [1] for each in told[1:])
    assert rows(client, UNACKED) == ((0,),)


def test_a_connection_that_breaks_tells_nobody_what_is_not_so(plain: Queue) -> None:
    client = plain.create(ack_wait=600)
    insert_all(client, range(1, CLIENTS * EACH + 1))
    ackers = Ackers(plain)
    ackers.start(own)
    past = root(plain.cluster.servers[0], autocommit=True)
    mine = rows(past, "SELECT CONNECTION_ID()")[0][0]
    database = plain.cluster.databases["plain"]
    for _ in range(5):
        time.sleep(0.02)
        for (ident,) in rows(
            past,
            "SELECT id FROM information_schema.processlist WHERE command = 'Query'"
            f" AND db = '{database}' AND id <> {mine}",
        ):
            run(past, f"KILL {ident}")
    ackers.join()
    unacked = {
        i
        for (i,) in rows(past, f"SELECT id FROM {database}.my_message WHERE time_acked IS NULL")
    }
    for ident, (told,) in ackers.answers.items():
        assert told == 1 or told < 0, "0 would be an ack of somebody else"
        assert told < 0 or ident not in unacked
    past.close()
