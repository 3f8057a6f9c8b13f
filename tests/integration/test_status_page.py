"""The status page of a real proxy before real servers: every click in a real Chromium, and what the same does over HTTP."""

import json
import re
import urllib.parse
from dataclasses import dataclass
from typing import Any

import pytest

from tests.fixtures.chromium import PROGRAM, Page, chromium
from tests.fixtures.page_visitor import PageVisitor
from tests.fixtures.running_proxy import keyspace_toml, write_vschema
from tests.fixtures.streams import Consume, eventually, rows, run


pytestmark = pytest.mark.one_server

MARKUP = "<script>alert('1')</script>\\%_"
HOSTILE = {"html": "<img src=x onerror=\"document.title='taken'\">", "no": [], "n": 1}
# More digits than a double has.
BIG = 12345678901234567890
CONFIG = '[server]\nlisten = "127.0.0.1:0"\n[admin]\nlisten = "127.0.0.1:0"\n'
QUEUE = {"keyspace": "ks", "queue": "job"}
PARKED = "time_next = 9000000000000000000 AND time_acked IS NULL"
PARK = "UPDATE job SET time_next = 9000000000000000000, epoch = 3"
READY = "time_next = 0 AND epoch = 0 AND time_acked IS NULL"


@dataclass
class Served:
    """A proxy without users, a client and a visitor of its page."""

    proxy: Any
    client: Any
    visitor: PageVisitor

    def count(self, where: str, table: str = "job") -> int:
        return int(rows(self.client, f"SELECT COUNT(*) FROM {table} WHERE {where}")[0][0])

    def insert(self, count: int, **columns: Any) -> None:
        names = ", ".join(columns)
        values = ", ".join(["(" + ", ".join(["%s"] * len(columns)) + ")"] * count)
        with self.client.cursor() as cursor:
            sql = f"INSERT INTO job ({names}) VALUES {values}"
            cursor.execute(sql, [*columns.values()] * count)

    def ask(self, path: str, **asked: str) -> Any:
        query = f"?{urllib.parse.urlencode(QUEUE | asked)}" if asked else ""
        status, found = self.visitor.get(path + query)
        assert status == 200, found
        return found

    def post(self, path: str, **body: Any) -> tuple[int, Any]:
        return self.visitor.post(path, **QUEUE | body)

    def pages(self, **asked: str) -> tuple[list[Any], int]:
        """Return all rows of a look, and how many messages were looked at."""
        found, looked = [], 0
        cursor: str | None = ""
        while cursor is not None:
            page = self.ask("/api/messages", cursor=cursor, **asked)
            assert page["missing"] == []
            found += page["rows"]
            looked += page["looked_at"]
            cursor = page["next"]
        return found, looked

    def act_on_all(self, action: str, limit: int, **asked: str) -> tuple[int, int]:
        """Act on all that match, *limit* a request; return how many were done, and by how many requests."""
        done, requests = 0, 0
        cursor: str | None = ""
        while cursor is not None:
            asked |= {"action": action, "cursor": cursor}
            _, answer = self.post("/api/act", limit=limit, **asked)
            assert answer["missing"] == []
            assert answer["looked_at"] <= limit
            done, cursor, requests = done + answer["done"], answer["next"], requests + 1
        return done, requests


@pytest.fixture(params=[1, 2], ids=["unsharded", "sharded"])
def served(request, servers, sharded_database, start_proxy, tmp_path):
    sharded = {"sharded": True, "vindexes": {}, "tables": {}}
    vschema = None if request.param == 1 else write_vschema(tmp_path, sharded)
    keyspace = keyspace_toml("ks", servers[: request.param], sharded_database, vschema)
    proxy = start_proxy(CONFIG + keyspace)
    (address,) = re.findall(r"(http://127\.0\.0\.1:\d+)/metrics", proxy.log_path.read_text())
    client = proxy.connect(database="ks", autocommit=True)
    run(
        client,
        "CREATE QUEUE job (tenant INT, payload JSON, INDEX by_tenant (tenant))"
        " WITH (max_attempts = 1, ack_wait = 600, dead_letter = on)",
    )
    return Served(proxy, client, PageVisitor(address))


