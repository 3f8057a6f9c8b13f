"""The checksum of rows: the same by a server and by Arrow, another for any other rows."""

import random
from decimal import Decimal

import pyarrow as pa
import pytest

from streamfrom.spark.endpoint import Endpoint
from streamfrom.spark.jobs.checksum import (
    Checksum,
    is_exact,
    of_batch,
    of_server,
    statement,
    total,
)
from streamfrom.spark.table_schema import Field, fetch_rows, fields_of, kept_type
from tests.fixtures.streams import message_table, run


def column(name, kind):
    return Field(name, name, "", kind)


TWO = (column("a", "string"), column("b", "string"))


def of(*rows):
    return of_batch(pa.RecordBatch.from_pylist([{"a": a, "b": b} for a, b in rows]), TWO)


def test_no_order_and_no_cut_changes_it():
    assert of(("x", "y"), ("z", None)) == of(("z", None), ("x", "y"))
    assert total([of(("x", "y")), of(("z", None))]) == of(("x", "y"), ("z", None))
    assert total([]) == Checksum(0, 0)


def test_what_looks_alike_side_by_side_differs():
    alike = [("ab", "c"), ("a", "bc"), ("abc", ""), ("abc", None), ("abc", "N"), ("a", "1:bc")]
    assert len({of(row) for row in alike}) == len(alike)


def test_a_small_decimal_is_written_as_a_server_does():
    columns = (column("n", "decimal(20,10)"),)
    kind = pa.decimal128(20, 10)
    small = pa.RecordBatch.from_arrays([pa.array([Decimal("1E-7")], kind)], names=["n"])
    text = pa.RecordBatch.from_arrays([pa.array(["0.0000001000"])], names=["n"])
    assert of_batch(small, columns) == of_batch(text, (column("n", "string"),))


def test_doubles_are_left_to_a_comparison_of_the_rows():
    assert is_exact(TWO)
    assert not is_exact((*TWO, column("c", "double")))


def test_the_statement_quotes_what_it_names():
    assert "`t``x`" in statement("t`x", TWO, "1 = 1")


def literal(rng, kind):
    if rng.random() < 0.2:
        return "NULL"
    text = "".join(rng.choice("aé'\\ß€😀:0N \n") for _ in range(rng.randrange(8)))
    escaped = text.replace("\\", "\\\\").replace("'", "''")
    return {
        "text": f"'{escaped}'",
        "raw": f"0x{rng.randbytes(rng.randrange(1, 9)).hex()}",
        "number": str(rng.randrange(-(2**63), 2**63)),
        "big": str(rng.randrange(2**64)),
        "amount": f"{rng.randrange(-(10**9), 10**9) / 10**6:.8f}",
        "moment": f"'2024-0{rng.randrange(1, 10)}-11 01:02:03.{rng.randrange(10**6):06}'",
        "clock": f"'-{rng.randrange(800)}:00:01'",
    }[kind]


# Types, and what values are like, or some of them.
COLUMNS: dict[str, tuple[str, str | list[str]]] = {
    "body": ("TEXT CHARACTER SET utf8mb4", "text"),
    "name": ("VARCHAR(40) CHARACTER SET latin1", ["'grün'", "NULL"]),
    "fixed": ("CHAR(12) CHARACTER SET utf8mb4", "text"),
    "raw": ("VARBINARY(20)", "raw"),
    "padded": ("BINARY(8)", "raw"),
    "bits": ("BIT(12)", ["b'101010101010'", "NULL"]),
    "number": ("BIGINT", "number"),
    "small": ("SMALLINT(5) UNSIGNED ZEROFILL", ["7", "65535"]),
    "big": ("BIGINT UNSIGNED", "big"),
    "amount": ("DECIMAL(20,8)", "amount"),
    "moment": ("DATETIME(6)", "moment"),
    "stamp": ("TIMESTAMP(3) NULL", "moment"),
    "day": ("DATE", "moment"),
    "clock": ("TIME", "clock"),
    "year": ("YEAR", ["2024", "0"]),
    "document": ("JSON", ['\'{"a": [1, "é"]}\'', "NULL"]),
}


@pytest.mark.db
def test_a_server_and_arrow_compute_the_same_for_every_type(sharded_proxy):
    rng = random.Random(7)
    connection = sharded_proxy.connect(database="commerce", autocommit=True)
    run(
        connection,
        message_table(
            columns=", ".join(f"{name} {kind}" for name, (kind, _) in COLUMNS.items())
        ),
    )
    rows = [
        [
            literal(rng, kind) if isinstance(kind, str) else rng.choice(kind)
            for _, kind in COLUMNS.values()
        ]
        for _ in range(300)
    ]
    lines = ", ".join(f"({place}, {', '.join(row)})" for place, row in enumerate(rows))
    run(connection, f"INSERT INTO my_message (id, {', '.join(COLUMNS)}) VALUES {lines}")
    endpoint = Endpoint("127.0.0.1", sharded_proxy.port, "root", "commerce")
    columns = fields_of(endpoint, ["-80", "80-"], "my_message", kept_type)
    counted = 0
    for shard in ("-80", "80-"):
        with endpoint.connect(shard) as connection:
            told = of_server(connection, "my_message", columns, "id < 290")
        (sent,) = fetch_rows(endpoint, shard, "my_message", columns, "id < 290")
        assert told == of_batch(sent, columns)
        counted += told.rows
    assert counted == 290
