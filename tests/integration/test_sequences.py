"""Ids from a sequence, which no two proxies give twice."""

import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.fixtures.database_servers import execute
from tests.fixtures.running_proxy import (
    RunningProxy,
    StartProxy,
    by_hash,
    keyspace_toml,
    write_vschema,
)
from tests.fixtures.streams import rows, run, value


SEQUENCES = {"my_message": "seq", "customer": "lookup.seq", "broken": "lookup.nothing"}


@pytest.fixture
def config(tmp_path, servers, sharded_database):
    vschema = by_hash(**dict.fromkeys(SEQUENCES, "id"))
    for table, sequence in SEQUENCES.items():
        vschema["tables"][table]["auto_increment"] = {"column": "id", "sequence": sequence}
    sharded, lookup = write_vschema(tmp_path, vschema), tmp_path / "lookup.json"
    lookup.write_text(json.dumps({"tables": {"seq": {"type": "sequence"}}}))
    execute(servers[0], f"CREATE DATABASE {sharded_database}_lookup")
    return keyspace_toml("commerce", servers, sharded_database, sharded) + keyspace_toml(
        "lookup", servers[:1], f"{sharded_database}_lookup", lookup
    )


@pytest.fixture
def proxy(config: str, start_proxy: StartProxy) -> RunningProxy:
    proxy = start_proxy(config)
    client = proxy.connect(database="lookup", autocommit=True)
    run(
        client,
        "CREATE TABLE seq (id BIGINT PRIMARY KEY, next_id BIGINT, cache BIGINT)"
        " COMMENT 'vitess_sequence'",
    )
    run(client, "INSERT INTO seq (id, next_id, cache) VALUES (0, 1, 10)")
    run(client, "USE commerce")
    run(client, "CREATE TABLE customer (id BIGINT PRIMARY KEY, name VARCHAR(20))")
    return proxy


def test_inserts_take_their_ids_from_the_sequence(proxy: RunningProxy) -> None:
    client = proxy.connect(database="commerce", autocommit=True)
    with client.cursor() as cursor:
        cursor.execute("INSERT INTO customer (name) VALUES ('a'), ('b'), ('c'), ('d'), ('e')")
        assert (cursor.rowcount, cursor.lastrowid) == (5, 1)
        assert value(client, "SELECT LAST_INSERT_ID()") == 1
        cursor.execute("INSERT INTO customer SET name = 'f', id = NULL")
        assert cursor.lastrowid == 6
        cursor.execute("REPLACE INTO customer (id, name) VALUES (0, 'g'), (50, 'h')")
        assert cursor.lastrowid == 7
        cursor.execute("INSERT INTO customer (id, name) VALUES (51, 'own')")
        assert value(client, "SELECT LAST_INSERT_ID()") == 7
        cursor.execute("INSERT INTO customer VALUES (NULL, 'i')")
        assert cursor.lastrowid == 8
    found = rows(client, "SELECT id, name FROM customer ORDER BY id")
    assert found == (*enumerate("abcdefgi", 1), (50, "h"), (51, "own"))


def test_values_are_asked_for_and_given_once_by_two_proxies(proxy, config, start_proxy):
    clients = [
        each.connect(database="commerce", autocommit=True)
        for each in (proxy, proxy, start_proxy(config))
    ]
    assert rows(clients[0], "SELECT NEXT VALUE FROM lookup.seq") == ((1,),)
    assert rows(clients[1], "SELECT NEXT 25 VALUES FROM lookup.seq") == ((2,),)
    assert rows(clients[2], "SELECT NEXT VALUE FROM lookup.seq") == ((31,),)

    def work(client: Any) -> None:
        for _ in range(40):
            run(client, "INSERT INTO customer (name) VALUES ('x'), ('y')")

    with ThreadPoolExecutor() as workers:
        list(workers.map(work, clients))
    assert value(clients[0], "SELECT COUNT(DISTINCT id) FROM customer") == 240