def test_all_that_match_are_found_and_done_some_at_a_time(served: Served) -> None:
    for tenant in (1, 2):
        served.insert(700, tenant=tenant, payload="[]")
        run(served.client, f"{PARK} WHERE tenant = {tenant}")
    matching = {"state": "parked", "column": "tenant", "value": "1"}
    done, requests = served.act_on_all("retry", 200, **matching)
    assert done == served.count(READY) == 700
    assert requests >= 4
    assert served.count(PARKED) == 700
    assert served.post("/api/requeue", source="parked", limit=300) == (200, {"done": 300})
    assert served.count(PARKED) == 400
    run(served.client, "UPDATE job SET time_acked = NOW() WHERE tenant = 2")
    (first,) = rows(served.client, "SELECT MIN(id) FROM job WHERE tenant = 1")[0]
    run(served.client, f"UPDATE job SET time_acked = NOW() WHERE id = {first}")
    for how in ("is", "contains"):
        asked = {"state": "acked", "column": "tenant", "value": "1", "how": how}
        assert len(served.pages(**asked)[0]) == 1, how
    done, _ = served.act_on_all("delete", 500, state="acked")
    assert (done, served.count("TRUE")) == (701, 699)


ODD = {
    "id": "VARCHAR(60)",
    "<i>a`b'%s\" c</i>": "TEXT",
    "Größe": "INT",
    "data": "BLOB",
    "doc": "JSON",
    "kind": "ENUM('<x>', 'y')",
    "bits": "BIT(8)",
}
ODD_NAME = "o'd <b>%s"
ODD_ROWS = (
    (MARKUP, MARKUP, 0, b"\xff\0'", "[1]", "<x>", b"\x01"),
    ("b", "", 7, "", "{}", "y", b"\0"),
)


def quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def make_odd_queue(served: Served) -> None:
    name, names = quoted(ODD_NAME), ", ".join(map(quoted, ODD))
    columns = ", ".join(f"{quoted(one)} {kind}" for one, kind in ODD.items())
    run(served.client, f"CREATE QUEUE {name} ({columns}) WITH (ack_wait=600, dead_letter=on)")
    insert = f"INSERT INTO {name} ({names})".replace("%", "%%")
    with served.client.cursor() as cursor:
        for row in ODD_ROWS:
            cursor.execute(f"{insert} VALUES (%s, %s, %s, %s, %s, %s, %s)", row)


def test_a_queue_of_odd_names_and_types(served: Served, consume: Consume) -> None:
    make_odd_queue(served)
    place = {"queue": ODD_NAME}
    (found, *_) = [one for one in served.pages(state="all", **place)[0] if one["id"] == MARKUP]
    whole = served.ask("/api/message", shard=found["shard"], key=found["key"], **place)
    values = {one["name"]: one["value"] for one in whole["values"] if one["value"]}
    assert values.keys() == ODD.keys() - {"id"}
    for column, value in {"id": MARKUP, **values}.items():
        for how in ("is", "contains"):
            asked = {"state": "all", "column": column, "value": value, "how": how}
            ids = [one["id"] for one in served.pages(**asked, **place)[0]]
            assert ids == [MARKUP], (column, how)
    stream = consume(served.proxy, f"STREAM * FROM {quoted(ODD_NAME)}", database="ks")
    stream.take(2)
    held, _ = served.pages(state="in_flight", **place)
    assert {(one["id"], one["state"]) for one in held} == {
        (MARKUP, "in_flight"),
        ("b", "in_flight"),
    }
    assert all(one["held_by"] for one in held)
    assert served.pages(state="ready", **place)[0] == []
    keys = [{"shard": one["shard"], "key": one["key"]} for one in held]
    for action in ("park", "retry", "ack", "delete"):
        answer = served.post("/api/act", action=action, messages=keys, **place)[1]
        assert answer["done"] == 2, action
    for source in ("parked", "dead"):
        assert served.post("/api/requeue", source=source, **place) == (200, {"done": 0})
    assert served.post("/api/pause", **place)[0] == 204


MESSAGES = "document.querySelector('#messages + div')"
LINES = f"[...{MESSAGES}.querySelectorAll('tbody tr')]"
NOTE = f"{MESSAGES}.querySelector('.note').innerText"
# One that was closed leaves the document a moment later.
DIALOG = "document.querySelector('dialog[open]')"


class Clicks:
    def __init__(self, page: Page) -> None:
        self.page = page

    async def press(self, words: str, within: str = "document") -> None:
        button = f"[...{within}.querySelectorAll('button')].find(one => !one.hidden && !one.disabled && one.innerText === {json.dumps(words)})"
        await self.page.until(f"Boolean({button})")
        await self.page.run(f"{button}.click()")

    async def agree(self, words: str, rate: str = "") -> str:
        await self.page.until(f"Boolean({DIALOG})")
        asked: str = await self.page.run(f"{DIALOG}.innerText")
        if rate:
            await self.page.run(f"document.getElementById('pace').value = {rate!r}")
        await self.press(words, DIALOG)
        await self.page.until(f"!{DIALOG}")
        return asked

    async def see(self, state: str, count: int) -> None:
        await self.press(state, MESSAGES)
        await self.page.until(f"{NOTE} && {LINES}.length === {count}")

    async def look(self, column: str, how: str, value: str, lines: str) -> None:
        """Look for messages; *lines*: how many are shown then, as a condition."""
        await self.page.run(
            f"document.getElementById('column').value = {column!r};"
            f" document.getElementById('how').value = {how!r};"
            f" document.getElementById('value').value = {value!r};"
            f" {MESSAGES}.querySelector('form').requestSubmit()"
        )
        await self.page.until(f"{NOTE}.includes('Looked at') && {LINES}.length {lines}")

    async def choose(self, count: int) -> None:
        await self.page.run(
            f"{LINES}.slice(0, {count}).forEach(row => row.querySelector('input').click())"
        )

    async def act_on(self, which: str) -> None:
        whom = f"{MESSAGES}.querySelector('[aria-label=\"Act on\"]')"
        await self.page.run(
            f"{whom}.value = {which!r}; {whom}.dispatchEvent(new Event('change'))"
        )


