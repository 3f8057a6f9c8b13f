"""What `./dev bench spark` runs, in the order of the table."""

from collections.abc import Iterator

from bench.pipeline.ids import ids
from bench.pipeline.queue import archived, stream
from bench.pipeline.rows import reads
from bench.pipeline.session import session
from bench.pipeline.shards import two_shards
from bench.plan import Plan
from bench.report import Figure


def spark(plan: Plan) -> Iterator[Figure]:
    """Measure reads, the stream, keyspace ids and the archive, one after the other in one session."""
    with two_shards(plan) as shards, session() as running:
        yield from reads(running, shards)
        yield from stream(running, shards)
        yield from ids(running, plan)
        yield from archived(running, shards)
