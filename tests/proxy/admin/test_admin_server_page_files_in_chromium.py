"""The status page as a person meets it, in one session of a real Chromium; figures are made up here."""

import time
from dataclasses import replace
from math import sin

import pytest

from streamfrom.proxy.errors import BackendError
from tests.fixtures.chromium import PROGRAM, Page, chromium
from tests.proxy.admin.conftest import USERS, Client, figures, stream_of
from tests.sim.memory_store import DEFAULT_COMMENT, loaded, raw_table


pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(PROGRAM is None, reason="no Chromium on this machine (apt: chromium)"),
]

HOSTILE = "<img src=x onerror=\"document.title='taken'\">"
QUEUES = "[...document.querySelectorAll('#queues + div tbody tr')]"
NAMES = f"{QUEUES}.map(row => row.cells[0].innerText)"
FOCUSED = "document.activeElement"
# Every control must have a name that a screen reader can say, and each cell of a head its scope.
NAMELESS = """[...document.querySelectorAll('button, a, input, [role=region], dialog')]
    .filter(each => !(each.innerText?.trim() || each.getAttribute('aria-label') || each.labels?.length
        || each.getAttribute('aria-labelledby'))).map(each => each.outerHTML)"""


async def test_the_page_from_login_to_logout(guarded, tmp_path):
    status = guarded.status
    status.figures = [
        figures("orders", depth=1200),
        figures(HOSTILE, "ks2", depth=7),
        figures("mail", depth=30),
    ]
    async with chromium(tmp_path) as page:
        await page.size(1280, 800)
        await page.open(f"http://127.0.0.1:{guarded.server.port}/")
        await log_in_by_keyboard(page)
        await overview(page, status)
        await what_needs_attention(page, status)
        await limits_and_what_is_held(page, status)
        await sorting_by_keyboard(page)
        await own_page_of_a_queue(page, guarded)
        await a_pause_is_asked_for_twice(page, guarded)
        await a_session_ends_under_a_dialog(page, guarded)
        # The console has each 401 and 403, at a time of its own; of what the policy refuses as well.
        assert [error for error in page.errors if "status of 40" not in error] == []
        await old_figures_are_told(page, guarded)
        await page.run("document.getElementById('logout').click()")
        await page.until("!document.getElementById('login').hidden")
        assert await page.run("document.getElementById('view').childElementCount") == 0


async def log_in_by_keyboard(page: Page) -> None:
    await log_in(page, "wrong")
    await page.until("document.getElementById('refusal').innerText.includes('no such user')")
    await page.until(f"{FOCUSED}?.id === 'password'")
    await page.run("document.getElementById('password').select()")
    await page.write("secret")
    await page.press("Enter")
    await page.until(f"{QUEUES}.length === 3")
    assert await page.run("document.getElementById('password').value") == ""


async def log_in(page: Page, password: str) -> None:
    await page.until(f"{FOCUSED}?.id === 'name'")
    await page.run("document.getElementById('name').select()")
    await page.write("boss")
    await page.press("Tab")
    await page.write(password)
    await page.press("Enter")


async def overview(page: Page, status) -> None:
    assert await page.run(NAMES) == ["ks.mail", "ks.orders", f"ks2.{HOSTILE}"]
    assert await page.run("document.querySelectorAll('main img').length") == 0
    assert "1,200" in await page.run(f"{QUEUES}[1].innerText")
    # Live, without a reload.
    await page.run("window.isSame = true")
    status.figures[0] = figures("orders", depth=4321)
    await page.until(f"{QUEUES}[1].innerText.includes('4,321')")
    assert await page.run("window.isSame")
    assert await page.run(NAMELESS) == []
    assert await page.run("document.querySelectorAll('th:not([scope])').length") == 0
    assert "gone" in await page.run("document.querySelector('.verdict').innerText")
    assert await page.run("document.title") == "(1) streamfrom"


async def what_needs_attention(page: Page, status) -> None:
    told = "document.querySelector('.verdict').innerText"
    member, before = status.member, status.figures[0]
    now_s = time.time()
    off = replace(
        member(), member=HOSTILE, clock_unix_s=now_s - 3600, certificate_expires_s=now_s
    )
    status.member = lambda: off
    await page.until(f"{told}.includes('(60 min behind)')")
    assert f"A certificate expires soon: {HOSTILE} (in 60 min)" in await page.run(told)
    status.member = lambda: replace(off, clock_unix_s=now_s + 7200, certificate_expires_s=now_s)
    await page.until(f"{told}.includes('ahead)')")
    assert f"A certificate has expired: clients that check it do not connect: {HOSTILE}" in (
        await page.run(told)
    )
    shard = replace(before.shards[0], partitions_overdue=3)
    status.figures[0] = replace(before, shards=(shard,))
    await page.until(f"{told}.includes('nor made: ks.orders (3)')")
    status.member, status.figures[0] = member, before
    await page.until(f"{told}.startsWith('One thing')")
    right = replace(member(), clock_unix_s=time.time() + 3)
    status.member = lambda: replace(
        right, certificate_expires_s=right.clock_unix_s + 90 * 86400
    )
    await page.until("document.querySelector('#members + div tbody').innerText")
    assert (await page.run(told)).startswith("One thing")
    status.member = member


async def limits_and_what_is_held(page: Page, status) -> None:
    before = status.figures[0]
    comment = f"{DEFAULT_COMMENT},vt_max_in_flight=8,vt_max_rate=50"
    shard = replace(before.shards[0], blocked=77, parked=24, cached=99)
    table = loaded(raw_table("orders", comment), "ks")
    status.figures[0] = replace(before, table=table, shards=(shard,))
    cells = f"{QUEUES}[1].innerText"
    await page.until(f"{cells}.includes('1 of 8')")
    assert {"77", "24", "19"} <= set((await page.run(cells)).split("\t"))
    assert "of 50" in await page.run(cells)
    status.figures[0] = before


