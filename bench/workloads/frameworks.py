"""Celery and Django on streamfrom, compared with their usual backends; and the worker library with a raw consumer."""

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from bench.brokers import STATE, rabbitmq, redis
from bench.clients import Received, consumers
from bench.fleet import LabError, Signals, Work
from bench.lab import Endpoint
from bench.messages import backlog
from bench.plan import Plan
from bench.processes import HOST, ROOT, output, process
from bench.report import Figure, figure, percentile_figures, ratio_at_least, ratio_at_most
from bench.workloads.drain import DATABASE as DRAIN, drain
from streamfrom_worker import Message, Result, Worker
from tests.suites.fetching import python_with


DATABASE: Final = "frameworks"
LIBRARY: Final = ROOT / "clients/python"
PACKAGES: Final = (
    "celery[redis,sqlalchemy]==5.7.0",
    "asyncmy",
    "PyMySQL==1.2.4",
    "Django==5.2.19",
    "django-tasks==0.12.0",
    "django-tasks-db==0.13.0",
)
TASKS: Final = (6_000, 3_000)
SLOW_TASKS: Final = (1_000, 300)  # for a broker that takes seconds per hundred tasks
WARM_PART: Final = 0.1  # part of the tasks to run before the clock starts
SENT: Final = (200, 100)
PAUSE_S: Final = 0.25
DRAINED: Final = (60_000, 30_000)
END_S: Final = 300.0
ACK_BATCH: Final = 100
POLLING: Final = "django_tasks_db.DatabaseBackend"
OURS: Final = "streamfrom_worker.django.backend.StreamfromBackend"


def celery(plan: Plan) -> list[Figure]:
    """Run empty tasks: eight processes, late acknowledgement, no results."""
    count, few = plan.size(*TASKS), plan.size(*SLOW_TASKS)
    with plan.lab.keyspace(DATABASE) as proxy, redis() as memory, rabbitmq() as rabbit:
        server = f"sqla+mysql+pymysql://root@{HOST}:{plan.lab.direct.port}/{DATABASE}"
        brokers = {
            "streamfrom": (f"streamfrom://root@{HOST}:{proxy.port}/{DATABASE}", count),
            "RabbitMQ": (rabbit, count),
            "Redis": (memory, count),
            "kombu's sqlalchemy transport": (server, few),
        }
        runs: dict[str, list[float]] = {name: [] for name in brokers}
        for number in range(1, plan.pairs + 1):
            for name, broker in brokers.items():
                runs[name].append(_celery_tasks_a_second(plan, *broker))
                plan.say(f"  round {number}, {name}: {runs[name][-1]:,.0f} tasks/s")
    ours = runs.pop("streamfrom")
    goals = {"RabbitMQ": ratio_at_least(0.5), "kombu's sqlalchemy transport": ratio_at_least(5)}
    return [
        figure("Celery, 8 processes", "tasks/s", ours, name, theirs, goals.get(name))
        for name, theirs in runs.items()
    ]


def django(plan: Plan) -> list[Figure]:
    """Measure the time from `enqueue` to the start of the task, one at a time."""
    count = plan.size(*SENT)
    with plan.lab.keyspace(DATABASE) as proxy, plan.lab.database("polled"):
        ours, theirs = plan.interleaved(
            lambda: _django_ms(plan, proxy, DATABASE, OURS, "streamfrom_worker", count),
            lambda: _django_ms(plan, plan.lab.direct, "polled", POLLING, "db_worker", count),
        )
    name, goals = "Django's task, enqueue to start", ((50, None), (99, ratio_at_most(1 / 20)))
    return percentile_figures(name, ours, "django-tasks-db's worker", theirs, *goals)


