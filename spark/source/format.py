"""The entry point of Spark's format "streamfrom", which dispatches to the other modules."""

import threading
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql.datasource import DataSource, DataSourceStreamReader
from pyspark.sql.types import StructType

from streamfrom.spark.errors import JobError, RequestError
from streamfrom.spark.jobs.reading import SHARD
from streamfrom.spark.source.acked_stream import AckedStreamReader
from streamfrom.spark.source.batch import BatchReader, told_plainly
from streamfrom.spark.source.options import parse_options
from streamfrom.spark.source.queue import QueueReader
from streamfrom.spark.source.writer import BatchWriter, StreamWriter, plan_of
from streamfrom.spark.table_schema import Field, asked_for, ddl_of, fields_of
from streamfrom.spark.worker_memory import keep_loaded


if TYPE_CHECKING:
    from pyspark.sql import SparkSession


# Spark fails if two threads replace a source at once.
_REGISTERING: Final = threading.Lock()


class RefusedStream(DataSourceStreamReader):
    """Raises the reason why there is no reader, once Spark uses it: Spark hides errors that `streamReader` itself raises."""

    def __init__(self, refusal: JobError) -> None:
        self.refusal = refusal

    @told_plainly()
    def _refuse(self, *_: Any, **_more: Any) -> Any:
        raise self.refusal

    initialOffset = latestOffset = partitions = read = _refuse


class MessageSource(DataSource):
    """Message tables behind streamfrom, read, written, and streamed; see docs/spark/source.md for all options and guarantees.

    Register it with a session::

        from streamfrom.spark.source import register

        register(spark)
        messages = spark.read.format("streamfrom").option("proxy", "mysql://root@127.0.0.1:15306/commerce")
        messages.option("table", "my_message").option("where", "id > 100").load().show()
    """

    # The result of `schema`, passed on with the source to the reader's constructor, so that servers are queried once.
    _known: "tuple[tuple[str, ...], tuple[Field, ...]] | None" = None

    @classmethod
    def name(cls) -> str:
        """Return the name for `format`."""
        return "streamfrom"

    @told_plainly()
    def schema(self) -> str:
        """Return the columns of the table as a Spark schema.

        Raises:
            RequestError: an option is wrong, or the table cannot be read with these options.
        """
        return ddl_of(self._table()[1])

    @told_plainly()
    def reader(self, schema: "StructType") -> BatchReader:
        """Return the reader for `spark.read`."""
        keep_loaded()
        shards, fields = self._table()
        return BatchReader(parse_options(self.options), shards, asked_for(fields, schema))

    def streamReader(
        self, schema: "StructType"
    ) -> QueueReader | AckedStreamReader | RefusedStream:
        """Return the reader for `spark.readStream`."""
        try:
            return self._stream_reader(schema)
        except JobError as refusal:
            return RefusedStream(refusal)

    def _stream_reader(self, schema: "StructType") -> QueueReader | AckedStreamReader:
        options = parse_options(self.options)
        if options.where:
            raise RequestError("option where is for spark.read: filter the stream's DataFrame")
        shards, fields = self._table()
        if options.feed == "acked":
            return AckedStreamReader(options, shards, asked_for(fields, schema))
        columns = {field.column: field.mysql_type for field in fields}
        place = schema.names.index(SHARD) if SHARD in schema.names else None
        own = StructType([field for field in schema.fields if field.name != SHARD])
        return QueueReader(options, shards, asked_for(fields, own), columns, place)

    @told_plainly()
    def writer(self, schema: "StructType", overwrite: bool) -> BatchWriter:  # noqa: FBT001  Spark's signature
        """Return the writer for `df.write`."""
        return BatchWriter(plan_of(parse_options(self.options), schema, overwrite=overwrite))

    @told_plainly()
    def streamWriter(self, schema: "StructType", overwrite: bool) -> StreamWriter:  # noqa: FBT001  Spark's signature
        """Return the writer for `df.writeStream`."""
        return StreamWriter(plan_of(parse_options(self.options), schema, overwrite=overwrite))

    def _table(self) -> "tuple[tuple[str, ...], tuple[Field, ...]]":
        """Return the shards to read, and the table's columns on them."""
        if self._known is None:
            keep_loaded()
            options = parse_options(self.options)
            shards = options.chosen_shards()
            self._known = shards, fields_of(options.endpoint, shards, options.table)
        return self._known


def register(spark: "SparkSession") -> None:
    """Register `format("streamfrom")` with *spark*."""
    with _REGISTERING:
        spark.dataSource.register(MessageSource)
