"""The HTTP side: who is answered, and with what."""

import ast
import asyncio
import re

import aiohttp
import pytest

from streamfrom.proxy.admin import admin_gate, history
from streamfrom.proxy.admin.admin_server import AT_ONCE_MAX, AdminServer, page_routes
from streamfrom.proxy.admin.metrics import MetricsPage
from streamfrom.proxy.config.file import TlsSettings
from streamfrom.proxy.status import status_rows
from streamfrom.proxy.status.fleet_figures import MembersFigures
from streamfrom.proxy.status.status_rows import Unanswered, queue_rows
from streamfrom.proxy.tls import ServerTls
from tests.cases import cases, in_turn
from tests.proxy.admin.conftest import (
    NAMES,
    QUEUES,
    USERS,
    Acting,
    OtherClient,
    Status,
    services,
)
from tests.proxy.certificates import issued


async def test_it_is_alive_and_ready_as_long_as_one_shard_answers(served):
    assert (await served.ask("/healthz"))[:2] == (200, "alive\n")
    assert (await served.ask("/readyz"))[:2] == (200, "ready\n")
    served.status.troubles = ["gone", "gone"]
    assert (await served.ask("/readyz"))[:2] == (503, "no shard answers\n")
    assert (await served.ask("/healthz"))[0] == 200
    served.status.troubles = [None]
    served.status.is_stopping = True
    assert (await served.ask("/readyz"))[:2] == (503, "stopping\n")


@cases(path=str, method=str, expected=ast.literal_eval)
async def test_what_there_is_not_is_refused(served, path, method, expected):
    assert (await served.ask(path, method))[0] == expected
    assert (await served.ask("/healthz"))[0] == 200


async def test_a_page_of_elsewhere_and_headers_without_an_end_are_refused(served):
    assert (await served.ask("/api/members", Host="evil.example"))[0] == 403
    assert (await served.ask("/api/members", Host="localhost"))[0] == 200
    assert (await served.ask("/healthz", x="y" * 20_000))[0] == 400
    assert (await served.ask("/healthz"))[0] == 200


@pytest.mark.parametrize(
    "sent",
    [b"\x00\xff\r\n\r\n", b"GET / HTTP/1.1\r\nx: " + b"y" * 20_000 + b"\r\n\r\n"],
)
async def test_what_is_no_http_leaves_no_trace_in_the_log(served, caplog, sent):
    reader, writer = await asyncio.open_connection("127.0.0.1", served.server.port)
    writer.write(sent)
    assert (await reader.read()).startswith(b"HTTP/1.0 400 ")
    writer.close()
    assert not caplog.records


async def test_a_body_that_does_not_come_is_not_waited_for(guarded, monkeypatch):
    monkeypatch.setattr(admin_gate, "FIRST_BYTES_S", 0.01)
    port = guarded.server.port
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(
        b"POST /api/login HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nContent-Type: application/json\r\n"
        b"Content-Length: 100\r\n\r\n{" % port
    )
    assert (await reader.readline()).startswith(b"HTTP/1.1 408 ")
    writer.close()


async def test_of_many_requests_at_once_some_are_refused_and_it_lives(served):
    # The first sample of the history has been taken, or it takes part.
    served.status.gate.clear()
    waiting = [asyncio.create_task(served.ask("/metrics")) for _ in range(AT_ONCE_MAX + 1)]
    done, pending = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    assert [task.result()[0] for task in done] == [503]
    assert (await served.ask("/healthz"))[0] == 200
    served.status.gate.set()
    assert {(await task)[0] for task in pending} == {200}
    assert (await served.ask("/metrics"))[0] == 200


async def test_with_tls_the_whole_port_speaks_it(guarded, tmp_path):
    settings = TlsSettings(*issued("here").write(tmp_path, "here"), require=True)
    guarded.services.tls = ServerTls(settings)
    secure = AdminServer(guarded.services, guarded.acting)
    await secure.start("127.0.0.1", 0)
    try:
        async with aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as session:
            address = f"https://127.0.0.1:{secure.port}"
            async with session.get(f"{address}/healthz", ssl=False) as answer:
                assert answer.status == 200
            body = {"user": "boss", "password": "secret"}
            async with session.post(f"{address}/api/login", json=body, ssl=False) as answer:
                assert answer.status == 204
                assert "Secure" in answer.headers["Set-Cookie"].split("; ")
    finally:
        await secure.stop()
    # This server began without: a password in clear text is not taken any more.
    assert await guarded.browser.log_in("boss") == 403


