"""The questions for depths: one for many tables, and how either server's answer is read."""

import pytest

from streamfrom.engine.messaging.conversation import StoreAnswer
from streamfrom.engine.messaging.depths import TABLES_MAX, depths
from streamfrom.engine.messaging.memory_store import loaded, raw_table


def asked(tables, *answers):
    conversation = depths(tables)
    queries = [next(conversation).sql]
    *first, last = [StoreAnswer([(row, b"") for row in rows]) for rows in answers]
    queries += [conversation.send(answer).sql for answer in first]
    with pytest.raises(StopIteration) as end:
        conversation.send(last)
    return queries, end.value.value


def on_mariadb(alias, rows):
    return (b"1", b"PRIMARY", alias, b"ref", b"k", b"k", b"9", b"const", rows, b"Using index")


def on_mysql(alias, rows):
    return b"1", b"UNION", alias, None, b"ref", b"k", b"k", b"9", b"const", rows, b"100.0", None


def test_both_servers_answers_are_read():
    tables = [loaded(raw_table("a")), loaded(raw_table("b`c"))]
    no_row = (b"2", b"UNION", None, None, None, None, None, None, None, b"Impossible WHERE")
    answers = [on_mariadb(b"q0", b"700"), no_row], [(b"1", b"3")]
    (estimate, count), found = asked(tables, *answers)
    assert found == {"a": 700, "b`c": 3}
    assert b"FROM `b``c` AS q1 WHERE time_acked IS NULL" in estimate
    assert count.count(b"COUNT(*)") == 1, "what is many is not counted"
    result = (None, b"UNION RESULT", b"<union1,2>", *[None] * 9)
    rows = [on_mysql(b"q1", b"120"), on_mysql(b"q0", b"300"), result]
    assert asked(tables, rows)[1] == {"a": 300, "b`c": 120}


def test_many_tables_are_asked_for_in_several_questions():
    tables = [loaded(raw_table(f"t{index}")) for index in range(TABLES_MAX + 1)]
    large = [on_mariadb(b"q0", b"700")]
    counted = [(b"%d" % index, b"5") for index in range(1, TABLES_MAX)]
    queries, found = asked(tables, large, counted, large)
    assert [sql.count(b"UNION ALL") for sql in queries] == [TABLES_MAX - 1, TABLES_MAX - 2, 0]
    assert len(found) == TABLES_MAX + 1
    assert (found["t0"], found["t1"], found[f"t{TABLES_MAX}"]) == (700, 5, 700)
