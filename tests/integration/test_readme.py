"""The programs of README.md and of examples/, as they are printed, on the tables of compose.yaml and of the tutorial."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fixtures.printed_steps import END_S, PrintedSteps
from tests.fixtures.programs import finished
from tests.fixtures.running_proxy import HERE
from tests.fixtures.streams import eventually, rows
from tests.integration import toolchains
from tests.integration.conftest import SharedCluster


pytestmark = [pytest.mark.db, pytest.mark.one_server]


def test_the_queue_the_producer_and_the_consumer_work(cluster: SharedCluster) -> None:
    text = (HERE / "README.md").read_text().replace("15306", str(cluster.proxy.port))
    _, _, rest = text.partition("\n## A queue, a producer, a consumer\n")
    client = cluster.proxy.connect(database="commerce", autocommit=True)
    with PrintedSteps(rest.partition("\n## ")[0]) as steps:
        steps.sql(client)
        producer = [sys.executable, "-c", steps.take("python")]
        subprocess.run(producer, check=True, timeout=END_S)
        with subprocess.Popen(
            [sys.executable, "-c", steps.take("python")],
            env={**os.environ, "PYTHONPATH": str(HERE / "clients" / "python")},
            stdout=subprocess.PIPE,
            text=True,
        ) as consumer:
            assert consumer.stdout is not None
            assert consumer.stdout.readline() == "{'order': 7}\n"
            acked = "SELECT COUNT(time_acked), COUNT(*) FROM job"
            eventually(
                lambda: rows(client, acked) == ((1, 2),), "acknowledged; one is for later"
            )
            consumer.kill()


EXAMPLES = Path(__file__).parents[2] / "examples"
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