async def test_a_queue_has_a_page_of_its_own(guarded):
    await guarded.browser.log_in("reader")
    assert (await guarded.ask("/api/queue?keyspace=ks&queue=nothing"))[0] == 404
    assert (await guarded.ask("/api/queue"))[0] == 404
    assert (await guarded.ask("/api/queue?keyspace=ks2&queue=other&after=x"))[0] == 400
    found = await guarded.browser.get("/api/queue?keyspace=ks2&queue=other")
    assert set(found) == {"queue", "shards", "streams", "settings", "columns", "history"}
    assert found["queue"]["depth"] == 3


async def test_the_overview_and_metrics_are_made_in_turns(served, monkeypatch):
    served.status.figures = QUEUES[::-1]
    other, add = OtherClient(), MetricsPage.add

    def made(queues, *rest):
        other.saw(queues)
        return queue_rows(queues, *rest)

    def added(page, queues):
        other.saw(queues)
        add(page, queues)

    monkeypatch.setattr(status_rows, "queue_rows", made)
    found = await served.browser.get("/api/overview")
    assert [one["queue"] for one in found["queues"]] == NAMES
    other.check()
    other = OtherClient()
    monkeypatch.setattr(MetricsPage, "add", added)
    _, text, _ = await served.ask("/metrics")
    assert text.count("\nstreamfrom_queue_streams{") == len(QUEUES)
    other.check()


async def test_the_page_tells_who_does_not_answer_and_no_rates_without_it(served):
    served.status.others.told = MembersFigures((), (Unanswered("zoe", "1", "h:1", "late"),))
    found = await served.browser.get("/api/overview")
    assert [(one["member"], one["is_answering"]) for one in found["members"]] == [
        (None, 1),
        ("zoe", 0),
    ]
    queue = found["queues"][0]
    assert (queue["unanswered"], queue["delivered_per_s"]) == ("member zoe at h:1: late", None)


async def test_no_sample_is_taken_without_a_member(monkeypatch):
    status = Status()
    server = AdminServer(services(status, None, USERS), Acting())
    taken = asyncio.Event()
    asks = []

    async def told(tables, viewer=None):
        asks.append(tables)
        silent = (Unanswered("zoe", "1", "h:1", "late"),) if len(asks) < 3 else ()
        return MembersFigures((), silent)

    monkeypatch.setattr(status.others, "ask", told)
    monkeypatch.setattr(history, "SAMPLE_S", 0)
    monkeypatch.setattr(server.history, "sample", lambda *_: taken.set())
    await server.start("127.0.0.1", 0)
    try:
        async with asyncio.timeout(60):
            await taken.wait()
    finally:
        await server.stop()
    assert len(asks) >= 3, "the first two were not all that there is"


# The page's files: what they may load, and how large they are.
PATHS = list(page_routes())
VENDORED = {"/uplot.js", "/uplot.css"}
KIB = 1024


async def test_the_whole_page_is_small_and_never_makes_html_of_text(served):
    assert {"/", "/page.js", *VENDORED} <= set(PATHS)
    texts = {path: (await served.ask(path))[1] for path in PATHS}
    assert sum(map(len, texts.values())) <= 150 * KIB
    made = r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\("
    assert not [path for path in PATHS if path.endswith(".js") and re.search(made, texts[path])]


@in_turn
@pytest.mark.parametrize("path", PATHS)
async def test_nothing_comes_from_elsewhere_and_nothing_stands_inline(served, path):
    status, text, headers = await served.ask(path)
    assert status == 200
    policy = headers["Content-Security-Policy"]
    assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self';")
    assert "unsafe" not in policy
    assert "frame-ancestors 'none'" in policy
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Cache-Control"] == "no-store"
    addresses = set(re.findall(r"https?://[^\s\"']+", text))
    # A namespace, and where the library's home is.
    assert addresses <= {"http://www.w3.org/2000/svg", "https://github.com/leeoniya/uPlot"} | {
        "https://github.com/leeoniya/uPlot,"
    }
    assert "style=" not in text
    assert not re.search(r"<script(?![^>]* src=)", text)
