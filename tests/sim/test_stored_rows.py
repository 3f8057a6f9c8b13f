from streamfrom.engine.messaging.table.message import KeyFound, MessageKey
from streamfrom.engine.messaging.table.retry_limit import PARKED_NS
from tests.sim.memory_store import DEFAULT_COMMENT, loaded, raw_table
from tests.sim.stored_rows import StoredRow, turns_of


NOW_NS = 1000
KEYED = loaded(raw_table("msg", DEFAULT_COMMENT + ",vt_key=message,vt_max_per_key=1"))
STRICT = loaded(raw_table("msg", DEFAULT_COMMENT + ",vt_order=strict"))


def turns(table, asked, *rows):
    return turns_of(table, {row.id: row for row in rows}, asked, NOW_NS, {})


def row(ident, key=b"7", **more):
    return StoredRow(b"%d" % ident, key=key, **more)


def test_the_first_of_a_key_may_go_and_who_has_none_waits_for_nobody():
    rows = [row(1), row(2), row(3, key=None), row(4, time_acked_ns=5)]
    found = turns(KEYED, [b"2", b"3", b"4"], *rows)
    assert found.asked_keys == {b"2": b"7", b"3": None}
    heads = (MessageKey(b"1", 50, 0), MessageKey(b"2", 50, 0))
    assert found.found == {b"7": KeyFound((), heads)}
    assert list(found.chosen) == [b"1"]


def test_what_has_started_holds_back_the_others_unless_it_is_parked():
    rows = [row(1), row(2, epoch=1, time_next_ns=NOW_NS + 1)]
    assert turns(KEYED, [b"1"], *rows).chosen == {}
    rows[1].time_next_ns = PARKED_NS
    assert list(turns(KEYED, [b"1"], *rows).chosen) == [b"1"]


def test_what_is_not_due_is_told_with_its_time():
    found = turns(STRICT, [b"1"], row(1, time_next_ns=NOW_NS + 1))
    assert (found.passed_over, found.chosen) == ({b"1": NOW_NS + 1}, {})


def test_in_strict_order_all_have_the_same_key():
    assert list(turns(STRICT, [b"2"], row(1, key=None), row(2)).chosen) == [b"1"]
