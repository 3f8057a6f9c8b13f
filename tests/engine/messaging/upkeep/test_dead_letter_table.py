"""Rows that move to the dead letters: the statements of one transaction."""

import ast
from random import Random

import pytest

from streamfrom.engine.messaging.store.conversation import ServerRefused, StoreAnswer
from streamfrom.engine.messaging.table.table_settings import is_nearly_marked, parse_comment
from streamfrom.engine.messaging.upkeep.dead_letter_table import (
    REVIVED_AT_ONCE,
    Buried,
    DeadLetterSource,
    Requeued,
    bury,
    columns_of,
    consents,
    dead_letters,
    fault,
    restore,
    revive,
    with_consent,
)
from tests.cases import cases
from tests.engine.messaging.claims.test_claim_writes import BY_ID
from tests.engine.messaging.conversations import answered, carry_out, lenient
from tests.sim.memory_store import DEFAULT_COMMENT, loaded, raw_table


NOW_NS = 1_800_000_000 * 10**9
TABLE = loaded(raw_table("msg", f"{DEFAULT_COMMENT},vt_max_attempts=2,vt_dead_letter=grave"))

CONSENT = "vt_dead_letters_of=msg"


def buried(*columns, refusal=None, of=b"", comment=CONSENT, table=TABLE):
    """Return the result and the statements; *refusal* is what an INSERT is answered whose text has *of*."""
    sent = []
    rows = [((name, shared, comment.encode()), b"") for name, shared in columns]

    def answer_to(query):
        sent.append(query.sql)
        if refusal is not None and query.sql.startswith(b"INSERT") and of in query.sql:
            raise refusal
        return StoreAnswer(rows if b"information_schema" in query.sql else ())

    return carry_out(bury(table, [b"1", b"2"], NOW_NS), answer_to), sent


def test_what_both_have_is_copied_and_told_is_when_why_and_how_often():
    result, sent = buried(
        (b"id", b"1"),
        (b"Message", b"1"),
        (b"note", b"0"),
        (b"dead_time", b"0"),
        (b"dead_reason", b"0"),
        (b"dead_attempts", b"0"),
    )
    assert result == Buried([b"1", b"2"], [])
    assert sent[1:3] == [b"SAVEPOINT dead_letters", b"SAVEPOINT part"]
    assert sent[3:] == [
        b"INSERT INTO `grave` (`id`, `Message`, `dead_time`, `dead_reason`, `dead_attempts`)"
        b" SELECT `id`, `Message`, 1800000000000000000, 'sent 2 times and not acknowledged', epoch"
        b" FROM `msg` WHERE `id` IN (1, 2)",
        b"DELETE FROM `msg` WHERE `id` IN (1, 2)",
    ]


def test_a_message_that_had_one_attempt_was_sent_once():
    once = loaded(raw_table("msg", f"{DEFAULT_COMMENT},vt_max_attempts=1,vt_dead_letter=grave"))
    _, sent = buried((b"id", b"1"), (b"dead_reason", b"0"), table=once)
    assert b" SELECT `id`, 'sent once and not acknowledged' FROM" in sent[3]


def test_a_message_table_gets_new_messages():
    names = (b"id", b"priority", b"epoch", b"time_next", b"time_acked")
    _, sent = buried(*((name, b"1") for name in names))
    assert b" SELECT `id`, `priority`, 0, 1800000000000000000, NULL FROM" in sent[3]


@pytest.mark.parametrize(
    ("columns", "why"),
    [((), "there is no table grave"), (((b"note", b"0"),), "grave has no column of it")],
)
def test_where_nothing_can_be_copied_the_rows_stay(columns, why):
    result, sent = buried(*columns)
    assert result == Buried((), why=why)
    assert len(sent) == 1


def test_what_the_server_refuses_is_undone_alone():
    refusal = ServerRefused(1062, "Duplicate entry '1'")
    result, sent = buried((b"id", b"1"), refusal=refusal, of=b"IN (1")
    assert result == Buried([b"2"], [], "Duplicate entry '1'")
    assert sent[4::3][:2] == [b"ROLLBACK TO SAVEPOINT part"] * 2
    assert sent[-1] == b"DELETE FROM `msg` WHERE `id` IN (2)"


def test_what_is_about_no_row_keeps_all_where_they_are():
    result, sent = buried((b"id", b"1"), refusal=ServerRefused(1142, "INSERT command denied"))
    assert result == Buried((), why="INSERT command denied")
    undone = [b"ROLLBACK TO SAVEPOINT %b" % one for one in (b"part", b"dead_letters")]
    assert sent[4:] == undone


