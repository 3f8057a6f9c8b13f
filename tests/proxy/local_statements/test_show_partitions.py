from streamfrom.engine.messaging.upkeep.partitions import (
    SPANS,
    PartitionCensus,
    Partitions,
    RowsLeft,
)
from streamfrom.proxy.local_statements.show_partitions import (
    COLUMNS,
    partition_rows,
)


DAY = SPANS["DAY"]
START_NS = DAY.floor_ns(1_800_000_000 * 10**9)
PARTITIONS = Partitions(
    DAY, tuple(DAY.partition(START_NS + n * DAY.length_ns) for n in range(3)), "prest"
)


def test_each_partition_says_what_holds_it_back():
    left = {"p20270115": RowsLeft(2, 0), "p20270116": RowsLeft(0, 0)}
    rows = list(partition_rows("-80", PartitionCensus(PARTITIONS, left, 1000)))
    assert all(len(row) == len(COLUMNS) for row in rows)
    assert rows[:3] == [
        (
            b"-80",
            b"p20270115",
            b"2027-01-16 00:00:00",
            b"2",
            b"0",
            b"2 messages not acknowledged",
        ),
        (
            b"-80",
            b"p20270116",
            b"2027-01-17 00:00:00",
            b"0",
            b"0",
            b"not at all: the next purge drops it, unless a transaction holds the table",
        ),
        (b"-80", b"p20270117", b"2027-01-18 00:00:00", None, None, None),
    ]
    assert rows[3][:5] == (b"-80", b"prest", None, None, None)
    assert (rows[3][5] or b"").startswith(b"1000 or more messages with ids")


def test_an_empty_last_partition_is_nothing_to_tell():
    (*_, rest) = partition_rows("-", PartitionCensus(PARTITIONS, {}, 0))
    assert rest == (b"-", b"prest", None, None, None, None)
