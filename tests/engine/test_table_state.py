"""The scheduler, event by event. M1-M16 are the original's tests of its manager, restated."""

from dataclasses import replace

import pytest

from engine.cache import LOST_PAUSE_NS
from engine.comment import parse_comment
from engine.errors import StoreError, StreamLost, UnknownColumn
from engine.events import (
    Acked,
    Attached,
    Changed,
    Claim,
    Claimed,
    ClaimFailed,
    Deliver,
    Detached,
    Due,
    End,
    Ended,
    Poll,
    Polled,
    PollFailed,
    Ready,
    Reconfigured,
    Release,
    Released,
    ReleaseFailed,
    ShardDown,
    ShardUp,
    Tick,
)
from engine.message_table import load
from engine.poll import PollResult
from engine.table_state import (
    CLAIM_BYTES_MAX,
    CLAIM_ROWS_MAX,
    CLAIMS_IN_FLIGHT_MAX,
    ROW_BYTES_ASSUMED,
    TableState,
)
from engine.testing import raw_table
from engine.types import ClaimedRow
from tests.engine.test_cache import key, tier


SECOND_NS = 10**9
START_NS = 10**12
WAIT_NS = 30 * SECOND_NS
EMPTY = PollResult(())


def table(*, batch=10, cache=100, poll=30, order="oldest"):
    return load(
        "ks",
        raw_table(
            "msg",
            f"vitess_message,vt_ack_wait=30,vt_purge_after=86400,vt_batch_size={batch},"
            f"vt_cache_size={cache},vt_poller_interval={poll},vt_order={order}",
        ),
    )


class Bench:
    """A state, a hand on its clock, and short words for what happens to it."""

    def __init__(self, *, shards=("0",), grace_s=30, **settings):
        self.now_ns = START_NS
        self.state = TableState(table(**settings), shards, grace_s * SECOND_NS)
        self.shard = shards[0]
        self.actions = []

    def post(self, event):
        """Return what is to be done; remember it too."""
        self.actions = self.state.handle(event, self.now_ns)
        return self.actions

    def attach(self, *receivers, shards=None, columns=("id", "message")):
        """Attach receivers; the polls they cause find nothing."""
        for receiver in receivers:
            for action in self.post(Attached(receiver, shards, columns)):
                assert isinstance(action, Poll)
                self.post(Polled(action.shard, EMPTY))
        return self

    def due(self, *ids, shard=None, time_next_ns=0):
        return self.post(Due(shard or self.shard, tuple(key(one, time_next_ns) for one in ids)))

    def row(self, ident, shard=None, epoch=0):
        return ClaimedRow(
            b"%d" % ident, shard or self.shard, epoch, 0, self.now_ns + WAIT_NS, b"x"
        )

    def won(self, claim, *ids, payload=b"x"):
        """All of a claim was won, or only *ids*."""
        wanted = ids or [int(ident) for ident in claim.ids]
        rows = tuple(self.row(one, claim.shard)._replace(payload=payload) for one in wanted)
        return self.post(Claimed(claim.number, claim.shard, rows))

    def later(self, seconds):
        self.now_ns += round(seconds * SECOND_NS)
        return self.post(Tick())

    def wake_s(self):
        wake_ns = self.state.wake_ns()
        return None if wake_ns is None else (wake_ns - self.now_ns) / SECOND_NS


def only(actions, kind):
    (action,) = actions
    assert isinstance(action, kind), actions
    return action


def claimed(actions):
    return [
        [int(ident) for ident in action.ids] for action in actions if isinstance(action, Claim)
    ]


def delivered(actions):
    return {
        action.receiver: [int(row.id) for row in action.rows]
        for action in actions
        if isinstance(action, Deliver)
    }


# Receivers and polls


def test_m3_without_receivers_nothing_is_kept_and_nothing_done():
    bench = Bench()
    assert bench.due(1) == []
    assert (bench.state.waiting, bench.wake_s()) == (0, None)
    assert bench.later(100) == []


def test_m12_the_first_receiver_causes_a_poll_and_what_it_finds_is_sent_in_batches():
    bench = Bench(batch=2)
    poll = only(bench.post(Attached(1, None, ("id",))), Poll)
    assert poll.request.limit == 100
    claim = only(bench.post(Polled("0", PollResult((tier([1, 2, 3]),)))), Claim)
    assert claim.columns == ("id",)
    assert delivered(bench.won(claim)) == {1: [1, 2]}
    assert claimed(bench.post(Ready(1))) == [[3]]


