"""What groups ask of a database, statement by statement, and what becomes of the answers."""

from dataclasses import replace

from streamfrom.engine.messaging.order.group_table import (
    PAGE_ROWS,
    Fire,
    hold,
    members,
    not_after,
)
from streamfrom.engine.messaging.store.conversation import At, StoreAnswer
from streamfrom.engine.messaging.store.row_writes import WrittenRows
from streamfrom.engine.messaging.table.groups import HELD_NS, FireRequest, FireResult
from streamfrom.engine.messaging.table.message import MessageKey
from streamfrom.engine.messaging.table.message_table import RawIndex
from tests.engine.messaging.conversations import carry_out
from tests.engine.messaging.table.test_message_table import FIRST
from tests.sim.memory_store import DEFAULT_COMMENT, loaded, raw_table


NOW_NS = 1_800_000_000 * 10**9
AT = At("0", NOW_NS, is_elected=True)
COMMENT = f"{DEFAULT_COMMENT},vt_group=batch,vt_after=finishes"
RAW = raw_table("msg", COMMENT, texts=("batch", "finishes"))
INDEX = RawIndex("group_idx", unique=False, columns=("batch", "time_acked"))
RAW = replace(RAW, indexes=(*RAW.indexes, INDEX))
TABLE = loaded(RAW)
PLAIN = loaded(raw_table("msg"))
MEMBER = (
    b"(SELECT m.`id` FROM `msg` AS m FORCE INDEX (`group_idx`) WHERE m.`batch` = h.`finishes`"
    b" AND m.time_acked IS NULL AND NOT (m.`finishes` <=> m.`batch`) ORDER BY m.`batch` DESC, m.`id` DESC LIMIT 1)"
)


def carried_out(conversation, *answers):
    """Return the result and the statements; each question that has rows takes the next of *answers*."""
    sent, left = [], list(answers)

    def answer_to(query):
        sent.append(query.sql)
        return StoreAnswer([(row, b"") for row in (left.pop(0) if query.values else ())])

    result = carry_out(conversation, answer_to)
    assert not left
    return result, sent


def test_what_waits_for_a_member_is_held_and_nothing_else():
    held, sent = carried_out(
        hold(TABLE, [b"3", b"4"]), [(b"3", b"1", b"b", b"50"), (b"4", None, b"c", b"50")]
    )
    assert held.done == [b"3"]
    assert sent == [
        b"SELECT h.`id`, "
        + MEMBER
        + b", h.`finishes`, IFNULL(h.priority, 0) FROM `msg` AS h FORCE INDEX (`PRIMARY`)"
        b" WHERE h.`id` IN (3, 4) AND IFNULL(h.`finishes`, '') <> ''",
        b"UPDATE `msg` FORCE INDEX (`PRIMARY`) SET time_next = %d WHERE `id` IN (3)" % HELD_NS,
    ]


def test_a_table_without_groups_is_asked_nothing():
    assert carried_out(hold(PLAIN, [b"3"])) == (WrittenRows(), [])
    assert carried_out(members(PLAIN, [b"3"])) == (frozenset(), [])
    assert not_after(PLAIN) == b""
    assert not_after(TABLE) == b" AND IFNULL(`finishes`, '') = ''"


def test_what_is_ready_fires_and_for_the_others_a_member_is_told():
    found = [(b"3", b"1", b"b", b"50"), (b"4", None, b"c", b"7"), (b"5", None, b"c", b"7")]
    result, sent = carried_out(
        Fire("0", FireRequest((b"3", b"4", b"5", b"6"))).talk(TABLE, AT), found, [(b"4",)]
    )
    assert result == FireResult(
        fired=(MessageKey(b"4", 7, NOW_NS),), waiting={b"3": b"1"}, locked=(b"5",)
    )
    assert b"h.`id` IN (3, 4, 5, 6) AND h.time_acked IS NULL AND h.time_next = 8000" in sent[0]
    assert sent[1:] == [
        b"SELECT `id` FROM `msg` FORCE INDEX (`PRIMARY`) WHERE `id` IN (4, 5) AND time_acked IS NULL"
        b" AND time_next = 8000000000000000000 FOR UPDATE SKIP LOCKED",
        b"UPDATE `msg` FORCE INDEX (`PRIMARY`) SET time_next = %d WHERE `id` IN (4)" % NOW_NS,
    ]


