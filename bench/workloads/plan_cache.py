"""What it costs to find out where a statement goes: seen before, of a known shape, or new.

Of the proxy's own code alone, in this process: no socket, no server. A *hit* is another text of
a shape that was seen, as nearly all statements are; an *exact hit* the very same text; a *miss*
is a shape that is new.
"""

import json
import statistics
import time
from collections.abc import Callable, Sequence
from typing import Final

from bench.audit import AuditError
from bench.plan import Plan
from bench.report import Figure, Series
from streamfrom.engine.sharding.keyspace import Keyspace, Shard
from streamfrom.engine.sharding.vschema import parse_vschema
from streamfrom.proxy.routing.planner import Planner
from streamfrom.sqlparse_ext.cache import StatementCache


HITS = (4_000, 1_000)
MISSES = (300, 60)
SHARDS: Final = (Shard.named("-80"), Shard.named("80-"))
VSCHEMA: Final = {
    "sharded": True,
    "vindexes": {"hash": {"type": "hash"}},
    "tables": {
        "t": {"column_vindexes": [{"column": "id", "name": "hash"}]},
        "u": {"column_vindexes": [{"column": "tid", "name": "hash"}]},
    },
}
# {n} is a number, which differs from text to text; {c} a name, and another one is another shape.
STATEMENTS: Final = {
    "point SELECT": "SELECT a, s AS {c} FROM t WHERE id = {n}",
    "INSERT of one row": "INSERT INTO t (id, a, {c}) VALUES ({n}, 7, 'some text of a row')",
    "ORDER BY … LIMIT over all shards": (
        "SELECT id, a AS {c} FROM t WHERE a > {n} ORDER BY a, id LIMIT 20"
    ),
    "GROUP BY over all shards": (
        "SELECT a AS {c}, COUNT(*), SUM(id) FROM t WHERE id > {n} GROUP BY a ORDER BY a"
    ),
    "join on one shard": (
        "SELECT t.a, u.b AS {c} FROM t JOIN u ON u.tid = t.id WHERE t.id = {n} ORDER BY u.b"
    ),
    "join over all shards": (
        "SELECT t.a, u.b AS {c} FROM t JOIN u ON u.tid = t.id WHERE u.b > {n} ORDER BY t.a"
    ),
    "UNION over all shards": (
        "SELECT a AS {c} FROM t WHERE a > {n} UNION ALL SELECT b FROM u WHERE b > {n}"
    ),
}


def plan_cache(plan: Plan) -> list[Figure]:
    """Processor time of a hit and of a miss, from a statement's text to its route."""
    return [
        figure for name, text in STATEMENTS.items() for figure in _compared(plan, name, text)
    ]


def _compared(plan: Plan, name: str, text: str) -> Sequence[Figure]:
    exact_us, hit_us, miss_us = zip(
        *(_costs_us(text, plan.size(*HITS), plan.size(*MISSES)) for _ in range(plan.pairs)),
        strict=True,
    )
    for kind, costs in (("exact hit", exact_us), ("hit", hit_us), ("miss", miss_us)):
        plan.say(f"  {name}, {kind}: {statistics.median(costs):.1f} µs")
    miss = Series.of(miss_us)
    return (
        Figure(f"plan, {name}, hit", "µs", Series.of(hit_us), "miss", miss),
        Figure(f"plan, {name}, exact hit", "µs", Series.of(exact_us), "miss", miss),
    )


def _costs_us(text: str, hits: int, misses: int) -> tuple[float, float, float]:
    """Return what an exact hit, a hit, and a miss take: of many, the middle one.

    Raises:
        AuditError: what was to be a hit was none, or took another route than the miss.
    """
    cache = StatementCache()
    keyspace = Keyspace("bench", SHARDS, parse_vschema(json.dumps(VSCHEMA), "bench"))
    planner = Planner(keyspace, SHARDS, lambda _: None)

    def route(sql: bytes) -> object:
        statement = cache.get(sql)
        return planner.plan(statement.shape).route(statement)

    known = [text.format(n=n, c="c").encode() for n in range(1_000, 1_000 + hits)]
    new = [text.format(n=1_000, c=f"c_{n}").encode() for n in range(misses)]
    first = route(known[0])
    hit_us = _each_us(route, known[1:])
    exact_us = _each_us(route, [known[-1]] * hits)
    miss_us = _each_us(route, new)
    shape = cache.get(known[0]).shape
    if any(cache.get(sql).shape is not shape for sql in known):
        raise AuditError(f"texts of one shape were parsed apart: {text}")
    if len({cache.get(sql).shape for sql in new}) != misses:
        raise AuditError(f"shapes that were to be new had been seen: {text}")
    if any(type(route(sql)) is not type(first) for sql in (*known, *new)):
        raise AuditError(f"one statement took different kinds of routes: {text}")
    return exact_us, hit_us, miss_us


def _each_us(route: Callable[[bytes], object], texts: Sequence[bytes]) -> float:
    taken_ns = []
    for sql in texts:
        start_ns = time.process_time_ns()
        route(sql)
        taken_ns.append(time.process_time_ns() - start_ns)
    return statistics.median(taken_ns) / 1e3 - _clock_us()


def _clock_us() -> float:
    """Return what asking the clock twice takes: as much as a hit."""
    taken_ns = []
    for _ in range(1_000):
        start_ns = time.process_time_ns()
        taken_ns.append(time.process_time_ns() - start_ns)
    return statistics.median(taken_ns) / 1e3
