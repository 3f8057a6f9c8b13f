"""The queue stream on real shards: nothing is lost, and a batch that failed holds the same messages again."""

import pytest

from streamfrom.spark.source import register
from tests.fixtures.streams import message_table, rows as rows_of, run as execute


pytestmark = [pytest.mark.spark, pytest.mark.db, pytest.mark.slow]

# A batch takes Spark seconds, and on a busy machine minutes.
HANG_S = 600


def state(connection):
    asked = "SELECT COUNT(*), COUNT(time_acked), MIN(epoch), MAX(epoch) FROM my_message"
    return rows_of(connection, asked)[0]


def test_a_failed_batch_comes_again_the_same_and_all_are_acknowledged_once(
    sharded_proxy, spark, tmp_path
):
    register(spark)
    connection = sharded_proxy.connect(database="commerce", autocommit=True)
    execute(connection, message_table(columns="word VARCHAR(20)"))
    values = ", ".join(f"({n}, 'w{n}')" for n in range(1, 26))
    execute(connection, f"INSERT INTO my_message (id, word) VALUES {values}")
    reading = spark.readStream.format("streamfrom").option("maxRowsPerBatch", "10")
    reading.option("proxy", f"mysql://root@127.0.0.1:{sharded_proxy.port}/commerce")

    def started(table="my_message"):
        writing = reading.option("table", table).load().writeStream.foreachBatch(each)
        writing.option("checkpointLocation", str(tmp_path / "checkpoint"))
        return writing.trigger(availableNow=True).start()

    seen: dict[int, list[list[int]]] = {}

    def each(batch, number):
        ids = sorted(row.id for row in batch.collect())
        seen.setdefault(number, []).append(ids)
        if number == 1 and len(seen[1]) == 1:
            raise ValueError("the sink is full")

    failing = started()
    with pytest.raises(Exception, match="the sink is full"):
        failing.awaitTermination(HANG_S)
    # What was committed is acknowledged meanwhile, or by who goes on; what failed is held.
    assert state(connection)[1] in {0, len(seen[0][0])}
    # New ones do not join what was already under way.
    assert started().awaitTermination(HANG_S)
    assert seen[1][0] == seen[1][1]
    everything = [ident for batches in seen.values() for ident in batches[-1]]
    assert sorted(everything) == list(range(1, 26))
    assert state(connection) == (25, 25, 1, 1)

    # A checkpoint of another query.
    execute(connection, message_table("other_message", columns="word VARCHAR(20)"))
    foreign = started("other_message")
    with pytest.raises(
        Exception,
        match=r"belongs to a query of commerce.my_message.*reads commerce.other_message",
    ):
        foreign.awaitTermination(HANG_S)
