"""The queue, the producer and the consumer of README.md, as they are printed."""

import os
import subprocess
import sys

import pytest

from tests.fixtures.printed_steps import END_S, PrintedSteps
from tests.fixtures.running_proxy import HERE
from tests.fixtures.streams import eventually, rows
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
