"""What a look at messages asks, of tables that differ from the recommended one."""

from dataclasses import replace

import pytest

from streamfrom.engine.messaging.store.conversation import StoreAnswer
from streamfrom.engine.messaging.upkeep.peek import PeekPlace, PeekState, can_peek, peek
from tests.sim.memory_store import loaded, raw_table


TABLE = loaded(raw_table("msg"))


def answered(conversation, *answers):
    """Return the statements of a conversation, and its result."""
    asked = [next(conversation).sql]
    *first, last = [StoreAnswer([(row, b"") for row in rows]) for rows in answers]
    asked += [conversation.send(answer).sql for answer in first]
    with pytest.raises(StopIteration) as end:
        conversation.send(last)
    return asked, end.value.value


def test_rows_without_a_priority_come_first_where_there_can_be_such():
    table = replace(TABLE, priority_nullable=True)
    asked, found = answered(peek(table, PeekState.PARKED, None, 5, 20), [], [(None,)])
    assert b"priority IS NULL" in asked[0]
    assert (found.rows, found.place) == ((), None)


def test_a_table_without_priorities_is_asked_for_none():
    table = replace(TABLE, first_layout=True)
    asked, found = answered(peek(table, PeekState.HELD, None, 5, 20), [])
    assert b"priority" not in asked[0]
    assert "priority" not in found.columns


def test_an_id_goes_into_a_statement_as_a_literal():
    table = loaded(raw_table("msg", id_type="varchar"))
    place = PeekPlace(5, is_begun=True, time_ns=3, ident=b"a' OR '1")
    sql = next(peek(table, PeekState.PARKED, place, 5, 20)).sql
    assert b"`id` > 'a'' OR ''1'" in sql


def test_only_what_indexes_find_is_looked_for():
    assert can_peek(TABLE)
    assert not can_peek(replace(TABLE, time_index=None))
    assert not can_peek(replace(TABLE, purge_index=None))
