"""STREAM … LIMIT n [WAIT s]: an answer that ends, for any driver and over one connection."""

import time
from typing import Any

import pymysql
import pytest

from tests.fixtures.streams import Consume, rows, run
from tests.integration.conftest import CreateTable, SharedCluster
from tests.integration.delivery.producing import insert_all


pytestmark = pytest.mark.db


def taken(connection: Any, limit: int, wait: str = " WAIT 0") -> list[int]:
    """Return the ids of one answer."""
    return sorted(
        row[0] for row in rows(connection, f"STREAM id FROM my_message LIMIT {limit}{wait}")
    )


def test_one_connection_takes_acks_and_takes_again(
    cluster: SharedCluster, create: CreateTable, keyspace: str
) -> None:
    create(keyspace)
    connection = cluster.proxy.connect(database=keyspace, autocommit=True)
    assert taken(connection, 5) == []
    insert_all(connection, range(1, 31))
    first = taken(connection, 12)
    assert len(first) == 12
    run(
        connection, f"UPDATE my_message SET time_acked = NOW() WHERE id IN ({str(first)[1:-1]})"
    )
    second = taken(connection, 100)
    assert sorted(first + second) == list(range(1, 31))
    assert taken(connection, 5) == []
    assert rows(connection, "SELECT 1") == ((1,),)


def test_what_it_gave_is_held_by_its_lease_whatever_becomes_of_the_connection(
    cluster: SharedCluster, create: CreateTable, consume: Consume, keyspace: str
) -> None:
    create(keyspace, more=",vt_release_after=0.2")
    connection = cluster.proxy.connect(database=keyspace, autocommit=True)
    insert_all(connection, range(1, 4))
    script = cluster.proxy.connect(database=keyspace, autocommit=True)
    assert len(taken(script, 3)) == 3
    script.close()
    consume(cluster.proxy, database=keyspace).nothing(1)


def test_it_waits_for_the_first_message_and_no_longer(
    cluster: SharedCluster, create: CreateTable, keyspace: str
) -> None:
    create(keyspace)
    connection = cluster.proxy.connect(database=keyspace, autocommit=True)
    began_s = time.monotonic()
    assert taken(connection, 5, " WAIT 0.5") == []
    assert time.monotonic() - began_s >= 0.5
    moment = "INSERT INTO my_message (id, time_next) VALUES (1, NOW() + INTERVAL 1 SECOND)"
    run(connection, moment)
    assert taken(connection, 5, " WAIT 60") == [1]
    run(connection, moment.replace("(1,", "(2,"))
    assert taken(connection, 5, "") == [2]


@pytest.mark.parametrize(
    ("end", "sentence"),
    [
        ("LIMIT 0", "LIMIT must be a whole number greater than 0, not '0'"),
        ("LIMIT 'ten'", "LIMIT must be a whole number greater than 0, not 'ten'"),
        ("LIMIT 1.5", "LIMIT must be a whole number greater than 0, not '1.5'"),
        ("LIMIT NULL", "LIMIT must be a whole number greater than 0, not 'NULL'"),
        ("LIMIT 1 WAIT 'ten'", "WAIT must be a number of seconds, 0 for not at all, not 'ten'"),
        ("LIMIT -1", "near '-1'"),
        ("LIMIT 1 WAIT -1", "near '-1'"),
        ("WAIT 1", "near 'WAIT 1'"),
    ],
)
def test_a_bad_end_is_refused_and_the_connection_goes_on(
    cluster: SharedCluster, create: CreateTable, keyspace: str, end: str, sentence: str
) -> None:
    create(keyspace)
    connection = cluster.proxy.connect(database=keyspace, autocommit=True)
    with pytest.raises(pymysql.MySQLError, match=sentence):
        rows(connection, f"STREAM * FROM my_message {end}")
    assert rows(connection, "SELECT 1") == ((1,),)
