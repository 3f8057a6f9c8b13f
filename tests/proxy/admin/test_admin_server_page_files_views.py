"""Every view of the status page, light and dark, wide and narrow: what axe-core finds, what does not fit, and pictures.

`SCREENSHOTS=docs/images ./dev test tests/proxy/admin/test_admin_server_page_files_views.py` makes those of the manual again; the figures are made up.
"""

import asyncio
import os
from collections.abc import AsyncIterator
from dataclasses import replace
from math import sin
from pathlib import Path

import pytest

from streamfrom.engine.messaging.figures.figures import QueueFigures, ShardFigures
from streamfrom.engine.messaging.table.counters import Counters
from streamfrom.proxy.status.status_rows import MemberStatus, ShardStatus
from tests.fixtures.axe import axe_script, violations
from tests.fixtures.chromium import PROGRAM, Page, chromium
from tests.proxy.admin.conftest import USERS, Client, MessagesServer, stream_of
from tests.sim.memory_store import DEFAULT_COMMENT, loaded, raw_table


__all__ = ["axe_script"]  # a fixture
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(PROGRAM is None, reason="no Chromium on this machine (apt: chromium)"),
]

SHOP = "commerce"
SAMPLES = 300
SAMPLE_S = 10.0
PARKED = range(4)  # on each shard
# What docs/operations/status-page.md shows.
PICTURES = {"status-light", "status-dark-narrow", "queue-dark", "messages-light"}
WIDE, NARROW = (1280, 900), (360, 780)
# The widest thing that the page itself has; tables scroll in boxes of their own.
WIDTH = "document.documentElement.scrollWidth"
GROUND = "getComputedStyle(document.body).backgroundColor"
CLICK = "[...document.querySelectorAll('{}')].find(one => one.innerText === '{}').click()"


def queue(name: str, settings: str = "", at: float = SAMPLES, **figures: int) -> QueueFigures:
    """Return a queue on two shards at sample *at* of the hour."""
    wave = sin(at / 25) + 1
    load = figures.pop("load", 10)
    counters = Counters(
        delivered=round(at * load * 10),
        acked=round(at * load * 9.8),
        redelivered=round(at * load / 5),
        parked=2 * len(PARKED),
        dead_lettered=2,
    )
    for _ in range(int(at)):
        counters.delivery_latency.observe(round((2 + wave) * 10**6), load)
        counters.ack_latency.observe(round((80 + 30 * wave) * 10**6), load)
    known = {
        "streams": 2,
        "cached": 40,
        "ready": 4,
        "in_flight": 31,
        "parked": len(PARKED),
        "depth": round(load * 20 * wave),
    }
    known |= figures
    half = {"is_whole": True, "oldest_ready_ns": None} | known
    shards = (
        ShardFigures(shard="-80", counters=counters, **half),  # type: ignore[arg-type]
        ShardFigures(shard="80-", counters=Counters(), **half),  # type: ignore[arg-type]
    )
    table = loaded(raw_table(name, DEFAULT_COMMENT + settings), SHOP)
    return QueueFigures(table, shards, known["streams"])


def queues(at: float = SAMPLES) -> list[QueueFigures]:
    """Return all queues at sample *at*."""
    return [
        queue("orders", ",vt_max_in_flight=200", at, load=42, blocked=12),
        queue("mail", ",vt_max_rate=50", at, load=25),
        queue("invoices", ",vt_paused=on", at, load=3, ready=0, in_flight=0, streams=0),
        queue("thumbnails", "", at, load=18),
    ]


