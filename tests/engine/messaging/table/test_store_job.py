"""Jobs: what a log calls them, and on which connection each runs."""

from typing import get_args

from streamfrom.engine.messaging.acks.ack_writes import WriteAcks
from streamfrom.engine.messaging.dispatch.events import ShardJob
from streamfrom.engine.messaging.leases.lease_rows import (
    FindLeases,
    Look,
    Release,
    Shorten,
)
from streamfrom.engine.messaging.leases.leases import Lease
from streamfrom.engine.messaging.order.group_table import Fire
from streamfrom.engine.messaging.queue.poll import Poll
from streamfrom.engine.messaging.store.conversation import At
from streamfrom.engine.messaging.table.groups import FireRequest
from streamfrom.engine.messaging.table.message import ClaimedRow
from streamfrom.engine.messaging.table.store_job import Access
from tests.sim.memory_store import loaded, raw_table


def test_what_writes_does_so_on_the_dispatchers_connection_but_for_acks():
    jobs = get_args(ShardJob)
    assert {job for job in jobs if job.access is Access.READ} == {FindLeases, Look, Poll}
    assert {job for job in jobs if job.access is Access.WRITE} == {WriteAcks}
    assert len({job.name for job in jobs}) == len(jobs)


def test_each_job_is_a_statement_about_the_rows_that_it_was_given():
    jobs = (
        Look("0", (b"7",)),
        Fire("0", FireRequest((b"7",))),
        Release(1, "0", (ClaimedRow(b"7", "0", 0, 0, 50, b""),)),
        Shorten("0", 1, (Lease(77, b"7", 1),), 50),
        WriteAcks("0", ((b"7", 5),)),
    )
    table, at = loaded(raw_table("msg")), At("0", 1, is_elected=True)
    for job in jobs:
        sql = next(job.talk(table, at)).sql
        assert b"`msg`" in sql
        assert b"7" in sql
    assert b"epoch > 0" in next(FindLeases("0").talk(table, at)).sql
