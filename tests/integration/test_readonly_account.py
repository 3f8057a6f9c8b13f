"""Users who may only read run on an account that can do no more, whatever the proxy thinks of them.

Most of these tests switch the proxy's own checks off (`tests.integration.unguarded`), so that each refusal
is the server's.
"""

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any

import pytest

from streamfrom.proxy.embedded.servers import Family
from streamfrom.proxy.wire.framing import frame
from tests.fixtures.database_servers import DatabaseServer, execute
from tests.fixtures.running_proxy import RunningProxy, StartProxy
from tests.fixtures.streams import eventually, message_table, refused, rows, run, value
from tests.integration.readonly_servers import ROWS, Walled, toml, with_accounts
from tests.proxy.fake_client import MARIADB, Client, Refused


pytestmark = pytest.mark.db

DENIED = {
    1044,  # of a database
    1049,  # of a database that the account cannot see, which the proxy looks for
    1045,  # of a file, without FILE
    1142,  # of a table
    1143,  # of a column
    1227,  # of a privilege of the whole server
    1290,  # of a file, where secure_file_priv allows none there
    1370,  # of a routine
    1410,  # of CREATE USER by GRANT
}
UNGUARDED = "tests.integration.unguarded"

# A billion rows.
SLOW = "SELECT SUM(a0.id + a14.id) FROM " + ", ".join(f"item a{number}" for number in range(15))


@pytest.fixture
def walled(
    breakable_servers: tuple[DatabaseServer, DatabaseServer], family: Family, tmp_path: Path
) -> Iterator[Walled]:
    yield from with_accounts(breakable_servers, family, tmp_path)


@pytest.fixture
def unguarded(walled: Walled, start_proxy: StartProxy) -> RunningProxy:
    return start_proxy(toml(walled), module=UNGUARDED)


def as_client(
    proxy: RunningProxy, work: Callable[[Client], Coroutine[Any, Any, Any]], **options: Any
) -> Any:
    """Run a coroutine with a client of the protocol itself, by default reader's."""

    async def all_of_it() -> Any:
        client = await Client.connect(proxy.port, **({"user": "reader"} | options))
        try:
            return await work(client)
        finally:
            await client.close()

    return asyncio.run(all_of_it())


async def code_of(client: Client, sql: str, *values: int) -> int:
    """Return the code that a prepared statement is refused with at last, 0 if it is not."""
    try:
        prepared, _, _ = await client.prepare(sql)
    except Refused as refusal:
        return refusal.error.code
    return (await client.execute(prepared, *values)).code


TARGETS = [("alpha", False), ("commerce", True), ("commerce:-80", False)]


@pytest.mark.parametrize(("target", "is_sharded"), TARGETS)
def test_no_text_gets_past_the_account(
    walled: Walled, unguarded: RunningProxy, target: str, is_sharded: bool
) -> None:
    before = walled.contents()
    mark = f"text {target}"

    async def send_all(client: Client) -> None:
        got_past = []
        for sql in walled.statements(sharded=is_sharded):
            found = await client.query(f"/* {mark} */ {sql}")
            if found.code not in DENIED:
                got_past.append((sql, found))
        assert got_past == []
        # The session goes on, and reads.
        assert len((await client.query(f"/* {mark} */ SELECT id FROM item")).rows) in {2, 4}

    as_client(unguarded, send_all, database=target)
    assert walled.contents() == before
    assert walled.accounts_of(mark) == {walled.ro}


@pytest.mark.parametrize(("target", "is_sharded"), TARGETS)
def test_no_prepared_statement_gets_past_it(
    walled: Walled, unguarded: RunningProxy, target: str, is_sharded: bool
) -> None:
    before = walled.contents()
    writes = (
        ("DELETE FROM item WHERE id = ?", (1,)),
        ("UPDATE item SET name = 'pwn' WHERE id = ?", (4,)),
        ("INSERT INTO item (id, name) VALUES (?, 'pwn')", (9,)),
        ("INSERT INTO item (id, name) VALUES (?, 'pwn'), (?, 'pwn')", (3, 7)),
        ("REPLACE INTO item (id, name) VALUES (?, 'pwn')", (1,)),
        ("DELETE FROM item", ()),
        ("TRUNCATE TABLE item", ()),
        ("DROP TABLE item", ()),
        (f"SELECT s FROM {walled.database('beta')}.secret WHERE 1 = ?", (1,)),
    )

    async def send_all(client: Client) -> None:
        for sql, values in writes:
            if is_sharded and "secret" in sql:
                continue
            # Refused when it is prepared, or at the latest when it is executed.
            code = await code_of(client, sql, *values)
            assert code in DENIED, (sql, code)
        prepared, _, _ = await client.prepare("SELECT name FROM item WHERE id = ?")
        assert len((await client.execute(prepared, 1)).rows) == 1
        # PREPARE in text.
        found = await client.query("PREPARE s FROM 'DELETE FROM item'")
        if not found.code:
            found = await client.query("EXECUTE s")
        assert found.code, found

    as_client(unguarded, send_all, database=target)
    assert walled.contents() == before