def worker_library(plan: Plan) -> list[Figure]:
    """Drain a backlog with one process of the library."""
    count = plan.size(*DRAINED)
    with plan.lab.keyspace(DRAIN) as proxy:
        where = proxy.port, DRAIN

        def run(work: Callable[[str], Work]) -> float:
            filled = backlog(plan.lab, proxy, DRAIN, count)
            done = drain(plan.lab, proxy, filled, lambda table: [work(table)], count)
            plan.say(f"  {done.per_second:,.0f}/s {done.facts}")
            return done.per_second

        def raw(table: str) -> Work:
            return consumers(*where, table, count=1, ack_batch=ACK_BATCH)

        ours, theirs = plan.interleaved(
            lambda: run(lambda table: _library(*where, table, count)), lambda: run(raw)
        )
    goal = ratio_at_least(0.8)
    return [figure("worker library, coroutine", "msg/s", ours, "raw consumer", theirs, goal)]


def _library(port: int, database: str, table: str, count: int) -> Work:
    async def work(signals: Signals) -> Received:
        received = Received()
        done = 0

        def note(result: Result) -> None:
            nonlocal done
            done += 1
            signals.count(1)
            if done == count:
                worker.stop()

        worker = Worker(f"mysql://root@{HOST}:{port}/{database}", on_result=note)

        @worker.queue(table, concurrency=8, prefetch=1000)
        async def take(message: Message) -> None:
            received.add([message.id], time.time_ns())

        await signals.start()
        await worker.serve()
        received.last_ack_ns = time.time_ns()
        return received

    return work


def _celery_tasks_a_second(plan: Plan, broker: str, count: int) -> float:
    run = plan.lab.folder / plan.lab.fresh_name()
    python, environ = _python(), _environ(BROKER=broker, RUN=str(run))
    output([python, "-m", "bench.celery_app", str(count)], environ=environ)
    words = ["-m", "celery", "-A", "bench.celery_app", "worker", "-l", "WARNING"]
    warm = int(count * WARM_PART)
    with process([python, *words], plan.lab.folder / "worker.log", environ=environ):
        _until(run, warm)
        began_s, before = time.monotonic(), run.stat().st_size
        _until(run, count)
        seconds = time.monotonic() - began_s
    if (there := run.stat().st_size) != count:
        raise LabError(f"{there} tasks ran, and {count} were sent")
    return (count - before) / seconds


def _django_ms(
    plan: Plan, target: Endpoint, database: str, backend: str, command: str, count: int
) -> list[float]:
    """Return the milliseconds from each `enqueue` to the task's start, sorted."""
    run = plan.lab.folder / plan.lab.fresh_name()
    settings = {"PORT": str(target.port), "KEYSPACE": database, "BACKEND": backend}
    environ = _environ(RUN=str(run), DJANGO_SETTINGS_MODULE="bench.django_app", **settings)
    django, sender = [_python(), "-m", "django"], [_python(), "-m", "bench.django_app"]
    output([*django, "migrate", "--verbosity", "0"], environ=environ)
    with process([*django, command], plan.lab.folder / "worker.log", environ=environ):
        output([*sender, "1", "0"], environ=environ)
        _until(run, 1)
        output([*sender, str(count), str(PAUSE_S)], environ=environ)
        _until(run, count + 1, lambda path: path.read_text().count("\n"))
    return sorted(map(float, run.read_text().splitlines()[1:]))


def _environ(**more: str) -> dict[str, str]:
    return {"PYTHONPATH": f"{ROOT}{os.pathsep}{LIBRARY}", "C_FORCE_ROOT": "1", **more}


def _python() -> str:
    STATE.mkdir(parents=True, exist_ok=True)
    return str(python_with(STATE, "frameworks", PACKAGES))


def _size(path: Path) -> int:
    return path.stat().st_size


def _until(path: Path, count: int, size: Callable[[Path], int] = _size) -> None:
    """Wait until a file has the size *count*."""
    deadline = time.monotonic() + END_S
    while not path.exists() or size(path) < count:
        if time.monotonic() > deadline:
            raise LabError(f"{path.name} does not grow to {count}")
        time.sleep(0.005)
