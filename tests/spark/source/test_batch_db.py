"""The source against real shards: reading and writing, and what is refused."""

from datetime import UTC, date, datetime
from decimal import Decimal

import pytest

from streamfrom.spark.source import register
from tests.fixtures.streams import message_table, rows as rows_of, run as execute


pytestmark = [pytest.mark.spark, pytest.mark.db, pytest.mark.slow]

COLUMNS = """big BIGINT UNSIGNED, doc JSON, flag BIT(1), bits BIT(12), all_bits BIT(64), day DATE,
 at DATETIME(6), stamp TIMESTAMP(3) NULL, raw VARBINARY(20), price DECIMAL(12,4), ratio FLOAT, exact DOUBLE,
 small TINYINT UNSIGNED, long_one DECIMAL(65,30), `50%s off` INT, word VARCHAR(50) CHARACTER SET utf8mb4, span TIME"""


@pytest.fixture
def table(sharded_proxy, spark):
    register(spark)
    connection = sharded_proxy.connect(database="commerce", autocommit=True)
    execute(connection, message_table(columns=COLUMNS))
    options = {
        "proxy": f"mysql://root@127.0.0.1:{sharded_proxy.port}/commerce",
        "table": "my_message",
    }
    return connection, options


def source(spark, options, **more):
    return spark.read.format("streamfrom").options(**options, **more)


def test_values_types_filters_and_shards(table, spark):
    connection, options = table
    execute(connection, "SET time_zone = '+00:00', sql_mode = ''")
    execute(
        connection,
        "INSERT INTO my_message (id, big, doc, flag, bits, all_bits, day, at, stamp, raw, price, ratio,"
        " exact, small, long_one, word, span) VALUES (1, 18446744073709551615, '{\"a\": [1, null]}', 1, 4095,"
        " 18446744073709551615, '2024-02-29', '2024-01-01 10:00:00.123456', '2024-06-01 12:00:00.5',"
        " 0x00FF27, -12345.6789, 16777217.5, 0.1, 255, 0.5, 'it''s \\\\ 100% ü', '-100:00:01')",
    )
    execute(connection, "INSERT INTO my_message (id, day, word) VALUES (4, '0000-00-00', 'A')")
    execute(
        connection,
        "INSERT INTO my_message (id, word) VALUES "
        + ", ".join(f"({n}, 'a')" for n in range(5, 105)),
    )
    frame = source(spark, options).load()
    assert dict(frame.dtypes) == {
        "id": "bigint", "priority": "bigint", "epoch": "bigint", "time_next": "bigint",
        "time_acked": "bigint", "big": "decimal(20,0)", "doc": "string", "flag": "boolean",
        "bits": "bigint", "all_bits": "decimal(20,0)", "day": "date", "at": "timestamp_ntz",
        "stamp": "timestamp", "raw": "binary", "price": "decimal(12,4)", "ratio": "float",
        "exact": "double", "small": "bigint", "long_one": "string", "50%s off": "bigint", "word": "string", "span": "string",
    }  # fmt: skip
    found = {row.id: row for row in frame.where("id < 5").collect()}
    row = found[1].asDict()
    assert row["big"] == row["all_bits"] == Decimal(2**64 - 1)
    assert row["doc"].replace(" ", "") == '{"a":[1,null]}'
    assert (row["flag"], row["bits"], row["small"]) == (True, 4095, 255)
    assert row["day"] == date(2024, 2, 29)
    assert row["at"] == datetime.fromisoformat("2024-01-01T10:00:00.123456")
    assert row["stamp"].astimezone(UTC) == datetime(2024, 6, 1, 12, 0, 0, 500000, UTC)
    assert bytes(row["raw"]) == b"\x00\xff'"
    numbers = (row["price"], row["ratio"], row["exact"])
    assert numbers == (Decimal("-12345.6789"), 16777218.0, 0.1)
    assert row["long_one"] == "0.5" + "0" * 29
    assert (row["word"], row["span"]) == ("it's \\ 100% ü", "-100:00:01")
    assert row["time_acked"] is None
    assert found[4].day is None

    def ids(**more):
        return sorted(one.id for one in source(spark, options, **more).load().collect())

    # As a server compares.
    assert ids(where="word = 'A' AND id < 7 -- all of these") == [4, 5, 6]
    assert ids(where="id = 1 OR id = 5", partitionsPerShard="3") == [1, 5]
    everything = [1, *range(4, 105)]
    assert ids(partitionsPerShard="3") == everything
    low, high = ids(shards="-80"), ids(shards="80-")
    assert low
    assert high
    assert sorted(low + high) == everything
    # Spark would mix up the filters of one DataFrame, if the source took them.
    one, two = frame.where("id = 4"), frame.where("word = 'a' and id < 7")
    assert (frame.count(), one.unionByName(two).count()) == (len(everything), 3)
    narrow = source(spark, options).schema("ID bigint, big string, day string").load()
    assert {row.ID: row[1:] for row in narrow.where("id < 5").collect()} == {
        1: ("18446744073709551615", "2024-02-29"),
        4: (None, "0000-00-00"),
    }


