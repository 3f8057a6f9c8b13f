"""Where keys take turns a poll reads them apart: of rows with their keys, by a walk along the keys, and of news by their ids."""

import re

from streamfrom.engine.messaging.queue.key_walk import KEYS_WALKED_MAX
from streamfrom.engine.messaging.queue.poll import KEYS_KNOWN_MAX, PollRequest, poll
from streamfrom.engine.messaging.queue.shard_queue import (
    NEWS_AT_ONCE,
    ShardQueue,
)
from streamfrom.engine.messaging.store.conversation import StoreAnswer
from streamfrom.engine.messaging.table.message import MessageKey
from tests.engine.messaging.conversations import from_memory
from tests.engine.messaging.table.test_table_settings import comment
from tests.sim.memory_store import StoredRow, loaded, raw_table


NOW_NS = 1_000_000
TABLE = loaded(raw_table("queue", comment("vt_key=tenant", "vt_fair=on"), numbers=("tenant",)))


class Shard:
    """A shard's rows, and its queue, which is polled as it asks to be."""

    def __init__(self, *rows, limit=100):
        self.rows = {row.id: row for row in rows}
        self.queue = ShardQueue(limit, fair=True)
        self.asked = []
        self.poll()

    def poll(self, *, is_of_named=False):
        request = self.queue.poll_started(NOW_NS)
        if is_of_named:
            request = PollRequest(request.limit, is_of_named=True, news=request.news)
        result, queries = from_memory(TABLE, poll(TABLE, request, NOW_NS), self.rows.values())
        self.asked = [query.sql for query in queries]
        self.queue.poll_finished(result, NOW_NS)

    @property
    def walked(self):
        """Return behind which keys the last poll walked, 0 for the first one, and up to which."""
        steps = (
            re.search(rb"MIN\(`tenant`\)(?:.+> (\d+))?(?:.+<= (\d+))?", sql)
            for sql in self.asked
        )
        return [tuple(int(each or 0) for each in step.groups()) for step in steps if step]

    @property
    def wants_poll(self):
        wanted_ns = self.queue.next_poll_ns()
        return wanted_ns is not None and wanted_ns <= NOW_NS

    def send(self, count):
        """Send and ack so many messages, polling whenever the queue asks for it; return their keys."""
        sent: list[StoredRow] = []
        while len(sent) < count:
            if self.wants_poll:
                self.poll()
            taken = self.queue.take(min(5, count - len(sent)), NOW_NS)
            if not taken and not self.wants_poll:
                break
            for one in taken:
                self.queue.requeue(one.id, None, NOW_NS)
                sent.append(self.rows.pop(one.id))
        assert len({row.id for row in sent}) == len(sent)
        return [row.key for row in sent]


def rows_of(key, first, count, priority=50, time_next_ns=0):
    return [
        StoredRow(b"%d" % ident, priority, time_next_ns=time_next_ns, key=key)
        for ident in range(first, first + count)
    ]


def test_all_that_fits_is_divided_among_the_keys_without_a_walk():
    shard = Shard(*rows_of(b"1", 1, 6), *rows_of(b"2", 10, 2), *rows_of(None, 20, 2), limit=50)
    assert not shard.walked
    sent = shard.send(6)
    assert [sent.count(key) for key in (b"1", b"2", None)] == [2, 2, 2]
    assert shard.send(9) == [b"1"] * 4


def test_a_flood_hides_no_key_and_no_message_without_one():
    shard = Shard(
        *rows_of(b"1", 1, 600, priority=1),
        *rows_of(b"2", 9000, 10),
        *rows_of(None, 9900, 10),
        *rows_of(b"3", 9500, 10, time_next_ns=NOW_NS - 1),
    )
    keys = shard.send(60)
    assert [keys.count(key) for key in (b"2", b"3", None)] == [10, 10, 10]
    assert len(shard.send(10_000)) == 630 - 60


def test_more_keys_than_are_known_are_all_sent():
    keys = [b"%d" % number for number in range(1, KEYS_KNOWN_MAX + 50)]
    shard = Shard(*(row for key in keys for row in rows_of(key, int(key), 1)), limit=600)
    assert sorted(shard.send(10**6)) == sorted(keys)


def test_the_walk_goes_round_from_where_it_stopped():
    keys = [b"%d" % number for number in range(1, KEYS_WALKED_MAX + 10)]
    flood = rows_of(b"1", 10_000, 1000)
    shard = Shard(*flood, *(row for key in keys for row in rows_of(key, int(key), 1)), limit=20)
    assert (shard.walked[0], shard.walked[-1]) == ((0, 0), (KEYS_WALKED_MAX - 2, 0))
    shard.poll()
    assert shard.walked[0] == (KEYS_WALKED_MAX - 1, 0)
    assert (0, KEYS_WALKED_MAX - 1) in shard.walked


def test_news_of_a_small_key_is_looked_up_and_has_its_turn():
    shard = Shard(*rows_of(b"1", 1, 500))
    new = rows_of(b"2", 9000, 3)
    shard.rows.update((row.id, row) for row in new)
    assert not shard.queue.hear([MessageKey(row.id, 50, 0) for row in new], NOW_NS)
    shard.poll(is_of_named=True)
    assert len(shard.asked) == 1
    assert b"WHERE `id` IN (9000, 9001, 9002)" in shard.asked[0]
    assert not shard.queue.news
    assert shard.send(6).count(b"2") >= 2


def test_more_news_than_is_kept_asks_for_a_poll():
    shard = Shard(limit=NEWS_AT_ONCE + 10)
    news = [MessageKey(b"%d" % ident, 50, 0) for ident in range(NEWS_AT_ONCE + 11)]
    assert shard.queue.hear(news, NOW_NS)
    assert len(shard.queue.poll_started(NOW_NS).news) == NEWS_AT_ONCE
    shard.queue.poll_failed()
    assert len(shard.queue.news) == NEWS_AT_ONCE + 10


def test_a_table_whose_key_is_a_text_is_asked_by_its_literals():
    table = loaded(
        raw_table("queue", comment("vt_key=Tenant", "vt_fair=on"), texts=("tenant",))
    )
    conversation = poll(table, PollRequest(4, news=(b"7",)), NOW_NS)
    answers: tuple[list[tuple[tuple[bytes | None, ...], bytes]], ...] = (
        [((b"7", b"50", None, b"a'b"), b"")],
        [((b"50",), b"")],
        [((None,), b"")],
        [((b"1", b"0", b"a'b"), b""), ((b"2", b"0", None), b"")],
        [((b"1", b"0", b"a'b"), b""), ((b"2", b"0", None), b"")],
        [],
        [],
        [((b"a'b",), b"")],
    )
    asked = [next(conversation).sql]
    asked += [conversation.send(StoreAnswer(rows)).sql for rows in answers]
    assert asked[0] == (
        b"SELECT `id`, priority, time_next, `tenant` FROM `queue` FORCE INDEX (`PRIMARY`)"
        b" WHERE `id` IN (7) AND time_acked IS NULL"
    )
    assert b"SELECT `id`, time_next, `tenant` FROM" in asked[3]
    assert asked[7] == b"SELECT MIN(`tenant`) FROM `queue` WHERE time_acked IS NULL"
    assert asked[8] == asked[7] + b" AND `tenant` > 'a''b'"
