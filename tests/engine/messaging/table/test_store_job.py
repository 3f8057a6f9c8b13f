"""Jobs: what a log calls them, and on which connection each runs."""

from streamfrom.engine.messaging.acks.ack_writes import WriteAcks
from streamfrom.engine.messaging.claims.claim_ways import ClaimJob
from streamfrom.engine.messaging.leases.lease_reads import FindLeases, Look
from streamfrom.engine.messaging.leases.lease_writes import WriteLeases
from streamfrom.engine.messaging.leases.returns import Release, Shorten
from streamfrom.engine.messaging.order.group_table import Fire
from streamfrom.engine.messaging.queue.poll import Poll
from streamfrom.engine.messaging.table.store_job import Access


def test_what_writes_does_so_on_the_dispatchers_connection_but_for_acks():
    jobs = (ClaimJob, FindLeases, Fire, Look, Poll, Release, Shorten, WriteAcks, WriteLeases)
    assert {job for job in jobs if job.access is Access.READ} == {FindLeases, Look, Poll}
    assert {job for job in jobs if job.access is Access.WRITE} == {WriteAcks}
    assert len({job.name for job in jobs}) == len(jobs)
