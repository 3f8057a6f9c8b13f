"""How a window is cut, and what becomes of the values that a server sends."""

from decimal import Decimal

import pyarrow as pa

from streamfrom.spark.endpoint import Column
from streamfrom.spark.jobs.reading import arrow_batch, slices


def test_slices_touch_and_do_not_overlap():
    assert slices(0, 10, 4) == [(0, 3), (3, 6), (6, 9), (9, 10)]
    assert slices(0, 2, 4) == [(0, 1), (1, 2)]


def test_values_keep_their_types_and_nulls_stay():
    columns = [
        Column("id", "decimal(20,0)"),
        Column("n", "bigint"),
        Column("body", "binary"),
        Column("text", "string"),
    ]
    sent = [
        pa.array(values, pa.binary())
        for values in (
            [b"18446744073709551615", b"1"],
            [b"-1", None],
            [b"\x00\xff", None],
            ["é".encode(), None],
        )
    ]
    assert arrow_batch(columns, "-80", sent).to_pylist() == [
        {"streamfrom_shard": "-80", "id": Decimal(18446744073709551615), "n": -1, "body": b"\x00\xff", "text": "é"},
        {"streamfrom_shard": "-80", "id": Decimal(1), "n": None, "body": None, "text": None},
    ]  # fmt: skip
