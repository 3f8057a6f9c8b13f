"""Tables by JDBC through the proxy: each statement that Spark sends is served, each type arrives."""

import datetime as dt
import re
from decimal import Decimal

import pytest

from tests.fixtures.running_proxy import keyspace_toml
from tests.fixtures.streams import rows, run
from tests.proxy.certificates import write_certificate
from tests.spark.conftest import MARIADB_JAR, connector_j
from tests.spark.recorder import Recorder


pytest.importorskip("pyspark")

from pyspark.sql import functions as F

from streamfrom.spark import jdbc
from streamfrom.spark.endpoint import Endpoint
from streamfrom.spark.errors import RequestError


TABLE = (
    "CREATE TABLE my_message (id BIGINT NOT NULL PRIMARY KEY, big BIGINT UNSIGNED, whole INT UNSIGNED,"
    " flag BOOLEAN, bits BIT(12), body JSON, amount DECIMAL(20,4), raw VARBINARY(20), day DATE,"
    " at DATETIME(6), seen TIMESTAMP(6) NULL, clock TIME(3), year YEAR, text VARCHAR(40))"
)
ROWS = 40


def values(ident):
    return (
        f"({ident}, 18446744073709551615, 4294967295, {ident % 2}, b'101010101010', '{{\"a\": 1}}',"
        f" 12.3456, x'00ff27', '2024-02-29', '2024-02-29 12:34:56.123456',"
        f" '2024-07-01 00:00:01.5', '-12:00:01.5', 2024, 'it''s {ident} 100%')"
    )


def test_a_jar_comes_with_a_jvm_in_utc_and_a_missing_one_with_its_cure(tmp_path):
    jar = tmp_path / "driver.jar"
    with pytest.raises(RequestError, match=r"driver\.jar: apt-get install libmariadb-java"):
        jdbc.driver_settings(jar)
    jar.touch()
    assert jdbc.driver_settings(jar) == {
        "spark.jars": str(jar),
        "spark.driver.extraJavaOptions": "-Duser.timezone=UTC",
        "spark.executor.extraJavaOptions": "-Duser.timezone=UTC",
    }


def test_the_url_has_a_dialect_and_a_shard_and_tls_is_verified_or_refused():
    endpoint = Endpoint("db", 3306, "app", "commerce", "secret", "/etc/ca.pem")
    chosen = jdbc.options(endpoint, "-80", parameters={"fetchsize": "5"})
    assert chosen["url"] == "jdbc:mysql://db:3306/commerce:-80"
    assert (chosen["fetchsize"], chosen["rewriteBatchedStatements"]) == ("5", "true")
    assert chosen["serverSslCert"] == "/etc/ca.pem"
    with pytest.raises(RequestError, match="trustCertificateKeyStoreUrl"):
        jdbc.options(endpoint, parameters=CONNECTOR_J)


# It streams by this fetch size alone, and buffers the whole answer by any other.
CONNECTOR_J = {"driver": "com.mysql.cj.jdbc.Driver", "fetchsize": str(-(2**31))}


@pytest.fixture(params=["mariadb", "connector_j"])
def driver(request):
    if request.param == "mariadb":
        if not MARIADB_JAR.is_file():
            pytest.skip("no MariaDB driver: apt-get install libmariadb-java")
        return {}
    if connector_j() is None:
        pytest.skip(
            "no Connector/J: mvn dependency:get -Dartifact=com.mysql:mysql-connector-j:9.4.0"
        )
    return CONNECTOR_J


@pytest.fixture
def recorder(sharded_proxy):
    connection = sharded_proxy.connect(database="commerce", autocommit=True)
    run(connection, TABLE)
    run(
        connection,
        "INSERT INTO my_message (id, big, whole, flag, bits, body, amount, raw, day, at, seen, clock,"
        " year, text) VALUES " + ", ".join(map(values, range(1, ROWS + 1))),
    )
    recorder = Recorder(sharded_proxy.port)
    yield recorder
    recorder.close()


def by_spark(recorder):
    """Return what Spark asked, on each shard, without what drivers say when they connect."""
    asked: dict[str, list[str]] = {}
    for database, text in recorder.queries:
        if not re.match(r"set |select @@|/\*|show ", text, re.IGNORECASE):
            asked.setdefault(database, []).append(" ".join(text.split()))
    recorder.queries.clear()
    return {database: sorted(set(texts)) for database, texts in asked.items()}


# What drivers do not give as what it is.
COLUMNS = (
    "`id`, `big`, `whole`, `flag`, CAST(`bits` AS UNSIGNED) AS `bits`, `body`, `amount`, `raw`,"
    " `day`, `at`, `seen`, CAST(`clock` AS CHAR) AS `clock`, CAST(`year` AS SIGNED) AS `year`, `text`"
)
SOURCE = f"(SELECT {COLUMNS} FROM `my_message`) AS `my_message`"


def load(spark, chosen, dbtable=SOURCE, **more):
    return spark.read.format("jdbc").options(**chosen, dbtable=dbtable, **more).load()


