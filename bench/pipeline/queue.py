"""A message table as a Spark stream, and its archive. Each run begins with a fresh table and ends with a count."""

import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from bench.messages import AuditError
from bench.pipeline.shards import ACKED_AGO_NS, TABLE, Shards
from bench.report import Figure, figure, value_at_least
from streamfrom.spark.jobs import archive


MESSAGES: Final = (200_000, 50_000)
BATCH: Final = 10_000
ACKED: Final = (500_000, 100_000)


def stream(spark: Any, shards: Shards) -> list[Figure]:
    """Drain a queue in batches of 10,000 into nothing, from the query's start to the last acknowledgement."""
    count = shards.plan.size(*MESSAGES)
    _drain(spark, shards, 2 * BATCH)  # the first seconds of a JVM are slow
    rates = []
    for _ in range(shards.plan.pairs):
        rates.append(count / _drain(spark, shards, count))
        shards.plan.say(f"  queue stream: {rates[-1]:,.0f} messages/s")
    name = f"queue stream, {BATCH:,} a batch"
    return [figure(name, "msg/s", rates, target=value_at_least(20_000))]


def _drain(spark: Any, shards: Shards, count: int) -> float:
    """Return the seconds that a query takes for *count* messages.

    Raises:
        AuditError: it did not acknowledge all of them.
    """
    with shards.table(count), TemporaryDirectory() as checkpoint:
        frame = spark.readStream.format("streamfrom").options(**shards.source)
        frame = frame.option("maxRowsPerBatch", BATCH).load()
        writer = frame.writeStream.format("noop").trigger(availableNow=True)
        start = time.perf_counter()
        query = writer.option("checkpointLocation", checkpoint).start()
        query.awaitTermination()
        elapsed_s = time.perf_counter() - start
        acked = shards.acked()
    if acked != count:
        raise AuditError(f"of {count} messages: {acked} acknowledged")
    return elapsed_s


def archived(spark: Any, shards: Shards) -> list[Figure]:
    """Archive acknowledged messages: read, write, verify and publish."""
    count = shards.plan.size(*ACKED)
    _archive(spark, shards, count // 10)
    rates = []
    for _ in range(shards.plan.pairs):
        steps_s = _archive(spark, shards, count)
        rates.append(count / sum(steps_s[step] for step in ("stage", "verify", "publish")))
        shards.plan.say(f"  archive: {rates[-1]:,.0f} rows/s staged and verified; {steps_s}")
    goal = value_at_least(100_000)
    return [figure("archive, rows staged and verified", "rows/s", rates, target=goal)]


def _archive(spark: Any, shards: Shards, count: int) -> dict[str, float]:
    """Return the seconds of each step.

    Raises:
        AuditError: not all messages were archived and purged.
    """
    low_ns = time.time_ns() - ACKED_AGO_NS
    with shards.table(count, low_ns), TemporaryDirectory() as folder:
        config = archive.ArchiveConfig(
            shards.endpoint, TABLE, Path(folder), low_ns, low_ns + 1000 * count
        )
        report = archive.run(spark, config)
    counts = report.counts
    if not counts["archived"] == counts["purged"] == count or counts["left"]:
        raise AuditError(f"of {count} messages: {counts}")
    return report.steps_s
