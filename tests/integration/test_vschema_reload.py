"""A vschema that changes under a running proxy, its sessions and its streams."""

import json
import os
import signal
from pathlib import Path

import pytest

from tests.fixtures.database_servers import execute
from tests.fixtures.running_proxy import by_hash
from tests.fixtures.streams import message_table, refused, rows, run


pytestmark = [pytest.mark.db, pytest.mark.one_server]

IDS = "SELECT id FROM customer ORDER BY id"
LOW, HIGH = 1, 4  # what hash says of them: -80 and 80-


def shard_customer(tmp_path: Path, column: str) -> None:
    """Write another vschema at once, as tools that deploy files do."""
    other = tmp_path / "other.json"
    other.write_text(json.dumps(by_hash(my_message="id", customer=column)))
    os.replace(other, tmp_path / "vschema.json")


def test_sessions_and_streams_live_on_when_the_vschema_changes(
    sharded_proxy, tmp_path, consume
):
    client = sharded_proxy.connect(database="commerce", autocommit=True)
    run(client, message_table("my_message"))
    run(client, "CREATE TABLE customer (id BIGINT PRIMARY KEY, ref BIGINT)")
    consumer = consume(sharded_proxy, database="commerce")
    assert refused(client, "SELECT * FROM customer")[0] == 1235

    shard_customer(tmp_path, "id")
    sharded_proxy.wait_for_log("vschema reloaded")
    run(client, f"INSERT INTO customer (id, ref) VALUES ({LOW}, {HIGH}), ({HIGH}, {LOW})")
    assert rows(client, IDS) == ((LOW,), (HIGH,))

    shard_customer(tmp_path, "ref")
    os.kill(sharded_proxy.pid, signal.SIGHUP)
    sharded_proxy.wait_for_log('"vschema reloaded"', times=2)
    # Rows are looked for where their `ref` would have put them.
    assert rows(client, f"SELECT id FROM customer WHERE ref = {LOW}") == ()

    (tmp_path / "vschema.json").write_text('{"sharded": tru')
    sharded_proxy.wait_for_log("vschema not reloaded, the old one is still used")
    assert rows(client, IDS) == ((LOW,), (HIGH,))
    ((_, _, _, comment),) = rows(client, "SHOW VSCHEMA KEYSPACES")
    assert "is no JSON" in comment

    run(client, f"INSERT INTO my_message (id, message) VALUES ({HIGH}, '{{}}')")
    assert consumer.take(1)[0][0] == HIGH
    assert sharded_proxy.process.poll() is None


def test_a_prepared_statement_is_routed_anew(
    sharded_proxy, servers, sharded_database, tmp_path
):
    shard_customer(tmp_path, "id")
    sharded_proxy.wait_for_log("vschema reloaded")
    client = sharded_proxy.connector("commerce")
    client.cursor().execute("CREATE TABLE customer (id BIGINT PRIMARY KEY, ref BIGINT)")
    prepared = client.cursor(prepared=True)
    insert = "INSERT INTO customer (id, ref) VALUES (?, ?)"
    prepared.execute(insert, (LOW, HIGH))
    shard_customer(tmp_path, "ref")
    sharded_proxy.wait_for_log("vschema reloaded", times=2)
    prepared.execute(insert, (LOW + 1, HIGH))
    client.close()
    assert [execute(server, IDS, database=sharded_database) for server in servers] == [
        ((LOW,),),
        ((LOW + 1,),),
    ]