def test_m1_the_last_receiver_takes_the_cache_and_the_timers_with_it():
    bench = Bench().attach(1)
    bench.due(1, time_next_ns=START_NS + 5 * SECOND_NS)
    assert bench.wake_s() == 5
    bench.post(Detached(1))
    assert (bench.state.receivers, bench.state.waiting, bench.wake_s()) == (0, 0, None)


def test_m1_leaving_twice_is_fine():
    bench = Bench().attach(1)
    assert bench.post(Detached(1)) == []
    assert bench.post(Detached(1)) == []


def test_the_second_receiver_causes_no_poll():
    bench = Bench().attach(1)
    assert bench.post(Attached(2, None, ("id",))) == []


def test_m4_a_row_is_claimed_then_delivered_then_waits_for_its_ack():
    bench = Bench().attach(1)
    claim = only(bench.due(1), Claim)
    deliver = only(bench.won(claim), Deliver)
    assert deliver.rows[0].payload == b"x"
    assert bench.state.waiting == 1
    bench.post(Ready(1))
    assert bench.wake_s() == 30
    assert claimed(bench.later(30))[0] == [1]


def test_m4_an_acked_row_is_never_sent_again():
    bench = Bench().attach(1)
    bench.won(only(bench.due(1), Claim))
    bench.post(Ready(1))
    bench.post(Acked("0", (b"1",)))
    assert bench.state.waiting == 0
    assert claimed(bench.later(1000)) == []


def test_m5_two_receivers_and_two_rows_one_each_then_all_to_the_one_that_stays():
    bench = Bench().attach(1, 2)
    assert delivered(bench.won(only(bench.due(1, 2), Claim))) == {1: [1], 2: [2]}
    bench.post(Ready(1))
    bench.post(Ready(2))
    bench.post(Detached(2))
    for ident in (3, 4, 5):
        assert delivered(bench.won(only(bench.due(ident), Claim))) == {1: [ident]}
        bench.post(Ready(1))


def test_m5_rows_one_by_one_go_round():
    bench = Bench().attach(1, 2, 3)
    served = []
    for ident in range(6):
        served += delivered(bench.won(only(bench.due(ident), Claim)))
        bench.post(Ready(served[-1]))
    assert served == [1, 2, 3, 1, 2, 3]


def test_m6_a_slow_database_runs_a_bounded_number_of_claims():
    bench = Bench(batch=1).attach(*range(10))
    claims = [claim for ident in range(10) for claim in bench.due(ident)]
    assert len(claims) == CLAIMS_IN_FLIGHT_MAX
    # What came meanwhile goes into the next claim together.
    actions = bench.won(claims[0])
    assert claimed(actions) == [[2, 3, 4, 5, 6, 7, 8, 9]]


def test_m9_a_batch_never_waits_to_be_filled_and_is_never_overfilled():
    bench = Bench(batch=2).attach(1)
    assert claimed(bench.due(1)) == [[1]]
    bench = Bench(batch=2).attach(1)
    assert claimed(bench.due(1, 2, 3)) == [[1, 2]]


def test_rows_are_shared_evenly_over_the_ready_receivers():
    bench = Bench(batch=10).attach(1, 2, 3)
    claim = only(bench.due(*range(8)), Claim)
    assert delivered(bench.won(claim)) == {1: [0, 1, 2], 2: [3, 4, 5], 3: [6, 7]}


def test_a_claim_has_a_bound_on_rows():
    bench = Bench(batch=10_000, cache=10_000).attach(1)
    bench.won(only(bench.due(0), Claim))
    bench.due(*range(1, 2000))
    (claim,) = (a for a in bench.post(Ready(1)) if isinstance(a, Claim))
    assert len(claim.ids) == CLAIM_ROWS_MAX


def test_a_claim_of_long_bodies_takes_few_rows_until_they_are_short_again():
    bench = Bench(batch=10_000, cache=10_000).attach(1)
    first = only(bench.due(*range(2000)), Claim)
    assert len(first.ids) == CLAIM_BYTES_MAX // ROW_BYTES_ASSUMED
    sizes = []
    claim, size = first, 1 << 20
    for _ in range(6):
        bench.won(claim, payload=b"x" * size)
        (claim,) = (a for a in bench.post(Ready(1)) if isinstance(a, Claim))
        sizes.append(len(claim.ids))
        size = 10
    assert sizes == [16, 32, 64, 128, 256, 500]