async def sorting_by_keyboard(page: Page) -> None:
    depth = "document.querySelectorAll('#queues + div thead button')[1]"
    await page.run(f"{depth}.focus()")
    await page.press("Enter")
    assert (await page.run(NAMES))[0] == "ks.orders"
    assert await page.run(f"{depth}.parentNode.ariaSort") == "descending"
    await page.press("Enter")
    assert (await page.run(NAMES))[0] == f"ks2.{HOSTILE}"
    assert await page.run(f"{FOCUSED} === {depth}")
    await page.press("Tab")
    assert await page.run(f"{FOCUSED}.innerText") == "Ready"
    assert "could be delivered now" in await page.run(f"{FOCUSED}.ariaDescription")
    heads = "[...document.querySelectorAll('thead th')]"
    assert await page.run(f"{heads}.filter(head => !head.title).length") == 0


async def own_page_of_a_queue(page: Page, guarded) -> None:
    now_s = guarded.status.clock.time_ns() / 10**9
    guarded.server.history.forget_all_but([])
    for number in range(300):
        depth = 400 + round(300 * sin(number / 20))
        guarded.status.figures[0] = figures(
            "msg", depth=depth, delivered=70 * number, acked=60 * number
        )
        guarded.server.history.sample(guarded.status.figures, now_s + 10.0 * (number - 299))
    await page.until(f"{NAMES}.includes('ks.msg')")
    await page.run(
        "[...document.querySelectorAll('a')].find(a => a.innerText === 'ks.msg').focus()"
    )
    await page.press("Enter")
    await page.until(f"{FOCUSED}?.id === 'title'")
    assert await page.run(f"{FOCUSED}.innerText") == "ks.msg"
    await page.until("document.querySelectorAll('.uplot canvas').length === 3")
    assert await page.run(NAMELESS) == []
    # What a stream holds, and since when; its user's name is hostile too.
    guarded.services.sessions[7] = Client(replace(USERS["app"], name=HOSTILE), 7)
    guarded.status.open_streams = [stream_of(guarded.status.figures[0], 7)]
    streams = "document.querySelector('#streams + div tbody').innerText"
    assert HOSTILE in await page.until(f"{streams}.includes('100') && {streams}")
    assert await page.run("document.querySelectorAll('main img').length") == 0
    # A chart tells its figures to the keyboard, and to who listens.
    await page.run("document.querySelectorAll('.plot')[1].focus()")
    await page.press("Home")
    told = await page.run(f"{FOCUSED}.ariaValueText")
    assert "ago" in told
    assert "delivered 7" in told
    legend = "[...document.querySelectorAll('.u-legend')[1].querySelectorAll('.u-value')]"
    values = await page.run(f"{legend}.map(each => each.innerText)")
    assert values == ["50 min ago", "7.5", "7", "6"]
    await page.run("document.querySelector('#streams + div tbody button').focus()")
    await page.press("Enter")
    await page.press("Tab")
    await page.press("Enter")
    await page.until("!document.querySelector('dialog')")
    assert guarded.acting.sent == [("boss", "", "KILL QUERY 7")]


async def a_pause_is_asked_for_twice(page: Page, guarded) -> None:
    button = "document.querySelector('.titled button')"
    await page.run(f"{button}.focus()")
    await page.press("Enter")
    assert await page.run(f"{FOCUSED}.innerText") == "Cancel"
    assert "ks.msg" in await page.run("document.querySelector('dialog').innerText")
    assert await page.run(NAMELESS) == []
    await page.press("Escape")
    await page.until("!document.querySelector('dialog')")
    assert "ALTER" not in str(guarded.acting.sent)
    guarded.acting.error = BackendError(1142, "42000", f"ALTER command denied {HOSTILE}")
    await page.run(f"{button}.focus()")
    await page.press("Enter")
    await page.press("Tab")
    await page.press("Enter")
    await page.until("document.querySelector('dialog .refusal').innerText.includes('denied')")
    assert await page.run("document.querySelectorAll('main img').length") == 0
    guarded.acting.error = None
    await page.run("document.querySelector('dialog .go').click()")
    await page.until("!document.querySelector('dialog')")
    assert guarded.acting.sent[-1] == ("boss", "ks", "ALTER QUEUE `msg` PAUSE")


async def a_session_ends_under_a_dialog(page: Page, guarded) -> None:
    """It closes: it may show a message, and the login below it would have no focus."""
    users = dict(guarded.services.users)
    await page.run("document.querySelector('.titled button').click()")
    await page.until("Boolean(document.querySelector('dialog[open]'))")
    guarded.services.users.clear()
    await page.until("!document.getElementById('login').hidden")
    await page.until("!document.querySelector('dialog')")
    guarded.services.users.update(users)
    await log_in(page, "secret")
    await page.until("document.getElementById('title')?.innerText === 'ks.msg'")


async def old_figures_are_told(page: Page, guarded) -> None:
    users = dict(guarded.services.users)
    figures_before = guarded.status.figures
    await page.run("location.hash = '#/'")
    guarded.status.figures = None  # every answer fails
    await page.until("document.getElementById('live').innerText.startsWith('No figures for')")
    guarded.status.figures = figures_before
    await page.until("document.getElementById('live').innerText === 'live'")
    guarded.services.users.clear()
    await page.until("!document.getElementById('login').hidden")
    guarded.services.users.update(users)
    await log_in_by_keyboard(page)
