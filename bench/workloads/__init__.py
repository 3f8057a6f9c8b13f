"""The workloads by name, in the order of the table; those on request run only by name."""

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from bench.fleet import LabError
from bench.plan import Plan
from bench.processes import ROOT
from bench.report import Figure
from bench.workloads.attacks import attacks
from bench.workloads.dequeue import dequeue
from bench.workloads.drain import drain_batch, drain_early, drain_keyed, drain_single
from bench.workloads.fair import fair
from bench.workloads.idle import idle, polling
from bench.workloads.latency import latency, lone, members, streams
from bench.workloads.lateness import lateness
from bench.workloads.memory import idle_sessions, memory
from bench.workloads.oltp import oltp, two_workers
from bench.workloads.purge import purge
from bench.workloads.selects import big_merge, full_select
from bench.workloads.snapshot import snapshot
from bench.workloads.takeover import takeover
from bench.workloads.workers import workers


WORKLOADS: Final[Mapping[str, Callable[[Plan], Sequence[Figure]]]] = {
    function.__name__: function
    for function in (
        *(drain_batch, drain_single, drain_early, drain_keyed, workers, fair),
        *(latency, lone, dequeue, lateness, snapshot, purge, idle, polling, streams),
        *(members, takeover, full_select, oltp, two_workers, big_merge),
        *(memory, idle_sessions, attacks),
    )
}


def spark(plan: Plan) -> Iterable[Figure]:
    """Run the package `spark` on two shards: reads, the stream, the archive.

    Raises:
        LabError: Spark is not installed.
    """
    try:
        # The only workload that needs the packages of the extra `spark`.
        from bench import pipeline
    except ModuleNotFoundError as error:
        raise LabError(f"{error}: pip install '.[spark]'") from error
    return pipeline.spark(plan)


def frameworks(plan: Plan) -> Iterable[Figure]:
    """Run Celery, Django's tasks and the worker library. Downloads packages from PyPI and Debian."""
    # The only workload that needs the clients, which may not be installed.
    sys.path.append(str(ROOT / "clients/python"))
    from bench.workloads.frameworks import celery, django, worker_library

    for part in (celery, django, worker_library):
        yield from part(plan)


ON_REQUEST: Final[Mapping[str, Callable[[Plan], Iterable[Figure]]]] = {
    "spark": spark,
    "frameworks": frameworks,
}
