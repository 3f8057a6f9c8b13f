"""`manage.py streamfrom_worker`: run tasks until SIGTERM or Ctrl-C."""

from __future__ import annotations

import signal
from typing import Any

import pymysql
from django.core.management.base import BaseCommand, CommandError, CommandParser

from streamfrom_worker.django.backend import backends
from streamfrom_worker.django.worker import TaskWorker


class Command(BaseCommand):
    """The `streamfrom_worker` command."""

    help = "Run the tasks of a backend of streamfrom until SIGTERM or Ctrl-C; those that run are ended first."

    def add_arguments(self, parser: CommandParser) -> None:
        """Add the command's options."""
        parser.add_argument("--backend", default="default", help="the alias in TASKS")
        parser.add_argument("--queue", action="append", help="a queue's name; all by default")
        parser.add_argument(
            "--concurrency", type=int, default=1, help="how many tasks run at once, in threads"
        )

    def handle(self, *, backend: str, queue: Any, concurrency: int, **_: Any) -> None:
        """Run the worker."""
        found = backends(backend)
        if not found:
            raise CommandError(f"TASKS has no backend of streamfrom with the alias {backend!r}")
        if concurrency < 1:
            raise CommandError(f"--concurrency must be at least 1, not {concurrency}")
        queues = queue or sorted(found[0].queues)
        if unknown := sorted(set(queues) - found[0].queues):
            raise CommandError(f"no queue {unknown[0]!r} in TASKS[{backend!r}]['QUEUES']")
        worker = TaskWorker(found[0], queues, concurrency)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: worker.stop())
        self.stdout.write(f"worker {worker.id} takes tasks of {', '.join(queues)}")
        try:
            worker.run()
        except pymysql.MySQLError as error:
            raise CommandError(f"the tasks cannot be taken: {error.args[-1]}") from None