def test_a_receiver_has_one_batch_over_all_shards():
    bench = Bench(shards=("-80", "80-")).attach(1)
    claim = only(bench.due(1, shard="-80"), Claim)
    assert bench.due(2, shard="80-") == []
    assert delivered(bench.won(claim)) == {1: [1]}
    only(bench.post(Ready(1)), Claim)


def test_shards_take_turns():
    bench = Bench(batch=1, shards=("-80", "80-")).attach(1)
    served = []
    actions = bench.due(*range(10), shard="-80")
    bench.due(*range(10, 20), shard="80-")
    for _ in range(8):
        (claim,) = (action for action in actions if isinstance(action, Claim))
        served.append(claim.shard)
        bench.won(claim)
        actions = bench.post(Ready(1))
    assert served.count("80-") == 4


def test_a_receiver_narrowed_to_a_shard_gets_rows_of_that_shard_only():
    bench = Bench(shards=("-80", "80-"))
    polls = bench.post(Attached(1, frozenset({"80-"}), ("id",)))
    assert [poll.shard for poll in polls] == ["80-"]
    bench.post(Polled("80-", EMPTY))
    assert bench.due(1, shard="-80") == []
    assert claimed(bench.due(2, shard="80-")) == [[2]]


def test_receivers_of_different_columns_get_different_claims():
    bench = Bench().attach(1, columns=("id",)).attach(2, columns=("id", "epoch"))
    claims = bench.due(1, 2)
    assert [claim.columns for claim in claims] == [("id",)]
    assert [claim.columns for claim in bench.due(3)] == [("id", "epoch")]


def test_m7_a_receiver_that_leaves_while_its_claim_runs_leaves_its_rows_to_another():
    bench = Bench().attach(1, 2)
    claim = only(bench.due(1), Claim)
    bench.post(Detached(1))
    assert delivered(bench.won(claim)) == {2: [1]}


def test_m7_without_another_the_rows_are_released_and_due_again_at_once():
    bench = Bench().attach(1)
    claim = only(bench.due(1, 2), Claim)
    bench.post(Detached(1))
    release = only(bench.won(claim), Release)
    assert [row.id for row in release.rows] == [b"1", b"2"]
    bench.attach(3)
    actions = bench.post(Released(release.number, "0", release.rows))
    assert claimed(actions) == [[1, 2]]


def test_m7_another_projection_is_no_other_receiver():
    bench = Bench().attach(1, columns=("id",)).attach(2, columns=("message",))
    claim = only(bench.due(1), Claim)
    bench.post(Detached(1))
    only(bench.won(claim), Release)


def test_m8_rows_that_never_reached_the_socket_are_released():
    bench = Bench().attach(1, 2)
    deliver = only(bench.won(only(bench.due(1, 2, 3, 4), Claim))[:1], Deliver)
    release = only(bench.post(Detached(1, deliver.rows[1:])), Release)
    assert [row.id for row in release.rows] == [b"2"]
    bench.post(Ready(2))
    assert claimed(bench.post(Released(release.number, "0", release.rows))) == [[2]]


def test_a_release_that_fails_leaves_the_row_to_its_timer():
    bench = Bench().attach(1, 2)
    deliver = bench.won(only(bench.due(1), Claim))[0]
    release = only(bench.post(Detached(1, deliver.rows)), Release)
    assert bench.post(ReleaseFailed(release.number, "0", release.rows)) == []
    assert bench.wake_s() == 30


def test_an_ack_that_arrives_while_a_release_runs_wins():
    bench = Bench().attach(1, 2)
    deliver = bench.won(only(bench.due(1), Claim))[0]
    release = only(bench.post(Detached(1, deliver.rows)), Release)
    bench.post(Acked("0", (b"1",)))
    assert bench.post(Released(release.number, "0", release.rows)) == []
    assert bench.state.waiting == 0


# Claims


def test_won_rows_are_sent_in_the_order_they_were_due_in():
    bench = Bench().attach(1)
    actions = bench.post(Due("0", (key(1, 9, 9), key(2, 5, 1), key(3, 7, 1))))
    claim = only(actions, Claim)
    assert delivered(bench.won(claim, 1, 2, 3)) == {1: [2, 3, 1]}


def test_lost_rows_leave_the_cache_and_their_receiver_is_free():
    bench = Bench().attach(1)
    claim = only(bench.due(1, 2), Claim)
    assert delivered(bench.won(claim, 2)) == {1: [2]}
    bench = Bench().attach(1)
    claim = only(bench.due(1), Claim)
    assert bench.post(Claimed(claim.number, "0", ())) == []
    assert claimed(bench.due(2)) == [[2]]


