"""Process a queue with a user's function `DataFrame -> DataFrame`.

A queue stream whose batches are acknowledged here (`worker`), after the sink has them (`sinks`). If a batch fails, halving
finds the failing messages (`isolation`). They return to the queue for a while, with the reason, so that one message never blocks
the others; the queue's settings limit their retries. `function` loads and calls the user's function, `checkpoint` keeps files next
to Spark's own.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self

from streamfrom.spark.endpoint import url_of
from streamfrom.spark.errors import JobError, RequestError
from streamfrom.spark.jobs.consume.checkpoint import Checkpoint
from streamfrom.spark.jobs.consume.function import Function, checked, load_function
from streamfrom.spark.jobs.consume.sinks import FolderSink, ResultSink, TableSink
from streamfrom.spark.jobs.consume.worker import Worker
from streamfrom.spark.jobs.files import spark_path
from streamfrom.spark.jobs.job import JobConfig, begun
from streamfrom.spark.jobs.progress import Progress, Report
from streamfrom.spark.jobs.reading import SHARD
from streamfrom.spark.session import SPARK_ERRORS, failure_of
from streamfrom.spark.source import register
from streamfrom.spark.source.claims import ClaimShard
from streamfrom.spark.source.options import parse_options
from streamfrom.spark.source.writer import plan_of
from streamfrom.spark.table_schema import ddl_of, fields_of


if TYPE_CHECKING:
    import argparse

    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

_LOOK_S: Final = 1


@dataclass(frozen=True)
class ConsumeConfig(JobConfig):
    """The messages to consume, the function for them, and the place of the results.

    password_env: the environment variable with the endpoint's password, which a stream must not show.
    function: the function, or `module:name` or `path.py:name`.
    retry_s: the wait after a first failure, doubled by each further one up to an hour.
    available_now: end the job once everything is processed that was due at its start.
    """

    OPTIONS = """
  function       --function F           module:name or path.py:name, DataFrame -> DataFrame
  checkpoint     --checkpoint DIR       a folder of this consumer's own, to go on from
  out            --out DIR              results as Parquet, in a folder all executors share
| into_table     --into-table T         or into another message table
  retry_s        --retry-after S        seconds that a message waits that failed, twice as long each time (30)
  rows           --rows N               messages in a batch (10000)
  lease_s        --lease S              seconds that a batch is kept from others, renewed while it runs (60)
  shards         --shards S,S           as in --shards=-80; by default all
  available_now  --available-now        end when all is taken that was due at the beginning; else Ctrl-C ends it
"""
    LEAST = (("rows", "--rows", 1), ("retry_s", "--retry-after", 0), ("lease_s", "--lease", 1))

    function: Function | str
    checkpoint: Path
    out: Path | None
    into_table: str | None = None
    retry_s: float = 30.0
    rows: int = 10_000
    lease_s: float = 60.0
    shards: tuple[str, ...] = ()
    available_now: bool = False
    password_env: str = ""

    def __post_init__(self) -> None:
        """Raise RequestError if a number is invalid, or the table is its own sink."""
        super().__post_init__()
        if (self.out is None) == (self.into_table is None):
            raise RequestError("results go to --out or to --into-table")
        if self.table == self.into_table:
            raise RequestError("--into-table takes another table than --table")

    @classmethod
    def asked(cls, options: "argparse.Namespace") -> Self:
        """Return the configuration from the command line, with the function loaded."""
        load_function(options.function)
        return super().asked(options)


CONFIG: Final = ConsumeConfig


def run(
    spark: "SparkSession", config: ConsumeConfig, progress: Progress | None = None
) -> Report:
    """Process the queue until stopped or, with `available_now`, until everything that was due is done.

    Returns:
        A report in which `read` = `done` + `left`, counted by sends: a message that was left and redelivered is read twice. `rows_out` is the number of rows that the function returned for those done.

    Raises:
        RequestError: the function, the tables or the checkpoint are unsuitable; nothing was taken.
        JobError: it broke off; run it again to continue.
    """
    progress = begun(spark, progress)
    given = _source_options(config)
    options = parse_options(given)
    shards = options.chosen_shards()
    fields = fields_of(config.endpoint, shards, config.table)
    columns = {field.column: field.mysql_type for field in fields}
    function = (
        load_function(config.function) if isinstance(config.function, str) else config.function
    )
    schema = ddl_of(fields)
    empty = spark.createDataFrame([], schema)
    result = checked(function, empty)
    into = None
    if config.into_table:
        whole = replace(options, table=config.into_table, shards=())
        into = plan_of(whole, result.schema, overwrite=False)
    checkpoint = Checkpoint(config.checkpoint.resolve())
    with checkpoint.locked():
        name = checkpoint.name_for(config.name, _sink_name(config))
        sink: ResultSink
        if into is None:
            assert config.out is not None
            sink = FolderSink(config.out.resolve(), name)
        else:
            sink = TableSink(into)
        worker = Worker(
            function,
            sink,
            checkpoint,
            {
                shard: ClaimShard(config.endpoint, shard, config.table, columns)
                for shard in shards
            },
            progress,
            retry_s=config.retry_s,
        )
        progress.enter("start")
        query = _started(spark, config, given, f"{schema}, {SHARD} string", worker)
        try:
            _awaited(query, worker)
        finally:
            worker.close()
    progress.leave()
    counts = {name: worker.counts[name] for name in ("read", "done", "left", "rows_out")}
    wrote = (str(config.out),) if config.out else ()
    return Report("consume", config.name, counts, progress.steps_s, wrote)


def _started(
    spark: "SparkSession",
    config: ConsumeConfig,
    given: "Mapping[str, str]",
    schema: str,
    worker: Worker,
) -> "StreamingQuery":
    register(spark)
    messages = spark.readStream.format("streamfrom").schema(schema).options(**given).load()
    checkpoint = spark_path(Checkpoint(config.checkpoint.resolve()).of_spark)
    writer = messages.writeStream.foreachBatch(worker).option("checkpointLocation", checkpoint)
    return (writer.trigger(availableNow=True) if config.available_now else writer).start()


def _awaited(query: "StreamingQuery", worker: Worker) -> None:
    """Wait until the query has ended or was stopped from the keyboard."""
    try:
        while not query.awaitTermination(_LOOK_S):
            pass
    except KeyboardInterrupt:
        worker.stopping.set()
        query.stop()
    except SPARK_ERRORS as error:
        failure = worker.failure or error
        if not isinstance(failure, JobError):
            failure = failure_of(failure, "the stream ended")
        raise failure from error
    finally:
        worker.stopping.set()


def _source_options(config: ConsumeConfig) -> dict[str, str]:
    if config.endpoint.password and not config.password_env:
        raise RequestError("password_env must name the variable that holds the password")
    return {
        "proxy": url_of(config.endpoint),
        "table": config.table,
        "password_env": config.password_env,
        "shards": ",".join(config.shards),
        "maxRowsPerBatch": str(config.rows),
        "leaseSeconds": str(config.lease_s),
        "acknowledge": "never",
    }


def _sink_name(config: ConsumeConfig) -> str:
    if config.out is not None:
        return f"--out {config.out.resolve()}"
    return f"--into-table {config.into_table}"
