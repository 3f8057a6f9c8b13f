import re

import pytest

from streamfrom.engine.messaging.store.conversation import ServerRefused, StoreAnswer
from streamfrom.engine.messaging.table.discovery import TABLES_AT_ONCE, come_or_gone, discover
from tests.engine.messaging.conversations import lenient, run


def marked(name, comment=b"vitess_message", options=b""):
    return (b"table", b"0", name, comment, options, None, None, None, None, None), b""


def column(table, name, *, place=b"1", default=None, nullable=b"NO"):
    about = (b"bigint", default, nullable, b"", b"bigint(20)", None)
    return (b"column", place, table, name, *about), b""


def index(table, name, non_unique, part, *, place=b"1"):
    return (b"index", place, table, name, non_unique, part, None, None, None, None), b""


def test_without_marked_tables_discovery_is_one_statement():
    tables, sent = run(discover("it's"), StoreAnswer([]))
    assert tables == ()
    assert len(sent) == 1
    assert b"table_schema = 'it''s'" in sent[0]


def test_a_comment_that_only_looks_like_the_mark_is_none():
    likely = marked(b"likely", b"vitess-message")
    assert run(discover("db", ("likely",)), StoreAnswer([likely]))[0] == ()


DEFINED = (
    column(b"t", b"id"),
    column(b"t", b"epoch", place=b"2", default=b"0", nullable=b"YES"),
    index(b"t", b"PRIMARY", b"0", b"id"),
    index(b"t", b"two", b"1", b"a"),
    index(b"t", b"two", b"1", None, place=b"2"),
)


def test_discovery_puts_columns_and_indexes_together():
    table = marked(b"t", b"vitess_message,vt_ack_wait=1", b"partitioned")
    (raw,), sent = run(
        discover("db"), StoreAnswer([((b"t",), b"")]), StoreAnswer([*DEFINED, table])
    )
    assert len(sent) == 2
    assert raw.comment == "vitess_message,vt_ack_wait=1"
    assert raw.is_partitioned
    assert [(c.name, c.default, c.nullable, c.column_type) for c in raw.columns] == [
        ("id", None, False, "bigint(20)"),
        ("epoch", "0", True, "bigint(20)"),
    ]
    assert [(i.name, i.unique, i.columns) for i in raw.indexes] == [
        ("PRIMARY", True, ("id",)),
        ("two", False, ("a", "")),
    ]


def test_named_tables_alone_are_read_by_one_statement():
    answer = StoreAnswer([*DEFINED, column(b"gone", b"id"), marked(b"t")])
    (raw,), (sent,) = run(discover("db", ("t", "gone")), answer)
    assert (raw.name, len(raw.columns), len(raw.indexes)) == ("t", 2, 2)
    assert sent.count(b"table_name IN ('gone', 't')") == 3, "tables, columns and indexes"


def test_many_tables_are_read_some_at_a_time():
    names = [b"t%03d" % number for number in range(2 * TABLES_AT_ONCE + 1)]
    listed = StoreAnswer([((name,), b"") for name in names])
    answers = [
        StoreAnswer([marked(name) for name in names[start : start + TABLES_AT_ONCE]])
        for start in range(0, len(names), TABLES_AT_ONCE)
    ]
    found, sent = run(discover("db"), listed, *answers)
    assert [raw.name.encode() for raw in found] == names
    assert len(sent) == 1 + len(answers)


def test_tables_that_are_placed_are_read_as_well():
    answer = StoreAnswer([*DEFINED, column(b"u", b"id"), column(b"gone", b"id"), marked(b"t")])
    listed = StoreAnswer([((b"t",), b"")])
    found, (_, sent) = run(discover("db", placed=("u", "t")), listed, answer)
    assert {raw.name: raw.comment for raw in found} == {"t": "vitess_message", "u": ""}
    assert b"table_name IN ('t', 'u')" in sent


MARIADB = StoreAnswer([((b"10.11.19-MariaDB",), b"")])
ABSENT = ServerRefused(1146, "Table 'db.gone' doesn't exist")
DENIED = ServerRefused(1142, "SELECT command denied to user 'app'@'%' for table `db`.`gone`")
LOCKED = ServerRefused(1205, "Lock wait timeout exceeded")
LATE = ServerRefused(1969, "Query execution was interrupted (max_statement_time exceeded)")


@pytest.mark.parametrize("gone", [ABSENT, DENIED], ids=["absent", "denied"])
@pytest.mark.parametrize("unseen", [LOCKED, LATE], ids=["locked", "late"])
def test_a_running_table_that_one_look_misses_is_hidden_there_or_gone(gone, unseen):
    (hidden, there), queries = lenient(
        discover("db", running=("gone", "lock`ed", "t")),
        StoreAnswer([]),
        MARIADB,
        gone,
        unseen,
        StoreAnswer(),
        StoreAnswer([*DEFINED, marked(b"t")]),
    )
    assert (hidden.name, hidden.is_hidden) == ("lock`ed", True)
    assert (there.name, len(there.columns)) == ("t", 2)
    looks = [query for query in queries if query.sql.startswith(b"SELECT 1 FROM")]
    assert [query.sql for query in looks] == [
        b"SELECT 1 FROM `db`.`gone` WHERE FALSE",
        b"SELECT 1 FROM `db`.`lock``ed` WHERE FALSE",
        b"SELECT 1 FROM `db`.`t` WHERE FALSE",
    ]
    assert all(query.skips_locked for query in looks)


def test_of_the_running_tables_those_asked_for_are_looked_at():
    asking = discover("db", ("t",), running=("t", "u"))
    _, (_, _, *looks) = run(asking, StoreAnswer([]), MARIADB)
    assert looks
    assert not any(b"u" in re.findall(rb"['`](\w+)['`]", sent) for sent in looks)


def test_what_mysql_does_not_show_has_gone():
    found, queries = run(
        discover("db", running=("t",)), StoreAnswer([]), StoreAnswer([((b"9.7.0",), b"")])
    )
    assert (found, len(queries)) == ((), 2)


ID = column(b"t", b"id")
PRIMARY = index(b"t", b"PRIMARY", b"0", b"id")
NAMES = StoreAnswer([((b"plain",), b""), ((b"t",), b"")])


def test_where_a_lock_hides_tables_nothing_is_known_to_have_gone():
    known = ("t", "gone")
    listed = StoreAnswer([((b"new",), b"")], has_skipped=True)
    assert run(come_or_gone("db", known), listed)[0] is None
    assert run(come_or_gone("db", known), StoreAnswer([]))[0] == {"t", "gone"}


@pytest.mark.parametrize(
    ("parts", "seen", "hidden"),
    [
        ([], [], ["t"]),
        ([ID, PRIMARY, marked(b"t")], ["t"], []),
        # Locked between one part of the answer and the next.
        ([PRIMARY, marked(b"t")], [], ["t"]),
        ([ID, marked(b"t")], [], ["t"]),
    ],
)
def test_discovery_waits_for_no_lock_and_says_what_one_hides(parts, seen, hidden):
    answer = StoreAnswer(parts, has_skipped=True)
    found, sent = run(discover("db", ("t",)), answer, NAMES)
    assert [raw.name for raw in found if not raw.is_hidden] == seen
    assert [raw.name for raw in found if raw.is_hidden] == hidden
    assert sent[-1] == (
        b"SELECT table_name FROM information_schema.tables WHERE table_schema = 'db'"
    )