def test_rows_that_were_lost_are_looked_up_a_second_later():
    # An ack that is rolled back leaves them due, and nobody says so.
    bench = Bench().attach(1)
    claim = only(bench.due(1), Claim)
    bench.post(Claimed(claim.number, "0", ()))
    assert bench.wake_s() == LOST_PAUSE_NS / SECOND_NS
    assert only(bench.later(1), Poll)


def test_a_row_acked_while_its_claim_ran_is_not_sent():
    bench = Bench().attach(1)
    claim = only(bench.due(1, 2), Claim)
    bench.post(Acked("0", (b"1",)))
    assert delivered(bench.won(claim)) == {1: [2]}
    assert b"1" not in bench.state._shards["0"].queue


def test_a_row_rescheduled_while_its_claim_ran_is_sent_and_looked_up():
    bench = Bench().attach(1)
    claim = only(bench.due(1), Claim)
    bench.due(1, time_next_ns=START_NS + 5 * SECOND_NS)
    actions = bench.won(claim)
    assert delivered(actions) == {1: [1]}
    assert isinstance(actions[-1], Poll)


def test_a_row_won_under_another_spelling_is_sent_and_looked_up():
    bench = Bench().attach(1)
    claim = only(bench.due(1), Claim)
    actions = bench.won(claim, 77)
    assert delivered(actions) == {1: [77]}
    assert isinstance(actions[-1], Poll)


def test_a_failed_claim_is_tried_again_after_a_pause_that_doubles():
    bench = Bench().attach(1)
    claim = only(bench.due(1), Claim)
    pauses = []
    for _ in range(8):
        poll = only(bench.post(ClaimFailed(claim.number, "0", "gone")), Poll)
        bench.post(Polled(poll.shard, PollResult((tier([1]),))))
        pauses.append(bench.wake_s())
        claim = next(a for a in bench.later(pauses[-1]) if isinstance(a, Claim))
    assert pauses == [0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 2, 2]


def test_after_a_failed_claim_a_poll_tells_whether_it_was_committed():
    bench = Bench().attach(1)
    claim = only(bench.due(1), Claim)
    only(bench.post(ClaimFailed(claim.number, "0", "gone")), Poll)
    bench.post(Polled("0", PollResult((tier(timed=[START_NS + WAIT_NS]),))))
    assert bench.wake_s() == 30


def test_rows_lost_after_a_failed_claim_are_looked_up_again():
    """Its retry took them before the poll came back, so the poll's answer was not used."""
    bench = Bench().attach(1)
    claim = only(bench.due(1), Claim)
    poll = only(bench.post(ClaimFailed(claim.number, "0", "gone")), Poll)
    retry = only(bench.later(0.05), Claim)
    bench.post(Polled(poll.shard, PollResult((tier(timed=[START_NS + WAIT_NS]),))))
    bench.post(Claimed(retry.number, "0", ()))
    only(bench.later(0.05), Poll)


def test_a_socket_that_reports_twice_gets_one_batch():
    bench = Bench().attach(1)
    bench.won(only(bench.due(1), Claim))
    bench.post(Ready(1))
    claim = only(bench.due(2), Claim)
    assert bench.post(Ready(1)) == []
    assert bench.due(3) == []
    assert delivered(bench.won(claim)) == {1: [2]}


# Polls


def test_m15_a_poll_comes_every_interval():
    bench = Bench(poll=7).attach(1)
    assert bench.wake_s() == 7
    only(bench.later(7), Poll)
    assert bench.wake_s() is None
    bench.post(Polled("0", EMPTY))
    assert bench.wake_s() == 7


def test_m13_a_cache_that_cannot_hold_what_is_due_polls_when_half_is_used():
    bench = Bench(cache=4, batch=2)
    bench.post(Attached(1, None, ("id",)))
    actions = bench.post(Polled("0", PollResult((tier([1, 2, 3, 4], fresh_more=True),))))
    assert [type(action) for action in actions] == [Claim, Poll]