@pytest.mark.slow
@pytest.mark.skipif(PROGRAM is None, reason="no Chromium on this machine (apt: chromium)")
async def test_every_click_of_a_queues_page(served, consume, tmp_path):
    payload = json.dumps(HOSTILE).replace('"n": 1', f'"n": {BIG}')
    served.insert(40, tenant=1, payload=payload)
    served.insert(8, tenant=2, payload=json.dumps({"order": "needle"}))
    run(served.client, f"{PARK}, last_error = 'SMTP 421' WHERE tenant = 1")
    async with chromium(tmp_path / "chromium") as page:
        clicks = Clicks(page)
        await page.size(1280, 900)
        await page.open(f"{served.visitor.address}/")
        verdict = "document.querySelector('.verdict')?.innerText ?? ''"
        await page.until(f"({verdict}).includes('40 messages parked in a queue')")
        await page.until(f"({verdict}).includes('A queue has messages and no stream')")
        await page.run("document.querySelector('.verdict a').click()")
        await page.until("document.getElementById('title')?.innerText === 'ks.job'")
        await page.until("document.querySelectorAll('.uplot canvas').length === 3")
        await browse_and_open(page, clicks)
        await find(page, clicks)
        await act(page, clicks, served)
        await requeue_and_pause(page, clicks, served)
        stream = consume(served.proxy, "STREAM * FROM job", database="ks")
        stream.take(1)
        await clicks.press("Disconnect…")
        assert "gets an error" in await clicks.agree("Disconnect")
        assert stream.error()[0] == 1317
        await odd_names(page, clicks, served)
        assert await page.run("document.title") == f"ks.{ODD_NAME} · streamfrom"
        assert page.errors == []
    log = served.proxy.log()
    for event in ("messages changed", "messages requeued", "queue paused", "stream ended"):
        assert event in log


async def odd_names(page: Page, clicks: Clicks, served: Served) -> None:
    make_odd_queue(served)
    await page.run(
        f"location.hash = '#/queue/ks/' + encodeURIComponent({json.dumps(ODD_NAME)})"
    )
    await page.until(f"document.title === {json.dumps(f'ks.{ODD_NAME} · streamfrom')}")
    await clicks.see("All", len(ODD_ROWS))
    head = await page.run(f"{MESSAGES}.querySelector('thead').innerText")
    assert all(name in head for name in ODD if name != "id")
    await clicks.press(MARKUP, MESSAGES)
    await page.until(f"Boolean({DIALOG})")
    assert MARKUP in await page.run(f"{DIALOG}.querySelector('h2').innerText")
    assert await page.run("document.querySelectorAll('main :is(i, b, script)').length") == 0
    await clicks.press("Close", DIALOG)


async def browse_and_open(page: Page, clicks: Clicks) -> None:
    await clicks.see("Parked", 20)
    assert "<img src=x" in await page.run(f"{MESSAGES}.innerText")
    assert await page.run("document.querySelectorAll('main img').length") == 0
    await clicks.press("Next page", MESSAGES)
    await page.until(f"{NOTE}.includes('20 here')")
    await page.run(f"{LINES}[0].querySelector('th button').click()")
    await page.until(f"Boolean({DIALOG})")
    shown = await page.run(f"{DIALOG}.innerText")
    assert "SMTP 421" in shown
    assert "never: parked" in shown
    assert re.search(r"Attempts\s+3\b", shown)
    body = await page.run(f"{DIALOG}.querySelector('[aria-label=payload]').textContent")
    assert json.loads(body) == HOSTILE | {"n": BIG}
    assert f'\n  "n": {BIG}' in body
    await clicks.press("Close", DIALOG)
    await page.until(f"!{DIALOG}")
    for state in ("Ready", "In flight", "Scheduled", "Blocked", "Acknowledged", "All"):
        await clicks.press(state, MESSAGES)
        pressed = f"{MESSAGES}.querySelector('[aria-pressed=true]').innerText"
        await page.until(f"{pressed} === '{state}'")


