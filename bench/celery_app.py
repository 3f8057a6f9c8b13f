"""The Celery application of `bench.workloads.frameworks`; run as a program, it sends the given number of tasks."""

# mypy: ignore-errors
# Run where Celery is installed, which need not be here.

import os
import sys

from celery import Celery

# Registers the transport.
import streamfrom_worker.celery  # noqa: F401


app = Celery("bench", broker=os.environ["BROKER"])
app.conf.update(task_acks_late=True, task_ignore_result=True, worker_concurrency=8)
# Shared by the processes of the pool. Its length is the number of tasks that have run.
RUN = os.open(os.environ["RUN"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)


@app.task(name="nothing")
def nothing() -> None:
    """Count this run."""
    os.write(RUN, b".")


if __name__ == "__main__":
    with app.producer_or_acquire() as producer:
        for _ in range(int(sys.argv[1])):
            nothing.apply_async(producer=producer)
