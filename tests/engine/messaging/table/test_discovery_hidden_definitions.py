import ast
from dataclasses import replace

import pytest

from streamfrom.engine.messaging.store.conversation import StoreAnswer
from streamfrom.engine.messaging.table.discovery import read_hidden, sees_triggers
from tests.cases import cases
from tests.engine.messaging.conversations import run


def rows(*found):
    return StoreAnswer([(row, b"") for row in found])


WHOLE = rows(
    (b"view", b"seen", b""),
    (b"trigger", b"Outbox", b"UPDATE"),
    (b"key", b"my_message", b"gate"),
    (b"function", b"f", b""),
)
MARIADB, MYSQL = rows((b"10.11.19-MariaDB-log",)), rows((b"9.7.0",))


def test_what_tables_were_read_again_replaces_what_was_known_of_them():
    known, _ = run(read_hidden("db"), WHOLE, MARIADB)
    again, (sent,) = run(read_hidden("db", ("outbox", "my_message", "new")), rows(
        (b"view", b"new", b""),
    ))  # fmt: skip
    assert sent.count(b"IN ('outbox', 'my_message', 'new')") == 3
    assert b"routines" not in sent
    both = known.with_tables(("outbox", "my_message", "new"), again)
    # Tables do not change functions.
    assert both.parts == {("view", "seen", ""), ("view", "new", ""), ("function", "f", "")}


def test_a_reading_from_which_a_lock_hid_something_says_so():
    (known, _), (partial, _) = (
        run(read_hidden("db"), StoreAnswer(WHOLE.rows, has_skipped=hides), MARIADB)
        for hides in (False, True)
    )
    assert (known.is_partial, partial.is_partial) == (False, True)
    assert known.hidden_writes("ks", ()).has_update_trigger("outbox")
    assert partial.with_tables((), known) == replace(known, is_partial=True)


def test_the_parent_of_a_queue_by_a_cascade_writes_to_it():
    known, _ = run(read_hidden("db"), WHOLE, MARIADB)
    writes = known.hidden_writes("ks", ("my_message",))
    assert writes.by_table("Gate")
    assert writes.by_table("outbox")
    assert not known.hidden_writes("ks", ()).by_table("gate")
    assert not writes.by_table("my_message")


@cases(lines=ast.literal_eval, sees=ast.literal_eval)
def test_triggers_are_seen_by_who_may_make_them_in_the_whole_database(lines, sees):
    answer = rows(*((line.encode(),) for line in lines))
    assert run(sees_triggers("my_db"), MYSQL, answer)[0] is sees
    assert run(sees_triggers("my_db"), MARIADB) == (True, [b"SELECT VERSION()"])


@pytest.mark.parametrize("lines", [[], [(b"GRANT ALL PRIVILEGES ON *.* TO `u`@`%`",)]])
def test_what_an_account_may_not_see_of_triggers_is_known_of_a_whole_reading(lines):
    known, _ = run(read_hidden("db"), WHOLE, MYSQL, rows(*lines))
    assert known.hides_triggers == (not lines)
    assert not run(read_hidden("db", ("t",)), WHOLE)[0].hides_triggers
