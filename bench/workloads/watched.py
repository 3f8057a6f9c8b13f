"""What it costs to be watched: an open status page and a scrape beside SELECTs and a drain; and one question for ten million rows."""

import contextlib
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from functools import partial
from typing import Final

import pymysql

from bench import messages
from bench.clients import consumers
from bench.fleet import Work
from bench.lab import Endpoint, Keyspace
from bench.plan import Plan
from bench.processes import HOST, free_port
from bench.report import Figure, Goal, Series, Target
from bench.workloads import drain, selects


DATABASE: Final = selects.DATABASE
MESSAGES = (100_000, 40_000)
# A page asks each second; Prometheus mostly each 15 s, here more often.
PAGE_S: Final = 1.0
SCRAPE_S: Final = 5.0
ROWS = (10_000_000, 200_000)
ASKED = (20, 5)
# The depth is asked of the server once a second at most; each question here asks anew.
FRESH_S: Final = 1.05


def watched(plan: Plan) -> list[Figure]:
    """Point SELECTs and a drain with `[admin]`, a page and a scrape, and without."""
    lab = plan.lab
    keyspaces = [Keyspace(name, (lab.server,)) for name in (DATABASE, drain.DATABASE)]
    count = plan.size(*MESSAGES)
    with lab.database(DATABASE), lab.database(drain.DATABASE):
        selects.make_table(plan, selects.POINT_ROWS)
        queries = selects.point_queries(lab.folder / "watched.sql")

        def select(proxy: Endpoint) -> None:
            selects.slap(plan, proxy, queries)

        def drained(proxy: Endpoint) -> None:
            def work(table: str, each: int) -> Work:
                return consumers(
                    proxy.port, drain.DATABASE, table, count=each, ack_batch=drain.BATCH
                )

            drain.drain(lab, proxy, work, workers=drain.Workers(1, 1), count=count)

        def used_s(act: Callable[[Endpoint], None], *, is_on: bool) -> float:
            # One at a time: two of them would be a fleet.
            port = free_port()
            admin = f'[admin]\nlisten = "{HOST}:{port}"' if is_on else ""
            with lab.proxy(*keyspaces, settings=admin) as proxy:
                act(proxy)  # warm
                before_s = proxy.usage().cpu_s
                with _watching(port) if is_on else contextlib.nullcontext():
                    act(proxy)
                took_s = proxy.usage().cpu_s - before_s
            plan.say(f"  {'on' if is_on else 'off'}: {took_s:.2f} s of processor time")
            return took_s

        figures = []
        for name, act in (
            ("point SELECT, 16 clients", select),
            ("drain, acks of 100", drained),
        ):
            ours, theirs = plan.interleaved(
                partial(used_s, act, is_on=True), partial(used_s, act, is_on=False)
            )
            figures.append(
                Figure(
                    f"{name}: the proxy's processor time, page and metrics on",
                    "s",
                    Series.of(ours),
                    "the same without them",
                    Series.of(theirs),
                    Target(Goal.AT_MOST, 1.01),
                )
            )
    return figures


def queue_status(plan: Plan) -> list[Figure]:
    """`SHOW QUEUE STATUS` of a table of ten million rows that nobody streams."""
    lab, rows = plan.lab, plan.size(*ROWS)
    times_ms, depths = [], []
    with (
        lab.database(DATABASE),
        lab.proxy(Keyspace(DATABASE, (lab.server,))) as proxy,
        messages.fresh_table(lab, proxy, DATABASE) as table,
    ):
        messages.fill(
            lab.server, lab, DATABASE, table, "id, message", "n, JSON_OBJECT('n', n)", rows
        )
        with (
            pymysql.connect(
                host=HOST, port=proxy.port, user="root", database=DATABASE
            ) as connection,
            connection.cursor() as cursor,
        ):
            for _ in range(plan.size(*ASKED)):
                time.sleep(FRESH_S)
                start = time.perf_counter()
                cursor.execute("SHOW QUEUE STATUS")
                (row,) = cursor.fetchall()
                depths.append(row[2])
                times_ms.append((time.perf_counter() - start) * 1000)
        shown = [round(ms, 1) for ms in times_ms]
        plan.say(f"  depths told {depths} of {rows:,}; {shown}")
    return [
        Figure(
            f"SHOW QUEUE STATUS, {rows:,} rows",
            "ms",
            Series.of(times_ms),
            target=Target(Goal.AT_MOST, 10, of_ratio=False),
            facts={"depths": depths},
        )
    ]


@contextlib.contextmanager
def _watching(port: int) -> Iterator[None]:
    """Have a page open and metrics scraped."""
    stop = threading.Event()

    def ask(path: str, every_s: float) -> None:
        while not stop.is_set():
            with urllib.request.urlopen(f"http://{HOST}:{port}{path}", timeout=60) as answer:
                answer.read()
            stop.wait(every_s)

    threads = [
        threading.Thread(target=ask, args=(path, every_s), daemon=True)
        for path, every_s in (("/api/overview", PAGE_S), ("/metrics", SCRAPE_S))
    ]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        stop.set()
        for thread in threads:
            thread.join()
