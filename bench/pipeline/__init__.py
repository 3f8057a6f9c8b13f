"""The workload `spark`: the package `spark` at work on two shards, in one Spark session of two threads.

It runs by name alone (`./dev bench spark`), because it needs a JVM and half a gigabyte of packages.
"""

from collections.abc import Iterator

from bench.pipeline.queue import archived, stream
from bench.pipeline.rows import reads
from bench.pipeline.session import session
from bench.pipeline.shards import two_shards
from bench.plan import Plan
from bench.report import Figure


def spark(plan: Plan) -> Iterator[Figure]:
    """Measure reads, the stream and the archive, one after the other in one session."""
    with two_shards(plan) as shards, session() as running:
        yield from reads(running, shards)
        yield from stream(running, shards)
        yield from archived(running, shards)
