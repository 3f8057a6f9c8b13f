import ast

from streamfrom.engine.messaging.leases.lease_rows import FindLeases, is_lease, look
from streamfrom.engine.messaging.store.conversation import At, StoreAnswer
from streamfrom.engine.messaging.table.backoff import PARKED_NS
from streamfrom.engine.messaging.table.table_settings import parse_comment
from tests.cases import cases
from tests.engine.messaging.conversations import run
from tests.sim.memory_store import DEFAULT_COMMENT, loaded, raw_table


TABLE = loaded(raw_table("msg"))
SECOND_NS = 10**9
NOW_NS = 1_700_000_000 * SECOND_NS


def test_a_look_reads_the_unacked_rows_without_a_lock():
    answer = StoreAnswer([((b"1", b"5"), b""), ((b"3", b"0"), b"")])
    found, sent = run(look(TABLE, [b"1", b"2", b"3"]), answer)
    assert sent == [
        b"SELECT `id`, IFNULL(time_next, 0) FROM `msg` FORCE INDEX (`PRIMARY`)"
        b" WHERE `id` IN (1, 2, 3) AND time_acked IS NULL"
    ]
    assert found == {b"1": 5, b"3": 0}


@cases(epoch=ast.literal_eval, wait_s=ast.literal_eval, found=ast.literal_eval)
def test_a_row_that_was_sent_and_waits_no_longer_than_a_lease_is_in_flight(
    epoch, wait_s, found
):
    properties = parse_comment(DEFAULT_COMMENT)
    assert is_lease(properties, epoch, NOW_NS + wait_s * SECOND_NS, NOW_NS) is found


def test_what_a_former_dispatcher_has_in_flight_is_read_off_the_rows(sqlite):
    sqlite.connection.execute("CREATE TABLE msg (id, epoch, time_next, time_acked)")
    soon_ns, late_ns = NOW_NS + 20 * SECOND_NS, NOW_NS + 50 * SECOND_NS
    rows = [
        (1, 1, soon_ns, None), (2, 1, late_ns, None), (3, 2, late_ns, None), (4, 0, soon_ns, None),
        (5, 1, NOW_NS, None), (6, 9, PARKED_NS, None), (7, 1, None, 5), (8, 1, soon_ns, 5),
    ]  # fmt: skip
    sqlite.connection.executemany("INSERT INTO msg VALUES (?, ?, ?, ?)", rows)
    found = sqlite.run(FindLeases("-").talk(TABLE, At("-", NOW_NS, True)))
    assert found == {b"1": soon_ns, b"3": late_ns}