@pytest.mark.spark
@pytest.mark.db
@pytest.mark.slow
def test_every_statement_of_spark_is_served_and_every_type_arrives(
    spark, recorder, sharded_proxy, driver
):
    endpoint = Endpoint("127.0.0.1", recorder.port, "root", "commerce")
    low, high = (jdbc.options(endpoint, shard, driver) for shard in ("-80", "80-"))
    ranges = {"partitionColumn": "id", "lowerBound": 1, "upperBound": 41, "numPartitions": 2}
    whole = load(spark, low, **ranges).unionByName(load(spark, high, **ranges))
    assert whole.count() == ROWS
    asked = by_spark(recorder)
    assert set(asked) == {"commerce:-80", "commerce:80-"}
    for texts in asked.values():
        assert texts == [
            f"SELECT * FROM {SOURCE} WHERE 1=0",
            f"SELECT 1 FROM {SOURCE} WHERE `id` < 21 or `id` is null",
            f"SELECT 1 FROM {SOURCE} WHERE `id` >= 21",
        ]
    conditions = (
        (F.col("text") == "it's 7 100%") & F.col("flag"),
        F.col("id").isin(7, 8) & ~(F.col("id") == 8),
        F.col("text").startswith("it's 7"),
        F.col("id").eqNullSafe(7) & F.col("seen").isNotNull(),
        (F.col("day") >= dt.date(2024, 2, 29)) & (F.col("id") < 8) & (F.col("id") > 6),
    )
    expected = {
        "id": 7,
        "big": Decimal(2**64 - 1),
        "whole": 2**32 - 1,
        "flag": True,
        "bits": Decimal(0b101010101010),
        "body": '{"a": 1}',
        "amount": Decimal("12.3456"),
        "raw": b"\x00\xff\x27",
        "day": dt.date(2024, 2, 29),
        "at": dt.datetime(2024, 2, 29, 12, 34, 56, 123456),  # noqa: DTZ001 - as Spark gives it
        "seen": dt.datetime(2024, 7, 1, 0, 0, 1, 500000),  # noqa: DTZ001
        "clock": "-12:00:01.500",
        "year": 2024,
        "text": "it's 7 100%",
    }
    for condition in conditions:
        (row,) = whole.filter(condition).collect()
        assert row.asDict() == expected
        # The condition reached the server: Spark was not sent rows to throw away.
        selects = [
            text for texts in by_spark(recorder).values() for text in texts if "1=0" not in text
        ]
        assert selects
        assert all(re.search(r"WHERE \(.*(`text`|`id`)", text) for text in selects)

    connection = sharded_proxy.connect(database="commerce:80-")
    there = {ident for (ident,) in rows(connection, "SELECT id FROM my_message")}
    assert {row.id for row in load(spark, high).select("id").collect()} == there
    assert set(by_spark(recorder)) == {"commerce:80-"}

    both = jdbc.options(endpoint, parameters=driver)
    assert load(spark, both, "my_message").select("id").count() == ROWS
    assert by_spark(recorder) == {
        "commerce": ["SELECT * FROM my_message WHERE 1=0", "SELECT 1 FROM my_message"]
    }

    new = spark.range(1000, 1500).select("id", F.lit("x'\\y").alias("text")).coalesce(1)
    new.write.format("jdbc").mode("append").options(**both, dbtable="my_message").save()
    asked = by_spark(recorder)["commerce"]
    inserts = [text for text in asked if text.startswith("INSERT")]
    # Batches are rewritten: five hundred rows, a handful of statements.
    assert 1 <= len(inserts) <= 5
    assert len(asked) - len(inserts) <= 4
    connection = sharded_proxy.connect(database="commerce")
    written = rows(connection, "SELECT id, text FROM my_message WHERE id >= 1000")
    assert sorted(written) == [(ident, "x'\\y") for ident in range(1000, 1500)]
    assert not recorder.errors


@pytest.mark.spark
@pytest.mark.db
@pytest.mark.slow
def test_a_password_goes_through_tls_that_is_verified(
    spark, server, database, start_proxy, tmp_path, driver
):
    certificate, _ = write_certificate(tmp_path)
    config = (
        '[server]\nlisten = "127.0.0.1:0"\n'
        '[server.tls]\ncert = "server.pem"\nkey = "server.key"\nrequire = true\n'
        '[[users]]\nname = "app"\naccount = "shared"\npassword = "sesame"\n'
    )
    proxy = start_proxy(config + keyspace_toml(database, [server]))
    endpoint = Endpoint("localhost", proxy.port, "app", database, "sesame", certificate)
    connection = endpoint.connect()
    run(connection, "CREATE TABLE t (id INT PRIMARY KEY)")
    run(connection, "INSERT INTO t VALUES (1), (2)")
    connection.close()
    parameters = {**driver, "sslMode": "REQUIRED"} if driver else {}
    chosen = jdbc.options(endpoint, parameters=parameters)
    assert load(spark, chosen, "t").count() == 2
