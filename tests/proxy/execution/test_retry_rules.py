import ast

import pytest

from streamfrom.proxy.execution.retry_rules import (
    DEADLOCKS_MAX,
    Ending,
    Verdict,
    decide,
    ending_of,
    is_repeatable,
    is_whole_ack,
)
from streamfrom.proxy.wire.resultset import Err
from tests.cases import cases
from tests.sqlparse_ext.facts import shape


STANDS, AGAIN, WAITS = Verdict.STANDS, Verdict.AGAIN, Verdict.WAITS

# How it ended: what follows on a read and on a write, outside a transaction and inside one.
RULES = [
    (Ending.UNSENT, WAITS, WAITS, STANDS, STANDS),
    (Ending.READ_ONLY, WAITS, WAITS, STANDS, STANDS),
    (Ending.BROKE_OFF, WAITS, STANDS, STANDS, STANDS),
    (Ending.STALE, AGAIN, AGAIN, AGAIN, AGAIN),
    (Ending.FULL, AGAIN, AGAIN, AGAIN, AGAIN),
    (Ending.DEADLOCK, STANDS, STANDS, STANDS, STANDS),
    (Ending.ANSWERED, STANDS, STANDS, STANDS, STANDS),
]


def test_the_table_names_every_ending():
    assert [row[0] for row in RULES] == sorted(Ending, key=[row[0] for row in RULES].index)
    assert len(RULES) == len(Ending)


@pytest.mark.parametrize(("ending", "read", "write", "read_inside", "write_inside"), RULES)
def test_what_follows(ending, read, write, read_inside, write_inside):
    assert decide(ending, is_read=True) is read
    assert decide(ending) is write
    assert decide(ending, is_read=True, in_transaction=True) is read_inside
    assert decide(ending, in_transaction=True) is write_inside


@pytest.mark.parametrize("ending", Ending)
def test_what_a_client_has_seen_or_somebody_stopped_stands_and_nothing_waits_too_long(ending):
    for is_read in (True, False):
        assert decide(ending, is_read=is_read, is_final=True) is STANDS
    assert decide(ending, is_read=True, is_late=True) is not WAITS


@pytest.mark.parametrize("ending", [Ending.STALE, Ending.FULL])
def test_at_once_is_once(ending):
    assert decide(ending, is_read=True, renewals=1) is STANDS


def test_an_ack_alone_that_a_deadlock_undid_is_sent_again_some_times():
    verdicts = [decide(Ending.DEADLOCK, is_ack=True, renewals=n) for n in range(7)]
    assert verdicts == [AGAIN] * DEADLOCKS_MAX + [STANDS, STANDS]
    assert decide(Ending.DEADLOCK, is_ack=True, in_transaction=True) is STANDS


@cases(sql=str, expected=ast.literal_eval)
def test_a_whole_ack_counts_no_row_twice(sql, expected):
    assert is_whole_ack(shape(sql)) is expected


@cases(kind=str, expected=ast.literal_eval)
def test_only_what_changes_nothing_may_be_repeated(kind, expected):
    assert is_repeatable(shape(kind)) is expected


@cases(code=int, expected=Ending.__getitem__, text=str.encode)
def test_what_a_server_refused_without_doing_anything(code, expected, text):
    error = Err(code, "HY000", text or b"")
    assert ending_of(error) is ending_of(error.exception()) is expected
    assert ending_of(None) is Ending.ANSWERED


@pytest.mark.parametrize("code", [1243, 1615])
def test_what_was_prepared_can_be_prepared_anew(code):
    assert ending_of(Err(code, "HY000", b""), is_prepared=True) is Ending.STALE