def test_no_early_ack_gets_past_it(walled: Walled, unguarded: RunningProxy) -> None:
    """The proxy would write it with the account that may."""
    owner = unguarded.connect(database="alpha", autocommit=True)
    run(owner, message_table(more=",vt_ack=early"))
    run(owner, "INSERT INTO my_message (id) VALUES (1)")
    assert value(owner, "STREAM id FROM my_message LIMIT 1") == 1
    ack = "UPDATE my_message SET time_acked = 5 WHERE id = 1"
    reader = unguarded.connect(user="reader", database="alpha", autocommit=True)
    assert refused(reader, ack)[0] in DENIED
    assert run(owner, ack) == 1


def test_no_batch_gets_past_it(walled: Walled, unguarded: RunningProxy) -> None:
    before = walled.contents()

    async def several(client: Client) -> None:
        assert (await client.command(b"\x1b\x00\x00")).error is None
        client.send("SELECT 1; DELETE FROM item; SELECT 2")
        results = await client.answer()
        assert results[-1].code in DENIED
        client.send("BEGIN; UPDATE item SET name = 'pwn' WHERE id = 1; COMMIT")
        assert (await client.answer())[-1].code in DENIED

    async def bulk(client: Client) -> None:
        sql = "INSERT INTO item (id, name) VALUES (?, ?)"
        try:
            prepared, _, _ = await client.prepare(sql)
        except Refused as refusal:
            code = refusal.error.code
        else:
            code = (await client.bulk(prepared, (8, "pwn"), (3, "pwn"), (7, "pwn"))).code
        assert code in DENIED

    for target in ("alpha", "commerce"):
        as_client(unguarded, several, database=target)
        if walled.family is Family.MARIADB:
            as_client(unguarded, bulk, database=target, capabilities=MARIADB)
    assert walled.contents() == before


def test_whoever_becomes_a_reader_is_one_and_nothing_crosses(
    walled: Walled, unguarded: RunningProxy
) -> None:
    before = walled.contents()

    async def back_and_forth(client: Client) -> None:
        for turn in range(3):
            assert (await client.query(f"/* cross w{turn} */ SET @x = 7")).error is None
            assert (await client.query("BEGIN")).error is None
            update = "UPDATE item SET name = 'mine' WHERE id = 1"
            assert (await client.query(f"/* cross w{turn} */ {update}")).error is None
            await client.change_user("reader", "", "alpha")
            ask = f"/* cross r{turn} */ "
            assert (await client.query(ask + "DELETE FROM item")).code in DENIED
            assert (await client.query(ask + "COMMIT")).error is None
            assert (await client.query(ask + "SELECT @x")).values == [None]
            found = await client.query(ask + "SELECT name FROM item WHERE id = 1")
            assert found.values == [b"a"]
            await client.change_user("root", "", "alpha")
            assert (await client.query("SELECT @x")).values == [None]

    as_client(unguarded, back_and_forth, user="root", database="alpha")
    assert walled.contents() == before
    for turn in range(3):
        assert walled.accounts_of(f"cross w{turn}") == {walled.rw}
        assert walled.accounts_of(f"cross r{turn}") == {walled.ro}


