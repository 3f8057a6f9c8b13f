"""The workloads by name, in the order of the table; those on request run by their names alone."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from bench.plan import Plan
from bench.processes import LabError
from bench.report import Figure
from bench.workloads.attacks import attacks
from bench.workloads.big_merge import big_merge
from bench.workloads.bulk_insert import bulk_insert
from bench.workloads.compression import compression
from bench.workloads.dequeue import dequeue
from bench.workloads.drain import drain_batch, drain_early, drain_single
from bench.workloads.drain_keyed import drain_keyed
from bench.workloads.fair import fair
from bench.workloads.idle import idle
from bench.workloads.idle_settings import settings
from bench.workloads.latency import latency, members, streams
from bench.workloads.lateness import lateness
from bench.workloads.lone import lone
from bench.workloads.memory import memory
from bench.workloads.oltp import oltp, two_workers
from bench.workloads.order import order
from bench.workloads.plan_cache import plan_cache
from bench.workloads.purge import purge
from bench.workloads.rivals import rivals
from bench.workloads.selects import full_select, point_select
from bench.workloads.sessions import idle_sessions
from bench.workloads.snapshot import snapshot
from bench.workloads.takeover import takeover
from bench.workloads.two_phase import twopc
from bench.workloads.watched import queue_status, watched
from bench.workloads.workers import workers


WORKLOADS: Final[Mapping[str, Callable[[Plan], Sequence[Figure]]]] = {
    function.__name__: function
    for function in (
        drain_batch,
        drain_single,
        drain_early,
        drain_keyed,
        order,
        settings,
        workers,
        fair,
        latency,
        lone,
        dequeue,
        lateness,
        snapshot,
        purge,
        idle,
        streams,
        members,
        takeover,
        point_select,
        full_select,
        watched,
        queue_status,
        oltp,
        two_workers,
        plan_cache,
        bulk_insert,
        twopc,
        compression,
        big_merge,
        memory,
        idle_sessions,
        attacks,
    )
}


def spark(plan: Plan) -> Iterable[Figure]:
    """The package `spark` on two shards: reads, the stream, keyspace ids, the archive.

    Raises:
        LabError: Spark is not installed.
    """
    try:
        # The only workload that needs what the extra `spark` installs.
        from bench.pipeline import workload
    except ModuleNotFoundError as error:
        raise LabError(f"{error}: pip install '.[spark]'") from error
    return workload.spark(plan)


ON_REQUEST: Final[Mapping[str, Callable[[Plan], Iterable[Figure]]]] = {
    "rivals": rivals,
    "spark": spark,
}