def test_what_is_written_can_be_written_again_and_is_on_its_shards(table, spark):
    connection, options = table
    frame = spark.range(1, 3001).selectExpr(
        "id", "cast(id as decimal(20,0)) + 18446744073709548615 as big", "cast(id as string) as word",
        "cast('x' as binary) as raw", "cast(id as decimal(10,2)) / 4 as quarter",
        "timestamp_ntz'2024-01-01 10:00:00.123456' as at", "id % 2 = 0 as flag",
        "'{\"a\": 1}' as doc", "cast(id as int) as `50%s off`",
    ).selectExpr("id", "cast(big as decimal(20,0)) as big", "word", "raw", "cast(quarter as decimal(12,4)) as price", "at", "flag", "doc", "`50%s off`")  # fmt: skip
    execute(connection, "INSERT INTO my_message (id, word) VALUES (7, 'mine')")
    for _ in range(2):
        frame.write.format("streamfrom").options(**options).mode("append").save()
    assert rows_of(connection, "SELECT COUNT(*), MAX(big) FROM my_message") == (
        (3000, 2**64 - 1),
    )
    assert rows_of(connection, "SELECT word FROM my_message WHERE id = 7") == (("mine",),)
    read = source(spark, options).load().where("id > 10 and id < 20")
    assert sorted((r.id, r.price, r.flag) for r in read.collect())[0] == (
        11, Decimal("2.7500"), False
    )  # fmt: skip
    assert source(spark, options, shards="-80").load().count() not in {0, 3000}


def test_what_cannot_be_read_says_why(table, spark):
    connection, options = table
    execute(connection, "CREATE TABLE plain_table (id BIGINT PRIMARY KEY)")
    for more, what in [
        (
            {"table": "nothing"},
            r"cannot read commerce.nothing on shard -80.*check the table's name",
        ),
        ({"table": "plain_table"}, r"plain_table on shard -80 is no message table"),
        ({"shards": "-40"}, r"commerce has no shard '-40'; it has -80, 80-"),
        ({"colour": "red"}, r"unknown option 'colour'"),
        ({"where": "colour = 1"}, r"option where: .*colour.*it takes a condition in SQL"),
        ({"where": "id = 1) OR (id = 2"}, r"option where: .*it takes a condition in SQL"),
        ({"where": "1 LIMIT 5 --"}, r"option where: .*it takes a condition in SQL"),
        ({"proxy": "mysql://root@127.0.0.1:1/commerce"}, r"refused.*check option proxy"),
    ]:
        with pytest.raises(Exception, match=what) as told:
            source(spark, options | more).load().collect()
        assert "Traceback" not in str(told.value)
    for schema, what in [
        ("nothing string", r"column 'nothing' is not in the table"),
        ("id int", r"is int, the table's bigint.*read it as bigint and cast"),
    ]:
        with pytest.raises(Exception, match=what):
            source(spark, options).schema(schema).load().collect()


def test_what_cannot_be_written_says_why(table, spark):
    connection, options = table
    for columns, what in [
        (["id", "1 as colour"], r"column 'colour' is not in the table"),
        (["'a' as word"], r"'id' takes no NULL"),
        # The proxy would make an id, and another one each time that the task runs.
        (["cast(null as bigint) as id"], r"'id': bigint\S* NOT NULL cannot hold 'NULL'"),
        (["id", "repeat('x', 60) as word"], r"word"),
        (["id", "timestamp_ltz'2024-01-01 00:00:00.1234' as stamp"], r"cannot hold"),
        (
            ["id", "timestamp_ltz'1969-01-01 00:00:00' as stamp"],
            r"'stamp': timestamp.* cannot hold",
        ),
        (["id", "timestamp_ntz'+10000-01-01 00:00:00' as at"], r"of the years 1 to 9999"),
        (
            ["id", "float('inf') as ratio"],
            r"cannot hold 'inf' as it is: correct, cut or cast it",
        ),
        (["id", "array(1) as doc"], r"'doc' is array: make JSON of it"),
    ]:
        frame = spark.range(1, 3).selectExpr(*columns)
        with pytest.raises(Exception, match=what):
            frame.write.format("streamfrom").options(**options).mode("append").save()
    assert rows_of(connection, "SELECT COUNT(*) FROM my_message") == ((0,),)
    with pytest.raises(Exception, match="messages are only added"):
        spark.range(1).write.format("streamfrom").options(**options).mode("overwrite").save()


def test_a_proxy_that_dies_is_named(table, spark, sharded_proxy):
    _, options = table
    frame = source(spark, options).load()
    sharded_proxy.kill()
    with pytest.raises(Exception, match=r"refused|broke off"):
        frame.collect()
