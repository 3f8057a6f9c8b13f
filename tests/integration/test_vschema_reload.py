"""A vschema that changes under a running proxy, its sessions and its streams."""

import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from tests.fixtures.database_servers import execute
from tests.fixtures.running_proxy import MESSAGE_VSCHEMA
from tests.fixtures.streams import message_table, refused, rows, run


pytestmark = [pytest.mark.db, pytest.mark.one_server]

CUSTOMER = {"column_vindexes": [{"column": "id", "name": "hash"}]}
IDS = "SELECT id FROM customer ORDER BY id"
LOW, HIGH = 1, 4  # what hash says of them: -80 and 80-


def replace_vschema(tmp_path: Path, tables: dict[str, Any]) -> None:
    """Write another vschema at once, as tools that deploy files do."""
    vschema = MESSAGE_VSCHEMA | {"tables": MESSAGE_VSCHEMA["tables"] | tables}  # type: ignore[operator]
    other = tmp_path / "other.json"
    other.write_text(json.dumps(vschema))
    os.replace(other, tmp_path / "vschema.json")


def test_sessions_and_streams_live_on_when_the_vschema_changes(
    sharded_proxy, tmp_path, consume
):
    client = sharded_proxy.connect(database="commerce", autocommit=True)
    run(client, message_table("my_message"))
    run(client, "CREATE TABLE customer (id BIGINT PRIMARY KEY, ref BIGINT)")
    consumer = consume(sharded_proxy, database="commerce")
    assert refused(client, "SELECT * FROM customer")[0] == 1235

    replace_vschema(tmp_path, {"customer": CUSTOMER})
    sharded_proxy.wait_for_log("vschema reloaded")
    run(client, f"INSERT INTO customer (id, ref) VALUES ({LOW}, {HIGH}), ({HIGH}, {LOW})")
    assert rows(client, IDS) == ((LOW,), (HIGH,))

    other = {"column_vindexes": [{"column": "ref", "name": "hash"}]}
    replace_vschema(tmp_path, {"customer": other})
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
    replace_vschema(tmp_path, {"customer": CUSTOMER})
    sharded_proxy.wait_for_log("vschema reloaded")
    client = sharded_proxy.connector("commerce")
    client.cursor().execute("CREATE TABLE customer (id BIGINT PRIMARY KEY, ref BIGINT)")
    prepared = client.cursor(prepared=True)
    insert = "INSERT INTO customer (id, ref) VALUES (?, ?)"
    prepared.execute(insert, (LOW, HIGH))
    by_ref = {"column_vindexes": [{"column": "ref", "name": "hash"}]}
    replace_vschema(tmp_path, {"customer": by_ref})
    sharded_proxy.wait_for_log("vschema reloaded", times=2)
    prepared.execute(insert, (LOW + 1, HIGH))
    client.close()
    assert [execute(server, IDS, database=sharded_database) for server in servers] == [
        ((LOW,),),
        ((LOW + 1,),),
    ]
