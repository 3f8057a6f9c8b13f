"""A table's state, a hand on its clock, and short words for what happens to it."""

from streamfrom.engine.messaging.claims.ordered_claim import Claim
from streamfrom.engine.messaging.dispatch.events import (
    Attached,
    Deliver,
    Due,
    ReceiverReady,
    Tick,
)
from streamfrom.engine.messaging.dispatch.table_state import TableState
from streamfrom.engine.messaging.queue.poll import Poll, PollResult
from streamfrom.engine.messaging.table.message import ClaimedRow, ClaimResult
from streamfrom.engine.messaging.table.message_table import load
from tests.engine.messaging.job_ends import claim_done, polled
from tests.engine.messaging.queue.test_shard_queue import key
from tests.sim.memory_store import raw_table


SECOND_NS = 10**9
START_NS = 10**12
WAIT_NS = 30 * SECOND_NS
EMPTY = PollResult(())


def table(*, batch=10, cache=100, poll=30, order="oldest", more=""):
    return load(
        "ks",
        raw_table(
            "msg",
            f"vitess_message,vt_ack_wait=30,vt_purge_after=86400,vt_batch_size={batch},"
            f"vt_cache_size={cache},vt_poller_interval={poll},vt_order={order},vt_prefetch={max(batch, 100)}{more}",
        ),
    )


class TableRig:
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
                self.post(polled(action.shard, EMPTY))
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
        return self.post(claim_done(claim.number, claim.shard, ClaimResult(rows)))

    def run(self, actions):
        """Return what every receiver is sent until nothing more happens, if claims win and sockets take everything at once."""
        sent: dict[int, list[int]] = {}
        actions = list(actions)
        while actions:
            claims = kinds(actions, Claim)
            actions = []
            for claim in claims:
                got = delivered(won := self.won(claim))
                actions += won
                for receiver, ids in got.items():
                    sent.setdefault(receiver, []).extend(ids)
                    actions += self.post(ReceiverReady(receiver))
        return sent

    def passed_over(self, claim, **time_next_ns):
        """Nothing of a claim was won; rows that are there and unacked are due then."""
        rows = {ident.encode(): due_ns for ident, due_ns in time_next_ns.items()}
        return self.post(claim_done(claim.number, claim.shard, ClaimResult((), rows)))

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


def kinds(actions, kind):
    return [action for action in actions if isinstance(action, kind)]


def claimed(actions):
    return [[int(ident) for ident in claim.ids] for claim in kinds(actions, Claim)]


def delivered(actions):
    return {
        each.receiver: [int(row.id) for row in each.rows] for each in kinds(actions, Deliver)
    }
