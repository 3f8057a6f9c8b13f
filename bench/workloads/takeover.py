"""A dispatcher that dies or hangs: how long the consumers of the other members wait."""

import contextlib
import os
import signal
import time
from itertools import pairwise
from typing import Final

from bench import messages
from bench.clients import Received, Sent, consumers, producer
from bench.fleet import Fleet, FleetError
from bench.lab import Keyspace, await_members
from bench.plan import Plan
from bench.report import Figure, Goal, Series, Target


DATABASE = "takeover"
PER_SECOND: Final = 100
BEFORE_S: Final = 3.0
AFTER_S: Final = 10.0
REST_S: Final = 60.0
# A process that is stopped holds its connections and says nothing, as a machine that has vanished.
TROUBLES: Final = {
    "closed": (signal.SIGKILL, 1_000.0),
    "vanished": (signal.SIGSTOP, 5_000.0),
}


def takeover(plan: Plan) -> list[Figure]:
    """The longest time without a message at a member's consumer while its dispatcher dies, at 100 a second."""
    return [
        Figure(
            f"dispatcher {name}: longest silence at another member",
            "ms",
            Series.of(_silence_ms(plan, name, number) for _ in range(plan.pairs)),
            target=Target(Goal.AT_MOST, limit_ms, of_ratio=False),
        )
        for name, (number, limit_ms) in TROUBLES.items()
    ]


def _silence_ms(plan: Plan, name: str, number: signal.Signals) -> float:
    lab = plan.lab
    keyspace = Keyspace(DATABASE, (lab.server,))
    with contextlib.ExitStack() as stack:
        stack.enter_context(lab.database(DATABASE))
        dispatcher = stack.enter_context(lab.proxy(keyspace, may_be_killed=True))
        await_members(dispatcher, f"dispatches = '{DATABASE}/0'", 1)
        other = stack.enter_context(lab.proxy(keyspace))
        for proxy in (dispatcher, other):
            await_members(proxy, "is_answering", 2)
        table = stack.enter_context(messages.fresh_table(lab, other, DATABASE))
        fleet = stack.enter_context(Fleet())
        reader = fleet.add(
            consumers(other.port, DATABASE, table, count=1, ack_batch=100, stream_first=True)
        )
        source = fleet.add(
            producer(
                other.port,
                DATABASE,
                table,
                per_second=PER_SECOND,
                seconds=BEFORE_S + AFTER_S,
            )
        )
        fleet.start()
        time.sleep(BEFORE_S)
        killed_ns = time.time_ns()
        os.kill(dispatcher.pid, number)
        try:
            sent: Sent = source.result(BEFORE_S + AFTER_S + REST_S)
            if not fleet.wait_for([reader], len(sent.ids), REST_S):
                raise FleetError(f"only {reader.counted} of {len(sent.ids)} messages came")
        finally:
            if number is signal.SIGSTOP:
                os.kill(dispatcher.pid, signal.SIGCONT)
        (received,) = fleet.stop([reader])
        assert isinstance(received, Received)
        outcome = messages.audited(lab, DATABASE, table, sent.ids, received.ids)
    arrived_ns = sorted(received.arrived_ns)
    silence_ms = max(
        (later - earlier) / 1e6 for earlier, later in pairwise(arrived_ns) if later > killed_ns
    )
    plan.say(f"  {name}: {silence_ms:.0f} ms, {outcome.duplicates} sent twice")
    return silence_ms
