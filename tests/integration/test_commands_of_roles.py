"""Commands that are no text, by each role: they reach no further than the statements they stand for."""

import struct
from collections.abc import Iterator
from typing import Any

import pymysql
import pytest
from pymysql.constants import COMMAND

from streamfrom.proxy.embedded.servers import Family
from tests.fixtures.database_servers import ServerPool
from tests.integration.walled_servers import HIDDEN, SECRET, Walls, walls


pytestmark = pytest.mark.db

EVERYBODY = ("boss", "writer", "reader", "areader", "awriter", "narrow", "producer", "consumer")
OF_ALPHA = ("areader", "awriter", "producer", "consumer")
RESTRICTED = (*OF_ALPHA, "reader", "narrow")
RESET_CONNECTION, STMT_BULK_EXECUTE, CHANGE_USER = 0x1F, 0xFA, 0x11
# COM_CREATE_DB, DROP_DB, SHUTDOWN, CONNECT, TIME, DELAYED_INSERT, BINLOG_DUMP, TABLE_DUMP,
# CONNECT_OUT, REGISTER_SLAVE, DAEMON, BINLOG_DUMP_GTID, CLONE, SUBSCRIBE_GROUP_REPLICATION_STREAM.
FOR_SERVERS = (5, 6, 8, 0x0B, 0x0F, 0x10, 0x12, 0x13, 0x14, 0x15, 0x1D, 0x1E, 0x20, 0x21)


@pytest.fixture(scope="module")
def walled(
    server_pool: ServerPool, family: Family, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Walls]:
    yield from walls(server_pool.server(family, 0), tmp_path_factory.mktemp("walls"))


@pytest.fixture
def cluster(walled: Walls) -> Iterator[Walls]:
    """The cluster, which must be found as it was built."""
    before, account = walled.state(), walled.account()
    yield walled
    walled.clients.clear()
    walled.proxy.disconnect()
    assert walled.state() == before
    assert walled.account() == account
    assert "internal error" not in walled.proxy.log()


def ask(client: Any, code: int, argument: bytes = b"") -> bytes:
    """Return the first packet of the answer. Raises what the error in it says."""
    client._execute_command(code, argument)
    return bytes(client._read_packet().get_all_data())


def refusal(client: Any, code: int, argument: bytes = b"") -> int:
    """Return the number of the error that a command gets; the connection goes on working."""
    with pytest.raises(pymysql.MySQLError) as refused:
        ask(client, code, argument)
    with client.cursor() as cursor:
        cursor.execute("SELECT 1")
        assert cursor.fetchall() == ((1,),)
    return int(refused.value.args[0])


@pytest.mark.parametrize("user", EVERYBODY)
def test_what_is_for_servers_is_for_nobody(cluster: Walls, user: str) -> None:
    client = cluster.client(user)
    argument = struct.pack("<IHI", 4, 0, 7) + b"beta\0"
    assert [refusal(client, code, argument) for code in FOR_SERVERS] == [1047] * len(
        FOR_SERVERS
    )


@pytest.mark.parametrize("user", OF_ALPHA)
def test_no_command_enters_another_keyspace(cluster: Walls, user: str) -> None:
    client = cluster.client(user)
    assert refusal(client, COMMAND.COM_INIT_DB, f"{cluster.beta}@replica".encode()) in (
        1044,
        1105,
    )
    for name in (cluster.beta, f"{cluster.beta}:0", "mysql", "sys"):
        assert refusal(client, COMMAND.COM_INIT_DB, name.encode()) == 1044
    assert refusal(client, COMMAND.COM_FIELD_LIST, b"secret\0") in (1142, 1146, 1044)
    assert refusal(client, COMMAND.COM_FIELD_LIST, cluster.beta.encode() + b".secret\0") in (
        1103,
        1142,
        1146,
        1044,
    )
    assert SECRET not in cluster.say(user, "SELECT s FROM BETA.secret")


