from streamfrom.engine.messaging.store.conversation import StoreAnswer
from streamfrom.engine.messaging.table.message import Purged
from streamfrom.engine.messaging.upkeep.purge import Purge
from tests.engine.messaging.conversations import at, run
from tests.engine.messaging.table.test_message_table import FIRST
from tests.sim.memory_store import loaded, raw_table


TABLE = loaded(raw_table("msg"))
OLD = loaded(FIRST)


def test_a_purge_is_one_batch():
    found = StoreAnswer(rows=[((b"5",), b""), ((b"7",), b"")])
    deleted, sent = run(Purge(99).talk(TABLE, at()), found, StoreAnswer(affected=2))
    assert deleted == Purged(2, 2)
    assert sent == [
        b"SELECT `id` FROM `msg` FORCE INDEX (`poller_idx`) WHERE time_acked < 99 LIMIT 500"
        b" FOR UPDATE SKIP LOCKED",
        b"DELETE `msg` FROM `msg` FORCE INDEX (`PRIMARY`) WHERE `id` IN (5, 7)"
        b" AND time_acked < 99",
        b"COMMIT",
    ]


def test_a_purge_that_finds_nothing_deletes_nothing():
    deleted, sent = run(Purge(99).talk(TABLE, at()), StoreAnswer(rows=[]))
    assert deleted == Purged()
    assert sent[1:] == [b"COMMIT"]


def test_the_first_layout_is_purged_along_its_primary_key():
    _, sent = run(Purge(99).talk(OLD, at()), StoreAnswer(rows=[]))
    assert sent[0] == (
        b"SELECT `id` FROM `my_message` WHERE time_acked < 99 AND time_scheduled < 99 LIMIT 500"
        b" FOR UPDATE SKIP LOCKED"
    )
