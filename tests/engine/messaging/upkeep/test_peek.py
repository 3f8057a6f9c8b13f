"""What a look at messages asks, of tables that differ from the recommended one."""

import ast
from dataclasses import replace
from functools import partial
from random import Random

import pytest

from streamfrom.engine.messaging.store.conversation import StoreAnswer
from streamfrom.engine.messaging.table.backoff import PARKED_NS
from streamfrom.engine.messaging.table.groups import HELD_NS
from streamfrom.engine.messaging.upkeep.peek import (
    Match,
    PeekPlace,
    PeekState,
    Ways,
    can_peek,
    in_state,
    peek,
    peek_by_id,
    rows_of,
    ways,
)
from tests.cases import cases
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


DEFINITION = "CREATE TABLE msg (id INTEGER PRIMARY KEY, priority INT, epoch INT DEFAULT 0, time_next INT, time_acked INT, message)"
NOW_NS = 1_800_000_000 * 10**9
TIMES = [None, 0, NOW_NS - 5, NOW_NS, NOW_NS + 1, NOW_NS + 9, HELD_NS, PARKED_NS]


def pages(client, ask):
    """Return the ids of all pages, and how long each was. ask: returns the conversation for the page at a place."""
    found, lengths, place = list[int](), list[int](), None
    for _ in range(200):
        page = client.run(ask(place))
        found += map(int, page.ids)
        lengths.append(len(page.ids))
        place = page.place
        if place is None:
            return found, lengths
    raise AssertionError("the pages have no end")


def state_of(time_next, time_acked):
    if time_acked is not None:
        return PeekState.ACKED
    constants = {HELD_NS: PeekState.BLOCKED, PARKED_NS: PeekState.PARKED}
    is_due = time_next is None or time_next <= NOW_NS
    return PeekState.READY if is_due else constants.get(time_next, PeekState.SCHEDULED)


@pytest.mark.parametrize("limit", [1, 2, 3, 100])
@pytest.mark.parametrize("priorities", [(3, 5, 7), (None, 5, 7)])
def test_every_message_is_on_one_page_of_its_state_in_the_order_of_the_index(
    sqlite, priorities, limit
):
    table, dice = replace(TABLE, priority_nullable=None in priorities), Random(limit)
    rows = [
        (ident, dice.choice(priorities), dice.choice(TIMES), dice.choice((None, None, ident)))
        for ident in range(1, 100)
    ]
    sqlite.connection.execute(DEFINITION)
    sqlite.connection.executemany("INSERT INTO msg VALUES (?, ?, 0, ?, ?, NULL)", rows)
    every = [ident for ident, *_ in rows]
    assert pages(sqlite, lambda at: peek(table, PeekState.ALL, at, NOW_NS, limit))[0] == every
    latest = sqlite.run(peek(table, PeekState.ACKED, None, NOW_NS, limit)).ids
    assert [*map(int, latest)] == [one[0] for one in reversed(rows) if one[3]][:limit]

    def place(row):
        ident, priority, time_next, _ = row
        has_time = time_next is not None
        return priority is not None, priority or 0, has_time, -(time_next or 0), ident

    states = {row[0]: state_of(*row[2:]) for row in rows}
    ids = [b"%d" % ident for ident in every]
    for state in (PeekState.READY, PeekState.SCHEDULED, PeekState.BLOCKED, PeekState.PARKED):
        expected = [row[0] for row in sorted(rows, key=place) if states[row[0]] is state]
        found, _ = pages(sqlite, lambda at, of=state: peek(table, of, at, NOW_NS, limit))
        assert found == expected
    for state in PeekState:
        own = [one for one in every if state in {PeekState.ALL, states[one]}]
        assert [
            int(row.id)
            for row in sqlite.run(rows_of(table, ids, (), 9, in_state(state, NOW_NS)))
        ] == own


def test_an_answer_looks_at_some_of_many_priorities_and_says_where_to_go_on(sqlite):
    sqlite.connection.execute(DEFINITION)
    parked = partial(peek, TABLE, PeekState.PARKED, now_ns=NOW_NS, limit=20)
    assert pages(sqlite, lambda at: parked(place=at)) == ([], [0])
    numbers = [(number, number) for number in range(100)]
    sqlite.connection.executemany(
        "INSERT INTO msg (id, priority, time_next) VALUES (?, ?, 0)", numbers
    )
    assert pages(sqlite, lambda at: parked(place=at)) == ([], [0, 0, 0, 0])


def test_rows_of_a_value_come_page_by_page(sqlite):
    sqlite.connection.execute(DEFINITION)
    rows = [(number, "xy"[number % 2]) for number in range(9)]
    sqlite.connection.executemany("INSERT INTO msg (id, message) VALUES (?, ?)", rows)
    where = Match("message", b"y").condition(TABLE)
    found = pages(sqlite, lambda at: peek_by_id(TABLE, where, "i", at, 2))
    assert found == ([1, 3, 5, 7], [2, 2, 0])


@cases(kind=str, collation=str, contains=ast.literal_eval, expected=str.encode)
def test_values_are_compared_as_their_type_needs_it(kind, collation, contains, expected):
    types = tuple(
        replace(of, text=kind, collation=collation) if name == "message" else of
        for name, of in zip(TABLE.columns, TABLE.types, strict=True)
    )
    table = replace(TABLE, types=types)
    assert Match("message", b"1", contains=contains).condition(table) == expected


def test_a_table_that_the_server_tells_nothing_of_has_no_ways():
    assert answered(ways(TABLE, None), StoreAnswer())[1] == Ways(0, None)


@pytest.mark.parametrize(
    ("row_bytes", "most", "expected"), [(0, 500, 500), (16 << 10, 500, 500), (1 << 20, 500, 8), (64 << 20, 20, 4), (64 << 20, 1, 1)]
)  # fmt: skip
def test_so_many_rows_are_read_at_once(row_bytes, most, expected):
    assert Ways(row_bytes, None).rows_at_once(most) == expected
