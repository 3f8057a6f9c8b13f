"""Settings that never bite cost nothing: counted in calls of functions, which no other load on the machine changes."""

import asyncio
import functools
import sys
from pathlib import Path
from typing import Any

from streamfrom import engine
from streamfrom.engine.messaging.dispatch.events import Acked
from tests.cases import cases
from tests.engine.messaging.runner_rig import COMMENT, STOPPED, Receiver, RunnerRig
from tests.virtual_loop import run_virtual


ENGINE = str(Path(engine.__file__).parent)
MESSAGES = 250


@functools.cache
def calls(settings):
    """Return how many functions of the engine are called while messages are sent and acknowledged in batches."""
    counted = 0

    def count(frame, event, _):
        nonlocal counted
        counted += event == "call" and frame.f_code.co_filename.startswith(ENGINE)

    rig: Any = None

    class Acknowledging(Receiver):
        def deliver(self, rows):
            ids = tuple(row.id for row in rows)
            asyncio.get_running_loop().call_soon(rig.runner.post, Acked("0", ids))
            for ident in ids:
                rig.row(int(ident)).time_acked_ns = 1
            return super().deliver(rows)

    async def main():
        nonlocal rig
        rig, receiver = RunnerRig(COMMENT + settings), Acknowledging()
        rig.runner.attach(receiver)
        rig.commit(1)
        await asyncio.sleep(1)  # the bucket of a rate is empty when its dispatcher begins
        sys.setprofile(count)
        try:
            rig.commit(*range(2, MESSAGES + 1))
            while len(receiver.rows) < MESSAGES:  # noqa: ASYNC110  (on a virtual clock)
                await asyncio.sleep(0.01)
        finally:
            sys.setprofile(None)
        await rig.runner.stop(STOPPED)

    run_virtual(main())
    return counted


@cases(setting=str, beside=str)
def test_a_setting_that_never_bites_costs_nothing(setting, beside):
    assert calls(setting) <= 1.05 * calls(beside)


def test_one_that_bites_is_counted():
    assert calls(",vt_max_rate=2000") > 1.05 * calls("")