OWN = ("id", "priority", "epoch", "time_next", "time_acked", "state", "message")


@cases(columns=ast.literal_eval, words=str)
def test_a_table_that_keeps_nothing_of_a_message_is_told(columns, words):
    found = fault("grave", [(column, CONSENT) for column in columns], "msg", OWN)
    assert (found is None) == (words is None)
    assert (words or "") in (found or "")


NOT_CONSENTING = ["", "dead letters", "vt_dead_letters_of=other", "vt_dead_letters_of", "msg"]


@pytest.mark.parametrize("comment", NOT_CONSENTING)
def test_without_the_consent_of_the_table_the_rows_stay_and_the_statement_is_named(comment):
    result, sent = buried((b"id", b"1"), (b"message", b"1"), comment=comment)
    assert (result.moved, result.left) == ((), ())
    assert not result.moved
    assert len(sent) == 1
    words = "ALTER QUEUE msg SET (dead_letter = grave) adds vt_dead_letters_of=msg to it"
    assert words in (result.why or "")
    found = fault("grave", [("id", comment)], "msg", OWN)
    assert found is not None
    assert words in found


@pytest.mark.parametrize(
    "comment",
    [
        *NOT_CONSENTING,
        "Letters, unread,",
        f"{DEFAULT_COMMENT},vt_dead_letters_of=other ,vt_ack_wait=3",
        "vt_dead_letters_of=msg,vt_dead_letters_of=other",
        "vt_dead_letters_of=msgs my_msg",
    ],
)
def test_a_consent_is_added_once_and_changes_nothing_else(comment):
    assert not consents(comment, "msg")
    agreed = with_consent(comment, "msg")
    assert consents(agreed, "msg")
    assert with_consent(agreed, "msg") == agreed
    both = with_consent(agreed, "another")
    assert all(consents(both, queue) for queue in ("msg", "another"))
    if comment.startswith(DEFAULT_COMMENT):
        assert parse_comment(agreed) == parse_comment(comment)
    else:
        assert comment in agreed
    for queue in ("other", "msgs", "my_msg"):
        assert consents(agreed, queue) == consents(comment, queue)


def test_a_consent_alone_does_not_look_like_a_message_table():
    assert not is_nearly_marked(CONSENT)


def test_names_of_databases_and_tables_are_literals():
    assert "table_schema = 'it''s' AND c.table_name = 'a'';'" in columns_of("it's", "a';")
    assert "table_name = x'ff'" in columns_of("db", "\udcff")


PLAIN = loaded(raw_table("msg"))
SPENT = loaded(raw_table("msg", f"{DEFAULT_COMMENT},vt_max_attempts=3,vt_dead_letter=dead"))
BURIED = DeadLetterSource(("id", "message"), is_queue=False, queues=("msg",))


def parked(*ids):
    return StoreAnswer(rows=[((b"%d" % one, b"9", *[b"x"] * 6), b"") for one in ids])


LEAST, NO_MORE = StoreAnswer(rows=[((b"5",), b"")]), StoreAnswer(rows=[((None,), b"")])


def test_what_the_index_finds_is_due_at_once_and_begins_anew():
    queries, revived = answered(
        revive(PLAIN, None, NOW_NS), LEAST, parked(1, 2), NO_MORE, StoreAnswer(affected=1)
    )
    assert queries[1].sql.endswith(b" ORDER BY `id` LIMIT %d" % REVIVED_AT_ONCE)
    assert queries[-1].sql == (
        b"UPDATE " + BY_ID + b" SET time_next = 0, epoch = 0 WHERE `id` IN (1, 2)"
        b" AND time_next = 9000000000000000000 AND time_acked IS NULL"
    )
    assert revived == Requeued(1, None), "somebody was faster with the other one"


def test_a_full_page_says_where_the_next_one_begins():
    found = parked(*range(REVIVED_AT_ONCE))
    _, revived = answered(revive(PLAIN, None, NOW_NS), LEAST, found, StoreAnswer(affected=1000))
    assert revived.place is not None
    queries, _ = answered(revive(PLAIN, revived.place, NOW_NS), parked(), NO_MORE)
    assert b"`id` > 999 " in queries[0].sql


def test_where_nothing_is_parked_nothing_is_written():
    queries, revived = answered(revive(PLAIN, None, NOW_NS), LEAST, parked(), NO_MORE)
    assert revived == Requeued(0, None)
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
        moved, last = moved + found.rows, found.place
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