def test_m14_a_cache_of_one_goes_on_polling():
    bench = Bench(cache=1, batch=1)
    actions = bench.post(Attached(1, None, ("id",)))
    served = []
    for ident in range(1, 5):
        poll = next(action for action in actions if isinstance(action, Poll))
        actions = bench.post(Polled(poll.shard, PollResult((tier([ident], fresh_more=True),))))
        claim = next(action for action in actions if isinstance(action, Claim))
        served += delivered(bench.won(claim))[1]
        actions += bench.post(Ready(1))
    assert served == [1, 2, 3, 4]


def test_a_change_nobody_can_read_is_polled_for_once_while_a_poll_runs():
    bench = Bench().attach(1)
    only(bench.post(Changed("0")), Poll)
    assert bench.post(Changed("0")) == []
    assert bench.post(Changed("0")) == []
    only(bench.post(Polled("0", EMPTY)), Poll)
    assert bench.post(Polled("0", EMPTY)) == []


def test_polls_for_changes_take_half_the_time_at_most():
    bench = Bench().attach(1)
    bench.post(Changed("0"))
    bench.post(Changed("0"))
    bench.now_ns += SECOND_NS
    assert bench.post(Polled("0", EMPTY)) == []
    assert bench.wake_s() == 1
    only(bench.later(1), Poll)


def test_a_failed_poll_is_tried_again():
    bench = Bench().attach(1)
    bench.post(Changed("0"))
    assert bench.post(PollFailed("0", "gone")) == []
    assert bench.wake_s() == pytest.approx(0.05)
    only(bench.later(0.05), Poll)


def test_a_poll_from_before_everybody_left_is_not_used():
    bench = Bench()
    bench.post(Attached(1, None, ("id",)))
    bench.post(Detached(1))
    assert bench.post(Attached(2, None, ("id",))) == []
    actions = bench.post(Polled("0", PollResult((tier([1]),))))
    assert [type(action) for action in actions] == [Poll]


def test_m11_a_poll_that_was_overtaken_sends_nothing_twice():
    bench = Bench().attach(1)
    bench.post(Changed("0"))
    claim = only(bench.due(1), Claim)
    bench.won(claim)
    bench.post(Ready(1))
    assert bench.post(Polled("0", PollResult((tier([1]),)))) == []


def test_m10_future_rows_fire_at_their_moment():
    bench = Bench().attach(1)
    assert bench.due(1, time_next_ns=START_NS + 5 * SECOND_NS) == []
    assert bench.wake_s() == 5
    assert claimed(bench.later(4.999)) == []
    assert claimed(bench.later(0.001)) == [[1]]


def test_a_busy_receiver_needs_no_timer():
    bench = Bench().attach(1)
    bench.won(only(bench.due(1), Claim))
    bench.due(2, time_next_ns=START_NS + 5 * SECOND_NS)
    assert bench.wake_s() == 30  # the next poll
    bench.later(6)
    assert claimed(bench.post(Ready(1))) == [[2]]


# Trouble


def fail_until(bench, seconds):
    """Let every claim and poll fail for so long; return the actions of the last moment."""
    end_ns = bench.now_ns + round(seconds * SECOND_NS)
    pending = list(bench.actions)
    while True:
        for action in list(pending):
            pending.remove(action)
            if isinstance(action, Poll):
                pending += bench.post(PollFailed(action.shard, "no route"))
            elif isinstance(action, Claim):
                pending += bench.post(ClaimFailed(action.number, action.shard, "no route"))
            elif isinstance(action, End):
                return [action]
        wake_ns = bench.state.wake_ns()
        if wake_ns is None or wake_ns > end_ns:
            bench.now_ns = end_ns
            return []
        bench.now_ns = wake_ns
        pending += bench.post(Tick())


def test_r9_a_shard_that_fails_for_30_seconds_ends_the_streams():
    bench = Bench()
    bench.post(Attached(1, None, ("id",)))
    end = only(fail_until(bench, 31), End)
    assert (end.receiver, bench.now_ns) == (1, START_NS + 30 * SECOND_NS)
    assert isinstance(end.error, StreamLost)
    assert str(end.error) == (
        "message stream from ks/0 has repeatedly failed for longer than 30s: no route"
    )
    assert bench.wake_s() is None


def test_r9_29_seconds_are_survived():
    bench = Bench()
    bench.post(Attached(1, None, ("id",)))
    assert fail_until(bench, 29.4) == []
    poll = only(bench.later(0.1), Poll)
    bench.post(Polled(poll.shard, EMPTY))
    assert bench.state.receivers == 1
    assert claimed(bench.due(1)) == [[1]]


