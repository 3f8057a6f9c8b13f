"""What a hundred queues that change ten times a second cost the browser, by its own trace.

Wall time says how busy the machine is. So the bound is on the processor time of each task of the page's main thread, which holds
frames up. On two cores that others kept busy it was 41 ms, most of it layout and paint, and the bound leaves room for a slower
machine; `-s` prints it, and how many frames were drawn and dropped.
"""

import itertools
from dataclasses import replace

import pytest

from streamfrom.engine.messaging.table.counters import Counters
from tests.fixtures.chromium import PROGRAM, chromium
from tests.proxy.admin.conftest import figures


pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(PROGRAM is None, reason="no Chromium on this machine (apt: chromium)"),
]

QUEUES = 100
UPDATES_A_SECOND = 10
SECONDS = 5.0
TASK_MAX_US = 100_000
CATEGORIES = (
    "toplevel",
    "devtools.timeline",
    "disabled-by-default-devtools.timeline.frame",
    "cc",
    "benchmark",
    "__metadata",
)


async def test_ten_updates_a_second_of_a_hundred_queues_hold_no_frame_up(served, tmp_path):
    numbers = itertools.count()
    made = [figures(f"queue_{number:03}") for number in range(QUEUES)]

    async def changed():
        at = next(numbers)
        return [
            replace(
                one,
                shards=(
                    replace(
                        one.shards[0],
                        depth=at * 7 + index,
                        ready=at + index,
                        in_flight=at,
                        counters=Counters(delivered=at * 100),
                    ),
                ),
            )
            for index, one in enumerate(made)
        ]

    served.status.queues = changed
    async with chromium(tmp_path) as page:
        await page.size(1440, 900)
        await page.open(f"http://127.0.0.1:{served.server.port}/")
        await page.until(
            f"document.querySelectorAll('#queues + div tbody tr').length === {QUEUES}"
        )
        # The page asks anew when it is seen again.
        seen = "document.dispatchEvent(new Event('visibilitychange'))"
        await page.run(f"setInterval(() => {seen}, {1000 // UPDATES_A_SECOND})")
        before = next(numbers)
        events = await page.trace(SECONDS, *CATEGORIES)
        updates = next(numbers) - before - 1
    mains = {
        (one["pid"], one["tid"])
        for one in events
        if one["name"] == "thread_name" and one["args"]["name"] == "CrRendererMain"
    }
    tasks_us = [
        one.get("tdur", 0)
        for one in events
        if (one["pid"], one["tid"]) in mains and one["name"].endswith("RunTask")
    ]
    frames = {
        name: sum(one["name"] == name for one in events)
        for name in ("DrawFrame", "DroppedFrame")
    }
    print(
        f"{updates} updates, {len(tasks_us)} tasks, the longest {max(tasks_us) / 1000:.1f} ms of processor time, {frames}"
    )
    assert updates >= SECONDS * UPDATES_A_SECOND / 2
    assert max(tasks_us) <= TASK_MAX_US
