"""How jobs end: events for a table's state."""

from streamfrom.engine.messaging.acks.ack_writes import WriteAcks
from streamfrom.engine.messaging.claims.ordered_claim import Claim
from streamfrom.engine.messaging.dispatch.events import JobDone
from streamfrom.engine.messaging.leases.lease_rows import Look, Release
from streamfrom.engine.messaging.queue.poll import Poll, PollRequest


def polled(shard, result):
    return JobDone(Poll(shard, PollRequest(0)), result)


def poll_failed(shard, reason):
    return JobDone(Poll(shard, PollRequest(0)), failure=reason)


def claim_done(number, shard, result):
    return JobDone(Claim(number, shard, (), ()), result)


def claim_failed(number, shard, reason):
    return JobDone(Claim(number, shard, (), ()), failure=reason)


def released(number, shard, rows):
    return JobDone(Release(number, shard, rows), {})


def release_failed(number, shard, rows):
    return JobDone(Release(number, shard, rows), failure="gone")


def looked(shard, time_next_ns):
    return JobDone(Look(shard, ()), time_next_ns)


def look_failed(shard):
    return JobDone(Look(shard, ()), failure="gone")


def acks_written(shard, result):
    return JobDone(WriteAcks(shard, ()), result, None if result else "gone")