def furnish(guarded) -> None:
    """Give the page something to show."""
    status = guarded.status
    now_s = status.clock.time_ns() / 10**9
    guarded.server.history.forget_all_but([])
    for at in range(SAMPLES):
        guarded.server.history.sample(queues(at), now_s + SAMPLE_S * (at - SAMPLES))
    status.figures = queues()

    async def queues_now() -> list[QueueFigures]:
        return queues(SAMPLES + (status.clock.time_ns() / 10**9 - now_s) / SAMPLE_S)

    status.queues = queues_now
    status.shard_status = lambda: [
        ShardStatus(
            SHOP, name, f"db{number}.internal:3306", "11.8.2-MariaDB", None, 32, 14, 5, 0
        )
        for number, name in enumerate(("-80", "80-"), 1)
    ]
    status.member = lambda: MemberStatus(
        "bd392b479e2f3b40",
        "1.0",
        93_000.0,
        48,
        6,
        1_204_551,
        is_stopping=False,
        address="10.0.0.7:15307",
        dispatches=(f"{SHOP}/-80", f"{SHOP}/80-"),
    )
    for number in (7, 8):
        guarded.services.sessions[number] = Client(replace(USERS["app"], name="worker"), number)
    now_ns = status.clock.time_ns()
    since = {"opened_ns": now_ns - 7_412 * 10**9, "oldest_unacked_ns": now_ns - 85 * 10**6}
    status.open_streams = [
        replace(stream_of(status.figures[0], 7, unacked=31), **since),
        replace(stream_of(status.figures[1], 8, unacked=4), **since),
    ]
    servers = {
        shard: MessagesServer(
            *(
                (first + 4096 * number, f"order {first % 97 + number}: 2 lamps, 1 chair")
                for number in PARKED
            )
        )
        for shard, first in (("-80", 5_871_402_113_201), ("80-", 5_871_402_120_777))
    }
    guarded.with_shards(SHOP, "-80", "80-", **servers)


async def views(page: Page, guarded) -> AsyncIterator[str]:
    """Go to each view in turn and yield its name: before the login, and as an administrator."""
    furnish(guarded)
    await page.size(*WIDE)
    await page.open(f"http://127.0.0.1:{guarded.server.port}/")
    await page.until("document.activeElement?.id === 'name'")
    yield "login"
    await page.run("document.getElementById('name').value = 'boss'")
    await page.run("document.getElementById('password').value = 'secret'")
    await page.run("document.getElementById('login').requestSubmit()")
    await page.until("document.querySelectorAll('#queues + div tbody tr').length === 4")
    yield "status"
    await page.run(CLICK.format("a", f"{SHOP}.orders"))
    await page.until("document.querySelectorAll('.uplot canvas').length === 3")
    await page.until("document.querySelectorAll('#streams + div tbody tr').length === 1")
    yield "queue"
    await page.run(CLICK.format("button", "Parked"))
    await page.until("document.querySelectorAll('#messages + div tbody tr').length > 1")
    await page.run("document.getElementById('messages').scrollIntoView()")
    yield "messages"
    await page.run("document.querySelector('#messages + div tbody button').click()")
    await page.until("document.querySelector('dialog') !== null")
    yield "message"
    await page.run("document.querySelector('dialog').close()")
    await page.run(CLICK.format("button", "Pause…"))
    await page.until("document.querySelector('dialog') !== null")
    yield "question"


async def looks(page: Page) -> AsyncIterator[str]:
    """Yield each look of a view: its scheme, and how wide it is."""
    for scheme in ("light", "dark"):
        await page.scheme(scheme)
        for width, size in (("", WIDE), ("-narrow", NARROW)):
            await page.size(*size)
            yield f"{scheme}{width}"
    await page.scheme("light")
    await page.size(*WIDE)


async def test_every_view_fits_a_telephone(guarded, tmp_path):
    async with chromium(tmp_path) as page:
        async for view in views(page, guarded):
            grounds = set()
            async for look in looks(page):
                if look.endswith("-narrow"):
                    assert await page.run(WIDTH) <= NARROW[0], (view, look)
                grounds.add(await page.run(GROUND))
                await keep(page, f"{view}-{look}")
            assert len(grounds) == 2, "light and dark"
        assert [error for error in page.errors if "status of 401" not in error] == []


async def test_axe_core_finds_no_fault_in_any_view(guarded, tmp_path, axe_script):
    async with chromium(tmp_path) as page:
        found = {}
        async for view in views(page, guarded):
            async for look in looks(page):
                if faults := await violations(page, axe_script):
                    found[view, look] = faults
        assert not found
        await page.run("document.querySelector('dialog').append(new Image())")
        faults = await violations(page, axe_script)
        assert any(fault.startswith("image-alt") for fault in faults), "what is wrong is found"


async def keep(page: Page, name: str) -> None:
    """Write a picture that the manual shows, where the environment asks for it."""
    if (folder := os.environ.get("SCREENSHOTS")) and name in PICTURES:
        picture = await page.screenshot()
        await asyncio.to_thread(Path(folder, f"{name}.png").write_bytes, picture)
