from streamfrom.engine.messaging.leases.lease_rows import Release, Shorten
from streamfrom.engine.messaging.leases.leases import Lease
from streamfrom.engine.messaging.store.conversation import At, StoreAnswer
from streamfrom.engine.messaging.table.message import ClaimedRow, Shortenings
from tests.engine.messaging.conversations import run
from tests.sim.memory_store import loaded, raw_table


TABLE = loaded(raw_table("msg"))
AT = At("-", 5, is_elected=True)


def test_shortening_writes_only_where_the_lease_is_as_it_was():
    leases = (Lease(77, b"1", 1), Lease(78, b"2", 1), Lease(79, b"3", 1))
    answer = StoreAnswer([((b"1", b"77"), b""), ((b"2", b"99"), b"")])
    found, sent = run(Shorten("-", 1, leases, 50).talk(TABLE, AT), answer)
    assert found == Shortenings((b"1",))
    assert sent == [
        b"SELECT `id`, time_next FROM `msg` FORCE INDEX (`PRIMARY`) WHERE `id` IN (1, 2, 3)"
        b" AND time_acked IS NULL FOR UPDATE SKIP LOCKED",
        b"UPDATE `msg` FORCE INDEX (`PRIMARY`) SET time_next = 50 WHERE `id` IN (1)",
        b"COMMIT",
    ]
    assert run(Shorten("-", 1, leases, 50).talk(TABLE, AT))[1][1:] == [b"COMMIT"]


def test_a_release_is_one_guarded_statement():
    rows = (ClaimedRow(b"1", "0", 0, 0, 50, b""), ClaimedRow(b"2", "0", 4, 7, 60, b""))
    _, sent = run(Release(1, "-", rows).talk(TABLE, AT))
    assert sent == [
        b"UPDATE `msg` FORCE INDEX (`PRIMARY`) SET time_next = CASE `id` WHEN 1 THEN 0"
        b" WHEN 2 THEN 7 ELSE time_next END, epoch = epoch - 1 WHERE time_acked IS NULL"
        b" AND ((`id` = 1 AND epoch = 1 AND time_next = 50)"
        b" OR (`id` = 2 AND epoch = 5 AND time_next = 60))",
        b"COMMIT",
    ]
