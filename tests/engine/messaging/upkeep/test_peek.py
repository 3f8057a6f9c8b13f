"""What a look at messages asks, of tables that differ from the recommended one."""

from dataclasses import replace

from streamfrom.engine.messaging.store.conversation import StoreAnswer
from streamfrom.engine.messaging.upkeep.peek import (
    Match,
    PeekPlace,
    PeekState,
    can_peek,
    peek,
    rows_of,
    ways,
)
from tests.engine.messaging.conversations import answered
from tests.sim.memory_store import loaded, raw_table


TABLE = loaded(raw_table("msg"))


def test_rows_without_a_priority_come_first_where_there_can_be_such():
    table = replace(TABLE, priority_nullable=True)
    no_more = StoreAnswer([((None,), b"")])
    asked, found = answered(peek(table, PeekState.PARKED, None, 5, 20), StoreAnswer(), no_more)
    assert b"priority IS NULL" in asked[0].sql
    assert found == ((), None)


def test_a_table_without_priorities_is_asked_for_none():
    table = replace(TABLE, first_layout=True)
    (asked,), found = answered(peek(table, PeekState.BLOCKED, None, 5, 20), StoreAnswer())
    assert b"priority" not in asked.sql
    assert found.place is None
    assert b" NULL" in next(rows_of(table, [b"1"], (), 9)).sql


def test_an_id_goes_into_a_statement_as_a_literal():
    table = loaded(raw_table("msg", id_type="varchar"))
    place = PeekPlace(5, is_begun=True, time_ns=3, ident=b"a' OR '1")
    sql = next(peek(table, PeekState.PARKED, place, 5, 20)).sql
    assert b"`id` > 'a'' OR ''1'" in sql


def test_only_what_indexes_find_is_looked_for():
    assert can_peek(TABLE)
    assert not can_peek(replace(TABLE, time_index=None))
    assert not can_peek(replace(TABLE, purge_index=None))
    assert not can_peek(replace(TABLE, id_index=None))


def test_a_value_goes_into_a_statement_as_a_literal():
    match = Match("message", b"x' OR 50% _ -- \\", contains=True)
    condition = match.condition(TABLE)
    pattern = b"%x' OR 50|% |_ -- \\%".hex().encode()
    assert condition == b"`message` LIKE CAST(_utf8mb4 x'%b' AS BINARY) ESCAPE '|'" % pattern
    assert next(rows_of(TABLE, [b"1"], (), 9, condition)).sql.endswith(condition)
    assert b"s.column_name = 'a`b'" in next(ways(TABLE, Match("a`b", b"1"))).sql
    assert b"statistics" not in next(ways(TABLE, match)).sql


def test_rows_come_in_the_order_of_their_keys_without_those_that_are_gone():
    row = (b"5", b"0", None, None, b"x")
    answer = StoreAnswer([((b"1", *row), b""), ((b"3", *row), b"")])
    ids = [b"3", b"2", b"1", b"3"]
    _, found = answered(rows_of(TABLE, ids, ("message",), 9), answer)
    assert [one.id for one in found] == [b"3", b"1"]
    assert answered(rows_of(TABLE, [], (), 9)) == ([], ())
