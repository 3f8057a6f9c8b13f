"""Rows that the server does not write: what the scheduler does about them, and about all others."""

from streamfrom.engine.messaging.claims.ordered_claim import Claim
from streamfrom.engine.messaging.dispatch.events import (
    Acked,
    Changed,
    PurgeRefused,
    ReportSetAside,
    Tick,
    Touched,
    TryAgain,
)
from streamfrom.engine.messaging.queue.poll import Poll, PollResult, TierRead
from streamfrom.engine.messaging.table.message import (
    FOREVER_NS,
    ClaimResult,
    MessageKey,
    Refused,
    Tried,
)
from tests.engine.messaging.job_ends import claim_done, polled
from tests.engine.messaging.table_rig import SECOND_NS, TableRig, kinds


NO = Refused(Tried.CLAIM, "CONSTRAINT `c` failed")


class Rig(TableRig):
    def refused(self, claim, *ids):
        """Of a claim the server refuses *ids*, and the others are won."""
        bad = {b"%d" % each: NO for each in ids}
        rows = tuple(self.row(int(each)) for each in claim.ids if each not in bad)
        return self.post(claim_done(claim.number, claim.shard, ClaimResult(rows, refused=bad)))

    @property
    def shard_state(self):
        (shard,) = self.state.shards
        return shard

    def polled(self, *keys):
        return self.post(
            polled(
                "0", PollResult((TierRead(50, tuple(keys), False, (), False, 0, FOREVER_NS),))
            )
        )

    def later(self, seconds):
        self.now_ns += round(seconds * SECOND_NS)
        return self.post(Tick())


def test_a_bad_row_is_told_once_and_tried_again_after_ever_longer_pauses():
    rig = Rig().attach(1, 2)
    (claim,) = kinds(rig.due(1, 2), Claim)
    told = kinds(rig.refused(claim, 1), ReportSetAside)
    assert [(ident, row.error) for ident, row in told[0].found] == [(b"1", NO.error)]
    assert rig.wake_s() == 1
    (again,) = kinds(rig.later(1), Claim)
    assert again.ids == (b"1",)
    assert not kinds(rig.refused(again, 1), ReportSetAside)
    assert not kinds(rig.later(1.9), Claim)
    (again,) = kinds(rig.later(0.1), Claim)
    rig.won(again)
    assert not rig.shard_state.set_aside, "it is written after all"


def test_a_poll_that_sees_another_value_and_a_statement_that_names_it_bring_it_back():
    for change in (
        lambda rig: rig.polled(MessageKey(b"1", 7, 0)),
        lambda rig: [*rig.post(Changed("0", (b"1",))), *rig.polled(MessageKey(b"1", 50, 0))],
        lambda rig: [*rig.post(Touched("0", (b"1",))), *rig.polled(MessageKey(b"1", 50, 0))],
        lambda rig: rig.due(1),
    ):
        rig = Rig().attach(1, 2)
        (claim,) = kinds(rig.due(1), Claim)
        rig.refused(claim, 1)
        rig.polled(MessageKey(b"1", 50, 0))
        (again,) = kinds(change(rig), Claim)
        assert again.ids == (b"1",)


def test_one_that_is_acked_while_its_claim_runs_is_not_set_aside():
    rig = Rig().attach(1, 2)
    (claim,) = kinds(rig.due(1), Claim)
    rig.post(Acked("0", (b"1",)))
    rig.refused(claim, 1)
    assert not rig.shard_state.set_aside


def test_what_the_purge_leaves_is_known_until_it_is_deleted():
    rig = Rig()
    kept = {b"9": Refused(Tried.PURGE, "a foreign key constraint fails")}
    rig.post(PurgeRefused("0", kept))
    set_aside = rig.shard_state.set_aside
    assert set_aside.left_out(Tried.PURGE, rig.now_ns) == [b"9"]
    assert set_aside.left_out(Tried.PURGE, rig.now_ns + SECOND_NS) == []
    rig.post(PurgeRefused("0", {}, over=(b"9",)))
    assert not set_aside


def test_after_a_ddl_statement_all_are_tried_again_but_not_with_each_of_many():
    rig = Rig().attach(1, 2)
    (claim,) = kinds(rig.due(1), Claim)
    rig.refused(claim, 1)
    rig.later(0.5)
    found = rig.post(TryAgain())
    assert [type(action) for action in found] == [Poll], "which says when it is due"
    (again,) = kinds(rig.polled(MessageKey(b"1", 50, 0)), Claim)
    rig.refused(again, 1)
    rig.polled()
    assert rig.post(TryAgain()) == []
