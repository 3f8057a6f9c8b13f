"""A shard that is down before CREATE, ALTER and DROP QUEUE, or goes down in the middle of one."""

from collections.abc import Sequence
from typing import Any

import pymysql
import pytest

from tests.fixtures.background import in_thread, running
from tests.fixtures.database_servers import DatabaseServer, execute, root
from tests.fixtures.streams import eventually, message_table, refused, run, tried


pytestmark = [pytest.mark.one_server, pytest.mark.slow]

CREATE = "CREATE QUEUE my_message (a INT) PARTITION BY DAY WITH (ack_wait = 5)"


def definitions(servers: Sequence[DatabaseServer], database: str) -> list[Any]:
    """Return the comment and the columns of the queue on each server, None where it is not."""
    return [
        execute(
            server,
            "SELECT table_comment, (SELECT GROUP_CONCAT(column_name ORDER BY ordinal_position) FROM"
            " information_schema.columns c WHERE c.table_schema = t.table_schema"
            " AND c.table_name = t.table_name) FROM information_schema.tables t"
            f" WHERE table_schema = '{database}' AND table_name = 'my_message'",
        )
        for server in servers
    ]


ALTER = "ALTER QUEUE my_message SET (ack_wait = 7)"
DROP = "DROP QUEUE my_message"


def test_a_queue_that_was_made_on_one_shard_alone_is_logged(start):
    proxy = start()
    client = proxy.connect(database="commerce:80-", autocommit=True)
    run(client, message_table("my_message"))
    assert refused(client, "STREAM * FROM my_message")[0] == 1146
    event = "message tables differ between shards: streamfrom check says how"
    proxy.wait_for_log(event)
    (line,) = [line for line in proxy.log().splitlines() if event in line]
    assert '"shard": "80-"' in line
    assert '"queues": ["my_message"]' in line


@pytest.fixture
def proxy(start):
    return start(failover_buffer=0.3)


@pytest.fixture
def client(proxy, sql):
    """A client that is to send *sql*; what that is for is there."""
    client = proxy.connect(database="commerce", autocommit=True)
    if sql != CREATE:
        run(client, CREATE)
    return client


@pytest.mark.parametrize(("sql", "down"), [(CREATE, 1), (ALTER, 0), (DROP, 1)])
def test_nothing_changes_while_a_shard_is_down_and_the_second_try_completes_it(
    proxy, client, breakable_servers, breakable_database, sql, down
):
    before = definitions(breakable_servers, breakable_database)
    breakable_servers[down].stop()
    assert ("-80", "80-")[down] in refused(client, sql)[1]
    other = breakable_servers[1 - down]
    assert definitions((other,), breakable_database) == [before[1 - down]]
    client.ping(reconnect=False)
    breakable_servers[down].start()
    eventually(lambda: tried(client, sql) is not None, "the second try")
    first, second = definitions(breakable_servers, breakable_database)
    assert first == second != before[0]
    assert (first == ()) is (sql == DROP)


@pytest.mark.parametrize("killed", ["shard", "proxy"])
@pytest.mark.parametrize("sql", [CREATE, ALTER, DROP])
def test_what_was_left_half_made_a_second_try_completes(
    start, proxy, client, breakable_servers, breakable_database, sql, killed
):
    second = breakable_servers[1]
    holder = root(second)
    run(holder, "FLUSH TABLES WITH READ LOCK")
    outcome = in_thread(lambda: run(client, sql))
    word = f"{sql.split()[0]} TABLE"
    eventually(
        lambda: any(word in str(each[1]) for each in running(second, "my_message")),
        "the second shard is asked",
    )
    (second if killed == "shard" else proxy).kill()
    error = outcome()
    assert isinstance(error, pymysql.MySQLError)
    if killed == "shard":
        assert "80-" in str(error)
        second.start()
        again = proxy.connect(database="commerce", autocommit=True)
        eventually(lambda: tried(again, sql) is not None, "the second try")
    else:
        # The server may carry it out yet, for nobody, or not at all.
        holder.close()
        again = start(failover_buffer=0.3).connect(database="commerce", autocommit=True)
        if tried(again, sql) is None:
            code, text = refused(again, sql)
            assert code == {CREATE: 1050, DROP: 1051}[sql], text
    one, other = definitions(breakable_servers, breakable_database)
    assert one == other
    assert (one == ()) is (sql == DROP)