def test_the_columns_of_a_table_are_for_who_may_see_them(cluster: Walls) -> None:
    for user, table in (("narrow", "other"), ("producer", "t")):
        assert (
            refusal(cluster.client(user), COMMAND.COM_FIELD_LIST, table.encode() + b"\0")
            == 1142
        )
    for user, table in (("narrow", "t"), ("areader", "other"), ("writer", "t")):
        client = cluster.client(user)
        assert b"id" in ask(client, COMMAND.COM_FIELD_LIST, table.encode() + b"\0%")
        client._force_close()


@pytest.mark.parametrize("user", EVERYBODY)
def test_nobody_reloads_the_rights_by_a_command(cluster: Walls, user: str) -> None:
    for flags in (b"\x01", b"\x03", b"\xff"):
        assert refusal(cluster.client(user), COMMAND.COM_REFRESH, flags) in (1047, 1142, 1235)


@pytest.mark.parametrize("user", RESTRICTED)
def test_a_restricted_user_flushes_nothing_by_a_command(cluster: Walls, user: str) -> None:
    for flags in (b"", b"\0", b"\x02", b"\x04", b"\x08", b"\x10", b"\x20", b"\x40", b"\x80"):
        assert refusal(cluster.client(user), COMMAND.COM_REFRESH, flags) == 1142


@pytest.mark.parametrize("user", OF_ALPHA)
def test_a_change_of_user_changes_what_one_may(cluster: Walls, user: str) -> None:
    plugin = b"\x2d\0mysql_native_password\0"
    client = cluster.client(user)
    other = cluster.beta.encode()
    asked = ask(client, CHANGE_USER, b"boss\0\0" + other + b"\0" + plugin)
    assert asked[:1] == b"\xfe"  # for a proof; an empty one is none
    client.write_packet(b"")
    with pytest.raises(pymysql.MySQLError) as refused:
        client._read_packet()
    assert refused.value.args[0] == 1045
    client._force_close()
    assert SECRET not in cluster.say(user, "SELECT s FROM BETA.secret")


@pytest.mark.parametrize("user", RESTRICTED)
def test_a_reset_connection_is_still_of_its_user(cluster: Walls, user: str) -> None:
    client = cluster.client(user)
    assert ask(client, RESET_CONNECTION)[:1] == b"\0"
    seen = cluster.say(user, "SET PASSWORD = 'x'") + cluster.say(
        user, "DELETE FROM ALPHA.other"
    )
    assert seen.count("Error") == 2 or user == "awriter"
    if user in OF_ALPHA:
        assert SECRET not in cluster.say(user, "SELECT s FROM BETA.secret")
    cluster.direct(f"REPLACE INTO ALPHA.other VALUES (1, '{HIDDEN}')")


@pytest.mark.parametrize("user", ["areader", "reader", "consumer", "producer"])
def test_a_batch_is_prepared_first_and_so_refused(cluster: Walls, user: str) -> None:
    client = cluster.client(user)
    assert refusal(client, COMMAND.COM_STMT_PREPARE, b"INSERT INTO t VALUES (?, ?, ?)") == 1142
    body = struct.pack("<IH", 1, 128) + b"\x03\0\xfd\0\x03\0" + b"\0\x63\0\0\0\0\x01w\0\0\0\0\0"
    assert refusal(client, STMT_BULK_EXECUTE, body) == 1243
    last = struct.pack("<IH", 0xFFFFFFFF, 128) + body[6:]
    assert refusal(client, STMT_BULK_EXECUTE, last) == 1243


@pytest.mark.parametrize("user", RESTRICTED)
def test_what_is_told_of_the_server_tells_of_nobody_else(cluster: Walls, user: str) -> None:
    other = cluster.client("boss")
    client = cluster.client(user)
    told = ask(client, COMMAND.COM_STATISTICS)
    assert cluster.beta.encode() not in told
    assert b"boss" not in told
    assert ask(client, COMMAND.COM_DEBUG)[:1] == b"\xfe"
    number = other.thread_id()
    assert refusal(client, COMMAND.COM_PROCESS_KILL, struct.pack("<I", number)) == 1095
    assert cluster.say("boss", "SELECT 1") == "((1,),)"
    for option in (b"\0\0", b"\1\0"):
        assert ask(client, COMMAND.COM_SET_OPTION, option)[:1] == b"\xfe"
    assert "boss" not in cluster.say(user, "SHOW FULL PROCESSLIST")
