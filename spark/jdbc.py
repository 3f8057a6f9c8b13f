"""Tables as DataFrames by Spark's own JDBC source, through the proxy, with options that are right.

The URL is always `jdbc:mysql:`. Spark has no dialect for `jdbc:mariadb:`: it quotes columns like
literals then, and a filter on a string finds nothing, without an error.

    from streamfrom.spark.endpoint import parse_endpoint
    from streamfrom.spark.jdbc import driver_settings, read
    from streamfrom.spark.session import start_session

    spark = start_session("look", settings=driver_settings())
    orders = read(spark, parse_endpoint("mysql://app@db:15306/commerce"), "orders", column="id")
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pymysql

from streamfrom.spark.endpoint import Endpoint, chosen_shards, quoted, text_of
from streamfrom.spark.errors import JobError, RequestError
from streamfrom.spark.session import SPARK_ERRORS, reason_of


if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

DEBIAN_JAR: Final = Path("/usr/share/java/mariadb-java-client.jar")
# A row streams from the server; by Spark's default a task holds its whole partition.
FETCH_ROWS: Final = 10_000
BATCH_ROWS: Final = 5000


@dataclass(frozen=True, slots=True)
class Driver:
    """A JDBC driver: its class, where to get it, and the fetch size with which it streams rows."""

    class_name: str
    fix: str
    fetch_rows: int


MARIADB: Final = Driver(
    "org.mariadb.jdbc.Driver", "apt-get install libmariadb-java", FETCH_ROWS
)
# Connector/J streams by this value alone, and buffers the whole answer by any other.
CONNECTOR_J: Final = Driver(
    "com.mysql.cj.jdbc.Driver", "get com.mysql:mysql-connector-j from Maven", -(2**31)
)


def driver_settings(jar: Path | None = None) -> dict[str, str]:
    """Return the Spark settings that bring a driver's *jar*, by default Debian's.

    They count for the first session of a process only; `spark-submit` takes `--jars` and `--conf`
    instead. JDBC reads DATETIME in the zone of the JVM, which must be UTC as the session's is.

    Raises:
        RequestError: there is no such file.
    """
    jar = jar or DEBIAN_JAR
    if not jar.is_file():
        raise RequestError(f"there is no JDBC driver at {jar}: {MARIADB.fix}, or name a jar")
    zone = "-Duser.timezone=UTC"
    return {
        "spark.jars": str(jar),
        "spark.driver.extraJavaOptions": zone,
        "spark.executor.extraJavaOptions": zone,
    }


def options(
    endpoint: Endpoint,
    shard: str = "",
    driver: Driver = MARIADB,
    parameters: "Mapping[str, str] | None" = None,
) -> dict[str, str]:
    """Return options of `format("jdbc")` for a keyspace, or for one *shard* of it.

    parameters: the driver's own, such as `{"tinyInt1isBit": "false"}`; they win over what is set
        here.

    Raises:
        RequestError: Connector/J is to use TLS, and the certificates are not set.
    """
    parameters = parameters or {}
    tls = {}
    if endpoint.ssl_ca and driver is CONNECTOR_J and "sslMode" not in parameters:
        raise RequestError(
            "Connector/J reads no PEM file: give it sslMode=VERIFY_IDENTITY and a"
            " trustCertificateKeyStoreUrl as parameters, or use MariaDB's driver"
        )
    if endpoint.ssl_ca and driver is not CONNECTOR_J:
        tls = {"useSSL": "true", "serverSslCert": endpoint.ssl_ca}
    target = f"{endpoint.keyspace}:{shard}" if shard else endpoint.keyspace
    return {
        "url": f"jdbc:mysql://{endpoint.host}:{endpoint.port}/{target}",
        "driver": driver.class_name,
        "user": endpoint.user,
        "password": endpoint.password,
        "fetchsize": str(driver.fetch_rows),
        "isolationLevel": "READ_COMMITTED",
        "batchsize": str(BATCH_ROWS),
        "rewriteBatchedStatements": "true",
        # A session of Spark is in UTC, so TIMESTAMP columns must come in UTC as well.
        "sessionInitStatement": "SET time_zone = '+00:00'",
        **tls,
        **parameters,
    }


def read(
    spark: "SparkSession",
    endpoint: Endpoint,
    table: str,
    *,
    shards: "Sequence[str] | None" = None,
    column: str = "",
    partitions: int = 4,
    driver: Driver = MARIADB,
    parameters: "Mapping[str, str] | None" = None,
) -> "DataFrame":
    """Return a table as a DataFrame, each shard read by itself; filters are pushed to the shards.

    shards: the names of the shards to read; by default all shards of the keyspace.
    column: an integer column by which each shard is cut into ranges, such as the primary key;
        without it a shard is one partition.
    partitions: how many ranges a shard is cut into.
    parameters: as for `options`.

    Rows of different partitions are read at different moments. `BIT(n)` and `YEAR` come as numbers,
    `TIME` as text; `BOOLEAN` is a boolean unless `{"tinyInt1isBit": "false"}` says that such columns
    hold other numbers.

    Raises:
        RequestError: the driver, a shard, the table or the column is missing.
    """
    frames = []
    for shard in chosen_shards(endpoint, shards):
        chosen = {
            **options(endpoint, shard, driver, parameters),
            **_plan(endpoint, shard, table, column, partitions),
        }
        frames.append(load(spark, chosen, driver))
    result, *others = frames
    for frame in others:
        result = result.unionByName(frame)
    return result


def append(
    frame: "DataFrame",
    endpoint: Endpoint,
    table: str,
    *,
    shard: str = "",
    driver: Driver = MARIADB,
    parameters: "Mapping[str, str] | None" = None,
) -> None:
    """Insert the rows of *frame* into a table that is there, in statements of many rows.

    Each partition is one transaction; a task that Spark repeats after its commit inserts again, so
    the table wants a primary key. Without *shard* the proxy splits what belongs to several.

    Raises:
        RequestError: the driver or the table is missing; Spark would make one without keys.
        JobError: a server refused a row, or was away. What other partitions committed stays.
    """
    _columns(endpoint, shard, table)
    writer = frame.write.format("jdbc").mode("append").option("dbtable", quoted(table))
    try:
        writer.options(**options(endpoint, shard, driver, parameters)).save()
    except SPARK_ERRORS as error:
        explained = _explained(error, driver)
        if explained is not error:
            raise explained from error
        # Without Java's traces, of which there are hundreds of lines.
        raise JobError(
            f"{endpoint.keyspace}.{table} has not all rows: {reason_of(error)}; partitions that were"
            " committed stay, so append what is missing"
        ) from None


def load(spark: "SparkSession", chosen: dict[str, str], driver: Driver) -> "DataFrame":
    """Return what `format("jdbc")` makes of these options.

    Raises:
        RequestError: Spark does not have the driver.
    """
    try:
        return spark.read.format("jdbc").options(**chosen).load()
    except Exception as error:
        raise _explained(error, driver) from error


def _explained(error: Exception, driver: Driver) -> Exception:
    if "ClassNotFoundException" in str(error) or "DRIVER_NOT_FOUND" in str(error):
        return RequestError(
            f"Spark has no JDBC driver {driver.class_name}: {driver.fix}, and start the session"
            " with spark.jdbc.driver_settings() or spark-submit --jars"
        )
    return error


def _columns(endpoint: Endpoint, shard: str, table: str) -> list[tuple[str, str]]:
    """Return names and types of the columns."""
    try:
        told = endpoint.ask(f"SHOW COLUMNS FROM {quoted(table)}", shard=shard)
    except pymysql.err.MySQLError as error:
        raise RequestError(
            f"cannot read {endpoint.keyspace}.{table}: {error}; check the table's name"
        ) from error
    return [(text_of(name), text_of(kind).lower()) for name, kind, *_ in told]


def _plan(
    endpoint: Endpoint, shard: str, table: str, column: str, partitions: int
) -> dict[str, str]:
    """Return what is read of a shard: the table, and the ranges of *column*."""
    columns = _columns(endpoint, shard, table)
    result = {"dbtable": _source(table, columns)}
    if not column:
        return result
    if column not in dict(columns):
        raise RequestError(f"{table} has no column {column!r} to cut it by")
    name = quoted(column)
    bounds = f"SELECT MIN({name}), MAX({name}) FROM {quoted(table)}"  # noqa: S608  quoted
    ((low, high),) = endpoint.ask(bounds, shard=shard)
    if low is None:
        return result
    try:
        span = {"lowerBound": str(int(low)), "upperBound": str(int(high) + 1)}
    except ValueError:
        raise RequestError(f"{table}.{column} holds no integers to cut it by") from None
    return result | span | {"partitionColumn": column, "numPartitions": str(partitions)}


def _source(table: str, columns: "Sequence[tuple[str, str]]") -> str:
    """Return the table, or a subquery where a column would not come as what it is."""
    read = [_read_as(quoted(name), kind) for name, kind in columns]
    if read == [quoted(name) for name, _ in columns]:
        return quoted(table)
    return f"(SELECT {', '.join(read)} FROM {quoted(table)}) AS {quoted(table)}"  # noqa: S608  quoted


def _read_as(name: str, kind: str) -> str:
    width = re.match(r"bit\((\d+)\)", kind)
    if width and width[1] != "1":
        return f"CAST({name} AS UNSIGNED) AS {name}"
    if kind.startswith("time") and not kind.startswith("timestamp"):
        return f"CAST({name} AS CHAR) AS {name}"
    if kind.startswith("year"):
        return f"CAST({name} AS SIGNED) AS {name}"
    return name
