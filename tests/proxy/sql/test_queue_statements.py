"""Roles and lists hold for queues as for the tables that they are."""

from collections.abc import Iterator

import pytest

from streamfrom.proxy.embedded.servers import Family
from tests.fixtures.database_servers import ServerPool
from tests.integration.walled_servers import Walls, walls


pytestmark = pytest.mark.db


@pytest.fixture(scope="module")
def walled(
    server_pool: ServerPool, family: Family, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Walls]:
    yield from walls(server_pool.server(family, 0), tmp_path_factory.mktemp("queues"))


MAKES = (
    "CREATE QUEUE q (a INT)",
    "ALTER QUEUE msg SET (ack_wait = 3)",
    "DROP QUEUE msg",
    "DROP QUEUE IF EXISTS nothing",
)


@pytest.mark.parametrize("sql", MAKES)
@pytest.mark.parametrize("user", ["reader", "areader", "producer", "consumer", "narrow"])
def test_who_may_not_define_makes_no_queue(walled: Walls, user: str, sql: str) -> None:
    before = walled.state()
    assert "1142" in walled.say(user, sql)
    assert walled.state() == before


@pytest.mark.parametrize(
    "sql",
    [
        "CREATE QUEUE BETA.q (a INT)",
        "DROP QUEUE IF EXISTS BETA.secret",
        "ALTER QUEUE BETA.secret SET (ack_wait = 3)",
        "SHOW QUEUES FROM BETA",
        "SHOW CREATE QUEUE BETA.secret",
        "CREATE QUEUE q (a INT REFERENCES BETA.secret (id))",
        "CREATE QUEUE q (a INT, CHECK (a < BETA.fn()))",
    ],
)
def test_a_list_of_keyspaces_holds(walled: Walls, sql: str) -> None:
    before = walled.state()
    said = walled.say("awriter", sql)
    assert "1044" in said or "1142" in said, said
    assert walled.state() == before


@pytest.mark.parametrize("user", ["boss", "writer", "awriter"])
def test_who_may_define_makes_queues(walled: Walls, user: str) -> None:
    for sql, answer in (
        ("CREATE QUEUE q (a INT)", "[]"),
        ("ALTER QUEUE q SET (ack_wait = 3)", "[]"),
        ("SHOW QUEUES", "(('msg',), ('q',))"),
        ("DROP QUEUE q", "[]"),
    ):
        assert walled.say(user, sql) == answer


def test_queues_are_shown_to_whom_they_concern(walled: Walls) -> None:
    assert walled.say("narrow", "SHOW QUEUES") == "(('msg',),)"
    walled.say("boss", "CREATE QUEUE q (a INT)")
    try:
        assert walled.say("narrow", "SHOW QUEUES") == "(('msg',),)"
        assert "1142" in walled.say("narrow", "SHOW CREATE QUEUE q")
        assert "CREATE QUEUE" in walled.say("consumer", "SHOW CREATE QUEUE q")
        assert "1142" in walled.say("producer", "SHOW CREATE QUEUE q")
        walled.say("boss", "INSERT INTO q (id) VALUES (1)")
        said = walled.say("consumer", "UPDATE q SET state = 'acked' WHERE id = 1")
        assert said == "[]"
        assert walled.direct("SELECT state FROM ALPHA.q") == (("acked",),)
        assert "1142" in walled.say("consumer", "UPDATE t SET state = 'acked' WHERE id = 1")
    finally:
        walled.say("boss", "DROP QUEUE q")
