"""The producer and the consumer of examples/, as they are printed, on the tables of compose.yaml and of the tutorial."""

import signal
import sys
from pathlib import Path

import pytest

from tests.fixtures.programs import finished
from tests.fixtures.streams import eventually
from tests.integration import toolchains


pytestmark = [pytest.mark.db, pytest.mark.one_server]

EXAMPLES = Path(__file__).parents[2] / "examples"
END_S = 60.0
# The table of compose.yaml, and that of the tutorial.
TABLES = {
    "compose": (EXAMPLES / "schema.sql").read_text(),
    "tutorial": "CREATE QUEUE my_message (message VARCHAR(200))",
}


@pytest.mark.parametrize("table", TABLES)
def test_what_the_producer_sends_the_consumer_acknowledges_until_it_is_told_to_end(
    table, cluster, tmp_path, start_program
):
    client = cluster.proxy.connect(database="commerce", autocommit=True).cursor()
    client.execute(TABLES[table])
    environ = toolchains.place(cluster.proxy.port)
    for _ in range(2):  # no message of the second time has an id of the first
        command = [sys.executable, str(EXAMPLES / "producer.py"), "20"]
        done = finished(command, env=environ)
        assert done.stdout == "sent 20 messages\n", done.stderr

    def acked() -> int:
        client.execute("SELECT COUNT(*) FROM my_message WHERE time_acked IS NOT NULL")
        ((count,),) = client.fetchall()
        return int(count)

    log = tmp_path / "said"
    consumer = start_program([sys.executable, EXAMPLES / "consumer.py"], log, env=environ)
    eventually(lambda: acked() == 40, log.read_text(), END_S)
    consumer.send_signal(signal.SIGTERM)
    assert consumer.wait(END_S) == 0, log.read_text()
    *works, bye = log.read_text().splitlines()
    assert len(works) == len(set(works)) * 2 == 40  # each number was sent twice
    assert bye == "bye"
