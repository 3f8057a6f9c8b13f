"""What Spark calls "streamfrom": the manual, and which module does what of it."""

import threading
from typing import TYPE_CHECKING, Final

from pyspark.sql.datasource import DataSource
from pyspark.sql.types import StructType

from streamfrom.spark.errors import JobError, RequestError
from streamfrom.spark.jobs.reading import SHARD
from streamfrom.spark.source.acked_stream import AckedStreamReader
from streamfrom.spark.source.batch import BatchReader
from streamfrom.spark.source.filter_pushdown import FilteringReader
from streamfrom.spark.source.options import parse_options
from streamfrom.spark.source.queue import QueueReader
from streamfrom.spark.source.refused_stream import RefusedStream, told_plainly
from streamfrom.spark.source.writer import BatchWriter, StreamWriter, plan_of
from streamfrom.spark.table_schema import Field, asked_for, ddl_of, fields_of
from streamfrom.spark.worker_memory import keep_loaded


if TYPE_CHECKING:
    from pyspark.sql import SparkSession


_PUSHES_DOWN: Final = "spark.sql.python.filterPushdown.enabled"

# Spark fails where two threads replace a source at once.
_REGISTERING: Final = threading.Lock()


class MessageSource(DataSource):
    """Message tables behind streamfrom.

    One line makes it known to a session::

        from streamfrom.spark.source import register

        register(spark)

    Options, in any case:

    ==================  =========  ==============================================================
    proxy                          mysql://user@host:port/keyspace, without the password
    table                          the message table
    password_env                   the variable with the password, in the driver's environment
    shards              all        names to read from, such as "-80,80-"
    where               all        the rows that `spark.read` reads: a condition in SQL that the shards answer
    partitionsPerShard  1          tasks for each shard of a batch read, by ranges of integer ids
    feed                queue      what readStream reads: queue or acked
    maxRowsPerBatch     10000      messages in a batch of a stream, over all shards
    leaseSeconds        60         how long a batch's messages are kept from others; renewed while it runs
    lagSeconds          60         how far feed=acked stays behind now
    acknowledge         commit     never: the batch's own work acknowledges (`streamfrom-spark consume` does)
    ==================  =========  ==============================================================

    Reading a table::

        messages = spark.read.format("streamfrom").option("proxy", "mysql://root@127.0.0.1:15306/commerce")
        messages.option("table", "my_message").option("where", "id > 100").load().show()

    * Types are exact (`spark.table_schema`); `.schema("id bigint, message string")` reads these columns only, which
      a `select` cannot say.
    * `.option("where", "time_acked IS NULL AND tenant_id = 7")` is what the shards leave rows out by. Filters of a query are Spark's,
      after it has read the rows, unless `spark.sql.python.filterPushdown.enabled` was true when the source was registered.
      Then the shards answer them too, and *each query must load a DataFrame of its own*: Spark mixes up what is pushed down by several.
    * Each task reads what its shard has at that moment: there is no snapshot over tasks, and a task that is
      retried reads again.

    Writing::

        frame.write.format("streamfrom").options(proxy=…, table="my_message").mode("append").save()

    * Columns are the table's by name; `id` must be among them and be made of the data. A message whose id is in the table
      stays as it is there, so any retry, by Spark or by hand, is harmless. It is not a transaction: what was written
      when a job fails stays, and running it again writes the rest.
    * The proxy puts each row on its shard and delivers at once what is due. A statement has at most 1,000 rows and, unless
      one row has more, 4 MiB.
    * Types that the table would round or cut are refused before the first row, values that do not fit when they come.

    The queue as a stream::

        orders = spark.readStream.format("streamfrom").options(proxy=…, table="my_message").load()
        orders.writeStream.foreachBatch(work).option("checkpointLocation", …).start()

    * At least once: a message is acknowledged after Spark has committed its batch, while the next is at work. A batch that failed holds the
      same messages when it runs again, so a sink that knows the batch's number, or the ids, makes it exactly once.
    * Consumers of a STREAM, other queries and other proxies share the queue: all claim by the same transaction.
    * Leases are renewed three times in `leaseSeconds`. A driver that dies lets its messages go after that; those that another
      took meanwhile are delivered twice when it is back. Now is the server's clock.
    * `trigger(availableNow=True)` takes as many messages as were due when it began, and ends.
    * `epoch` counts the sends; it and `time_next` may differ when a batch is read again. A message deleted meanwhile is missing then.
    * A schema that names the column `streamfrom_shard string` gets the shard of each row.
    * A checkpoint belongs to one table, and is refused for another. Spark's asynchronous progress tracking must be off.

    What was acknowledged, with `feed="acked"`: append-only, by `time_acked`, `lagSeconds` behind the server's clock.
    Nothing is claimed. An acknowledgement whose transaction commits later than the lag is missed, and so is what was purged
    before it was read.

    A `writeStream` writes as `write` does, and a batch that runs again adds nothing twice.
    """

    _READER: type[BatchReader] = BatchReader
    # What `schema` found goes with the source to where its reader is made, so that servers are asked once.
    _known: "tuple[Field, ...]" = ()

    @classmethod
    def name(cls) -> str:
        """Return the name for `format`."""
        return "streamfrom"

    @told_plainly()
    def schema(self) -> str:
        """Return all columns of the table.

        Raises:
            RequestError: an option is wrong, or the table cannot be read so.
        """
        self._known = self._fields()
        return ddl_of(self._known)

    @told_plainly()
    def reader(self, schema: "StructType") -> BatchReader:
        """Return what `spark.read` runs."""
        keep_loaded()
        return self._READER(
            parse_options(self.options), asked_for(self._known or self._fields(), schema)
        )

    def streamReader(
        self, schema: "StructType"
    ) -> QueueReader | AckedStreamReader | RefusedStream:
        """Return what `spark.readStream` runs."""
        try:
            return self._stream_reader(schema)
        except JobError as refusal:
            return RefusedStream(refusal)

    def _stream_reader(self, schema: "StructType") -> QueueReader | AckedStreamReader:
        options = parse_options(self.options)
        if options.where:
            raise RequestError("option where is for spark.read: filter the stream's DataFrame")
        shards, fields = options.chosen_shards(), self._fields()
        if options.feed == "acked":
            return AckedStreamReader(options, shards, asked_for(fields, schema))
        columns = {field.column: field.mysql_type for field in fields}
        place = schema.names.index(SHARD) if SHARD in schema.names else None
        own = StructType([field for field in schema.fields if field.name != SHARD])
        return QueueReader(options, shards, asked_for(fields, own), columns, place)

    @told_plainly()
    def writer(self, schema: "StructType", overwrite: bool) -> BatchWriter:  # noqa: FBT001  Spark's signature
        """Return what `df.write` runs."""
        return BatchWriter(plan_of(parse_options(self.options), schema, overwrite=overwrite))

    @told_plainly()
    def streamWriter(self, schema: "StructType", overwrite: bool) -> StreamWriter:  # noqa: FBT001  Spark's signature
        """Return what `df.writeStream` runs."""
        return StreamWriter(plan_of(parse_options(self.options), schema, overwrite=overwrite))

    def _fields(self) -> "tuple[Field, ...]":
        keep_loaded()
        options = parse_options(self.options)
        return fields_of(options.endpoint, options.chosen_shards(), options.table)


class PushingSource(MessageSource):
    """The same where queries push their filters down: each must load a DataFrame of its own (`spark.source.filter_pushdown`)."""

    _READER = FilteringReader


def register(spark: "SparkSession") -> None:
    """Make `format("streamfrom")` known to *spark*.

    Filters are pushed down if the session says so by now (`spark.sql.python.filterPushdown.enabled`), which is off by default.
    """
    # Spark fails for a reader that takes filters where this is off, whatever is read.
    pushes = spark.conf.get(_PUSHES_DOWN, "false") == "true"
    with _REGISTERING:
        spark.dataSource.register(PushingSource if pushes else MessageSource)
