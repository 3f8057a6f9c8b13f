"""The questions for depths: one for many tables, and how either server's answer is read."""

import pytest

from streamfrom.engine.messaging.store.conversation import StoreAnswer
from streamfrom.engine.messaging.upkeep.depths import TABLES_MAX, Depth, depths
from tests.engine.messaging.conversations import answered
from tests.sim.memory_store import loaded, raw_table


def asked(tables, *answers):
    given = [StoreAnswer([(row, b"") for row in rows]) for rows in answers]
    queries, found = answered(depths(tables), *given)
    return [query.sql for query in queries], found


def on_mariadb(alias, rows):
    return (b"1", b"PRIMARY", alias, b"ref", b"k", b"k", b"9", b"const", rows, b"Using index")


def on_mysql(alias, rows):
    return b"1", b"UNION", alias, None, b"ref", b"k", b"k", b"9", b"const", rows, b"100.0", None


NO_ROW = (b"2", b"UNION", None, None, None, None, None, None, None, b"Impossible WHERE")
RESULT = (None, b"UNION RESULT", b"<union1,2>", *[None] * 9)


@pytest.mark.parametrize(
    "estimates",
    [
        [on_mariadb(b"q0", b"700"), NO_ROW],
        [on_mysql(b"q1", b"3"), on_mysql(b"q0", b"700"), RESULT],
    ],
)
def test_both_servers_answers_are_read(estimates):
    tables = [loaded(raw_table("a")), loaded(raw_table("b`c"))]
    priorities = [(b"0", b"50")], [(b"0", None)]
    queries, found = asked(
        tables, estimates, [(b"1", b"3", b"1")], *priorities, [(b"0", b"20", b"100")]
    )
    assert found == {"a": Depth(680, 20), "b`c": Depth(2, 1)}
    assert b"FROM `b``c` AS q1 WHERE time_acked IS NULL" in queries[0]
    assert queries[1].count(b"COUNT(*)") == 1, "what is many is not counted"


def test_many_tables_are_asked_for_in_several_questions():
    tables = [loaded(raw_table(f"t{index}")) for index in range(TABLES_MAX + 1)]
    large = [on_mariadb(b"q0", b"700")]
    of_large = large, [(b"0", None)], [(b"0", b"0", b"100")]
    counted = [(b"%d" % index, b"5", b"0") for index in range(1, TABLES_MAX)]
    queries, found = asked(tables, large, counted, *of_large[1:], *of_large)
    counts = [sql.count(b"UNION ALL") for sql in queries]
    assert (counts[0], counts[1]) == (TABLES_MAX - 1, TABLES_MAX - 2)
    assert len(found) == TABLES_MAX + 1
    assert [found[f"t{n}"].unacked for n in (0, 1, TABLES_MAX)] == [700, 5, 700]