def test_a_shard_that_cannot_be_written_to_ends_the_streams_too():
    bench = Bench().attach(1)
    end = None
    pending = list(bench.due(1))
    while end is None:
        for action in list(pending):
            pending.remove(action)
            if isinstance(action, Poll):
                pending += bench.post(Polled("0", PollResult((tier([1]),))))
            elif isinstance(action, Claim):
                pending += bench.post(ClaimFailed(action.number, "0", "read-only"))
            elif isinstance(action, End):
                end = action
        if end is None:
            bench.now_ns = bench.state.wake_ns()
            pending += bench.post(Tick())
    assert "read-only" in str(end.error)
    assert bench.now_ns == START_NS + 30 * SECOND_NS


def test_a_claim_that_failed_and_has_nothing_left_to_do_is_no_trouble():
    bench = Bench().attach(1)
    claim = only(bench.due(1), Claim)
    bench.post(ClaimFailed(claim.number, "0", "gone"))
    bench.post(Acked("0", (b"1",)))
    bench.post(Polled("0", EMPTY))
    assert bench.wake_s() == 30
    assert [type(action) for action in bench.later(30)] == [Poll]


def test_polls_that_fail_while_claims_work_are_no_lost_shard():
    bench = Bench().attach(1)
    bench.post(Changed("0"))
    for second in range(100):
        bench.now_ns += SECOND_NS
        if any(isinstance(action, Poll) for action in bench.post(PollFailed("0", "slow"))):
            continue
        claims = [action for action in bench.due(second) if isinstance(action, Claim)]
        for claim in claims:
            bench.won(claim)
            bench.post(Acked("0", claim.ids))
            bench.post(Ready(1))
        bench.later(1)
    assert bench.state.receivers == 1


def test_only_streams_that_cover_the_shard_are_lost():
    bench = Bench(shards=("-80", "80-"))
    bench.attach(1, shards=frozenset({"80-"}))
    bench.post(Attached(2, None, ("id",)))
    end = only(fail_until(bench, 31), End)
    assert end.receiver == 2
    assert bench.state.receivers == 1


def test_a_health_signal_starts_and_stops_the_grace():
    bench = Bench(poll=1000).attach(1)
    assert bench.post(ShardDown("0", "refused")) == []
    assert bench.wake_s() == 30
    bench.later(29)
    only(bench.post(ShardUp("0")), Poll)
    bench.post(Polled("0", EMPTY))
    assert bench.wake_s() > 900
    bench.post(ShardDown("0", "refused"))
    only(bench.later(30), End)


def test_a_stream_that_opens_while_the_shard_is_down_has_its_whole_grace():
    bench = Bench(poll=1000)
    bench.post(ShardDown("0", "refused"))
    bench.now_ns += 100 * SECOND_NS
    bench.post(Attached(1, None, ("id",)))
    assert bench.wake_s() == 30


# Changes of the table


def test_changed_settings_hold_at_once_and_streams_survive():
    bench = Bench(batch=1).attach(1)
    only(bench.post(Reconfigured(table(batch=3, poll=5))), Poll)
    bench.post(Polled("0", EMPTY))
    assert bench.wake_s() == 5
    assert claimed(bench.due(1, 2, 3, 4)) == [[1, 2, 3]]


def test_a_stream_whose_column_was_dropped_ends():
    bench = Bench().attach(1).attach(2, columns=("id",))
    altered = replace(table(), columns=("id", "priority", "epoch", "time_next", "time_acked"))
    end = bench.post(Reconfigured(altered))[0]
    assert isinstance(end, End)
    assert end.receiver == 1
    assert isinstance(end.error, UnknownColumn)
    assert bench.state.receivers == 1


def test_m2_the_end_of_a_table_ends_every_stream_and_twice_is_fine():
    bench = Bench().attach(1, 2)
    error = StoreError("dropped")
    assert bench.post(Ended(error)) == [End(1, error), End(2, error)]
    assert bench.post(Ended(error)) == []
    assert bench.wake_s() is None


def test_rows_claimed_when_the_table_ends_are_released():
    bench = Bench().attach(1)
    claim = only(bench.due(1), Claim)
    bench.post(Ended(StoreError("shutdown")))
    only(bench.won(claim), Release)


def test_properties_of_the_helpers_are_what_they_say():
    assert table(order="newest").properties == replace(
        parse_comment(
            "vitess_message,vt_ack_wait=30,vt_purge_after=86400,vt_batch_size=10,"
            "vt_cache_size=100,vt_poller_interval=30"
        ),
        newest=True,
    )
