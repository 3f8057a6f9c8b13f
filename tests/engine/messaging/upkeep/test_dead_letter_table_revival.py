"""Parked messages and dead letters become messages as before."""

from random import Random

import pytest

from streamfrom.engine.messaging.store.conversation import ServerRefused, StoreAnswer
from streamfrom.engine.messaging.upkeep.dead_letter_table import (
    REVIVED_AT_ONCE,
    DeadLetterSource,
    Revived,
    dead_letters,
    restore,
    revive,
)
from tests.engine.messaging.claims.test_claim_writes_first_delivery import BY_ID, NOW_NS
from tests.engine.messaging.conversations import answered, lenient
from tests.sim.memory_store import DEFAULT_COMMENT, loaded, raw_table


TABLE = loaded(raw_table("msg"))
SPENT = loaded(raw_table("msg", f"{DEFAULT_COMMENT},vt_max_attempts=3,vt_dead_letter=dead"))
BURIED = DeadLetterSource(("id", "message"), is_queue=False, queues=("msg",))


def parked(*ids):
    return StoreAnswer(rows=[((b"%d" % one, b"9", *[b"x"] * 6), b"") for one in ids])


LEAST, NO_MORE = StoreAnswer(rows=[((b"5",), b"")]), StoreAnswer(rows=[((None,), b"")])


def test_what_the_index_finds_is_due_at_once_and_begins_anew():
    queries, revived = answered(
        revive(TABLE, None, NOW_NS), LEAST, parked(1, 2), NO_MORE, StoreAnswer(affected=1)
    )
    assert queries[1].sql.endswith(b" ORDER BY `id` LIMIT %d" % REVIVED_AT_ONCE)
    assert queries[-1].sql == (
        b"UPDATE " + BY_ID + b" SET time_next = 0, epoch = 0 WHERE `id` IN (1, 2)"
        b" AND time_next = 9000000000000000000 AND time_acked IS NULL"
    )
    assert revived == Revived(1, None), "somebody was faster with the other one"


def test_a_full_page_says_where_the_next_one_begins():
    found = parked(*range(REVIVED_AT_ONCE))
    _, revived = answered(revive(TABLE, None, NOW_NS), LEAST, found, StoreAnswer(affected=1000))
    assert revived.place is not None
    queries, _ = answered(revive(TABLE, revived.place, NOW_NS), parked(), NO_MORE)
    assert b"`id` > 999 " in queries[0].sql


def test_where_nothing_is_parked_nothing_is_written():
    queries, revived = answered(revive(TABLE, None, NOW_NS), LEAST, parked(), NO_MORE)
    assert revived == Revived(0, None)
    assert not any(query.sql.startswith(b"UPDATE") for query in queries)


def column(name, shared=b"1", comment=b"vitess_message,vt_dead_letters_of=other msg"):
    return (name, shared, comment), b""


def test_what_both_tables_have_goes_back_but_what_is_about_a_delivery():
    names = [column(b"id"), column(b"priority"), column(b"epoch"), column(b"time_acked")]
    answer = StoreAnswer([*names, column(b"dead_reason", b"0"), column(b"message")])
    _, found = answered(dead_letters(SPENT), answer)
    columns = ("id", "priority", "message")
    assert found == DeadLetterSource(columns, is_queue=True, queues=("other", "msg"))
    _, absent = answered(dead_letters(SPENT), StoreAnswer())
    assert absent == DeadLetterSource((), is_queue=False, queues=())


TABLES = """
    CREATE TABLE msg (id INTEGER PRIMARY KEY, message CHECK (message <> 'bad'), epoch, time_next, time_acked);
    CREATE TABLE dead (id INTEGER PRIMARY KEY, message, time_acked);
    CREATE TRIGGER keeps BEFORE DELETE ON dead WHEN old.message = 'kept' BEGIN SELECT RAISE(ABORT, 'keeps'); END;
"""


@pytest.mark.parametrize("limit", [1, 2, 7])
@pytest.mark.parametrize("is_queue", [False, True])
def test_each_dead_letter_goes_back_or_stays_with_the_words_of_the_server(
    sqlite, is_queue, limit
):
    dice = Random(limit)
    sqlite.connection.executescript(TABLES)
    rows = [
        (n, dice.choice(("good", "bad", "kept")), dice.choice((None, 5))) for n in range(60)
    ]
    sqlite.connection.executemany("INSERT INTO dead VALUES (?, ?, ?)", rows)
    refused, last, moved = dict[bytes, str](), None, 0
    for _ in range(len(rows) + 1):
        found = sqlite.run(restore(SPENT, BURIED._replace(is_queue=is_queue), last, limit))
        moved, last = moved + found.rows, found.last
        refused |= found.refused
        if last is None:
            break
    tried = {n: message for n, message, acked in rows if not (is_queue and acked)}
    good = [n for n, message in tried.items() if message == "good"]
    query = sqlite.connection.execute
    assert query("SELECT * FROM msg").fetchall() == [(n, "good", 0, 0, None) for n in good]
    assert [n for (n,) in query("SELECT id FROM dead")] == sorted({*range(len(rows))} - {*good})
    assert moved == len(good)
    assert [*map(int, refused)] == [n for n in tried if n not in good]
    for ident, words in refused.items():
        assert ("CHECK" if tried[int(ident)] == "bad" else "keeps") in words


def test_an_error_that_is_not_about_rows_ends_it():
    answers = [StoreAnswer([((b"1",), b"")]), StoreAnswer(), ServerRefused(1213, "deadlock")]
    with pytest.raises(ServerRefused, match="deadlock"):
        lenient(restore(SPENT, BURIED, None, 9), *answers)