def test_every_way_to_read_uses_the_account(walled: Walled, unguarded: RunningProxy) -> None:
    questions = (
        "SELECT name FROM item WHERE id = 1",
        "SELECT COUNT(*), MAX(name) FROM item",
        "SELECT name, COUNT(*) FROM item GROUP BY name ORDER BY 2, 1 LIMIT 2",
        "SELECT DISTINCT name FROM item ORDER BY name",
        "SELECT a.id FROM item a JOIN item b ON a.id = b.id",
        "SELECT id FROM item UNION SELECT id FROM item ORDER BY 1",
        "SHOW TABLES",
        "SHOW COLUMNS FROM item",
        "SHOW CREATE TABLE item",
        "SHOW WARNINGS",
        "SHOW STATUS LIKE 'Threads%'",
        "EXPLAIN SELECT * FROM item",
        "DESCRIBE item",
        "SELECT table_name FROM information_schema.tables LIMIT 1",
        "SELECT GET_LOCK('wall', 0)",
        "DO 1",
        "SET @a = (SELECT 1)",
        "SHOW VARIABLES LIKE 'version'",
        "CHECKSUM TABLE item",
    )

    async def ask_all(client: Client) -> None:
        for target in ("alpha", "commerce", "commerce:80-", "information_schema"):
            assert (await client.query(f"USE `{target}`")).error is None
            for sql in questions:
                await client.query(f"/* ask */ {sql}")
        await client.query("USE alpha")
        # COM_FIELD_LIST, COM_INIT_DB
        await client.command(b"\x02commerce")
        client.write(frame(b"\x04item\x00%", 0))
        answer = await client.packet(1)
        while answer[0] != 0xFE:
            answer = await client.packet()
        # A database beside a keyspace.
        await client.query(f"USE {walled.database('beta')}")
        await client.query("/* ask */ SELECT * FROM secret")

    as_client(unguarded, ask_all, database="alpha")
    assert walled.accounts_of("ask") == {walled.ro}


def test_reads_that_share_a_connection_share_one_of_their_own_account(
    walled: Walled, unguarded: RunningProxy
) -> None:
    """Forty clients of either kind ask the same at once; each is answered by its own account."""

    async def crowd() -> None:
        clients = [
            await Client.connect(unguarded.port, user=user, database="alpha")
            for user in ("root", "reader") * 20
        ]
        mark = {0: "line w", 1: "line r"}

        async def ask(index: int, client: Client) -> None:
            for number in range(60):
                found = await client.query(
                    f"/* {mark[index % 2]} */ SELECT name FROM item WHERE id = {ROWS[number % 4][0]}"
                )
                assert found.values == [ROWS[number % 4][1].encode()]

        await asyncio.gather(*(ask(index, client) for index, client in enumerate(clients)))
        for client in clients:
            await client.close()

    asyncio.run(crowd())
    assert walled.accounts_of("line w") == {walled.rw}
    assert walled.accounts_of("line r") == {walled.ro}


def test_two_phases_are_not_for_readers(walled: Walled, start_proxy: StartProxy) -> None:
    proxy = start_proxy(toml(walled, settings='transaction_mode = "twopc"'), module=UNGUARDED)

    async def transact(client: Client) -> None:
        for sql in (
            "BEGIN",
            "SELECT name FROM item WHERE id = 1",
            "SELECT name FROM item WHERE id = 4",
            "COMMIT",
        ):
            assert (await client.query(sql)).error is None, sql

    as_client(proxy, transact, database="commerce")
    assert walled.accounts_of("XA START") == set()
    as_client(proxy, transact, database="commerce", user="root")
    assert walled.accounts_of("XA START") == {walled.rw}


def test_the_guard_and_the_account_agree(walled: Walled, start_proxy: StartProxy) -> None:
    """With the proxy's own checks on, readers read; what they lose is what the server refuses."""
    proxy = start_proxy(toml(walled))
    reader = proxy.connect(user="areader", database="alpha", autocommit=True)
    assert rows(reader, "SELECT id, name FROM item ORDER BY id") == ROWS
    assert refused(reader, "DELETE FROM item")[0] == 1142
    assert refused(reader, "USE beta")[0] == 1044
    sharded = proxy.connect(user="reader", database="commerce", autocommit=True)
    assert rows(sharded, "SELECT id, name FROM item ORDER BY id") == ROWS
    writer = proxy.connect(database="commerce", autocommit=True)
    assert run(writer, "UPDATE item SET name = 'z' WHERE id = 1") == 1
    assert value(sharded, "SELECT name FROM item WHERE id = 1") == "z"
    # A keyspace without such an account is read by the other one, as the log says.
    beta = proxy.connect(user="reader", database="beta", autocommit=True)
    assert value(beta, "SELECT /* open */ s FROM secret") == "TOPSECRET"
    assert walled.accounts_of("open") == {walled.rw}