async def find(page: Page, clicks: Clicks) -> None:
    await clicks.look("payload", "contains", "needle", "=== 8")
    assert "Looked at 48 messages" in await page.run(NOTE)
    ident = await page.run(f"{LINES}[0].querySelector('th').innerText")
    await clicks.look("id", "is", ident, "=== 1")
    assert await page.run(f"{LINES}[0].querySelector('th').innerText") == ident
    await clicks.press("Clear", MESSAGES)
    await page.until(f"{LINES}.length === 20")


async def act(page: Page, clicks: Clicks, served: Served) -> None:
    await clicks.see("Parked", 20)
    await clicks.choose(2)
    await clicks.press("Acknowledge…", MESSAGES)
    assert "never delivered again" in await clicks.agree("Acknowledge")
    eventually(lambda: served.count("time_acked IS NOT NULL") == 2)
    await page.until(f"{NOTE}.includes('2 of 2 done')")
    await page.run(f"{LINES}[0].querySelector('th button').click()")
    await page.until(f"Boolean({DIALOG})")
    await clicks.press("Delete…", DIALOG)
    assert "nothing brings them back" in await clicks.agree("Delete")
    eventually(lambda: served.count("TRUE") == 47)
    await clicks.see("Ready", 8)
    await clicks.choose(3)
    await clicks.press("Park…", MESSAGES)
    await clicks.agree("Park")
    eventually(lambda: served.count(PARKED) == 40)
    # All that match, at a rate.
    await clicks.see("Parked", 20)
    await clicks.look("tenant", "is", "1", ">= 20")
    await clicks.act_on("all")
    await a_shard_is_left_out(page, clicks)
    await clicks.press("Retry now…", MESSAGES)
    asked = await clicks.agree("Retry now", rate="200")
    assert "all messages that are parked and whose tenant is “1”" in asked
    eventually(lambda: (served.count(READY), served.count(PARKED)) == (42, 3))
    await page.until(f"{NOTE}.includes('Retry now: 37 done')")


async def a_shard_is_left_out(page: Page, clicks: Clicks) -> None:
    """The page is given an answer that lacks a shard, once what is no rate was refused."""
    answer = {"done": 3, "missing": [{"shard": "<b>80-</b>", "reason": "away"}], "next": None}
    await page.run(
        "window.realFetch = fetch; window.acts = []; window.fetch = async (path, options) => path === '/api/act'"
        " ? (acts.push(JSON.parse(options.body).messages?.length),"
        f" new Response({json.dumps(json.dumps(answer))})) : realFetch(path, options)"
    )
    await clicks.press("Delete…", MESSAGES)
    await page.until(f"Boolean({DIALOG})")
    for rate in ("0", "-1", "1.5"):
        await page.run(f"document.getElementById('pace').value = '{rate}'")
        await clicks.press("Delete", DIALOG)
        assert await page.run("acts") == [], rate
    await page.run("document.getElementById('pace').value = ''")
    await clicks.press("Delete", DIALOG)
    await page.until(f"{DIALOG}.innerText.includes('Without shard <b>80-</b>: away')")
    assert "3 done so far" in await page.run(f"{DIALOG}.innerText")
    await clicks.press("Close", DIALOG)
    await page.until(f"!{DIALOG}")
    # More messages than one request may name.
    await page.run(
        "import('/messages.js').then(({ Messages }) => new Messages('ks', 'job').actOn("
        "['ack', 'Acknowledge', null, ''], Array(450).fill({ shard: '0', key: '31' }), '450 messages'))"
    )
    await clicks.press("Acknowledge", DIALOG)
    await page.until("acts.length === 4")
    assert (await page.run("acts"))[1:] == [200, 200, 50]
    await clicks.press("Close", DIALOG)
    await page.until(f"!{DIALOG}")
    await page.run("window.fetch = realFetch")


async def requeue_and_pause(page: Page, clicks: Clicks, served: Served) -> None:
    await clicks.press("Requeue parked…")
    assert "Fix what made them fail" in await clicks.agree("Requeue", rate="100")
    eventually(lambda: served.count(PARKED) == 0)
    await clicks.press("Pause…")
    await clicks.agree("Pause")
    await page.until("document.querySelector('.titled button').innerText === 'Resume…'")
    await clicks.press("Resume…")
    await clicks.agree("Resume")
    await page.until("document.querySelector('.titled button').innerText === 'Pause…'")
    run(served.client, "INSERT INTO job_dead (id, tenant, payload) VALUES (1, 9, '[]')")
    await clicks.press("Requeue dead letters…")
    await clicks.agree("Requeue")
    eventually(lambda: served.count("tenant = 9") == 1)
