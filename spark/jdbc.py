"""Options for Spark's own JDBC source, to read and write tables through the proxy.

The URL is always `jdbc:mysql:`. Spark has no dialect for `jdbc:mariadb:` and would quote columns like
literals, so that a filter on a string finds nothing, without an error.

    from streamfrom.spark.endpoint import parse_endpoint
    from streamfrom.spark.jdbc import driver_settings, options
    from streamfrom.spark.session import start_session

    spark = start_session("look", settings=driver_settings())
    commerce = parse_endpoint("mysql://app@db:15306/commerce")
    orders = spark.read.format("jdbc").options(**options(commerce, "-80"), dbtable="orders").load()
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from streamfrom.spark.endpoint import Endpoint
from streamfrom.spark.errors import RequestError


DEBIAN_JAR: Final = Path("/usr/share/java/mariadb-java-client.jar")
# Stream rows from the server; with Spark's default a task holds its whole partition in memory.
FETCH_ROWS: Final = 10_000
BATCH_ROWS: Final = 5000


def driver_settings(jar: Path | None = None) -> dict[str, str]:
    """Return the Spark settings that load a driver's *jar*, by default Debian's.

    They apply only to the first session of a process; with `spark-submit`, use `--jars` and `--conf`
    instead. JDBC reads DATETIME in the zone of the JVM, which must be UTC like the session's.

    Raises:
        RequestError: the file does not exist.
    """
    jar = jar or DEBIAN_JAR
    if not jar.is_file():
        raise RequestError(
            f"there is no JDBC driver at {jar}: apt-get install libmariadb-java, or name a jar"
        )
    zone = "-Duser.timezone=UTC"
    return {
        "spark.jars": str(jar),
        "spark.driver.extraJavaOptions": zone,
        "spark.executor.extraJavaOptions": zone,
    }


def options(
    endpoint: Endpoint,
    shard: str = "",
    parameters: "Mapping[str, str] | None" = None,
) -> dict[str, str]:
    """Return options of `format("jdbc")` for a keyspace, or for one *shard* of it.

    parameters: the driver's own, such as `{"tinyInt1isBit": "false"}`, or another driver's; they override the
        defaults.

    Raises:
        RequestError: a driver other than the default is to use TLS, but *parameters* do not configure it.
    """
    parameters = parameters or {}
    tls = {"useSSL": "true", "serverSslCert": endpoint.ssl_ca} if endpoint.ssl_ca else {}
    if tls and "driver" in parameters and "sslMode" not in parameters:
        raise RequestError(
            "only MariaDB's driver reads a PEM file: give another one its own parameters, such as sslMode=VERIFY_IDENTITY"
            " and a trustCertificateKeyStoreUrl"
        )
    target = f"{endpoint.keyspace}:{shard}" if shard else endpoint.keyspace
    return {
        "url": f"jdbc:mysql://{endpoint.host}:{endpoint.port}/{target}",
        "driver": "org.mariadb.jdbc.Driver",
        "user": endpoint.user,
        "password": endpoint.password,
        "fetchsize": str(FETCH_ROWS),
        "isolationLevel": "READ_COMMITTED",
        "batchsize": str(BATCH_ROWS),
        "rewriteBatchedStatements": "true",
        # Spark's session is in UTC, so TIMESTAMP columns must arrive in UTC as well.
        "sessionInitStatement": "SET time_zone = '+00:00'",
        **tls,
        **parameters,
    }