def test_a_reader_kills_what_it_runs_and_locks_are_known_across_accounts(
    walled: Walled, start_proxy: StartProxy
) -> None:
    proxy = start_proxy(toml(walled))
    reader = proxy.connect(user="reader", database="alpha", autocommit=True)
    other = proxy.connect(user="reader", database="alpha", autocommit=True)
    number = value(reader, "SELECT CONNECTION_ID()")

    async def work_and_kill() -> Any:
        loop = asyncio.get_running_loop()
        working = loop.run_in_executor(None, lambda: refused(reader, SLOW)[:1])
        await loop.run_in_executor(None, lambda: eventually(lambda: works(walled)))
        run(other, f"KILL QUERY {number}")
        return await working

    assert asyncio.run(work_and_kill()) == (1317,)
    writer = proxy.connect(database="alpha", autocommit=True)
    assert value(writer, "SELECT GET_LOCK('wall', 0)") == 1
    assert value(reader, "SELECT IS_USED_LOCK('wall')") == value(
        writer, "SELECT CONNECTION_ID()"
    )


def works(walled: Walled) -> bool:
    return bool(
        execute(
            walled.servers[0],
            "SELECT id FROM information_schema.processlist WHERE info LIKE 'SELECT SUM(a0.id%'"
            f" AND user = '{walled.ro}'",
        )
    )


def test_what_a_server_is_told_for_everybody_reaches_readers(
    walled: Walled, start_proxy: StartProxy
) -> None:
    proxy = start_proxy(toml(walled))
    reader = proxy.connect(user="reader", database="alpha", autocommit=True)
    before = value(reader, "SELECT @@lock_wait_timeout")
    reader.close()
    writer = proxy.connect(database="alpha", autocommit=True)
    run(writer, "SET GLOBAL lock_wait_timeout = 77")
    try:
        later = proxy.connect(user="reader", database="alpha", autocommit=True)
        assert value(later, "SELECT @@lock_wait_timeout") == 77
    finally:
        run(writer, f"SET GLOBAL lock_wait_timeout = {before}")


def test_an_account_that_cannot_log_in_refuses_readers_alone(
    walled: Walled, start_proxy: StartProxy
) -> None:
    proxy = start_proxy(toml(walled).replace(f"{walled.ro}:ro@", f"{walled.ro}:wrong@"))
    proxy.wait_for_log("shard not available")

    async def ask(client: Client) -> None:
        for sql in ("SELECT name FROM item WHERE id = 1", "SHOW TABLES", "SET NAMES latin1"):
            found = await client.query(sql)
            assert found.code == 1045
            assert found.message.startswith(
                "the readonly account of shard '0' of keyspace 'alpha' cannot log in ("
            )
            assert "Access denied for user" in found.message
            assert found.message.endswith(
                "); readonly users are served by no other: have the operator run streamfrom check"
            )
        writer = proxy.connect(database="alpha", autocommit=True)
        assert value(writer, "SELECT COUNT(*) FROM item") == 4
        # Mended, it serves the same session.
        execute(walled.servers[0], f"ALTER USER {walled.ro}@'%' IDENTIFIED BY 'wrong'")
        assert len((await client.query("SELECT id FROM item")).rows) == 4

    as_client(proxy, ask, database="alpha")


def test_a_reader_rides_out_a_restart(walled: Walled, start_proxy: StartProxy) -> None:
    proxy = start_proxy(toml(walled))
    reader = proxy.connect(user="reader", database="commerce", autocommit=True)
    assert rows(reader, "SELECT id, name FROM item ORDER BY id") == ROWS

    async def restart() -> Any:
        loop = asyncio.get_running_loop()
        walled.servers[1].kill()
        asked = loop.run_in_executor(
            None, lambda: rows(reader, "SELECT id, name FROM item ORDER BY id")
        )
        await loop.run_in_executor(None, walled.servers[1].start)
        return await asked

    assert asyncio.run(restart()) == ROWS
    for keyspace_id in (1, 4):
        assert len(rows(reader, f"SELECT name FROM item WHERE id = {keyspace_id}")) == 1
