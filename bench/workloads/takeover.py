"""A dispatcher that dies or hangs: how long the consumers of the other members wait."""

import os
import signal
import time
from itertools import pairwise
from typing import Final

from bench import messages
from bench.clients import Received, Sent, consumers, producer
from bench.fleet import Fleet
from bench.plan import Plan
from bench.report import Figure, figure, value_at_most


DATABASE = "takeover"
PER_SECOND: Final = 100
BEFORE_S: Final = 3.0
AFTER_S: Final = 10.0
REST_S: Final = 60.0
# A stopped process keeps its connections and sends nothing, like a machine that has vanished.
TROUBLES: Final = {"closed": (signal.SIGKILL, 1_000.0), "vanished": (signal.SIGSTOP, 5_000.0)}


def takeover(plan: Plan) -> list[Figure]:
    """Measure the longest gap at a member's consumer while its dispatcher dies, at 100 messages per second."""
    figures = []
    for name, (number, limit_ms) in TROUBLES.items():
        silences_ms = [_silence_ms(plan, name, number) for _ in range(plan.pairs)]
        title = f"dispatcher {name}: longest silence at another member"
        figures.append(figure(title, "ms", silences_ms, target=value_at_most(limit_ms)))
    return figures


def _silence_ms(plan: Plan, name: str, number: signal.Signals) -> float:
    lab = plan.lab
    with (
        lab.fleet_of_two(DATABASE, may_be_killed=True) as (dispatcher, other),
        messages.fresh_table(lab, other, DATABASE) as table,
        Fleet() as fleet,
    ):
        where = other.port, DATABASE, table
        reader = fleet.add(consumers(*where, count=1, ack_batch=100, stream_first=True))
        source = fleet.add(producer(*where, per_second=PER_SECOND, seconds=BEFORE_S + AFTER_S))
        fleet.start()
        time.sleep(BEFORE_S)
        killed_ns = time.time_ns()
        os.kill(dispatcher.pid, number)
        try:
            sent: Sent = source.result(BEFORE_S + AFTER_S + REST_S)
            received: Received = fleet.finish([reader], len(sent.ids), REST_S)[0]
        finally:
            if number is signal.SIGSTOP:
                os.kill(dispatcher.pid, signal.SIGCONT)
        twice = messages.audited(lab, DATABASE, table, sent.ids, received.ids)
    arrived_ns = sorted(received.arrived_ns)
    silence_ms = max(
        (later - earlier) / 1e6 for earlier, later in pairwise(arrived_ns) if later > killed_ns
    )
    plan.say(f"  {name}: {silence_ms:.0f} ms, {twice} sent twice")
    return silence_ms
