"""The workload `spark`: the package `spark` on two shards, in one Spark session of two threads.

It runs only by name (`./dev bench spark`), because it needs a JVM and half a gigabyte of packages.
"""

import contextlib
from collections.abc import Iterator
from typing import Any, Final

from bench.fleet import LabError
from bench.pipeline.queue import archived, stream
from bench.pipeline.rows import reads
from bench.pipeline.shards import two_shards
from bench.plan import Plan
from bench.report import Figure
from streamfrom.spark.errors import JobError
from streamfrom.spark.jdbc import driver_settings
from streamfrom.spark.jobs.job import broken_off
from streamfrom.spark.session import start_session
from streamfrom.spark.source import register


SETTINGS: Final = {
    "spark.ui.enabled": "false",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.sql.shuffle.partitions": "2",
}


@contextlib.contextmanager
def session() -> Iterator[Any]:
    """Run Spark for as long as the block lasts; convert its failures to LabError.

    Raises:
        LabError: Java or the JDBC driver is missing, or a job failed.
    """
    try:
        spark = start_session("streamfrom bench", "local[2]", {**driver_settings(), **SETTINGS})
        try:
            register(spark)
            with broken_off():
                yield spark
        finally:
            _end(spark)
    except JobError as error:
        raise LabError(str(error)) from error


def _end(spark: Any) -> None:
    """Stop Spark and its JVM, which would otherwise count as load from other processes."""
    gateway = spark.sparkContext._gateway
    spark.stop()
    gateway.shutdown()
    # The JVM ends when this pipe is closed.
    gateway.proc.stdin.close()
    gateway.proc.wait(30)


def spark(plan: Plan) -> Iterator[Figure]:
    """Measure reads, the stream and the archive, one after the other in one session."""
    with two_shards(plan) as shards, session() as running:
        yield from reads(running, shards)
        yield from stream(running, shards)
        yield from archived(running, shards)
