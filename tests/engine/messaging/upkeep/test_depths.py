"""The questions for depths: one for many tables, and how either server's answer is read."""

from dataclasses import replace

import pytest

from streamfrom.engine.messaging.store.conversation import StoreAnswer
from streamfrom.engine.messaging.upkeep.depths import (
    PARKED_COUNTED_MAX,
    PRIORITIES_MAX,
    TABLES_MAX,
    Depth,
    depths,
)
from tests.engine.messaging.conversations import answered
from tests.sim.memory_store import DEFAULT_COMMENT, loaded, raw_table


def asked(tables, *answers):
    given = [StoreAnswer([(row, b"") for row in rows]) for rows in answers]
    queries, found = answered(depths("db", tables), *given)
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


MANY = [on_mariadb(b"q0", b"50000")]
TO_MANY = b"%d" % PARKED_COUNTED_MAX


@pytest.mark.parametrize(
    ("first", "answers", "expected"),
    [
        # Both are many: each is estimated, and is at least what was counted.
        ([MANY], [[(b"0", TO_MANY, b"100")], [on_mariadb(b"q0", b"30000")], [on_mysql(b"q0", b"7")]], Depth(100, 30000)),
        ([MANY], [[(b"0", TO_MANY, b"9")], [on_mariadb(b"q0", b"400")]], Depth(9, PARKED_COUNTED_MAX)),
        ([MANY], [[(b"0", b"20", b"9")]], Depth(9, 20)),
        # Few rows that were estimated may be many.
        ([[on_mariadb(b"q0", b"3")], [(b"0", b"100", b"0")]], [[(b"0", b"0", b"100")]], Depth(100, 0)),
    ],
)  # fmt: skip
def test_what_is_many_is_estimated_and_what_is_few_is_counted(first, answers, expected):
    table = loaded(raw_table("a"))
    priorities = [(b"0", b"50")], [(b"0", None)]
    assert asked([table], *first, *priorities, *answers)[1] == {"a": expected}


def test_without_an_index_for_it_parked_rows_are_not_looked_for_among_many():
    table = replace(loaded(raw_table("a")), time_index=None)
    assert asked([table], MANY)[1] == {"a": Depth(50000, None)}


def test_rows_of_so_many_priorities_are_counted():
    priorities = [[(b"0", b"%d" % number)] for number in range(PRIORITIES_MAX)]
    queries, _ = asked([loaded(raw_table("a"))], MANY, *priorities, [(b"0", b"0", b"9")])
    assert queries[-1].count(b"AND priority = ") == 2 * PRIORITIES_MAX


@pytest.mark.parametrize(
    ("tables", "answers", "expected"),
    [
        ([], [], None),
        ([(b"dead", b"")], [], None),
        ([(b"dead", b"vt_dead_letters_of=other")], [], None),
        ([(b"dead", b"vt_dead_letters_of=other msg")], [[on_mariadb(b"q0", b"9")], [(b"0", b"3", b"0")]], 3),
        ([(b"dead", b"vt_dead_letters_of=msg")], [[on_mysql(b"q0", b"900")]], 900),
    ],
)  # fmt: skip
def test_dead_letters_are_those_in_a_table_that_consents(tables, answers, expected):
    table = loaded(raw_table("msg", f"{DEFAULT_COMMENT},vt_max_attempts=1,vt_dead_letter=dead"))
    few = [on_mariadb(b"q0", b"0")], [(b"0", b"0", b"0")]
    assert asked([table], *few, tables, *answers)[1] == {"msg": Depth(0, 0, expected)}