def test_where_nothing_is_ready_nothing_is_written():
    result, sent = carried_out(
        Fire("0", FireRequest((b"3",))).talk(TABLE, AT), [(b"3", b"1", b"b", b"50")]
    )
    assert result == FireResult(waiting={b"3": b"1"})
    assert sent[1:] == [b"COMMIT"]
    result, sent = carried_out(
        Fire("0", FireRequest((b"3",))).talk(TABLE, AT), [(b"3", None, b"b", b"5")], []
    )
    assert result == FireResult(locked=(b"3",))
    assert sent[2:] == [b"COMMIT"]


def test_a_parked_member_is_told_with_its_group():
    table = loaded(replace(RAW, comment=f"{COMMENT},vt_max_attempts=3"))
    found = [(b"3", b"1", b"b", b"50"), (b"4", b"2", b"c", b"50")]
    result, _ = carried_out(
        Fire("0", FireRequest((b"3", b"4"))).talk(table, AT), found, [(b"1",)]
    )
    assert result == FireResult(waiting={b"3": b"1", b"4": b"2"}, dead={b"3": b"b"})


def test_a_walk_goes_over_the_priorities_and_stops_at_the_end_of_a_page():
    full = [(b"%d" % ident, b"1", b"b", b"5") for ident in range(PAGE_ROWS)]
    result, sent = carried_out(Fire("0", FireRequest()).talk(TABLE, AT), [(b"5",)], full)
    assert result.place == (5, b"%d" % (PAGE_ROWS - 1))
    assert sent[0] == b"SELECT MIN(priority) FROM `msg` WHERE time_acked IS NULL"
    assert sent[1].endswith(
        b" FROM `msg` AS h FORCE INDEX (`poller_idx`) WHERE h.time_acked IS NULL"
        b" AND h.time_next = 8000000000000000000 AND h.priority = 5 ORDER BY h.`id` LIMIT 200"
    )
    # The rest of it is empty, as is the next priority; the one after it has a row, and is not the last.
    result, sent = carried_out(
        Fire("0", FireRequest(place=(5, b"199"))).talk(TABLE, AT),
        [],
        [(b"7",)],
        [],
        [(b"9",)],
        [(b"3", b"1", b"b", b"9")],
        [(b"11",)],
    )
    assert b" AND h.priority = 5 AND h.`id` > 199 ORDER" in sent[0]
    assert sent[1].endswith(b" AND priority > 5")
    assert (result.place, result.waiting) == ((11, None), {b"3": b"1"})
    result, _ = carried_out(
        Fire("0", FireRequest(place=(11, None))).talk(TABLE, AT), [], [(None,)]
    )
    assert result == FireResult()


def test_a_walk_over_an_empty_table_ends_at_once():
    assert carried_out(Fire("0", FireRequest()).talk(TABLE, AT), [(None,)])[0] == FireResult()


def test_a_walk_begins_with_the_priority_null_where_there_can_be_one():
    columns = tuple(
        replace(column, nullable=True) if column.name == "priority" else column
        for column in RAW.columns
    )
    table = loaded(replace(RAW, columns=columns))
    row = (b"3", b"1", b"b", b"0")
    result, sent = carried_out(Fire("0", FireRequest()).talk(table, AT), [row], [(b"-3",)])
    assert b" AND h.priority IS NULL ORDER BY" in sent[0]
    assert (result.place, result.waiting) == ((-3, None), {b"3": b"1"})


def test_a_walk_of_the_first_layout_knows_no_priorities():
    texts = tuple(column for column in RAW.columns if column.name in ("batch", "finishes"))
    table = loaded(replace(FIRST, comment=COMMENT, columns=(*FIRST.columns, *texts)))
    full = [(b"%d" % ident, b"1", b"b", b"0") for ident in range(PAGE_ROWS)]
    result, sent = carried_out(Fire("0", FireRequest()).talk(table, AT), full)
    assert (
        b" FROM `my_message` AS h FORCE INDEX (`next_idx`) WHERE h.time_acked IS NULL"
        in sent[0]
    )
    assert (result.place, b"priority" in sent[0]) == ((None, b"%d" % (PAGE_ROWS - 1)), False)
    result, sent = carried_out(Fire("0", FireRequest(place=result.place)).talk(table, AT), [])
    assert b" AND h.`id` > 199 ORDER BY" in sent[0]
    assert result == FireResult()


def test_what_is_held_of_a_table_whose_groups_were_taken_away_fires():
    result, _ = carried_out(
        Fire("0", FireRequest((b"3",))).talk(PLAIN, AT), [(b"3", None, None, b"50")], [(b"3",)]
    )
    assert result == FireResult(fired=(MessageKey(b"3", 50, NOW_NS),))
