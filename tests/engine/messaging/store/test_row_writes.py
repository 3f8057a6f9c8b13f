"""Batches of which a server refuses some rows: what is returned is what is committed."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from hypothesis import given, strategies as st

from streamfrom.engine.messaging.acks.ack_writes import WriteAcks
from streamfrom.engine.messaging.claims.claim_writes import ClaimRequest, claim
from streamfrom.engine.messaging.leases.lease_rows import Release, Shorten, WriteLeases
from streamfrom.engine.messaging.leases.leases import Lease
from streamfrom.engine.messaging.order.group_table import Fire
from streamfrom.engine.messaging.store.conversation import At, ServerRefused, StoreAnswer
from streamfrom.engine.messaging.store.row_writes import REFUSED_MAX, is_of_rows
from streamfrom.engine.messaging.table.groups import HELD_NS, FireRequest
from streamfrom.engine.messaging.table.message import ClaimedRow, LeaseWrite, Tried
from streamfrom.engine.messaging.upkeep.purge import Purge
from tests.engine.messaging.conversations import carry_out
from tests.sim.memory_store import DEFAULT_COMMENT, loaded, raw_table


NOW_NS = 1000 * 10**9
TABLE = loaded(raw_table("msg"))
AT = At("0", NOW_NS, is_elected=True)
GROUPED = loaded(
    raw_table(
        "msg",
        f"{DEFAULT_COMMENT},vt_group=batch,vt_after=finishes",
        texts=("batch", "finishes"),
    )
)
CHECK = 4025
_IDS = re.compile(rb" IN \(([^)]*)\)")
_PAIRS = re.compile(rb"\(`id` = (\d+) AND")


class Server:
    """Answers a conversation about rows of which it refuses to write *poison*.

    written: what is committed by now. Whoever writes without locking first is found out.
    """

    def __init__(self, ids, poison, code=CHECK):
        self.ids, self.poison, self.code = ids, poison, code
        self.written, self.pending, self.locked = set(), set(), set()
        self.statements = 0

    def run(self, conversation):
        return carry_out(conversation, self.answer)

    def answer(self, query):
        self.statements += 1
        with self.committing(query):
            return self.answer_one(query.sql, query.values)

    @contextmanager
    def committing(self, query) -> Iterator[None]:
        try:
            yield
        finally:
            if query.commits or query.sql == b"COMMIT":
                self.written |= self.pending
            if query.commits or query.sql in {b"COMMIT", b"ROLLBACK", b"START TRANSACTION"}:
                self.pending, self.locked = set(), set()

    def answer_one(self, sql, values):
        if sql.startswith(b"SELECT"):
            if b"LIMIT" in sql and b"FOR UPDATE" in sql:
                found = self.ids
            else:
                found = _IDS.findall(sql)[0].split(b", ")
            if b"FOR UPDATE" in sql:
                self.locked |= set(found)
            return StoreAnswer([(self.columns(sql, ident)[:values], b"") for ident in found])
        if sql.startswith((b"UPDATE", b"DELETE")):
            ids = _PAIRS.findall(sql) or _IDS.findall(sql)[-1].split(b", ")
            assert b"epoch - 1" in sql or self.locked.issuperset(ids), "written without a lock"
            if not self.poison.isdisjoint(ids):
                raise ServerRefused(self.code, "CONSTRAINT `poison` failed")
            self.pending |= set(ids)
            return StoreAnswer(affected=len(ids))
        return StoreAnswer()

    def columns(self, sql, ident):
        if b"`id`, IFNULL(epoch, 0), IFNULL(time_next, 0), `id`" in sql:
            return ident, b"1", b"0"
        if b"h.`finishes`, IFNULL(h.priority, 0)" in sql:
            return ident, None, b"g", b"50"
        if b"`id`, time_next FROM" in sql:
            return ident, b"%d" % HELD_NS
        return ident, b"0", b"0"


def _rows(ids):
    return [ClaimedRow(ident, "0", 0, 0, 9, b"") for ident in ids]


# What was tried, the conversation, and what its result says was written; None where it does not say.
BATCHES = {
    "claim": (
        Tried.CLAIM,
        lambda ids: claim(TABLE, ClaimRequest(1, "0", tuple(ids), ("id",)), AT),
        lambda result: [row.id for row in result.rows],
    ),
    "leases": (
        Tried.LEASE,
        lambda ids: WriteLeases("0", tuple(LeaseWrite(i, 2 * NOW_NS) for i in ids)).talk(
            TABLE, AT
        ),
        None,
    ),
    "early acks": (
        Tried.ACK,
        lambda ids: WriteAcks("0", tuple((i, 77) for i in ids)).talk(TABLE, AT),
        None,
    ),
    "release": (Tried.RETURN, lambda ids: Release(1, "0", _rows(ids)).talk(TABLE, AT), None),
    "shorten": (
        Tried.RETURN,
        lambda ids: Shorten("0", 1, tuple(Lease(HELD_NS, i, 1) for i in ids), 5).talk(
            TABLE, AT
        ),
        lambda result: result.ids,
    ),
    "purge": (Tried.PURGE, lambda _: Purge(5).talk(TABLE, AT), None),
    "fire": (
        Tried.FIRE,
        lambda ids: Fire("0", FireRequest(tuple(ids))).talk(GROUPED, AT),
        lambda result: [key.id for key in result.fired],
    ),
}


@pytest.mark.parametrize("batch", BATCHES)
@given(data=st.data())
def test_all_but_the_bad_rows_of_a_batch_are_written_and_each_of_these_is_named(batch, data):
    tried, make, said = BATCHES[batch]
    ids = [b"%d" % each for each in range(1, data.draw(st.integers(1, 40)) + 1)]
    bad = data.draw(st.sets(st.sampled_from(ids), max_size=REFUSED_MAX - 1))
    server = Server(ids, bad)
    result = server.run(make(ids))
    refused = result if isinstance(result, dict) else result.refused
    assert server.written == set(ids) - bad
    assert refused.keys() == bad
    assert {(one.tried, one.error) for one in refused.values()} <= {
        (tried, "CONSTRAINT `poison` failed")
    }
    if said is not None:
        assert set(said(result)) == server.written
    if not bad:
        assert server.statements <= 3, "it costs nothing while no row is bad"


@pytest.mark.parametrize("batch", BATCHES)
@pytest.mark.parametrize("code", [1205, 1213, 1290, 1142, 1146, 2013])
def test_what_is_about_no_row_is_refused_as_a_whole(batch, code):
    _, make, _ = BATCHES[batch]
    server = Server([b"1", b"2"], {b"1"}, code)
    with pytest.raises(ServerRefused):
        server.run(make([b"1", b"2"]))
    assert not server.written


def test_where_all_are_bad_a_transaction_ends_all_the_same():
    ids = [b"%d" % each for each in range(500)]
    server = Server(ids, set(ids))
    result = server.run(claim(TABLE, ClaimRequest(1, "0", tuple(ids), ("id",)), AT))
    assert len(result.refused) == REFUSED_MAX
    assert set(result.passed_over) == set(ids) - result.refused.keys(), "they are tried next"
    assert server.statements < 300


def test_a_bad_row_among_many_costs_few_statements():
    ids = [b"%d" % each for each in range(500)]
    server = Server(ids, {b"321"})
    server.run(claim(TABLE, ClaimRequest(1, "0", tuple(ids), ("id",)), AT))
    assert server.statements <= 30


def test_errors_are_about_rows_or_not():
    # A range, CHECK of MariaDB and of MySQL, a foreign key, SIGNAL, a truncated value, JSON.
    of_rows = {1264, 4025, 3819, 1451, 1644, 1292, 3140}
    others = {1205, 1213, 1290, 1836, 1142, 1054, 1146, 1114, 2006, 0}
    assert set(filter(is_of_rows, of_rows | others)) == of_rows
