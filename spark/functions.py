"""Spark columns of keyspace ids and shards, for use like those of `pyspark.sql.functions`.

How many rows each shard owns::

    from streamfrom.spark.functions import shard_of

    orders.withColumn("shard", shard_of("id", ["-80", "80-"])).groupBy("shard").count()
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pyarrow as pa  # noqa: TC002 - Spark reads the types of a UDF when it is created
from pyspark.sql.functions import arrow_udf  # type: ignore[attr-defined]

from streamfrom.spark.keyspace_ids import Shards, keyspace_ids


if TYPE_CHECKING:
    from pyspark.sql import Column


def keyspace_id(column: Column | str, vindex: str = "hash") -> Column:
    """Return the keyspace id of *column* as binary, or NULL for a value that has none.

    vindex: `hash`, `numeric`, `xxhash` or `binary_md5`: the primary vindex of the table in the
        vschema.

    An unsupported vindex or type fails the query with a KeyspaceIdError.
    """

    def keyspace_id(values: pa.Array) -> pa.Array:  # Spark uses this name for the column
        return keyspace_ids(values, vindex)

    result: Column = arrow_udf(keyspace_id, "binary")(column)
    return result


def shard_of(column: Column | str, shards: Sequence[str], vindex: str = "hash") -> Column:
    """Return the name of the shard that owns *column*, or NULL for a value that has no keyspace id.

    shards: the names of all shards of the keyspace, such as `["-80", "80-"]`; `SHOW VITESS_SHARDS` lists them.
    vindex: as for `keyspace_id`.

    Raises:
        KeyspaceIdError: the shards do not cover all keyspace ids exactly once.
    """
    owners = Shards.named(shards)

    def shard_of(values: pa.Array) -> pa.Array:
        return owners.owning(keyspace_ids(values, vindex))

    result: Column = arrow_udf(shard_of, "string")(column)
    return result
